"""From an observation and the observed HyperNodes to a plan. Pure.

Shared by the commands `plan` and `apply` and by the server. It decides what should change, not
whether it may be written: `guard` decides that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from generator.objects.inventory import Inventory
from generator.objects.tree_record import EMPTY_TREE, TreeRecord, strip_tree
from generator.observe.observation import Observation
from generator.outputs.hypernode.forest import render_hypernodes
from generator.outputs.hypernode.lint import lint_hypernodes
from generator.outputs.hypernode.model import HyperNode
from generator.outputs.owned_object import is_object_name
from generator.reconcile.conflicts import (
    Conflict,
    ConflictKind,
    Overlap,
    find_conflicts,
    find_overlaps,
)
from generator.reconcile.guard import Coverage
from generator.reconcile.hypernode_plan import Action, plan_changes
from topology.model.errors import ParseError, list_some, show
from topology.model.tree import TopologyTree, without_nodes
from topology.reports.packed_reports import PackedReport

NO_VOLCANO: Final = (
    "the cluster serves no HyperNodes: install Volcano, or list other outputs in spec.outputs of "
    "the Fabric object"
)
_MAX_SHOWN: Final = 5
_CONFLICT_TEXT: Final = {
    ConflictKind.NAME: "has the same name",
    ConflictKind.UNREADABLE: "of this name cannot be read",
    ConflictKind.CHILD: "lists it as a child",
}


def compute_coverage(
    inventory: Inventory | None,
    reports: Sequence[PackedReport],
    tree: TopologyTree,
    *,
    stale: Collection[str] = (),
) -> Coverage:
    """Return how many of the listed nodes are known: by a fresh report, a sweep or a switch.

    Args:
        inventory: the nodes that should be known; None: no node is expected.
        reports: all reports.
        tree: inferred from them. A node in it without a report was seen by a sweep or a switch.
        stale: names of stale reports. With a sweep, their nodes count as known if in the tree.
    """
    if inventory is None:
        return Coverage()
    listed = {node.name for node in inventory.nodes}
    is_swept = any(report.sweep is not None for report in reports)
    device_reports = (report for report in reports if report.device_kind is not None)
    fresh = {report.name for report in device_reports} - set(stale)
    placed = set(tree.nodes) - (set() if is_swept else set(stale))
    return Coverage(len(listed), len(listed & (fresh | placed)))


class PlannedChanges(NamedTuple):
    """A plan and its goal."""

    actions: tuple[Action, ...] = ()
    """The actions in their order."""
    problems: tuple[ParseError, ...] = ()
    """The problems that stop or limit the plan."""
    desired: TopologyTree | None = None
    """The tree without regard to conflicts, as `strip_tree` returns it; None if the fabric is
    unknown."""


def plan_tree_changes(observation: Observation, observed: Sequence[HyperNode]) -> PlannedChanges:
    """Return the actions that write a tree's HyperNodes, and the problems that limit them.

    A tree without any domain means a failed sweep or missing captures, not a fabric without
    switches; the cables of a subnet without a complete sweep are unknown; and an input that is cut,
    or unreadable in part, may lack more than is known. In these cases, and if Volcano would refuse
    what the tree gives, the existing HyperNodes stay unchanged.
    """
    num_ours = sum(hypernode.is_ours for hypernode in observed)
    unknown = describe_unknown(observation)
    if unknown and (num_ours or observation.plan_blockers):
        return _keep_unchanged(unknown, num_ours)
    left_out = [node for node in observation.tree.nodes if not is_object_name(node)]
    desired = strip_tree(without_nodes(observation.tree, left_out))
    hypernodes = render_hypernodes(desired)
    faults = lint_hypernodes(hypernodes)
    if faults:
        return _keep_unchanged(f"Volcano would refuse them: {faults[0]}", num_ours)
    if left_out and not hypernodes:
        return _keep_unchanged(_describe_left_out(left_out), num_ours)
    problems = [_build_problem(_describe_left_out(left_out))] if left_out else []
    problems += describe_conflicts(hypernodes, observed)
    actions = plan_changes(hypernodes, observed)
    return PlannedChanges(actions, tuple(problems), desired if hypernodes else None)


def _keep_unchanged(reason: str, num_ours: int) -> PlannedChanges:
    return PlannedChanges(
        problems=(_build_problem(f"{reason}; {num_ours} HyperNodes stay unchanged"),)
    )


def _build_problem(text: str) -> ParseError:
    return ParseError(text, source="HyperNodes")


def _describe_left_out(nodes: Sequence[str]) -> str:
    shown = list_some(map(show, nodes), _MAX_SHOWN)
    return f"hosts that are in no HyperNode, because no node can have such a name: {shown}"


def find_decided(record: TreeRecord | None, tree: TopologyTree) -> tuple[HyperNode, ...]:
    """Return the HyperNodes that count as existing if none are written.

    A plan then differs from the last decision, and not from what is in the cluster. A record has no
    tree if the tree is too large for one object: then the new tree counts.
    """
    if record is None:
        return ()
    return render_hypernodes(record.tree or strip_tree(tree))


def plan_removal(observed: Sequence[HyperNode]) -> PlannedChanges:
    """Return the actions that remove all of our HyperNodes: `outputs` of the Fabric is empty."""
    problems = describe_conflicts((), observed)
    return PlannedChanges(plan_changes((), observed), problems, EMPTY_TREE)


def describe_conflicts(
    desired: Sequence[HyperNode], observed: Sequence[HyperNode]
) -> tuple[ParseError, ...]:
    """Return the conflicts of desired HyperNodes with others, as problems."""
    conflicts = tuple(
        ParseError(describe_conflict(conflict), source="HyperNodes")
        for conflict in find_conflicts(desired, observed)
        if conflict.kind is not ConflictKind.TERMINATING
    )
    terminating = tuple(
        ParseError(describe_terminating(hypernode), source="HyperNodes")
        for hypernode in _select_terminating(observed)
    )
    overlaps = tuple(map(_build_overlap_problem, find_overlaps(desired, observed)))
    return (*conflicts, *terminating, *overlaps)


def describe_conflict(conflict: Conflict) -> str:
    """Return why a HyperNode of ours is not written: a foreign one has its name or its place."""
    return (
        f"HyperNode {conflict.name} is left out: the foreign HyperNode {conflict.foreign} "
        f"{_CONFLICT_TEXT[conflict.kind]}"
    )


def describe_terminating(hypernode: HyperNode) -> str:
    """Return why a HyperNode of ours is not written: it was deleted, and is still there."""
    kept_by = list_some((show(name) for name in hypernode.finalizers), _MAX_SHOWN)
    return (
        f"HyperNode {hypernode.name} was deleted and is kept by {kept_by}: no parent lists it, and "
        "if its domain still exists, it is written again once it is gone"
    )


def _select_terminating(observed: Iterable[HyperNode]) -> Iterator[HyperNode]:
    return (row for row in observed if row.is_ours and row.is_terminating)


def _build_overlap_problem(overlap: Overlap) -> ParseError:
    shown = list_some(map(show, overlap.nodes), _MAX_SHOWN)
    has = f"also contains {shown}" if overlap.nodes else "selects nodes that may be in ours too"
    problem = (
        f"the foreign HyperNode {show(overlap.foreign)} {has}: the scheduler may use either "
        "HyperNode for them"
    )
    return ParseError(problem, source="HyperNodes")


def describe_unknown(observation: Observation) -> str:
    """Return words for the unknown part of the fabric; empty if the whole fabric is known."""
    if observation.plan_blockers:
        return "; ".join(observation.plan_blockers)
    if observation.unknown_subnets:
        subnets = ", ".join(map(show, observation.unknown_subnets))
        return f"there is no complete sweep of subnet {subnets}, so its cables are unknown"
    return "" if observation.tree.domains else "no domain was found, so the fabric is unknown"
