"""Writing HyperNodes under guard: when a plan is written, and when it is held.

The decisions are those of `reconcile.guard`, `reconcile.policy` and `debounce`; here they meet
the store. Nothing is written while the plan still changes, exceeds the budget, or writing is
paused, nor by a replica that does not lead.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from generator.objects.pods import Gang
from generator.objects.tree_spec import DEFAULT_TREE_SPEC, parse_tree_spec
from generator.objects.write_policy import WritePolicy, parse_write_policy
from generator.outputs.hypernode import HyperNode
from generator.reconcile.apply import ApplyResult, apply_plan
from generator.reconcile.conditions import (
    ConditionChange,
    build_change_blocked,
    build_held_plan,
    is_released,
    parse_write_status,
    build_ready,
)
from generator.reconcile.debounce import (
    NO_DEBOUNCE,
    DebounceConfig,
    PendingPlan,
    LastWrite,
    compute_damping_s,
    record_writes,
    update_pending,
)
from generator.reconcile.guard import Coverage, PlanVerdict, hash_plan, judge_plan
from generator.reconcile.plan import Action
from generator.store.base import FabricRead, ServedStore
from runtime.transition_log import TransitionLog
from topology.model.errors import KubeFenced, ParseError

log = logging.getLogger(__name__)


def always_leader() -> bool:
    """Return that we lead: nobody else writes into a folder."""
    return True


class WriteSettings(NamedTuple):
    """How HyperNodes are written."""

    debounce: DebounceConfig = NO_DEBOUNCE
    clock: Callable[[], float] = lambda: 0.0
    """In seconds, never going back."""
    is_dry_run: bool = False
    """Whether what would be written is only told."""
    is_leader: Callable[[], bool] = always_leader
    """Whether we are the one replica that writes."""


class WriteRequest(NamedTuple):
    """What one pass wants to write."""

    actions: Sequence[Action]
    observed: Sequence[HyperNode]
    coverage: Coverage
    conflicts: Sequence[ParseError] = ()
    """Why foreign HyperNodes are in the way of ours."""
    gangs: Collection[Gang] = ()


class WriteResult(NamedTuple):
    """What one pass has written."""

    completed_actions: tuple[Action, ...] = ()
    failed_action: Action | None = None
    completed_plan: str = ""
    """Hash of a plan that was carried out whole."""
    is_approved: bool = False
    """Whether a person had approved it."""


class WriterState(NamedTuple):
    """What the last pass of the writer left behind."""

    conditions: tuple[ConditionChange, ...] = ()
    held: PlanVerdict | None = None
    """On the plan that is held; None if no plan is held."""
    is_in_sync: bool = True
    """Whether the HyperNodes say what was last planned, as far as that could be written."""


class HyperNodeWriter:
    """The memory of writing from pass to pass; what is held stands in the store."""

    def __init__(
        self, store: ServedStore, *, now: Callable[[], datetime], settings: WriteSettings
    ) -> None:
        """Keep the place.

        Args:
            store: whose HyperNodes are written.
            now: the clock of what is told.
            writing: how.
        """
        self.policy = WritePolicy(is_paused=True)
        """As last read; until it could be read, a pause may stand in it."""
        self.tree_spec = DEFAULT_TREE_SPEC
        """Of the tree that is request, as last read."""
        self._conditions: tuple[ConditionChange, ...] = ()
        """How the last pass ended, for the conditions."""
        self._held: PlanVerdict | None = None
        """Of the plan that is held."""
        self.last_result = WriteResult()
        """By the last pass."""
        self._store = store
        self._now = now
        self._settings = settings
        self._document: Mapping[str, Any] | None = None
        self._pending: PendingPlan | None = None
        self._last_writes: Mapping[str, LastWrite] = {}
        self._hold_log = TransitionLog(log, "held plan", level=logging.WARNING)
        self._pause_log = TransitionLog(log, "pause of writing")
        self._dry_run_log = TransitionLog(log, "planned change")

    def read_policy(self, fabric: FabricRead) -> tuple[ParseError, ...]:
        """Start a pass with the Fabric object; return the parts of its spec that are unusable.

        If the Fabric object could not be read, its last version counts. Before the first version
        was read, writing is paused.
        """
        self.last_result = WriteResult()
        if fabric.problems:
            return fabric.problems
        self._document = fabric.document
        self.policy = parse_write_policy(self._document)
        self.tree_spec, problems = parse_tree_spec(self._document, self.tree_spec)
        return (*self.policy.problems, *problems)

    @property
    def state(self) -> WriterState:
        """What the last pass left behind, for the status of the Fabric object."""
        return WriterState(self._conditions, self._held, self.is_in_sync)

    def record_not_ready(self, why: str, *, reason: str = "NoData") -> None:
        """Take note that the fabric is not known, which is no reason to write anything."""
        self._pending = None
        self._conditions = (build_ready(reason=reason, message=why),)

    def write(self, request: WriteRequest) -> float | None:
        """Carry out the plan if it may be; return in how many seconds to ask again, if so."""
        if not request.actions:
            self._record_in_sync(request)
            return None
        now_s = self._settings.clock()
        self._pending = update_pending(hash_plan(request.actions), self._pending, now_s)
        if not self._settings.is_leader():
            self._clear_hold()
            return None
        wait_s = self._pending.compute_wait_s(now_s, self._settings.debounce)
        if wait_s > 0 or not self._is_write_allowed(request):
            return wait_s or None
        wait_s = compute_damping_s(self._last_writes, [one.name for one in request.actions], now_s)
        if wait_s > 0:
            return wait_s
        self._apply(request)
        return None

    @property
    def is_in_sync(self) -> bool:
        """Whether the HyperNodes say what was last planned, as far as that could be written."""
        return self._pending is None

    def _record_in_sync(self, request: WriteRequest) -> None:
        """Take note that nothing is left to write."""
        self._pending = None
        self._clear_hold()
        told = "; ".join(one.problem for one in request.conflicts[:3])
        why_not = "ForeignHyperNodes" if request.conflicts else ""
        self._conditions = (build_ready(reason=why_not, message=told), build_change_blocked(None))
        self._pause_log.update({})
        self._dry_run_log.update({})

    def _is_write_allowed(self, request: WriteRequest) -> bool:
        """Return whether the guard and people let a plan be written; take note where not."""
        verdict = judge_plan(
            request.actions,
            request.observed,
            budget=self.policy.budget,
            coverage=request.coverage,
            gangs=request.gangs,
        )
        if not verdict.is_allowed and not self._is_approved(verdict):
            self._held = verdict
            self._hold_log.update(
                {verdict.hash: {"plan": verdict.hash, "why": verdict.reason_text}}
            )
            blocked = build_change_blocked(verdict)
            self._conditions = (
                build_ready(reason="ChangeBlocked", message=blocked.message),
                blocked,
            )
            return False
        self._clear_hold()
        why_not = (
            "Paused" if self.policy.is_paused else "DryRun" if self._settings.is_dry_run else ""
        )
        self._pause_log.update({why_not: {"reason": why_not}} if why_not else {})
        if not why_not:
            return True
        message = f"plan {verdict.hash} of {len(request.actions)} changes is not written"
        self._conditions = (
            build_ready(reason=why_not, message=message),
            build_change_blocked(None),
        )
        if self._settings.is_dry_run:
            self._dry_run_log.update(
                {(one.op, one.name): _build_log_fields(one) for one in request.actions}
            )
        return False

    def _is_approved(self, verdict: PlanVerdict) -> bool:
        """Return whether a person has approved a plan, or as much time passed as they allow."""
        if self.policy.is_approved(verdict.hash):
            return True
        now = self._now()
        held = build_held_plan(verdict, before=parse_write_status(self._document).held, now=now)
        return is_released(held, self.policy.budget.release_after_seconds, now)

    def _clear_hold(self) -> None:
        self._held = None
        self._hold_log.update({})

    def _apply(self, request: WriteRequest) -> None:
        plan = hash_plan(request.actions)
        is_approved = self.policy.is_approved(plan)
        result = apply_plan(request.actions, self._store)
        failed = result.pending[0] if result.error is not None else None
        whole = plan if failed is None else ""
        self.last_result = WriteResult(result.done, failed, whole, is_approved)
        now_s, pace = self._settings.clock(), self._settings.debounce
        done = [action.name for action in result.done]
        self._last_writes = record_writes(self._last_writes, done, now_s, pace=pace)
        log.info("hypernodes written", extra=_count_by_op(result.done))
        if result.error is not None:
            self._record_failure(result, result.error)
            return
        self._record_in_sync(request)
        if is_approved:
            self._store.consume_approval(plan)  # the same plan is asked for again

    def _record_failure(self, result: ApplyResult, error: Exception) -> None:
        fields = {"error": str(error), "pending": len(result.pending)}
        if isinstance(error, KubeFenced):
            log.info("writing hypernodes broken off", extra=fields)
            return
        log.error("writing hypernodes failed", extra=fields)
        self._conditions = (
            build_ready(reason="WriteFailed", message=str(error)),
            build_change_blocked(None),
        )


def _count_by_op(done: Iterable[Action]) -> dict[str, int]:
    counts = Counter(action.op for action in done)
    return {f"num_{op.value}": num for op, num in sorted(counts.items())}


def _build_log_fields(action: Action) -> Mapping[str, object]:
    return {
        "action": action.op.value,
        "hypernode": action.name,
        "tier": action.tier,
        "reason": action.reason,
    }
