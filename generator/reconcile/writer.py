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
from generator.objects.tree_spec import DEFAULT_SHAPE, shape_of
from generator.objects.write_policy import Policy, policy_of
from generator.outputs.hypernode import HyperNode
from generator.reconcile.apply import ApplyResult, apply_plan
from generator.reconcile.conditions import (
    ConditionChange,
    change_blocked,
    held_plan,
    is_released,
    parse_write_status,
    ready,
)
from generator.reconcile.debounce import (
    AT_ONCE,
    Pace,
    Waiting,
    Written,
    damping_s,
    note_writes,
    wait_for,
)
from generator.reconcile.guard import Coverage, Verdict, hash_plan, judge
from generator.reconcile.plan import Action
from generator.store.base import FabricRead, ServedStore
from runtime.transition_log import TransitionLog
from topology.model.errors import KubeFenced, ParseError

log = logging.getLogger(__name__)


def always() -> bool:
    """Return that we lead: nobody else writes into a folder."""
    return True


class Writing(NamedTuple):
    """How HyperNodes are written."""

    pace: Pace = AT_ONCE
    clock: Callable[[], float] = lambda: 0.0
    """In seconds, never going back."""
    is_dry: bool = False
    """Whether what would be written is only told."""
    leads: Callable[[], bool] = always
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

    done: tuple[Action, ...] = ()
    failed: Action | None = None
    plan: str = ""
    """Hash of a plan that was carried out whole."""
    is_approved: bool = False
    """Whether a person had approved it."""


class WriterState(NamedTuple):
    """What the last pass of the writer left behind."""

    conditions: tuple[ConditionChange, ...] = ()
    held: Verdict | None = None
    """On the plan that is held; None if no plan is held."""
    is_settled: bool = True
    """Whether the HyperNodes say what was last planned, as far as that could be written."""


class HyperNodeWriter:
    """The memory of writing from pass to pass; what is held stands in the store."""

    def __init__(
        self, store: ServedStore, *, now: Callable[[], datetime], writing: Writing
    ) -> None:
        """Keep the place.

        Args:
            store: whose HyperNodes are written.
            now: the clock of what is told.
            writing: how.
        """
        self.policy = Policy(is_paused=True)
        """As last read; until it could be read, a pause may stand in it."""
        self.shape = DEFAULT_SHAPE
        """Of the tree that is request, as last read."""
        self._conditions: tuple[ConditionChange, ...] = ()
        """How the last pass ended, for the conditions."""
        self._held: Verdict | None = None
        """Of the plan that is held."""
        self.result = WriteResult()
        """By the last pass."""
        self._store = store
        self._now = now
        self._writing = writing
        self._document: Mapping[str, Any] | None = None
        self._waiting: Waiting | None = None
        self._written: Mapping[str, Written] = {}
        self._holds = TransitionLog(log, "held plan", level=logging.WARNING)
        self._pauses = TransitionLog(log, "pause of writing")
        self._planned = TransitionLog(log, "planned change")

    def begin(self, fabric: FabricRead) -> tuple[ParseError, ...]:
        """Start a pass with the Fabric object; return the parts of its spec that are unusable.

        If the Fabric object could not be read, its last version counts. Before the first version
        was read, writing is paused.
        """
        self.result = WriteResult()
        if fabric.problems:
            return fabric.problems
        self._document = fabric.document
        self.policy = policy_of(self._document)
        self.shape, problems = shape_of(self._document, self.shape)
        return (*self.policy.problems, *problems)

    @property
    def state(self) -> WriterState:
        """What the last pass left behind, for the status of the Fabric object."""
        return WriterState(self._conditions, self._held, self.is_settled)

    def hold_back(self, why: str, *, reason: str = "NoData") -> None:
        """Take note that the fabric is not known, which is no reason to write anything."""
        self._waiting = None
        self._conditions = (ready(why_not=reason, message=why),)

    def write(self, request: WriteRequest) -> float | None:
        """Carry out the plan if it may be; return in how many seconds to ask again, if so."""
        if not request.actions:
            self._settle(request)
            return None
        now_s = self._writing.clock()
        self._waiting = wait_for(hash_plan(request.actions), self._waiting, now_s)
        if not self._writing.leads():
            self._release()
            return None
        wait_s = self._waiting.wait_s(now_s, self._writing.pace)
        if wait_s > 0 or not self._may(request):
            return wait_s or None
        wait_s = damping_s(self._written, [one.name for one in request.actions], now_s)
        if wait_s > 0:
            return wait_s
        self._apply(request)
        return None

    @property
    def is_settled(self) -> bool:
        """Whether the HyperNodes say what was last planned, as far as that could be written."""
        return self._waiting is None

    def _settle(self, request: WriteRequest) -> None:
        """Take note that nothing is left to write."""
        self._waiting = None
        self._release()
        told = "; ".join(one.problem for one in request.conflicts[:3])
        why_not = "ForeignHyperNodes" if request.conflicts else ""
        self._conditions = (ready(why_not=why_not, message=told), change_blocked(None))
        self._pauses.update({})
        self._planned.update({})

    def _may(self, request: WriteRequest) -> bool:
        """Return whether the guard and people let a plan be written; take note where not."""
        verdict = judge(
            request.actions,
            request.observed,
            budget=self.policy.budget,
            coverage=request.coverage,
            gangs=request.gangs,
        )
        if not verdict.is_allowed and not self._is_approved(verdict):
            self._held = verdict
            self._holds.update({verdict.hash: {"plan": verdict.hash, "why": verdict.why}})
            blocked = change_blocked(verdict)
            self._conditions = (ready(why_not="ChangeBlocked", message=blocked.message), blocked)
            return False
        self._release()
        why_not = "Paused" if self.policy.is_paused else "DryRun" if self._writing.is_dry else ""
        self._pauses.update({why_not: {"reason": why_not}} if why_not else {})
        if not why_not:
            return True
        message = f"plan {verdict.hash} of {len(request.actions)} changes is not written"
        self._conditions = (ready(why_not=why_not, message=message), change_blocked(None))
        if self._writing.is_dry:
            self._planned.update({(one.op, one.name): _fields(one) for one in request.actions})
        return False

    def _is_approved(self, verdict: Verdict) -> bool:
        """Return whether a person has approved a plan, or as much time passed as they allow."""
        if self.policy.approves(verdict.hash):
            return True
        now = self._now()
        held = held_plan(verdict, before=parse_write_status(self._document).held, now=now)
        return is_released(held, self.policy.budget.release_after_seconds, now)

    def _release(self) -> None:
        self._held = None
        self._holds.update({})

    def _apply(self, request: WriteRequest) -> None:
        plan = hash_plan(request.actions)
        is_approved = self.policy.approves(plan)
        result = apply_plan(request.actions, self._store)
        failed = result.pending[0] if result.error is not None else None
        whole = plan if failed is None else ""
        self.result = WriteResult(result.done, failed, whole, is_approved)
        now_s, pace = self._writing.clock(), self._writing.pace
        done = [action.name for action in result.done]
        self._written = note_writes(self._written, done, now_s, pace=pace)
        log.info("hypernodes written", extra=_counts(result.done))
        if result.error is not None:
            self._note_failure(result, result.error)
            return
        self._settle(request)
        if is_approved:
            self._store.use_up_approval(plan)  # the same plan is asked for again

    def _note_failure(self, result: ApplyResult, error: Exception) -> None:
        fields = {"error": str(error), "pending": len(result.pending)}
        if isinstance(error, KubeFenced):
            log.info("writing hypernodes broken off", extra=fields)
            return
        log.error("writing hypernodes failed", extra=fields)
        self._conditions = (ready(why_not="WriteFailed", message=str(error)), change_blocked(None))


def _counts(done: Iterable[Action]) -> dict[str, int]:
    counts = Counter(action.op for action in done)
    return {f"num_{op.value}": num for op, num in sorted(counts.items())}


def _fields(action: Action) -> Mapping[str, object]:
    return {
        "action": action.op.value,
        "hypernode": action.name,
        "tier": action.tier,
        "reason": action.reason,
    }
