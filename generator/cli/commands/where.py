"""`toponaut where`: the topology of a job that runs, and what a better place would be."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import click

from generator.cli.input_files import MAX_RUNNING_BYTES, read_input, read_running_gangs
from generator.cli.observation import exit_with_problems, read_observation, read_tree
from generator.cli.options import parse_duration
from generator.cli.output import output_option, print_document, shorten_names, render_table
from generator.cli.request_input import find_max_resources
from generator.cli.source_options import source_options, parse_sources
from generator.ingest.sources import Sources
from generator.jobs.job_location import (
    Spread,
    JobLocation,
    find_better_placement,
    build_request_groups,
    render_job_location,
    locate_job,
)
from generator.jobs.running_jobs import (
    RunningJob,
    JobPod,
    find_job,
    find_job_in_gangs,
    build_job_from_nodes,
    parse_job_pod,
)
from generator.kube.access import ClusterAccess
from generator.manifests.resource_units import fit_units
from generator.objects.inventory import SLOTS, Inventory, ListedNode, build_node_specs
from generator.objects.pod_resources import PodUsage, subtract_usage, parse_pod_usage
from generator.objects.yaml_document import parse_documents
from generator.placement.cluster.snapshot import NodeSpec, RunningGang, build_snapshot
from generator.placement.engine import place
from generator.placement.presets import Preset
from generator.placement.request import parse_request
from generator.reservations.holds import NO_RESERVED_NODES, ReservedNodes, with_nominations
from generator.store.local_files import read_inventory
from topology.model.errors import ConfigError, ParseError, PlacementRequestError, show
from topology.model.tree import API_VERSION, TopologyTree

_UNKNOWN: Final = "(not in the tree)"


class JobInput(NamedTuple):
    """A cluster, one job in it, and what of the input was skipped."""

    tree: TopologyTree
    inventory: Inventory | None
    job: RunningJob
    problems: tuple[ParseError, ...]
    nominated: Mapping[str, RunningGang] = MappingProxyType({})
    """What is reserved, by reservation."""


@click.command(name="where")
@click.argument("job")
@source_options
@click.option(
    "--tree",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TopologyTree to look in, as `toponaut tree` prints it.",
)
@click.option(
    "--pods",
    metavar="FILE",
    help="`kubectl get pods -A -o json`, or the job's pods as `pod: node`; - is stdin.",
)
@click.option(
    "--running",
    type=click.Path(exists=True, dir_okay=False),
    help="Gangs that run, as for `toponaut place`.",
)
@click.option(
    "--timeout",
    type=parse_duration,
    metavar="DURATION",
    default="10s",
    show_default=True,
    help="Time for the search of a better place.",
)
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    job: str,
    output: str,
    *,
    timeout: float,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Print where the pods of JOB run: domains, tier, crossings, and a better place.

    JOB is a name of the job's group, batch object or pods' owner, or NAMESPACE/NAME. Pods come
    from --pods, --running or, with --kube, from the cluster.
    """
    scene = _read_input(job, options)
    found = locate_job(scene.tree, scene.job)
    found = _add_better_placement(found, scene, timeout)
    print_document(render_job_location(found), output, text=lambda: _render_text(found))
    exit_with_problems(ctx, scene.problems)


def _read_input(name: str, options: dict[str, Any]) -> JobInput:
    tree, pods, running = (options.pop(key) for key in ("tree", "pods", "running"))
    sources = parse_sources(options)
    if tree is not None and not sources.is_empty:
        raise click.UsageError("--tree is a tree already; name no other source beside it")
    if pods and running:
        raise click.UsageError("name one of --pods and --running")
    if not (pods or running or sources.cluster):
        raise click.UsageError("name where pods are told: --pods, --running or --kube")
    told = _load_from_gangs(name, running) if running else _load_from_pods(name, pods, sources)
    if tree is not None:
        inventory = read_inventory(sources.nodes)
        found = inventory.problems if inventory else ()
        return JobInput(read_tree(tree), inventory, told.job, (*found, *told.problems))
    read = read_observation(sources)
    inventory = read.inputs.inventory or read_inventory(sources.nodes)
    problems = (*read.problems, *told.problems, *told.reserved_nodes.problems)
    return JobInput(
        read.observation.tree, inventory, told.job, problems, told.reserved_nodes.nominated
    )


class _LoadedJob(NamedTuple):
    """A job, and pods that could not be read."""

    job: RunningJob
    problems: tuple[ParseError, ...] = ()
    reserved_nodes: ReservedNodes = NO_RESERVED_NODES


def _load_from_gangs(name: str, file: str) -> _LoadedJob:
    return _LoadedJob(find_job_in_gangs(name, read_running_gangs(file)))


def _load_from_pods(name: str, file: str | None, sources: Sources) -> _LoadedJob:
    """Read pods from a file, else from the cluster."""
    if file is None and sources.cluster is not None:
        return _load_from_cluster(name, sources.cluster)
    source, raw = read_input(file or "-", MAX_RUNNING_BYTES)
    documents: list[Mapping[str, Any]] = []
    problems: list[ParseError] = []
    for found in parse_documents(raw, source=source):
        if isinstance(found, ParseError):
            problems.append(found)
        elif isinstance(found.value, dict):
            documents.append(found.value)
        else:
            problems.append(ParseError("expected pods", source=source, line=found.line))
    if problems and not documents:
        raise ConfigError(str(problems[0]))
    if len(documents) == 1 and _is_pod_to_node_map(documents[0]):
        return _LoadedJob(build_job_from_nodes(name, documents[0]), tuple(problems))
    told = _load_from_documents(name, source, documents)
    return told._replace(problems=(*problems, *told.problems))


def _is_pod_to_node_map(document: Mapping[str, Any]) -> bool:
    """Return whether a document is `pod: node`, not an object."""
    nodes = document.values()
    return bool(nodes) and "kind" not in document and all(isinstance(node, str) for node in nodes)


def _load_from_cluster(name: str, cluster: ClusterAccess) -> _LoadedJob:
    from generator.reservations.cluster_view import fetch_reserved_nodes  # noqa: PLC0415 - heavy, and rarely needed
    from generator.store.cluster import open_cluster  # noqa: PLC0415 - the same

    with open_cluster(cluster, os.environ) as store:
        pods = list(store.read_pods())
        told = _load_from_documents(name, "the cluster", pods)
        return told._replace(reserved_nodes=fetch_reserved_nodes(cluster, os.environ, pods))


def _load_from_documents(name: str, source: str, documents: list[Mapping[str, Any]]) -> _LoadedJob:
    pods: list[JobPod] = []
    problems: list[ParseError] = []
    for document in documents:
        if document.get("kind") not in {"Pod", None}:
            continue
        try:
            pod = parse_job_pod(document)
        except PlacementRequestError as error:
            problems.append(ParseError(str(error), source=source))
            continue
        if pod is not None:
            pods.append(pod)
    try:
        return _LoadedJob(find_job(name, pods), tuple(problems))
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from error


def _add_better_placement(found: JobLocation, scene: JobInput, timeout_s: float) -> JobLocation:
    """Ask where the job would go now, had it not been placed yet."""
    room = find_max_resources(scene.inventory)
    groups = build_request_groups(scene.job)
    spec = {"preset": Preset.OPTIMAL.value, "gang": scene.job.name, "groups": groups}
    fitted, _ = fit_units(spec, room, uses_whole_nodes=False)
    document = {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": fitted}
    request = replace(parse_request(document), deadline_s=timeout_s)
    left = _subtract_other_pods(scene, room)
    snapshot = build_snapshot(scene.tree, build_node_specs(left, scene.tree.nodes))
    snapshot = with_nominations(snapshot, scene.nominated)
    placement = place(snapshot, request, clock=time.monotonic)
    return replace(found, better_placement=find_better_placement(scene.tree, scene.job, placement))


def _subtract_other_pods(scene: JobInput, room: Mapping[str, int]) -> Inventory:
    """Return the nodes with what all other pods leave of them."""
    inventory = scene.inventory or Inventory(
        tuple(ListedNode(name, (), NodeSpec(name)) for name in scene.tree.nodes), ()
    )
    return subtract_usage(inventory, (_build_usage(pod, room) for pod in scene.job.other_pods))


def _build_usage(pod: JobPod, room: Mapping[str, int]) -> PodUsage | None:
    """Return what another pod takes, in the units of the nodes."""
    if set(room) > {SLOTS} and pod.document:
        return parse_pod_usage(pod.document)
    rows = {"groups": [{"name": "pod", "count": 1} | dict(pod.request_fields)]}
    fitted, _ = fit_units(rows, room, uses_whole_nodes=False)
    request = fitted["groups"][0]["request"]
    is_light = bool(pod.document) and not any("/" in name for name in pod.request_fields["request"])
    if is_light or not pod.node:
        return None
    return PodUsage(pod.node, {name: Decimal(num) for name, num in request.items()})


def _render_text(found: JobLocation) -> str:
    return "\n".join(
        [
            _render_headline(found),
            render_table(("GROUP", "PODS", "DOMAIN", "NODES"), _render_rows(found)),
            _render_better_text(found),
        ]
    )


def _render_headline(found: JobLocation) -> str:
    num = len(found.job.pods)
    where = f"within one {show(found.spread.tier)}" if found.spread.tier else "nowhere in the tree"
    parts = [f"{show(found.job.name, 300)}: {num} pods {where}", *_render_counts(found.spread)]
    parts += [
        f"consecutive pods change {show(tier)} {times} times"
        for tier, times in found.spread.crossings.items()
        if times
    ]
    if found.num_pending:
        parts.append(f"{found.num_pending} on no node yet")
    if found.unknown_nodes:
        parts.append(f"not in the tree: {shorten_names(found.unknown_nodes)}")
    return "; ".join(parts)


def _render_counts(spread: Spread) -> Iterator[str]:
    if spread.domains:
        yield "in " + ", ".join(f"{num} {show(tier)}" for tier, num in spread.domains.items())


def _render_rows(found: JobLocation) -> Iterator[tuple[str, ...]]:
    numbered = list(enumerate(zip(found.job.pods, found.pod_domains, strict=True)))
    for (role, home), run in groupby(numbered, lambda row: (row[1][0].role, row[1][1])):
        members = list(run)
        nodes = [pod.node or "(pending)" for _, (pod, _) in members]
        first, last = members[0][0], members[-1][0]
        pods = str(first) if first == last else f"{first}-{last}"
        yield show(role), pods, show(home or _UNKNOWN), shorten_names(list(dict.fromkeys(nodes)))


def _render_better_text(found: JobLocation) -> str:
    better = found.better_placement
    if better is None:
        return "better: no place is free that is nearer together"
    counts = "; ".join(_render_counts(better.spread))
    nodes = sorted({node for row in better.assignment.values() for node in row if node})
    return (
        f"better: within one {show(better.spread.tier or '?')}, {counts}; "
        f"{better.num_moved} pods would move, to {shorten_names(nodes)}"
    )
