"""The input of `place` and `compare`: the request, the cluster, and the gangs that run there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import click

from generator.cli.observation import read_observation, read_saved_tree
from generator.cli.option_types import parse_level_names
from generator.cli.options import RequestOptions
from generator.cli.output import MAX_MESSAGE, list_nodes, show_count
from generator.cli.request_input import (
    LoadedRequest,
    load_request,
)
from generator.cli.running_pods import read_running_gangs
from generator.ingest.sources import Sources
from generator.kube.access import ClusterAccess
from generator.manifests.kinds.unlisted_resources import list_on_nodes
from generator.objects.fabric import with_label_keys
from generator.objects.inventory import Inventory, build_node_specs
from generator.placement.answer import Placement, ReasonKind
from generator.placement.cluster.nodes import RunningGang
from generator.placement.cluster.snapshot import (
    Snapshot,
    build_snapshot,
    with_counted,
    with_running,
)
from generator.placement.request import PlacementRequest
from generator.reservations.nominations import ReservedNodes, with_nominations
from generator.store.local_files import read_inventory
from topology.model.errors import ParseError, list_some, show
from topology.model.facts import UNPLACING_KINDS, Finding, FindingKind, PortName, Severity
from topology.model.ids import natural_key
from topology.model.tree import TopologyTree
from topology.reports.packed_reports import PackedReport

_MAX_NODES_SHOWN: Final = 8
_MAX_FAULTS_SHOWN: Final = 3
_ONE_SLOT: Final = "no node list: each node counts as one slot; --nodes gives their capacity"


class ClusterInput(NamedTuple):
    """A cluster to place in, and the input that was skipped."""

    tree: TopologyTree
    inventory: Inventory | None
    problems: tuple[ParseError, ...]
    nominated: Mapping[str, RunningGang] = MappingProxyType({})
    """The reserved nodes, by reservation."""
    counts_pods: bool = False
    """Whether the free capacity excludes the pods of the cluster."""
    findings: tuple[Finding, ...] = ()
    """The faults of the cabling, unless the tree is a saved one."""
    fabric: Mapping[str, Any] | None = None
    """The Fabric object; None: there is none, or the source has none."""
    reports: tuple[PackedReport, ...] = ()
    """Those that the tree follows from."""
    unknown_subnets: tuple[str, ...] = ()
    """InfiniBand subnets without a complete sweep."""


def read_request(given: RequestOptions) -> LoadedRequest:
    """Read the request; `print_translation` prints how it was understood."""
    if (given.file is None) == (given.sbatch is None):
        raise click.UsageError("give one request: either --file or --sbatch")
    return load_request(given.file, given.sbatch, parse_level_names(given.level), os.environ)


def read_cluster_input(sources: Sources, tree: Path | None) -> ClusterInput:
    """Read the cluster: its tree from a file, or inferred from the sources.

    Raises:
        click.UsageError: both a tree and sources are given, or neither.
    """
    if tree is None:
        read = read_observation(sources)
        inferred = with_label_keys(read.observation.tree, read.inputs.fabric)
        _note_unplaced_nodes(read.observation.findings, inferred)
        if sources.cluster is not None and sources.nodes is None:
            free, reserved = _fetch_free_nodes(sources.cluster)
            extra = tuple(problem for problem in free.problems if problem not in read.problems)
            problems = (*read.problems, *extra, *reserved.problems)
            return ClusterInput(
                inferred,
                free,
                problems,
                reserved.nominated,
                counts_pods=True,
                findings=read.observation.findings,
                fabric=read.inputs.fabric,
                reports=read.inputs.reports,
                unknown_subnets=read.inputs.unknown_subnets,
            )
        inventory = read.inputs.inventory or read_inventory(sources.nodes)
        return ClusterInput(
            inferred,
            inventory,
            read.problems,
            findings=read.observation.findings,
            reports=read.inputs.reports,
            unknown_subnets=read.inputs.unknown_subnets,
        )
    saved = read_saved_tree(tree, sources)
    placed, inventory = saved.observation.tree, saved.inputs.inventory
    _note_unlisted_nodes(placed, inventory)
    return ClusterInput(placed, inventory, saved.problems)


def _note_unplaced_nodes(findings: Iterable[Finding], tree: TopologyTree) -> None:
    """Print on stderr why nodes have no place: their host or its cables are unknown."""
    unplaced = {row.node for row in tree.unplaced}
    for finding in findings:
        if finding.kind not in UNPLACING_KINDS or finding.severity is Severity.INFO:
            continue
        if not unplaced.isdisjoint(finding.impact.places):
            text = show(finding.message, MAX_MESSAGE)
            click.echo(f"note: {finding.kind.value}: {text}", err=True)


def _note_unlisted_nodes(tree: TopologyTree, inventory: Inventory | None) -> None:
    """Print on stderr which nodes of a saved tree cannot be used because they are not listed."""
    listed = {node.name for node in inventory.nodes} if inventory else set(tree.nodes)
    unlisted = [node for node in tree.nodes if node not in listed]
    if unlisted:
        outside = list_nodes(sorted(listed - set(tree.nodes), key=natural_key), "text")
        beside = f"; it lists nodes that the tree lacks: {outside}" if outside else ""
        click.echo(
            f"note: the list of nodes lacks {show_count(len(unlisted), 'node')} of the tree, which "
            f"take no pods: {list_nodes(unlisted, 'text')}{beside}",
            err=True,
        )


def _fetch_free_nodes(cluster: ClusterAccess) -> tuple[Inventory, ReservedNodes]:
    from generator.reservations.cluster_view import fetch_reserved_nodes
    from generator.store.cluster_store import open_cluster
    from generator.store.kinds import WHOLE_PODS

    with open_cluster(cluster, os.environ) as store:
        # Pods first: a pod that uses up a reservation is then subtracted from the nodes as well.
        reserved = fetch_reserved_nodes(cluster, os.environ, store.objects.read(WHOLE_PODS).values)
        return store.read_inventory() or Inventory((), ()), reserved


def build_free_snapshot(cluster: ClusterInput, running: Path | None = None) -> Snapshot:
    """Return the cluster with its reserved nodes, and with the gangs of a file that run."""
    gangs = read_running_gangs(running) if running else ()
    nodes = build_node_specs(cluster.inventory, cluster.tree.nodes)
    return with_nominations(build_snapshot(cluster.tree, nodes, gangs), cluster.nominated)


def build_input_snapshot(
    cluster: ClusterInput, running: Path | None, loaded: LoadedRequest, request: PlacementRequest
) -> Snapshot:
    """Return the cluster with its reserved nodes, and with all gangs that run.

    Nodes also get the resources that the request needs and no node list has, such as GPU shares.

    Args:
        cluster: the cluster.
        running: a file of running gangs.
        loaded: the file of the request, which may have pods that run.
        request: the gang to place.
    """
    own, others = loaded.build_running(request)
    gangs = read_running_gangs(running) if running else ()
    if own is not None:  # each of its pods counts once
        gangs = tuple(gang for gang in gangs if gang.gang != own.gang)
    names = {name for group in request.groups for name, _ in group.request}
    nodes = list_on_nodes(
        build_node_specs(cluster.inventory, cluster.tree.nodes),
        names,
        [*gangs, *cluster.nominated.values(), *(() if cluster.counts_pods else (others,))],
        counted=own if cluster.counts_pods else None,
    )
    free = build_snapshot(cluster.tree, nodes, gangs)
    if own is not None:
        _note_unknown_nodes(own, free)
        free = with_counted(free, own) if cluster.counts_pods else with_running(free, own)
    if others.pods and not cluster.counts_pods:
        free = with_running(free, others)
    return with_nominations(free, cluster.nominated)


def _note_unknown_nodes(gang: RunningGang, snapshot: Snapshot) -> None:
    unknown = sorted({pods.node for pods in gang.pods} - snapshot.position_of.keys())
    if unknown:
        names = list_some(map(show, unknown), _MAX_NODES_SHOWN)
        click.echo(
            f"note: pods of the gang run on nodes that are not in the tree: {names}", err=True
        )


def note_unknown_level(placement: Placement, loaded: LoadedRequest) -> None:
    """Print on stderr, below a refusal, how to map a level of a manifest to a tier of the tree."""
    reason = placement.reason
    if reason is not None and reason.kind is ReasonKind.NO_LEVEL and loaded.translation is not None:
        click.echo("note: --level NAME=TIER says which tier a level of the manifest is", err=True)


def note_faulty_ports(placement: Placement, cluster: ClusterInput) -> None:
    """Print on stderr which ports of the nodes of a placement have a dead or misplaced cable."""
    used = {node for nodes in placement.assignment.values() for node in nodes}
    faults: dict[PortName, FindingKind] = {}
    for finding in cluster.findings:
        if not finding.impact.cables or finding.severity is Severity.INFO:
            continue
        for end in finding.ends:
            if end.device in used and end.port:
                faults.setdefault(end, finding.kind)  # the costliest comes first
    rows = sorted(
        (f"{show(end.device)}: {kind.value} {show(end.port)}" for end, kind in faults.items()),
        key=natural_key,
    )
    for row in rows[:_MAX_FAULTS_SHOWN]:
        click.echo(f"warning: {row}", err=True)
    if len(rows) > _MAX_FAULTS_SHOWN:
        more = show_count(len(rows) - _MAX_FAULTS_SHOWN, "more fault")
        click.echo(f"warning: {more} at these nodes; see `toponaut findings`", err=True)


def note_missing_capacity(cluster: ClusterInput) -> None:
    """Print on stderr, below a refusal, that no node list gives the capacity of the nodes."""
    if cluster.inventory is None:
        click.echo(f"note: {_ONE_SLOT}", err=True)
