"""Sources and observed HyperNodes to a plan: shared by `plan`, `apply` and the server."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from generator.objects.inventory import Inventory
from generator.observe.observation import Observation
from generator.outputs.hypernode import HyperNode, lint, render_hypernodes, build_hypernode_tree
from generator.reconcile.conflicts import Overlap, find_conflicts, find_overlaps
from generator.reconcile.guard import Coverage
from generator.reconcile.plan import Action, plan_changes
from topology.model.errors import InvariantError, ParseError, show
from topology.model.tree import TopologyTree
from topology.reports.compact_reports import Report

_MAX_SHOWN: Final = 5


def compute_coverage(
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


def derive_previous_tree(observed: Sequence[HyperNode]) -> TopologyTree | None:
    """Return the last generation's tree, None where nothing of ours exists."""
    ours = [found for found in observed if found.is_ours]
    return build_hypernode_tree(ours).tree if ours else None


PlannedChanges = tuple[tuple[Action, ...], tuple[ParseError, ...]]
"""Actions in their order, and what stands in the way."""


def plan_tree_changes(observation: Observation, observed: Sequence[HyperNode]) -> PlannedChanges:
    """Return the actions towards a tree's HyperNodes, and what stands in their way.

    A tree without any domain is a sweep that failed or captures that miss, not a fabric without
    switches, and a subnet without a whole sweep is unknown: what exists stays.

    Raises:
        InvariantError: what we rendered is not what Volcano accepts.
    """
    ours = sum(found.is_ours for found in observed)
    unknown = describe_unknown(observation)
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
    overlaps = tuple(map(_build_overlap_problem, find_overlaps(desired, observed)))
    return plan_changes(desired, observed), (*conflicts, *overlaps)


def _build_overlap_problem(found: Overlap) -> ParseError:
    shown = ", ".join(map(show, found.nodes[:_MAX_SHOWN]))
    more = f" and {len(found.nodes) - _MAX_SHOWN} more" if len(found.nodes) > _MAX_SHOWN else ""
    has = f"has {shown}{more} too" if found.nodes else "selects nodes that may be ours too"
    problem = f"foreign HyperNode {show(found.foreign)} {has}: the scheduler takes either"
    return ParseError(problem, source="HyperNodes")


def describe_unknown(observation: Observation) -> str:
    """Return what is not known of the fabric, empty where that is nothing."""
    if observation.unknown_subnets:
        subnets = ", ".join(map(show, observation.unknown_subnets))
        return f"there is no whole sweep of subnet {subnets}, which is no data"
    return "" if observation.tree.domains else "no domain was found, which is no data"
