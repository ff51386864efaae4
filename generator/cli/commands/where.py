"""`toponaut where`: show where a running job is in the tree, and a better place for it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import click

from generator.cli.exit_codes import exit_with_problems
from generator.cli.input_files import MAX_RUNNING_BYTES, read_input, read_running_gangs
from generator.cli.observation import read_observation, read_saved_tree
from generator.cli.output import list_nodes, print_document, render_table, show_count
from generator.cli.request_input import find_max_resources
from generator.cli.source_values import parse_sources
from generator.ingest.sources import Sources
from generator.jobs.job_location import (
    JobLocation,
    Spread,
    build_request_groups,
    find_better_placement,
    locate_job,
    render_job_location,
)
from generator.jobs.running_jobs import (
    JobPod,
    RunningJob,
    build_job_from_nodes,
    find_job,
    find_job_in_gangs,
    parse_job_pod,
)
from generator.kube.access import ClusterAccess
from generator.manifests.resource_units import fit_units
from generator.objects.inventory import SLOTS, Inventory, ListedNode, build_node_specs
from generator.objects.pod_resources import PodUsage, parse_pod_usage, subtract_usage
from generator.objects.yaml_document import parse_documents
from generator.placement.cluster.nodes import NodeSpec, RunningGang
from generator.placement.cluster.snapshot import build_snapshot
from generator.placement.engine import place
from generator.placement.presets import Preset
from generator.placement.quantities import count_request
from generator.placement.request import parse_request
from generator.reservations.holds import NO_RESERVED_NODES, ReservedNodes, with_nominations
from generator.store.file_kinds import FileKind, expect_kind
from generator.store.local_files import read_inventory
from topology.model.errors import ConfigError, ParseError, PlacementRequestError, show
from topology.model.tree import API_VERSION, TopologyTree

_UNKNOWN: Final = "(not in the tree)"

TIMEOUT_S: Final = 10.0
"""Time limit of the search for a better place, unless another is given."""


class JobInput(NamedTuple):
    """A cluster, one job in it, and the input that was skipped."""

    tree: TopologyTree
    inventory: Inventory | None
    job: RunningJob
    problems: tuple[ParseError, ...]
    nominated: Mapping[str, RunningGang] = MappingProxyType({})
    """The reserved nodes, by reservation."""


def run(
    ctx: click.Context,
    /,
    job: str,
    output: str,
    *,
    timeout: float,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Run `toponaut where` with the values of its options."""
    job_input = _read_input(job, options)
    location = locate_job(job_input.tree, job_input.job)
    location = _add_better_placement(location, job_input, timeout)
    print_document(
        render_job_location(location), output, text=lambda: _render_text(location, output)
    )
    exit_with_problems(ctx, job_input.problems)


def _read_input(name: str, options: dict[str, Any]) -> JobInput:
    tree, pods, running = (options.pop(key) for key in ("tree", "pods", "running"))
    sources = parse_sources(options)
    saved = None if tree is None else read_saved_tree(tree, sources)
    if pods and running:
        raise click.UsageError("give only one of --pods and --running")
    if not (pods or running or sources.cluster):
        raise click.UsageError("give the source of pods: --pods, --running or --kube")
    loaded = _load_from_gangs(name, running) if running else _load_from_pods(name, pods, sources)
    read = saved or read_observation(sources)
    inventory = read.inputs.inventory or read_inventory(sources.nodes)
    problems = (*read.problems, *loaded.problems, *loaded.reserved_nodes.problems)
    return JobInput(
        read.observation.tree, inventory, loaded.job, problems, loaded.reserved_nodes.nominated
    )


class _LoadedJob(NamedTuple):
    """A job, the pods that could not be read, and the reserved nodes."""

    job: RunningJob
    problems: tuple[ParseError, ...] = ()
    reserved_nodes: ReservedNodes = NO_RESERVED_NODES


def _load_from_gangs(name: str, file: Path) -> _LoadedJob:
    return _LoadedJob(find_job_in_gangs(name, read_running_gangs(file)))


def _load_from_pods(name: str, file: str | None, sources: Sources) -> _LoadedJob:
    """Read pods from a file, else from the cluster."""
    if file is None and sources.cluster is not None:
        return _load_from_cluster(name, sources.cluster)
    source, raw = read_input(file or "-", MAX_RUNNING_BYTES)
    with expect_kind(Path(file or ""), FileKind.PODS):
        return _parse_pods(name, source, raw)


def _parse_pods(name: str, source: str, raw: bytes) -> _LoadedJob:
    documents: list[Mapping[str, Any]] = []
    problems: list[ParseError] = []
    for document in parse_documents(raw, source=source):
        if isinstance(document, ParseError):
            problems.append(document)
        elif isinstance(document.value, dict):
            documents.append(document.value)
        else:
            problems.append(ParseError("expected pods", source=source, line=document.line))
    if problems and not documents:
        raise ConfigError(str(problems[0]))
    if len(documents) == 1 and _is_pod_to_node_map(documents[0]):
        return _LoadedJob(build_job_from_nodes(name, documents[0]), tuple(problems))
    loaded = _load_from_documents(name, source, documents)
    return loaded._replace(problems=(*problems, *loaded.problems))


def _is_pod_to_node_map(document: Mapping[str, Any]) -> bool:
    """Return whether a document is a map from pods to nodes, not a Kubernetes object."""
    nodes = document.values()
    return bool(nodes) and "kind" not in document and all(isinstance(node, str) for node in nodes)


def _load_from_cluster(name: str, cluster: ClusterAccess) -> _LoadedJob:
    from generator.reservations.cluster_view import fetch_reserved_nodes  # noqa: PLC0415 - loads the Kubernetes client
    from generator.store.cluster import open_cluster  # noqa: PLC0415 - the same

    with open_cluster(cluster, os.environ) as store:
        pods = list(store.read_pods())
        loaded = _load_from_documents(name, "the cluster", pods)
        return loaded._replace(reserved_nodes=fetch_reserved_nodes(cluster, os.environ, pods))


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


def _add_better_placement(
    location: JobLocation, job_input: JobInput, timeout_s: float
) -> JobLocation:
    """Add the place that the job would get if it were placed now."""
    capacity = find_max_resources(job_input.inventory)
    groups = build_request_groups(job_input.job)
    spec = {"preset": Preset.OPTIMAL.value, "gang": job_input.job.name, "groups": groups}
    fitted, _ = fit_units(spec, capacity)
    document = {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": fitted}
    request = replace(parse_request(document), deadline_s=timeout_s)
    free = _subtract_other_pods(job_input, capacity)
    snapshot = build_snapshot(job_input.tree, build_node_specs(free, job_input.tree.nodes))
    snapshot = with_nominations(snapshot, job_input.nominated)
    placement = place(snapshot, request, clock=time.monotonic, explains=False)
    return replace(
        location, better_placement=find_better_placement(job_input.tree, job_input.job, placement)
    )


def _subtract_other_pods(job_input: JobInput, capacity: Mapping[str, int]) -> Inventory:
    """Return the nodes with the capacity that all other pods leave free."""
    inventory = job_input.inventory or Inventory(
        tuple(ListedNode(name, (), NodeSpec(name)) for name in job_input.tree.nodes), ()
    )
    return subtract_usage(
        inventory, (_build_usage(pod, capacity) for pod in job_input.job.other_pods)
    )


def _build_usage(pod: JobPod, capacity: Mapping[str, int]) -> PodUsage | None:
    """Return the usage of another pod, in the units of the nodes; None if it uses nothing."""
    if set(capacity) > {SLOTS} and pod.document:
        return parse_pod_usage(pod.document)
    rows = {"groups": [{"name": "pod", "count": 1} | dict(pod.request_fields)]}
    fitted, _ = fit_units(rows, capacity)
    request = fitted["groups"][0]["request"]
    is_light = bool(pod.document) and not any("/" in name for name in pod.request_fields["request"])
    if is_light or not pod.node:
        return None
    return PodUsage(pod.node, count_request(request))


def _render_text(location: JobLocation, output: str) -> str:
    return "\n".join(
        [
            _render_headline(location, output),
            render_table(("GROUP", "PODS", "DOMAIN", "NODES"), _render_rows(location, output)),
            _render_better_text(location, output),
        ]
    )


def _render_headline(location: JobLocation, output: str) -> str:
    num = len(location.job.pods)
    where = (
        f"within one {show(location.spread.tier)}"
        if location.spread.tier
        else "on no node of the tree"
    )
    parts = [
        f"{show(location.job.name, 300)}: {show_count(num, 'pod')} {where}",
        *_render_counts(location.spread),
    ]
    parts += [
        f"{show_count(times, 'pair')} of consecutive pods in different {show(tier)} domains"
        for tier, times in location.spread.crossings.items()
        if times
    ]
    if location.num_pending:
        parts.append(f"{location.num_pending} on no node yet")
    if location.unknown_nodes:
        parts.append(f"not in the tree: {list_nodes(location.unknown_nodes, output)}")
    return "; ".join(parts)


def _render_counts(spread: Spread) -> Iterator[str]:
    if spread.domains:
        yield "using " + ", ".join(
            show_count(num, show(tier)) for tier, num in spread.domains.items()
        )


def _render_rows(location: JobLocation, output: str) -> Iterator[tuple[str, ...]]:
    numbered = list(enumerate(zip(location.job.pods, location.pod_domains, strict=True)))
    for (role, domain), run in groupby(numbered, lambda row: (row[1][0].role, row[1][1])):
        members = list(run)
        nodes = [pod.node or "(pending)" for _, (pod, _) in members]
        first, last = members[0][0], members[-1][0]
        pods = str(first) if first == last else f"{first}-{last}"
        shown = list_nodes(list(dict.fromkeys(nodes)), output)
        yield show(role), pods, show(domain or _UNKNOWN), shown


def _render_better_text(location: JobLocation, output: str) -> str:
    better = location.better_placement
    if better is None:
        return "better: no closer place is free"
    counts = "; ".join(_render_counts(better.spread))
    rows = better.assignment.values()
    nodes = list(dict.fromkeys(node for row in rows for node in row if node))
    return (
        f"better: within one {show(better.spread.tier or '?')}, {counts}; "
        f"{show_count(better.num_moved, 'pod')} would move, to {list_nodes(nodes, output)}"
    )
