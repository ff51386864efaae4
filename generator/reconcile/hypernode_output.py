"""The HyperNodes as one of the outputs: how far they agree with the tree that was decided. Pure.

They are written in the order of a plan, because the set must be valid after every write. Their
row in the status is the same as that of every other output.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from generator.objects.outputs import OutputType
from generator.outputs.hypernode.forest import render_hypernodes
from generator.outputs.hypernode.model import HyperNode
from generator.reconcile.conflicts import Conflict, ConflictKind, find_conflicts
from generator.reconcile.desired import NO_VOLCANO, describe_conflict, describe_terminating
from generator.reconcile.hypernode_plan import Action, plan_changes
from generator.reconcile.output_outcomes import OutputOutcome, RefusedWrite
from generator.reconcile.rendered import UNDECIDED
from generator.reconcile.writer import ApplyResult
from generator.store.object_store import ForeignObject
from topology.model.errors import KubeConflict, KubeFenced, KubeUnavailable
from topology.model.tree import TopologyTree

_PASSING: Final = (KubeFenced, KubeUnavailable)
"""Failures that concern every write and no single object."""
_WHO_DELETED: Final = "Find out who deleted it, and remove the finalizer if its owner is gone."
_NOT_SERVED: Final = OutputOutcome(OutputType.HYPERNODE, problem=NO_VOLCANO, is_served=False)


def compare_hypernodes(
    tree: TopologyTree | None,
    observed: Sequence[HyperNode],
    applied: ApplyResult,
    *,
    is_wanted: bool = True,
    is_served: bool = True,
) -> OutputOutcome:
    """Return the result of the output after the writes of a round. Cost: O(members).

    Args:
        tree: the tree that was decided last; None: no tree is decided.
        observed: the HyperNodes before the writes.
        applied: the writes.
        is_wanted: whether the tree is written as HyperNodes; if not, ours are removed.
        is_served: whether the cluster has the kind.
    """
    outcome = OutputOutcome(
        OutputType.HYPERNODE, num_written=len(applied.done), is_removal=not is_wanted
    )
    if not is_served:
        return _NOT_SERVED._replace(is_removal=not is_wanted)
    if tree is None and is_wanted:
        return outcome._replace(problem=UNDECIDED, is_known=False)
    desired = render_hypernodes(tree) if tree is not None and is_wanted else ()
    existing = _apply_actions(observed, applied.done)
    refusals = _list_refusals(desired, existing, applied)
    changing = {action.name for action in plan_changes(desired, existing)}
    pending = changing - {refusal.key for refusal in refusals}
    ours = {row.name for row in existing if row.is_ours and not row.is_terminating}
    current = ours.intersection(row.name for row in desired) - changing
    return outcome._replace(
        num_current=len(current), num_pending=len(pending), refusals=tuple(refusals)
    )


def _apply_actions(
    observed: Iterable[HyperNode], actions: Iterable[Action]
) -> tuple[HyperNode, ...]:
    """Return the HyperNodes that exist after some writes."""
    by_name = {row.name: row for row in observed}
    for action in actions:
        by_name.pop(action.name, None)
        if action.object is not None:
            by_name[action.name] = action.object
    return tuple(by_name.values())


def _list_refusals(
    desired: Sequence[HyperNode], existing: Sequence[HyperNode], applied: ApplyResult
) -> list[RefusedWrite]:
    """Return what conflicts with others, and the write that failed."""
    by_name = {row.name: row for row in existing}
    refusals = [
        _refuse(conflict, by_name[conflict.foreign])
        for conflict in find_conflicts(desired, existing)
    ]
    error = applied.error
    if error is not None and applied.pending and not isinstance(error, _PASSING):
        is_conflict = isinstance(error, KubeConflict | ForeignObject)
        refusals.append(RefusedWrite(applied.pending[0].name, str(error), is_conflict))
    return refusals


def _refuse(conflict: Conflict, other: HyperNode) -> RefusedWrite:
    if conflict.kind is ConflictKind.TERMINATING:
        text = describe_terminating(other)
        return RefusedWrite(conflict.name, text, is_conflict=False, advice=_WHO_DELETED)
    return RefusedWrite(conflict.name, describe_conflict(conflict), is_conflict=True)
