"""Writing HyperNodes under guard: when a plan is written, when it is held, and telling which.

The decisions are those of `reconcile.guard`, `reconcile.policy` and `debounce`; here they meet
the store. Nothing is written while the plan still changes, exceeds the budget, or writing is
paused. What is seen is told all the same, in the status of the Fabric object.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from generator.debounce import AT_ONCE, Pace, Waiting, Written, damping_s, note_writes, wait_for
from generator.outputs.hypernode import HyperNode
from generator.reconcile.apply import apply_plan
from generator.reconcile.conditions import (
    Outcome,
    Standing,
    change_blocked,
    conditions_after,
    degraded,
    held_plan,
    is_released,
    ready,
    standing_in,
    with_standing,
)
from generator.reconcile.guard import Coverage, Verdict, hash_plan, judge
from generator.reconcile.plan import Action
from generator.reconcile.policy import Policy, policy_of, without_approval
from generator.standing import Standing as Lasting
from generator.store.directory import DirectoryStore
from topology.errors import ParseError, StoreError

log = logging.getLogger(__name__)


class Writing(NamedTuple):
    """How HyperNodes are written."""

    pace: Pace = AT_ONCE
    clock: Callable[[], float] = lambda: 0.0
    """In seconds, never going back."""
    is_dry: bool = False
    """Whether what would be written is only told."""


class Pass(NamedTuple):
    """What one pass wants to write."""

    actions: Sequence[Action]
    observed: Sequence[HyperNode]
    coverage: Coverage
    num_conflicts: int = 0
    """HyperNodes that foreign ones keep from being written."""


class Guarding:
    """The memory of writing from pass to pass; what is held stands in the store."""

    def __init__(
        self, store: DirectoryStore, *, now: Callable[[], datetime], writing: Writing
    ) -> None:
        """Keep the place.

        Args:
            store: whose HyperNodes and Fabric object are written.
            now: the clock of what is told.
            writing: how.
        """
        self._store = store
        self._now = now
        self._writing = writing
        self._policy = Policy(is_paused=True)
        """As last read; until it could be read, a pause may stand in it."""
        self._document: Mapping[str, Any] | None = None
        self._waiting: Waiting | None = None
        self._written: Mapping[str, Written] = {}
        self._verdict: Verdict | None = None
        """Of the plan that is held."""
        self._outcomes: tuple[Outcome, ...] = ()
        self._holds = Lasting(log, "held plan", level=logging.WARNING)
        self._pauses = Lasting(log, "pause of writing")
        self._planned = Lasting(log, "planned change")

    def begin(self) -> tuple[ParseError, ...]:
        """Read what people want, before a pass; return what of it is no use."""
        try:
            self._document = self._store.read_fabric()
        except StoreError as error:
            # The last word counts; without any, nothing is written.
            return (ParseError(str(error)),)
        self._policy = policy_of(self._document)
        return self._policy.problems

    def hold_back(self, why: str) -> None:
        """Take note that the fabric is not known, which is no reason to write anything."""
        self._waiting = None
        self._outcomes = (ready(why_not="NoData", message=why),)

    def write(self, wanted: Pass) -> float | None:
        """Carry out the plan if it may be; return in how many seconds to ask again, if so."""
        if not wanted.actions:
            self._settle(wanted)
            return None
        now_s = self._writing.clock()
        self._waiting = wait_for(hash_plan(wanted.actions), self._waiting, now_s)
        wait_s = self._waiting.wait_s(now_s, self._writing.pace)
        if wait_s > 0 or not self._may(wanted):
            return wait_s or None
        wait_s = damping_s(self._written, [one.name for one in wanted.actions], now_s)
        if wait_s > 0:
            return wait_s
        self._apply(wanted)
        return None

    def tell(self, kinds: Collection[str], *, num_problems: int) -> tuple[ParseError, ...]:
        """Write how the pass ended into the Fabric object, if that changed; return why it failed.

        Args:
            kinds: of the findings that are warnings or worse.
            num_problems: inputs, or parts of them, that could not be used.
        """
        try:
            document = self._store.read_fabric()
            before, now = standing_in(document), self._now()
            outcomes = (*self._outcomes, degraded(kinds, num_problems=num_problems))
            verdict = self._verdict
            held = held_plan(verdict, before=before.held, now=now) if verdict else None
            after = Standing(conditions_after(before.conditions, outcomes, now), held)
            if after != before:
                self._store.write_fabric(with_standing(document, after))
        except StoreError as error:
            return (ParseError(str(error)),)
        return ()

    @property
    def is_settled(self) -> bool:
        """Whether the HyperNodes say what was last planned, as far as that could be written."""
        return self._waiting is None

    def _settle(self, wanted: Pass) -> None:
        """Take note that nothing is left to write."""
        self._waiting = None
        self._release()
        num = wanted.num_conflicts
        told = f"foreign HyperNodes stand in the way of {num}" if num else ""
        why_not = "ForeignHyperNodes" if num else ""
        self._outcomes = (ready(why_not=why_not, message=told), change_blocked(None))
        self._pauses.update({})
        self._planned.update({})

    def _may(self, wanted: Pass) -> bool:
        """Return whether the guard and people let a plan be written; take note where not."""
        budget = self._policy.budget
        verdict = judge(wanted.actions, wanted.observed, budget=budget, coverage=wanted.coverage)
        if not verdict.is_allowed and not self._is_approved(verdict):
            self._verdict = verdict
            self._holds.update({verdict.hash: {"plan": verdict.hash, "why": verdict.why}})
            blocked = change_blocked(verdict)
            self._outcomes = (ready(why_not="ChangeBlocked", message=blocked.message), blocked)
            return False
        self._release()
        why_not = "Paused" if self._policy.is_paused else "DryRun" if self._writing.is_dry else ""
        self._pauses.update({why_not: {"reason": why_not}} if why_not else {})
        if not why_not:
            return True
        message = f"plan {verdict.hash} of {len(wanted.actions)} changes is not written"
        self._outcomes = (ready(why_not=why_not, message=message), change_blocked(None))
        if self._writing.is_dry:
            self._planned.update({(one.op, one.name): _fields(one) for one in wanted.actions})
        return False

    def _is_approved(self, verdict: Verdict) -> bool:
        """Return whether a person has approved a plan, or as much time passed as they allow."""
        if self._policy.approves(verdict.hash):
            return True
        now = self._now()
        held = held_plan(verdict, before=standing_in(self._document).held, now=now)
        return is_released(held, self._policy.budget.release_after_seconds, now)

    def _release(self) -> None:
        self._verdict = None
        self._holds.update({})

    def _apply(self, wanted: Pass) -> None:
        result = apply_plan(wanted.actions, self._store)
        done = [action.name for action in result.done]
        now_s, pace = self._writing.clock(), self._writing.pace
        self._written = note_writes(self._written, done, now_s, pace=pace)
        log.info("hypernodes written", extra=_counts(result.done))
        if result.error is not None:
            error = str(result.error)
            log.error(
                "writing hypernodes failed", extra={"error": error, "pending": len(result.pending)}
            )
            self._outcomes = (ready(why_not="WriteFailed", message=error), change_blocked(None))
            return
        self._settle(wanted)
        use_up_approval(self._store, hash_plan(wanted.actions))


def use_up_approval(store: DirectoryStore, plan: str) -> None:
    """Take back the approval of a plan that was carried out; the same plan is asked for again.

    Raises:
        StoreError: the Fabric object cannot be read or written.
    """
    document = store.read_fabric()
    if document is not None and policy_of(document).approves(plan):
        store.write_fabric(without_approval(document))


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
