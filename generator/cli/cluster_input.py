"""The input of `place` and `compare`: the request, the cluster, and the gangs that run there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import click

from generator.cli.observation import read_observation, read_saved_tree
from generator.cli.option_types import parse_level_names
from generator.cli.options import RequestOptions
from generator.cli.output import MAX_MESSAGE, list_nodes, show_count
from generator.cli.request_input import (
    LoadedRequest,
    find_unused_fields,
    load_request,
    print_ignored,
    print_notes,
    print_translation,
)
from generator.cli.running_pods import read_running_gangs
from generator.ingest.sources import Sources
from generator.kube.access import ClusterAccess
from generator.manifests.fields import Note
from generator.manifests.ignored_fields import render_warning
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
from topology.model.facts import Finding, FindingKind, Severity
from topology.model.ids import natural_key
from topology.model.tree import TopologyTree

_MAX_NODES_SHOWN: Final = 8
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


def read_request(given: RequestOptions) -> LoadedRequest:
    """Read the request. Print on stderr how the manifest of another system was understood.

    What is printed about a job of sbatch depends on the nodes: `fit_to_cluster` prints it.
    """
    if (given.file is None) == (given.sbatch is None):
        raise click.UsageError("give one request: either --file or --sbatch")
    loaded = load_request(given.file, given.sbatch, parse_level_names(given.level), os.environ)
    if loaded.translation is None:
        print_ignored(find_unused_fields(loaded.document))
    elif not loaded.is_job:
        print_translation(loaded.translation)
    return loaded


def fit_to_cluster(loaded: LoadedRequest, cluster: ClusterInput | None) -> LoadedRequest:
    """Convert the request of another system to the units of the nodes; print the changes.

    Without a cluster, the request is for any nodes.
    """
    fitted = loaded
    if cluster is not None:
        fitted = _print_fit(*loaded.fit_to_nodes(cluster.inventory, cluster.tree.nodes))
    if fitted.is_job and fitted.translation is not None:
        print_translation(fitted.translation)
    return fitted


def fit_to_server(loaded: LoadedRequest) -> LoadedRequest:
    """Remove host ports, which a server does not count, from the request, and print them.

    Raises:
        ConfigError: pods take shares of GPUs, which a server does not count either.
    """
    return _print_fit(*loaded.fit_to_server())


def _print_fit(loaded: LoadedRequest, notes: Sequence[Note]) -> LoadedRequest:
    print_ignored([render_warning(note) for note in notes if note.is_warning])
    print_notes([note for note in notes if not note.is_warning])
    return loaded


def read_cluster_input(sources: Sources, tree: Path | None) -> ClusterInput:
    """Read the cluster: its tree from a file, or inferred from the sources.

    Raises:
        click.UsageError: both a tree and sources are given, or neither.
    """
    if tree is None:
        read = read_observation(sources)
        inferred = with_label_keys(read.observation.tree, read.inputs.fabric)
        _note_unmatched_nodes(read.observation.findings)
        if sources.cluster is not None and sources.nodes is None:
            free, reserved = _fetch_free_nodes(sources.cluster)
            extra = tuple(problem for problem in free.problems if problem not in read.problems)
            problems = (*read.problems, *extra, *reserved.problems)
            return ClusterInput(inferred, free, problems, reserved.nominated, counts_pods=True)
        inventory = read.inputs.inventory or read_inventory(sources.nodes)
        return ClusterInput(inferred, inventory, read.problems)
    saved = read_saved_tree(tree, sources)
    placed, inventory = saved.observation.tree, saved.inputs.inventory
    _note_unlisted_nodes(placed, inventory)
    return ClusterInput(placed, inventory, saved.problems)


def _note_unmatched_nodes(findings: Iterable[Finding]) -> None:
    """Print on stderr which nodes cannot be used because no host is known to be theirs."""
    for finding in findings:
        if finding.kind is FindingKind.UNMATCHED_NODES and finding.severity is not Severity.INFO:
            click.echo(f"note: {show(finding.message, MAX_MESSAGE)}", err=True)


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


def build_input_snapshot(
    cluster: ClusterInput, running: Path | None, loaded: LoadedRequest, request: PlacementRequest
) -> Snapshot:
    """Return the cluster with its reserved nodes, and with all gangs that run.

    Nodes also have what the request asks of them and no node list says, such as shares of a GPU.

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


def note_missing_capacity(cluster: ClusterInput) -> None:
    """Print on stderr, below a refusal, that no node list gives the capacity of the nodes."""
    if cluster.inventory is None:
        click.echo(f"note: {_ONE_SLOT}", err=True)
