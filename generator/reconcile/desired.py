"""Sources and observed HyperNodes to a plan: shared by `plan`, `apply` and the server."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from generator.cli.observation import read_observation
from generator.ingest.sources import Sources
from generator.kube.access import Access
from generator.objects.inventory import Inventory
from generator.objects.tree_spec import shape_of
from generator.objects.write_policy import Policy
from generator.observe.observation import Observation
from generator.outputs.hypernode import HyperNode, lint, render_hypernodes, tree_of_hypernodes
from generator.reconcile.conflicts import Overlap, find_conflicts, find_overlaps
from generator.reconcile.gang_splits import Gang
from generator.reconcile.guard import Coverage, Verdict, hash_plan, judge
from generator.reconcile.plan import Action, plan_changes
from generator.store.directory import REPORTS, DirectoryStore, read_hypernodes
from topology.model.errors import InvariantError, KubeForbidden, ParseError, show
from topology.model.tree import TopologyTree
from topology.reports.compact_reports import Report

_SHOWN: Final = 5

if TYPE_CHECKING:  # heavy, and rarely needed
    from generator.store.cluster import ClusterStore


class Plan(NamedTuple):
    """Ordered actions, whether they may be carried out, and what stood in their way."""

    actions: tuple[Action, ...]
    problems: tuple[ParseError, ...]
    verdict: Verdict


class Observed(NamedTuple):
    """HyperNodes that exist, what of them could not be read, and what else decides of a plan."""

    hypernodes: tuple[HyperNode, ...] = ()
    problems: tuple[ParseError, ...] = ()
    fabric: Mapping[str, Any] | None = None
    """What people want."""
    gangs: tuple[Gang, ...] = ()
    """What runs, as far as that is known."""


def with_store(sources: Sources, store: Path | None, fabric: Mapping[str, Any] | None) -> Sources:
    """Return the sources; the reports of the store where no other source is named.

    The tree has the shape that the Fabric object says, as far as no option says another.
    """
    if store is not None and sources.is_empty:
        sources = sources._replace(reports=store / REPORTS)
    return sources._replace(shape=shape_of(fabric)[0])


def observed_in(store: Path | None, folder: Path | None, cluster: Access | None = None) -> Observed:
    """Read the observed HyperNodes of a store, or of a folder that directly holds them.

    Where neither is named, those of the cluster that is read.

    A store without the folder is new: nothing exists there yet. In a store only those count that
    can be replaced and removed there, each in a file of its own name.

    Raises:
        click.UsageError: neither is named, or both are.
        KubeError: the cluster cannot be read.
        StoreError: the folder cannot be read.
    """
    if cluster is not None and store is None and folder is None:
        return _observed_in_cluster(cluster)
    if (store is None) == (folder is None):
        raise click.UsageError("name what to compare with: either --store or --observed")
    if store is None:
        read = read_hypernodes(folder or Path())
        return Observed(read.hypernodes, read.problems)
    place = DirectoryStore(store)
    read = place.read_hypernodes()
    return Observed(read.hypernodes, read.problems, place.read_fabric())


def _observed_in_cluster(cluster: Access) -> Observed:
    from generator.store.cluster import open_cluster  # noqa: PLC0415 - heavy, and rarely needed

    with open_cluster(cluster, os.environ) as opened:
        return observed_by(opened)


def observed_by(cluster: ClusterStore) -> Observed:
    """Read what a plan for a cluster depends on.

    Who may not list its pods is told that running gangs are not known.

    Raises:
        KubeError: the cluster cannot be read.
    """
    read, fabric = cluster.read_hypernodes(), cluster.read_fabric()
    try:
        gangs = cluster.read_gangs()
    except KubeForbidden as error:
        problem = ParseError(f"running gangs are not known: {error}", source="pods")
        return Observed(read.hypernodes, (*read.problems, problem), fabric)
    return Observed(read.hypernodes, read.problems, fabric, gangs)


def make_plan(sources: Sources, observed: Observed, *, policy: Policy) -> Plan:
    """Read the sources, plan towards their tree, and judge the plan.

    What is saved has no age, so every report counts as fresh.

    Raises:
        click.UsageError: no source is named.
        TopologyError: nothing usable was read, so nothing is planned.
    """
    previous = previous_tree(observed.hypernodes)
    read = read_observation(sources, previous=previous)
    if not shape_of(observed.fabric)[0].has_hypernodes:
        nothing = ParseError("spec.outputs asks for no HyperNodes", source="Fabric default")
        return Plan((), (*read.problems, nothing), Verdict(hash_plan(())))
    actions, conflicts = plan_towards(read.observation, observed.hypernodes)
    coverage = coverage_of(read.inputs.inventory, read.inputs.reports, read.observation.tree)
    verdict = judge(
        actions,
        observed.hypernodes,
        budget=policy.budget,
        coverage=coverage,
        gangs=observed.gangs,
    )
    problems = (*read.problems, *observed.problems, *policy.problems, *conflicts)
    return Plan(actions, problems, verdict)


def coverage_of(
    inventory: Inventory | None,
    reports: Sequence[Report],
    tree: TopologyTree,
    *,
    stale: Collection[str] = (),
) -> Coverage:
    """Return how many of the listed nodes are known: by a fresh report, or seen by others.

    Args:
        inventory: who should be known; nobody is missed where it is None.
        reports: all at hand.
        tree: what was made of them; who is in it without a report is seen by a sweep or a switch.
        stale: names of reports that are too old. A sweep sees their nodes all the same.
    """
    if inventory is None:
        return Coverage()
    listed = {node.name for node in inventory.nodes}
    is_swept = any(report.sweep is not None for report in reports)
    fresh = {one.metadata.name for one in reports if one.device_kind is not None} - set(stale)
    placed = set(tree.nodes) - (set() if is_swept else set(stale))
    return Coverage(len(listed), len(listed & (fresh | placed)))


def previous_tree(observed: Sequence[HyperNode]) -> TopologyTree | None:
    """Return the last generation's tree, None where nothing of ours exists."""
    ours = [found for found in observed if found.is_ours]
    return tree_of_hypernodes(ours).tree if ours else None


Planned = tuple[tuple[Action, ...], tuple[ParseError, ...]]
"""Actions in their order, and what stands in the way."""


def plan_towards(observation: Observation, observed: Sequence[HyperNode]) -> Planned:
    """Return the actions towards a tree's HyperNodes, and what stands in their way.

    A tree without any domain is a sweep that failed or captures that miss, not a fabric without
    switches, and a subnet without a whole sweep is unknown: what exists stays.

    Raises:
        InvariantError: what we rendered is not what Volcano accepts.
    """
    ours = sum(found.is_ours for found in observed)
    unknown = unknown_of(observation)
    if ours and unknown:
        held = f"{unknown}: {ours} HyperNodes stay as they are"
        return (), (ParseError(held, source="HyperNodes"),)
    desired = render_hypernodes(observation.tree)
    faults = lint(desired)
    if faults:
        raise InvariantError("; ".join(faults[:5]))
    conflicts = tuple(
        ParseError(
            f"HyperNode {found.name} is left out: foreign {found.foreign} has its {found.kind}",
            source="HyperNodes",
        )
        for found in find_conflicts(desired, observed)
    )
    overlaps = tuple(map(_overlap_problem, find_overlaps(desired, observed)))
    return plan_changes(desired, observed), (*conflicts, *overlaps)


def _overlap_problem(found: Overlap) -> ParseError:
    shown = ", ".join(map(show, found.nodes[:_SHOWN]))
    more = f" and {len(found.nodes) - _SHOWN} more" if len(found.nodes) > _SHOWN else ""
    has = f"has {shown}{more} too" if found.nodes else "selects nodes that may be ours too"
    problem = f"foreign HyperNode {show(found.foreign)} {has}: the scheduler takes either"
    return ParseError(problem, source="HyperNodes")


def unknown_of(observation: Observation) -> str:
    """Return what is not known of the fabric, empty where that is nothing."""
    if observation.unknown_subnets:
        subnets = ", ".join(map(show, observation.unknown_subnets))
        return f"there is no whole sweep of subnet {subnets}, which is no data"
    return "" if observation.tree.domains else "no domain was found, which is no data"
