"""`toponaut where`: show where a running job is in the tree, and a better place for it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import click

from generator.cli import options
from generator.cli.exit_codes import exit_with_problems
from generator.cli.options import NO_PODS_MESSAGE, InputOptions, PodOptions
from generator.cli.output import (
    PlacedPod,
    Table,
    list_nodes,
    list_pod_rows,
    print_document,
    show_count,
)
from generator.kube.access import ClusterAccess
from generator.placement.cluster.nodes import NodeSpec, RunningGang
from generator.placement.presets import Preset
from generator.placement.quantities import count_request
from topology.model.errors import ConfigError, ParseError, PlacementRequestError, show
from topology.model.tree import API_VERSION, TopologyTree

if TYPE_CHECKING:
    from generator.cli.observation import LoadedObservation
    from generator.cli.running_pods import LoadedPods
    from generator.ingest.sources import Sources
    from generator.jobs.rank_order import RankAudit
    from generator.jobs.running_jobs import JobLocation, JobPod, RunningJob, Spread
    from generator.objects.inventory import Inventory
    from generator.objects.pods import PodUsage

_UNKNOWN: Final = "(not in the tree)"
TIMEOUT_S: Final = 10.0
"""Time limit of the search for a better place, unless another is given."""


@options.command(
    "where",
    examples=(
        "toponaut where train --pods pods.yaml --reports fabric/reports",
        "toponaut where ml/train --kube -o wide",
    ),
)
def command(
    *,
    job: str = options.argument(),
    sources: InputOptions,
    tree: Path | None = options.TREE,
    pods: PodOptions,
    timeout: float = options.duration(
        "Time limit of the search for a better place.", default="10s"
    ),
    output: str = options.WIDE_OUTPUT,
) -> None:
    """Print where the pods of JOB run: their domains and tier, and a better place.

    JOB is the name of the job's group, of its batch object or of the owner of its pods, or
    NAMESPACE/NAME. Pods come from --pods, from --running or, with --kube, from the cluster.
    """
    from generator.cli.observation import parse_sources, read_observation, read_saved_tree

    given = parse_sources(sources)
    saved = None if tree is None else read_saved_tree(tree, given)
    pods.refuse_both()
    loaded = load_job(job, pods, given.cluster)
    read = saved or read_observation(given)
    print_job(loaded, read, given, output=output, timeout_s=timeout)


def print_job(
    loaded: LoadedJob,
    read: LoadedObservation,
    sources: Sources,
    *,
    output: str,
    timeout_s: float = TIMEOUT_S,
) -> NoReturn:
    """Print where a job runs and a better place, and end the command."""
    from generator.jobs.rank_order import TreePlaces, audit_ranks, list_worlds
    from generator.jobs.running_jobs import locate_job, render_job_location
    from generator.store.local_files import read_inventory

    job_input = _JobInput(
        read.observation.tree, read.inputs.inventory or read_inventory(sources.nodes), loaded
    )
    location = locate_job(job_input.tree, loaded.job)
    location = _add_better_placement(location, job_input, timeout_s)
    places = TreePlaces(job_input.tree)
    audits = [audit_ranks(places, world) for world in list_worlds(loaded.job.pods)]
    print_document(
        render_job_location(location) | {"ranks": list(map(_render_audit, audits))},
        output,
        text=lambda: _list_parts(location, audits, output),
    )
    exit_with_problems((*read.problems, *loaded.problems))


class LoadedJob(NamedTuple):
    """A job, the input that was skipped, and the reserved nodes."""

    job: RunningJob
    problems: tuple[ParseError, ...] = ()
    nominated: Mapping[str, RunningGang] = MappingProxyType({})
    """The reserved nodes, by reservation."""


class _JobInput(NamedTuple):
    """A cluster, and one job in it."""

    tree: TopologyTree
    inventory: Inventory | None
    loaded: LoadedJob


def load_job(name: str, given: PodOptions, cluster: ClusterAccess | None) -> LoadedJob:
    """Read the pods of a job, and the nodes that are reserved in the cluster.

    Raises:
        click.UsageError: no source of pods is given.
    """
    from generator.cli.running_pods import read_pods

    return find_given_job(name, given, cluster, read_pods(given, cluster))


def find_given_job(
    name: str, given: PodOptions, cluster: ClusterAccess | None, pods: LoadedPods | None
) -> LoadedJob:
    """Return a job among pods that were read, and the nodes that are reserved in the cluster.

    Raises:
        click.UsageError: there is no source of pods.
        ConfigError: there is no such job.
    """
    from generator.jobs.running_jobs import build_job_from_nodes, find_job_in_gangs
    from generator.reservations.cluster_view import fetch_reserved_nodes
    from generator.store.file_kinds import FileKind, expect_kind

    if pods is None:
        raise click.UsageError(NO_PODS_MESSAGE)
    if pods.gangs is not None:
        return LoadedJob(find_job_in_gangs(name, pods.gangs))
    if given.pods:
        if len(pods.documents) == 1 and _is_pod_to_node_map(pods.documents[0]):
            return LoadedJob(build_job_from_nodes(name, pods.documents[0]), pods.problems)
        with expect_kind(Path(given.pods), FileKind.PODS):
            return _find_job(name, pods)
    loaded = _find_job(name, pods)
    reserved = fetch_reserved_nodes(cluster or ClusterAccess(), os.environ, pods.documents)
    return loaded._replace(
        problems=(*loaded.problems, *reserved.problems), nominated=reserved.nominated
    )


def _is_pod_to_node_map(document: Mapping[str, Any]) -> bool:
    """Return whether a document is a map from pods to nodes, not a Kubernetes object."""
    nodes = document.values()
    return bool(nodes) and "kind" not in document and all(isinstance(node, str) for node in nodes)


def _find_job(name: str, loaded: LoadedPods) -> LoadedJob:
    from generator.jobs.running_jobs import find_job, parse_job_pod

    pods: list[JobPod] = []
    problems = [*loaded.problems]
    for document in loaded.documents:
        if document.get("kind") not in {"Pod", None}:
            continue
        try:
            pod = parse_job_pod(document)
        except PlacementRequestError as error:
            problems.append(ParseError(str(error), source=loaded.source))
            continue
        if pod is not None:
            pods.append(pod)
    try:
        return LoadedJob(find_job(name, pods), tuple(problems))
    except ConfigError as error:
        raise ConfigError(f"{loaded.source}: {error}") from error


def _add_better_placement(
    location: JobLocation, job_input: _JobInput, timeout_s: float
) -> JobLocation:
    """Add the place that the job would get if it were placed now."""
    import time

    from generator.cli.request_input import find_max_resources
    from generator.jobs.running_jobs import build_request_groups, find_better_placement
    from generator.manifests.resource_units import fit_units
    from generator.objects.inventory import build_node_specs
    from generator.placement.cluster.snapshot import build_snapshot
    from generator.placement.engine import place
    from generator.placement.request import parse_request
    from generator.reservations.nominations import with_nominations

    capacity = find_max_resources(job_input.inventory)
    groups = build_request_groups(job_input.loaded.job)
    spec = {"preset": Preset.OPTIMAL.value, "gang": job_input.loaded.job.name, "groups": groups}
    fitted, _ = fit_units(spec, capacity)
    document = {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": fitted}
    request = replace(parse_request(document), deadline_s=timeout_s)
    free = _subtract_other_pods(job_input, capacity)
    snapshot = build_snapshot(job_input.tree, build_node_specs(free, job_input.tree.nodes))
    snapshot = with_nominations(snapshot, job_input.loaded.nominated)
    placement = place(snapshot, request, clock=time.monotonic, explains=False)
    return replace(
        location,
        better_placement=find_better_placement(job_input.tree, job_input.loaded.job, placement),
    )


def _subtract_other_pods(job_input: _JobInput, capacity: Mapping[str, int]) -> Inventory:
    """Return the nodes with the capacity that all other pods leave free."""
    from generator.objects.inventory import Inventory, ListedNode
    from generator.objects.pods import subtract_usage

    inventory = job_input.inventory or Inventory(
        tuple(ListedNode(name, (), NodeSpec(name)) for name in job_input.tree.nodes), ()
    )
    return subtract_usage(
        inventory, (_build_usage(pod, capacity) for pod in job_input.loaded.job.other_pods)
    )


def _build_usage(pod: JobPod, capacity: Mapping[str, int]) -> PodUsage | None:
    """Return the usage of another pod, in the units of the nodes; None if it uses nothing."""
    from generator.manifests.resource_units import fit_units
    from generator.objects.inventory import SLOTS
    from generator.objects.pods import PodUsage, parse_pod_usage

    if set(capacity) > {SLOTS} and pod.document:
        return parse_pod_usage(pod.document)
    rows = {"groups": [{"name": "pod", "count": 1} | dict(pod.request_fields)]}
    fitted, _ = fit_units(rows, capacity)
    request = fitted["groups"][0]["request"]
    is_light = bool(pod.document) and not any("/" in name for name in pod.request_fields["request"])
    if is_light or not pod.node:
        return None
    return PodUsage(pod.node, count_request(request))


def _render_audit(audit: RankAudit[JobPod]) -> dict[str, Any]:
    return {
        "name": audit.world.name,
        "ranksFrom": audit.world.source or None,
        "tiers": [tier._asdict() for tier in audit.tiers],
    }


def _list_parts(
    location: JobLocation, audits: Sequence[RankAudit[JobPod]], output: str
) -> Iterator[str | Table]:
    pods = (
        PlacedPod(pod.rank.role, index, domain or _UNKNOWN, pod.node or "(pending)")
        for index, (pod, domain) in enumerate(
            zip(location.job.pods, location.pod_domains, strict=True)
        )
    )
    yield _render_headline(location, output)
    yield Table(("group", "pods", "domain", "nodes"), [*list_pod_rows(pods, output)])
    yield from _list_crossings(audits, list(location.spread.crossings))
    yield _render_better_text(location, output)


def _list_crossings(
    audits: Sequence[RankAudit[JobPod]], tiers: Sequence[str]
) -> Iterator[str | Table]:
    """Yield how often the ring over the ranks of each group leaves a domain."""
    rows = [
        (
            audit.world.name,
            audit.world.source or "unknown",
            *(
                str(tier.now) if tier.now == tier.fewest else f"{tier.now} (fewest {tier.fewest})"
                for tier in audit.tiers
            ),
            *("-" for _ in tiers[len(audit.tiers) :]),
        )
        for audit in audits
        if len(audit.world.pods) > 1
    ]
    if rows and tiers:
        yield ""
        yield Table(("ring over", "ranks from", *(f"leaves a {tier}" for tier in tiers)), rows)
        yield ""


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
