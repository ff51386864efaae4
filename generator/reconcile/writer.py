"""Writes HyperNodes: in each round, decides whether the plan is written, waits or is held.

The rules are in `guard`, `debounce` and `objects.write_policy`; this module applies them to the
store. Nothing new is written while the plan still changes, exceeds the budget or awaits an
approval, while writing is paused, or by a replica that is not the leader. What is written is
recorded first (`tree_decision`). Restoring it later needs no budget and no wait.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from generator.objects.tree_record import TreeRecord
from generator.objects.tree_spec import DEFAULT_TREE_SPEC, TreeSpec, UnknownSetting, parse_tree_spec
from generator.objects.write_policy import WritePolicy, parse_write_policy
from generator.outputs.hypernode import HyperNode, render_hypernodes
from generator.reconcile.apply import ApplyResult, apply_plan, compute_retry_s
from generator.reconcile.conditions import (
    ConditionChange,
    build_change_blocked,
    build_damped,
    build_held_plan,
    build_ready,
    is_released,
    parse_write_status,
)
from generator.reconcile.debounce import (
    LastWrite,
    PendingPlan,
    compute_damping_s,
    record_writes,
    update_pending,
)
from generator.reconcile.desired import PlannedChanges
from generator.reconcile.guard import PlanVerdict, hash_plan, judge_plan
from generator.reconcile.plan import Action, plan_changes
from generator.reconcile.sweep_holds import find_sweep_holds
from generator.reconcile.tree_decision import (
    TreeDecision,
    build_decision,
    build_record,
    with_past_times,
)
from generator.reconcile.write_request import WriteRequest, WriteResult, WriteSettings
from generator.store.base import FabricRead, ServedStore
from runtime.transition_log import TransitionLog
from topology.model.errors import KubeFenced, ParseError, TopologyError

log = logging.getLogger(__name__)
_UNREAD: Final = "the Fabric object has not been read"
_FOREIGN_REASON: Final = "ForeignHyperNodes"
_NOT_HELD: Final = "this plan is not held any more"


class WriterState(NamedTuple):
    """The state of the writer after a round."""

    conditions: tuple[ConditionChange, ...] = ()
    held: PlanVerdict | None = None
    """The verdict on the held plan; None if no plan is held."""
    is_judged: bool = True
    """Whether this round judged a plan; if not, what was held still is."""
    is_in_sync: bool = True
    """Whether the HyperNodes agree with the last plan, as far as it can be written."""


class HyperNodeWriter:
    """Writes plans, and remembers pending plans and past writes from round to round.

    The held plan is also in the store, so its start time survives a restart.
    """

    def __init__(
        self, store: ServedStore, *, now: Callable[[], datetime], settings: WriteSettings
    ) -> None:
        """Write nothing yet.

        `now` is the clock for times in the status.
        """
        self.policy = WritePolicy(is_paused=True, unknown=_UNREAD)
        """As last read. Paused until the first read, since the Fabric object may say so."""
        self.tree_spec = DEFAULT_TREE_SPEC
        """The requested form of the tree, as last read."""
        self._last_spec: TreeSpec | None = None
        self._conditions: tuple[ConditionChange, ...] = ()
        """The conditions after the last round."""
        self._held: PlanVerdict | None = None
        """The verdict on the held plan."""
        self._is_judged = False
        """Whether this round judged a plan."""
        self._void_approval = ""
        """An ended approval that could not be removed. It is ignored."""
        self.last_result = WriteResult()
        """The writes of the last round."""
        self._num_failures = 0
        """Rounds in a row whose writes failed."""
        self._store = store
        self._now = now
        self._settings = settings
        self._document: Mapping[str, Any] | None = None
        self._pending: PendingPlan | None = None
        self._last_restoration: tuple[object, tuple[Action, ...]] | None = None
        """The record and the HyperNodes, and the actions that restore the record."""
        self._last_writes: Mapping[str, LastWrite] = {}
        self._last_restores: Mapping[str, LastWrite] = {}
        self._hold_log = TransitionLog(log, "held plan", level=logging.WARNING)
        self._pause_log = TransitionLog(log, "pause of writing")
        self._dry_run_log = TransitionLog(log, "planned change")

    def read_policy(self, fabric: FabricRead) -> tuple[ParseError, ...]:
        """Start a round with the Fabric object; return the parts of its spec that are unusable.

        If the Fabric object could not be read, its last version counts. Until a version was read,
        writing is paused.
        """
        self.last_result = WriteResult()
        self._is_judged = False
        if fabric.problems:
            if self._last_spec is None:
                unknown = (UnknownSetting("", str(fabric.problems[0])),)
                self.tree_spec = DEFAULT_TREE_SPEC._replace(unknown=unknown)
            return fabric.problems
        self._document = fabric.document
        self.policy = parse_write_policy(self._document, self.policy)
        self.tree_spec, problems = parse_tree_spec(self._document, self._last_spec)
        self._last_spec = self.tree_spec
        return (*self.policy.problems, *problems)

    @property
    def state(self) -> WriterState:
        """The state after the last round, for the status of the Fabric object."""
        return WriterState(self._conditions, self._held, self._is_judged, self.is_in_sync)

    def record_not_ready(self, why: str, *, reason: str = "NoData") -> None:
        """Record why nothing is planned in this round, and write nothing."""
        self._pending = None
        self._conditions = (build_ready(reason=reason, message=why),)

    def restore(self, record: TreeRecord | None, observed: tuple[HyperNode, ...]) -> float | None:
        """Undo edits in a round without a plan; return the seconds until a retry, None if none."""
        if not self._settings.is_leader():
            return None
        conditions = self._conditions
        wait_s = self._restore_last(WriteRequest(PlannedChanges(), observed, record=record))
        if self.last_result.failed_action is None:
            self._conditions = conditions
        return wait_s

    def write(self, request: WriteRequest) -> float | None:
        """Write the plan if it is allowed; return the seconds until a retry, None if none is due.

        A follower writes nothing.
        """
        self._redate(request.record)
        decision = self._build_decision(request)
        self._drop_approval(request)
        if not request.actions:
            self._adopt(request, decision)
            self._record_in_sync(request)
            return None
        now_s = self._settings.clock()
        self._pending = update_pending(hash_plan(request.actions), self._pending, now_s)
        if not self._settings.is_leader():
            self._clear_hold()
            return None
        # An approval of this plan is left if it could not be removed when the plan was recorded.
        if decision.is_restoration and not self.policy.is_approved(self._pending.plan):
            return self._restore(request, request.actions) if self._can_write(request) else None
        wait_s = self._pending.compute_wait_s(now_s, self._settings.debounce)
        verdict = self._judge(request, decision) if wait_s <= 0 else None
        if verdict is None or not self._is_write_allowed(request, verdict):
            return min(filter(None, (wait_s, self._restore_last(request))), default=None)
        # A person asked for a removal, so it does not wait.
        names = [] if request.is_removal else [action.name for action in request.actions]
        wait_s = compute_damping_s(self._last_writes, names, now_s)
        if wait_s > 0:
            self._conditions = build_damped(len(names), request.conflict_text)
            return min(filter(None, (wait_s, self._restore_last(request))), default=None)
        self._carry_out(request, decision, verdict)
        return None

    def remove_unwanted(self, observed: tuple[HyperNode, ...]) -> None:
        """Remove our HyperNodes because the Fabric object wants other outputs alone."""
        actions = plan_changes((), observed)
        if actions and self.is_writing:
            result = apply_plan(actions, self._store)
            log.info("hypernodes written", extra=result.num_by_op)
            if result.error is not None:  # the next round tries again
                log.error("writing hypernodes failed", extra={"error": str(result.error)})

    @property
    def is_in_sync(self) -> bool:
        """Whether the HyperNodes agree with the last plan, as far as it can be written."""
        return self._pending is None

    def _build_decision(self, request: WriteRequest) -> TreeDecision:
        return build_decision(
            request.record,
            request.planned.desired,
            existing=request.existing,
            budget=self.policy.budget,
            now=self._now(),
        )

    def _redate(self, record: TreeRecord | None) -> None:
        """Rewrite a record of a clock that was ahead: it would use up the budget until then."""
        found = None if record is None else with_past_times(record, self._now())
        if found is not None and self.is_writing:
            with suppress(TopologyError):  # the next round tries again
                self._store.write_record(found)

    def _judge(self, request: WriteRequest, decision: TreeDecision) -> PlanVerdict:
        if request.is_removal:
            counts = Counter(action.op for action in request.actions)
            return PlanVerdict(hash_plan(request.actions), counts=counts)
        verdict = judge_plan(
            request.actions,
            decision,
            budget=self.policy.budget,
            coverage=request.coverage,
            gangs=request.gangs,
        )
        sweep_holds = find_sweep_holds(request.doubts, decision)
        return replace(verdict, hold_reasons=(*verdict.hold_reasons, *sweep_holds))

    def _record_in_sync(self, request: WriteRequest) -> None:
        """Record that nothing is left to write."""
        self._pending, self._num_failures = None, 0
        self._clear_hold()
        reason = _FOREIGN_REASON if request.conflicts else ""
        ready = build_ready(reason=reason, message=request.conflict_text)
        if request.is_decision_only:
            ready = ready._replace(reason="TreeDecided")
        self._conditions = (ready, build_change_blocked(None))
        self._pause_log.update({})
        self._dry_run_log.update({})

    def _adopt(self, request: WriteRequest, decision: TreeDecision) -> None:
        """Record the desired tree as decided if its HyperNodes exist already, as after an upgrade.

        With conflicts, some of them do not exist, and their changes count as of any plan.
        """
        is_too_large = request.record is not None and request.record.tree is None
        is_unknown = request.planned.desired is None
        if decision.is_restoration or is_too_large or is_unknown or not self.is_writing:
            return
        verdict = self._judge(request, decision) if request.conflicts else PlanVerdict("")
        if verdict.is_allowed:
            self._write_record(decision, verdict)

    @property
    def is_writing(self) -> bool:
        """Whether this replica may write anything at all."""
        is_off = self.policy.is_paused or self._settings.is_dry_run
        return self._settings.is_leader() and not is_off

    def _is_write_allowed(self, request: WriteRequest, verdict: PlanVerdict) -> bool:
        """Return whether a plan may be written: allowed, not paused, no dry run; record why not."""
        if verdict.is_allowed or self._is_approved(verdict):
            return self._can_write(request)
        self._held, self._is_judged = verdict, True
        self._hold_log.update({verdict.hash: {"plan": verdict.hash, "why": verdict.reason_text}})
        blocked = build_change_blocked(verdict)
        message = _join(request.conflict_text, blocked.message)
        reason = _FOREIGN_REASON if request.conflicts else "ChangeBlocked"
        self._conditions = (build_ready(reason=reason, message=message), blocked)
        return False

    def _can_write(self, request: WriteRequest) -> bool:
        """Return whether an allowed plan is written: not paused, no dry run; record why not."""
        self._clear_hold()
        is_dry_run = self._settings.is_dry_run
        block_reason = "Paused" if self.policy.is_paused else "DryRun" if is_dry_run else ""
        self._pause_log.update({block_reason: {"reason": block_reason}} if block_reason else {})
        if not block_reason:
            return True
        text = f"plan {hash_plan(request.actions)} of {len(request.actions)} changes is not written"
        message = _join(text, self.policy.unknown, request.conflict_text)
        self._conditions = (
            build_ready(reason=block_reason, message=message),
            build_change_blocked(None),
        )
        if is_dry_run:
            self._dry_run_log.update(
                {(action.op, action.name): _build_log_fields(action) for action in request.actions}
            )
        return False

    def _is_approved(self, verdict: PlanVerdict) -> bool:
        """Return whether a person approved the plan, or its hold has lasted until the release."""
        if self.policy.is_approved(verdict.hash):
            return True
        now = self._now()
        held = build_held_plan(verdict, before=parse_write_status(self._document).held, now=now)
        return is_released(held, self.policy.budget.release_after_seconds, now)

    def _drop_approval(self, request: WriteRequest) -> None:
        """Remove the approval of a plan that this round does not plan.

        Evidence has changed since a person approved. If the same plan follows from other evidence
        later, a person decides anew.
        """
        approved = self.policy.approved_plan
        is_planned = bool(request.actions) and self.policy.is_approved(hash_plan(request.actions))
        if not approved or (is_planned and approved != self._void_approval):
            self._void_approval = ""
            return
        is_new, self._void_approval = approved != self._void_approval, approved
        self.policy = self.policy._replace(approved_plan="")
        if self._settings.is_leader():
            fields = {"plan": approved, "why": _NOT_HELD}
            try:
                self._store.consume_approval(approved)
                self._void_approval = ""
                log.warning("approval removed", extra=fields)
            except TopologyError as error:  # the next round tries again
                if is_new:
                    log.warning("approval not removed", extra={**fields, "error": str(error)})

    def _clear_hold(self) -> None:
        self._is_judged = True
        self._held = None
        self._hold_log.update({})

    def _carry_out(
        self, request: WriteRequest, decision: TreeDecision, verdict: PlanVerdict
    ) -> None:
        """Record the decision, then write the plan.

        Recording the decision uses up its approval. If the program stops, the rest of the plan
        needs no new approval.
        """
        is_approved = self.policy.is_approved(verdict.hash)
        try:
            self._write_record(decision, verdict)
            if is_approved:
                self._store.consume_approval(verdict.hash)
        except TopologyError as error:
            self._record_failure(ApplyResult((), request.actions, error), error, request)
            return
        names = self._apply(request, request.actions, is_approved=is_approved)
        now_s, pace = self._settings.clock(), self._settings.debounce
        self._last_writes = record_writes(self._last_writes, names, now_s, pace=pace)

    def _write_record(self, decision: TreeDecision, verdict: PlanVerdict) -> None:
        """Write the record of a decision; what a person or the time released is not charged."""
        is_charged = verdict.is_allowed
        self._store.write_record(
            build_record(
                decision,
                moved=verdict.moved if is_charged else (),
                deleted=verdict.deleted if is_charged else (),
                now=self._now(),
            )
        )

    def _restore_last(self, request: WriteRequest) -> float | None:
        """Undo edits of the last decided HyperNodes while another plan waits or is held."""
        last = request.record.tree if request.record is not None else None
        if last is None or not last.domains or not self.is_writing:
            return None
        key = (request.record, request.observed)
        if self._last_restoration is None or self._last_restoration[0] != key:
            self._last_restoration = key, plan_changes(render_hypernodes(last), request.observed)
        actions = self._last_restoration[1]
        return self._restore(request, actions) if actions else None

    def _restore(self, request: WriteRequest, actions: tuple[Action, ...]) -> float | None:
        """Write what was decided before; an object that is edited again and again waits longer.

        Return the seconds until a retry, None if none is due.
        """
        now_s, pace = self._settings.clock(), self._settings.debounce
        names = [action.name for action in actions]
        wait_s = compute_damping_s(self._last_restores, names, now_s)
        if wait_s > 0:
            return wait_s
        names = self._apply(request, actions)
        pace = replace(pace, min_window_s=pace.restore_window_s)
        self._last_restores = record_writes(self._last_restores, names, now_s, pace=pace)
        return None

    def _apply(
        self, request: WriteRequest, actions: tuple[Action, ...], *, is_approved: bool = False
    ) -> list[str]:
        """Write actions, and return the names of the written HyperNodes."""
        if request.is_decision_only:
            result = ApplyResult(())
            log.info("tree decided", extra={"num_changes": len(actions)})
        else:
            result = apply_plan(actions, self._store)
            log.info("hypernodes written", extra=result.num_by_op)
        failed = result.pending[0] if result.error is not None else None
        completed_plan = hash_plan(actions) if failed is None else ""
        self.last_result = WriteResult(result.done, failed, completed_plan, is_approved)
        if result.error is not None:
            self._record_failure(result, result.error, request)
        elif actions == request.actions:
            self._record_in_sync(request)
        return [action.name for action in result.done]

    def _record_failure(self, result: ApplyResult, error: Exception, request: WriteRequest) -> None:
        fields = {"error": str(error), "pending": len(result.pending)}
        if isinstance(error, KubeFenced):
            log.info("writing hypernodes stopped", extra=fields)
            return
        log.error("writing hypernodes failed", extra=fields)
        self._num_failures += 1
        retry_s = compute_retry_s(error, self._num_failures)
        self.last_result = self.last_result._replace(retry_s=retry_s)
        self._conditions = (
            build_ready(reason="WriteFailed", message=_join(str(error), request.conflict_text)),
            build_change_blocked(None),
        )


def _join(*messages: str) -> str:
    return "; ".join(filter(None, messages))


def _build_log_fields(action: Action) -> Mapping[str, object]:
    return {
        "action": action.op.value,
        "hypernode": action.name,
        "tier": action.tier,
        "reason": action.reason,
    }
