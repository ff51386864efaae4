"""Carries out decisions: the record first, the HyperNodes in the order of the plan, other outputs.

Each write leaves a valid cluster, so a stop needs no rollback: the next round plans again. The
other outputs follow the record that is in force after the writes, with or without a new plan.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol

from generator.objects.tree_record import TreeRecord
from generator.outputs.hypernode.model import HyperNode
from generator.reconcile.conditions import ConditionChange, build_change_blocked, build_ready
from generator.reconcile.decision import (
    NO_MEMORY,
    Decision,
    DecisionKind,
    WriteMemory,
    join_messages,
)
from generator.reconcile.guard import PlanVerdict
from generator.reconcile.hypernode_plan import Action
from generator.reconcile.output_outcomes import OutputsOutcome
from generator.reconcile.write_delays import NO_DEBOUNCE, DebounceConfig, record_writes
from runtime.retry import Backoff
from runtime.transition_log import TransitionLog
from topology.model.errors import KubeFenced, KubeUnavailable, TopologyError

log = logging.getLogger(__name__)
_RETRIES: Final = Backoff(first_s=5.0, limit_s=60.0)
"""Waits after a failure: a server that starts refuses writes for some seconds."""
_WHOLE_PLAN: Final = frozenset({DecisionKind.WRITE, DecisionKind.RESTORE})
_COMPLETE: Final = _WHOLE_PLAN | {DecisionKind.NOTHING}


class HyperNodeStore(Protocol):
    """Stores HyperNodes. Each call takes effect completely, or fails with a TopologyError."""

    def put(self, hypernode: HyperNode, taken: HyperNode | None = None) -> bool:
        """Create or replace a HyperNode; return whether anything was written.

        Args:
            hypernode: the HyperNode, which is written as ours.
            taken: the one of another owner that it replaces, as a person approved it.
        """
        ...

    def remove(self, name: str) -> bool:
        """Delete a HyperNode; return whether it existed."""
        ...


class DecisionStore(HyperNodeStore, Protocol):
    """Stores what decisions write."""

    def write_record(self, record: TreeRecord) -> object:
        """Record what was decided, before it is written."""
        ...

    def consume_approval(self, plan: str) -> object:
        """Remove the approval of a plan, if there is one."""
        ...


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """The done and pending actions of a plan."""

    done: tuple[Action, ...]
    """Written actions, in the order of the plan."""
    pending: tuple[Action, ...] = ()
    """Actions that were not written; the first of them failed."""
    error: TopologyError | None = None

    @property
    def num_by_op(self) -> Mapping[str, int]:
        """Return the number of done actions by operation, as fields of the log."""
        counts = Counter(action.op for action in self.done)
        return {f"num_{op.value}": num for op, num in sorted(counts.items())}


class ApprovalRemoval(NamedTuple):
    """The removal of the approval of a plan that is not planned."""

    approval: str = ""
    """The hash of the plan; empty if there is no such approval."""
    is_removed: bool = False
    error: TopologyError | None = None
    """Why it is still there; the next round tries again."""

    @property
    def is_tried(self) -> bool:
        """Whether there is such an approval."""
        return bool(self.approval)


class WriteOutcome(NamedTuple):
    """The result of a decision."""

    conditions: tuple[ConditionChange, ...] = ()
    held: PlanVerdict | None = None
    """The verdict on the held plan; None if no plan is held."""
    is_judged: bool = False
    """Whether it is known if a plan is held; if not, what was held still is."""
    applied: ApplyResult = ApplyResult(())
    completed_plan: str = ""
    """Hash of the plan if it was carried out completely, else empty."""
    is_approved: bool = False
    """Whether a person had approved the plan."""
    removal: ApprovalRemoval = ApprovalRemoval()
    outputs: OutputsOutcome | None = None
    """The result of the outputs; None: unknown."""
    wait_s: float | None = None
    """Seconds until the next round, if it should be sooner than usual."""
    memory: WriteMemory = NO_MEMORY

    @property
    def has_no_pending_plan(self) -> bool:
        """Whether no plan waits. This is also true if nothing could be planned."""
        return self.memory.pending is None


Publish = Callable[[TreeRecord | None, ApplyResult], OutputsOutcome | None]
"""Writes the other outputs as a record says, and returns the result of every output, given that of
the HyperNodes; None if it is unknown, so that the status keeps what it says of them."""


def publish_nothing(_record: TreeRecord | None, _applied: ApplyResult) -> OutputsOutcome | None:
    """Leave the other outputs as they are: this round does not write them."""
    return None


def apply_plan(
    actions: Sequence[Action],
    target: HyperNodeStore,
    *,
    on_done: Callable[[Action], None] | None = None,
) -> ApplyResult:
    """Write the actions in order and stop at the first failure.

    `on_done` is called after each written action.
    """
    for index, action in enumerate(actions):
        try:
            _apply_action(action, target)
        except TopologyError as error:
            return ApplyResult(tuple(actions[:index]), tuple(actions[index:]), error)
        if on_done is not None:
            on_done(action)
    return ApplyResult(tuple(actions))


def carry_out(
    decision: Decision,
    store: DecisionStore,
    *,
    clock: Callable[[], float] = lambda: 0.0,
    pace: DebounceConfig = NO_DEBOUNCE,
    on_done: Callable[[Action], None] | None = None,
    publish: Publish = publish_nothing,
) -> WriteOutcome:
    """Write what was decided, and return the result.

    Recording a plan uses up its approval. If the program stops, the rest of the plan needs no new
    approval.

    Args:
        decision: the decision of this round.
        store: where the HyperNodes and the record are written.
        clock: monotonic, in seconds.
        pace: how long written objects wait for their next write.
        on_done: called after each written HyperNode.
        publish: writes the other outputs.
    """
    removal = _remove_void_approval(decision, store)
    record, applied = _write(decision, store, on_done)
    written_at_s = clock()
    outputs = publish(record, applied)
    wait_s = _find_earliest(decision.wait_s, None if outputs is None else outputs.retry_s)
    memory = _remember(decision, applied, written_at_s, pace)
    outcome = WriteOutcome(
        decision.conditions,
        decision.held,
        decision.is_judged,
        applied,
        is_approved=decision.is_approved,
        removal=removal,
        outputs=outputs,
        wait_s=wait_s,
        memory=memory,
    )
    if removal.is_tried:
        void = "" if removal.error is None else removal.approval
        outcome = outcome._replace(memory=outcome.memory._replace(void_approval=void))
    if applied.error is not None:
        return _fail(outcome, decision, applied.error)
    return outcome._replace(completed_plan=decision.plan_hash)


def find_done(decision: Decision, applied: ApplyResult) -> tuple[Action, ...]:
    """Return the actions of the plan that are carried out."""
    if decision.plan == decision.actions:
        return applied.done
    # The record alone is written, and with it the whole plan is carried out.
    return () if applied.error is not None else decision.plan


def _remove_void_approval(decision: Decision, store: DecisionStore) -> ApprovalRemoval:
    void = decision.void_approval
    if not void:
        return ApprovalRemoval()
    try:
        return ApprovalRemoval(void, is_removed=bool(store.consume_approval(void)))
    except TopologyError as error:
        return ApprovalRemoval(void, error=error)


def _write(
    decision: Decision, store: DecisionStore, on_done: Callable[[Action], None] | None
) -> tuple[TreeRecord | None, ApplyResult]:
    """Write the record and the HyperNodes; return the record that is in force, and the result."""
    record = decision.last_record
    try:
        if decision.record is not None:
            store.write_record(decision.record)
            record = decision.record
        if decision.approval:
            store.consume_approval(decision.approval)
    except TopologyError as error:
        return record, ApplyResult((), decision.actions, error)
    return record, apply_plan(decision.actions, store, on_done=on_done)


def _find_earliest(*waits_s: float | None) -> float | None:
    """Return the shortest wait in seconds; None if nothing waits."""
    return min(filter(None, waits_s), default=None)


def _remember(
    decision: Decision, applied: ApplyResult, now_s: float, pace: DebounceConfig
) -> WriteMemory:
    """Return the facts about the writes that the next round needs."""
    memory = decision.memory
    names = [action.name for action in find_done(decision, applied)]
    if applied.error is None and decision.kind in _COMPLETE:
        memory = memory._replace(num_failures=0)
    if decision.kind is DecisionKind.WRITE:
        last_writes = record_writes(memory.last_writes, names, now_s, pace=pace)
        return memory._replace(last_writes=last_writes)
    # Any other kind can only restore; `_with_restoration` adds such writes to waiting plans too.
    pace = replace(pace, min_window_s=pace.restore_window_s)
    last_restores = record_writes(memory.last_restores, names, now_s, pace=pace)
    return memory._replace(last_restores=last_restores)


def _fail(outcome: WriteOutcome, decision: Decision, error: TopologyError) -> WriteOutcome:
    """Return the result of a decision after one of its writes failed."""
    memory = outcome.memory
    if decision.kind in _WHOLE_PLAN:
        memory = memory._replace(pending=decision.pending)
    if isinstance(error, KubeFenced):
        return outcome._replace(conditions=(), memory=memory)
    memory = memory._replace(num_failures=memory.num_failures + 1)
    retry_s = _compute_retry_s(error, memory.num_failures)
    message = join_messages(str(error), decision.conflict_text)
    return outcome._replace(
        conditions=(
            build_ready(reason="WriteFailed", message=message),
            build_change_blocked(None),
        ),
        wait_s=_find_earliest(outcome.wait_s, retry_s),
        memory=memory,
    )


def _compute_retry_s(error: Exception, failures: int) -> float | None:
    """Return the seconds until a failed write may work; None if time alone does not mend it.

    Args:
        error: why the write failed.
        failures: failed writes in a row, with this one.
    """
    if not isinstance(error, KubeUnavailable):
        return None
    return max(error.retry_after_s or 0.0, _RETRIES.ceiling_s(failures))


def _apply_action(action: Action, target: HyperNodeStore) -> None:
    if action.object is None:
        target.remove(action.name)
    else:
        target.put(action.object, action.taken)


class WriteLog:
    """Logs writes; and what is held, blocked or planned in a dry run when that changes."""

    def __init__(self) -> None:
        """Start with nothing held, blocked or planned."""
        self._holds = TransitionLog(log, "held plan", level=logging.WARNING)
        self._blocks = TransitionLog(log, "pause of writing")
        self._dry_run = TransitionLog(log, "planned change")
        self._void_approval = ""
        """An approval that could not be removed, which was logged."""

    def on_write(self, decision: Decision, plan: Sequence[Action], outcome: WriteOutcome) -> None:
        """Log a decision about a plan, and the result."""
        self._log_approval(outcome.removal)
        if decision.is_judged:
            self._log_decision(decision, plan)
        applied = outcome.applied
        if decision.kind is DecisionKind.WRITE and decision.plan != decision.actions:
            log.info("tree decided", extra={"num_changes": len(decision.plan)})
        if decision.actions:
            log.info("hypernodes written", extra=applied.num_by_op)
        fields = {"error": str(applied.error), "pending": len(applied.pending)}
        if isinstance(applied.error, KubeFenced):
            log.info("writing hypernodes stopped", extra=fields)
        elif applied.error is not None:
            log.error("writing hypernodes failed", extra=fields)

    def _log_approval(self, removal: ApprovalRemoval) -> None:
        fields = {"plan": removal.approval, "why": "this plan is not held any more"}
        if removal.error is not None and removal.approval != self._void_approval:
            log.warning("approval not removed", extra={**fields, "error": str(removal.error)})
        elif removal.is_tried and removal.error is None:
            log.warning("approval removed", extra=fields)
        self._void_approval = removal.approval if removal.error is not None else ""

    def _log_decision(self, decision: Decision, plan: Sequence[Action]) -> None:
        held, block = decision.held, decision.block
        self._holds.update(
            {held.hash: {"plan": held.hash, "why": held.reason_text}} if held else {}
        )
        if held is not None or decision.kind is DecisionKind.FOLLOW:
            return
        self._blocks.update({block: {"reason": block}} if block else {})
        planned = plan if block == "DryRun" else ()
        self._dry_run.update({(row.op, row.name): _build_log_fields(row) for row in planned})


def _build_log_fields(action: Action) -> Mapping[str, object]:
    return {
        "action": action.op.value,
        "hypernode": action.name,
        "tier": action.tier,
        "reason": action.reason,
    }
