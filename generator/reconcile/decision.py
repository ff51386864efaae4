"""What one round decides about its plan: it is written, waits or is held. Pure.

`decide` is a function from what a round has read, and what the rounds before it left, to a
decision; `writer` carries the decision out. Nothing new is written while the plan still changes,
exceeds the budget or awaits an approval, while writing is paused, or by a replica that is not the
leader. What was decided before is restored at any time, without a budget and without a wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from generator.objects.fabric import HeldPlan
from generator.objects.tree_record import TreeRecord
from generator.objects.write_policy import WritePolicy
from generator.outputs.hypernode.forest import render_hypernodes
from generator.outputs.hypernode.model import HyperNode
from generator.reconcile.conditions import (
    ConditionChange,
    build_change_blocked,
    build_damped,
    build_held_plan,
    build_ready,
    is_released,
)
from generator.reconcile.decided_tree import TreeStep, build_record, build_step, with_past_times
from generator.reconcile.desired import PlannedChanges
from generator.reconcile.guard import PlanEvidence, PlanVerdict, hash_plan, judge_plan
from generator.reconcile.hypernode_plan import Action, plan_changes
from generator.reconcile.write_delays import (
    NO_DEBOUNCE,
    DebounceConfig,
    LastWrite,
    PendingPlan,
    compute_damping_s,
    update_pending,
)
from topology.model.tree import TopologyTree

_MAX_SHOWN: Final = 3
FOREIGN_REASON: Final = "ForeignHyperNodes"
NOT_WANTED: Final = "spec.outputs of the Fabric object has no entry of type hypernode"


class WriteMemory(NamedTuple):
    """What earlier rounds pass on to this round. A restart loses it."""

    pending: PendingPlan | None = None
    """The plan that waits; None if nothing is left to write."""
    last_writes: Mapping[str, LastWrite] = MappingProxyType({})
    """By domain: the last write of a new decision."""
    last_restores: Mapping[str, LastWrite] = MappingProxyType({})
    """By domain: the last write that restored an earlier decision."""
    num_failures: int = 0
    """Rounds in a row whose writes failed."""
    void_approval: str = ""
    """An ended approval that could not be removed. It is ignored."""
    restoration: tuple[object, tuple[Action, ...]] | None = None
    """A cache: the last tree with the HyperNodes as key, and the actions that restore the tree."""


NO_MEMORY: Final = WriteMemory()


class RoundState(NamedTuple):
    """The input of one round's decision."""

    planned: PlannedChanges | None
    """None while nothing can be planned; `not_ready` says why."""
    now: datetime
    """The current time, with a time zone."""
    observed: tuple[HyperNode, ...] = ()
    """The HyperNodes that exist."""
    record: TreeRecord | None = None
    """The last decision."""
    existing: TopologyTree | None = None
    """The tree of our HyperNodes; it counts if no tree is recorded."""
    policy: WritePolicy = WritePolicy()
    approved: str = ""
    """Hash of a plan that is approved beside that of the policy."""
    held: HeldPlan | None = None
    """The plan that was held last, as the Fabric object says."""
    evidence: PlanEvidence = PlanEvidence()
    not_ready: ConditionChange | None = None
    is_restorable: bool = True
    """Whether HyperNodes can be written, so that edits of them can be undone."""
    is_removal: bool = False
    """Whether all HyperNodes are removed because the Fabric object says so: a person decided."""
    is_decision_only: bool = False
    """Whether HyperNodes are no output: only the others follow the decision, and ours are
    removed."""
    is_leader: bool = True
    is_dry_run: bool = False
    pace: DebounceConfig = NO_DEBOUNCE
    now_s: float = 0.0
    """The time of a monotonic clock."""

    @property
    def block(self) -> str:
        """Why an allowed plan is not written; empty if it is."""
        if self.policy.is_paused:
            return "Paused"
        return "DryRun" if self.is_dry_run else ""

    @property
    def is_writing(self) -> bool:
        """Whether this replica may write anything at all."""
        return self.is_leader and not self.block

    @property
    def actions(self) -> tuple[Action, ...]:
        """The plan."""
        return () if self.planned is None else self.planned.actions

    @property
    def unwanted(self) -> tuple[Action, ...]:
        """The removal of HyperNodes that are no output any more."""
        return plan_changes((), self.observed) if self.is_decision_only else ()

    @property
    def conflict_text(self) -> str:
        """The first conflicts with foreign HyperNodes as one line, for a condition."""
        conflicts = () if self.planned is None else self.planned.problems
        return "; ".join(conflict.problem for conflict in conflicts[:_MAX_SHOWN])


class DecisionKind(StrEnum):
    """What happens to the plan of a round."""

    NOTHING = "nothing"
    """Nothing is left to write."""
    WRITE = "write"
    RESTORE = "restore"
    """The plan restores what was decided before, and is written."""
    WAIT = "wait"
    """For a quiet plan, or for the windows of its objects."""
    HOLD = "hold"
    """Until it is approved."""
    BLOCK = "block"
    """Writing is paused, or this is a dry run."""
    FOLLOW = "follow"
    """Another replica writes."""
    UNKNOWN = "unknown"
    """There is none: the fabric is unknown."""


class Decision(NamedTuple):
    """What one round writes, and what it reports."""

    kind: DecisionKind
    record: TreeRecord | None = None
    """Written before everything else; None if the record stays."""
    last_record: TreeRecord | None = None
    """The record as it was read."""
    approval: str = ""
    """Hash of the approval that the plan uses up."""
    void_approval: str = ""
    """Hash of the approval of a plan that this round does not plan. It is removed: evidence has
    changed since a person approved, and if the same plan follows from other evidence later, a
    person decides anew."""
    plan: tuple[Action, ...] = ()
    """The plan that is carried out: the plan of the round, or the restoration of the last one."""
    plan_hash: str = ""
    """The hash of `plan`; empty without a plan."""
    actions: tuple[Action, ...] = ()
    """The writes of HyperNodes, in their order."""
    conditions: tuple[ConditionChange, ...] = ()
    """After the writes, if none fails; a condition that is not listed stays."""
    verdict: PlanVerdict | None = None
    """On the plan, if it was judged."""
    is_judged: bool = True
    """Whether it is known if a plan is held; if not, what was held still is."""
    is_approved: bool = False
    """Whether a person had approved the plan."""
    wait_s: float | None = None
    """Seconds until the next round, if it should be sooner than usual."""
    memory: WriteMemory = NO_MEMORY
    """For the next round, if every write is done."""
    pending: PendingPlan | None = None
    """Words for the work that waits if a write fails."""
    block: str = ""
    """Why an allowed plan is not written: `Paused` or `DryRun`."""
    conflict_text: str = ""

    @property
    def is_writing(self) -> bool:
        """Whether anything of a plan is written."""
        return bool(self.record or self.plan or self.actions)

    def without_plan(self) -> Decision:
        """Return the decision to leave the HyperNodes as they are."""
        return self._replace(
            kind=DecisionKind.NOTHING, approval="", plan=(), plan_hash="", actions=()
        )

    @property
    def held(self) -> PlanVerdict | None:
        """The verdict on the held plan; None if no plan is held."""
        return self.verdict if self.kind is DecisionKind.HOLD else None


def decide(state: RoundState, memory: WriteMemory = NO_MEMORY) -> Decision:
    """Return the decision of a round: the plan to write or hold, and the status to report."""
    last_record = state.record
    redated = None if last_record is None else with_past_times(last_record, state.now)
    if redated is not None:  # with the times of a clock that was ahead, it would use up the budget
        state = state._replace(record=redated)
    void = _find_void_approval(state, memory)
    if void:
        state = state._replace(policy=state.policy._replace(approved_plan=""))
    memory = memory._replace(void_approval=void)
    if state.planned is None:
        conditions = () if state.not_ready is None else (state.not_ready,)
        unknown = Decision(
            DecisionKind.UNKNOWN,
            conditions=conditions,
            is_judged=False,
            memory=memory._replace(pending=None),
        )
        decision = _with_restoration(unknown, state)
    elif state.actions:
        decision = _decide_plan(state, memory)
    else:
        decision = _adopt(state, memory)
    if redated is not None and state.is_writing and decision.record is None:
        decision = decision._replace(record=redated)
    if state.is_decision_only and state.is_writing:
        decision = decision._replace(actions=state.unwanted)
    return decision._replace(
        last_record=last_record,
        void_approval=void if state.is_leader else "",
        conflict_text=state.conflict_text,
    )


def judge(state: RoundState) -> PlanVerdict:
    """Return the verdict on the plan of a round. Cost: O(nodes times tiers)."""
    return _judge(state, _build_step(state))


def _judge(state: RoundState, step: TreeStep) -> PlanVerdict:
    if state.is_removal:
        counts = Counter(action.op for action in state.actions)
        return PlanVerdict(hash_plan(state.actions), counts=counts)
    return judge_plan(state.actions, step, budget=state.policy.budget, evidence=state.evidence)


def _find_void_approval(state: RoundState, memory: WriteMemory) -> str:
    """Return the approval of a plan that this round does not plan; empty if there is none."""
    approved = state.policy.approved_plan
    if not approved or state.planned is None:
        return ""
    is_planned = bool(state.actions) and approved == hash_plan(state.actions)
    return "" if is_planned and approved != memory.void_approval else approved


def _adopt(state: RoundState, memory: WriteMemory) -> Decision:
    """Return the decision about a tree whose HyperNodes exist already, as after an upgrade.

    It is recorded as decided. With conflicts, some of its HyperNodes do not exist, and their
    changes count as in any plan.
    """
    step = _build_step(state)
    is_too_large = state.record is not None and state.record.tree is None
    is_unknown = state.planned is None or state.planned.desired is None
    is_new = not (step.is_restoration or is_too_large or is_unknown)
    verdict = _judge(state, step) if state.conflict_text else PlanVerdict("")
    is_recorded = is_new and state.is_writing and verdict.is_allowed
    return Decision(
        DecisionKind.NOTHING,
        record=_build_record(state, step, verdict) if is_recorded else None,
        conditions=_build_in_sync(state),
        memory=memory._replace(pending=None),
    )


def _decide_plan(state: RoundState, memory: WriteMemory) -> Decision:
    """Return the decision about a plan with actions."""
    plan = hash_plan(state.actions)
    pending = update_pending(plan, memory.pending, state.now_s)
    memory = memory._replace(pending=pending)
    if not state.is_leader:
        return Decision(DecisionKind.FOLLOW, memory=memory)
    step = _build_step(state)
    is_approved = plan in (state.policy.approved_plan, state.approved)
    # An approval of this plan is left if it could not be removed when the plan was recorded.
    if step.is_restoration and not (is_approved or state.evidence.holds):
        return _restore(state, memory)
    wait = Decision(DecisionKind.WAIT, is_judged=False, memory=memory, pending=pending)
    wait_s = pending.compute_wait_s(state.now_s, state.pace)
    if wait_s > 0:
        return _with_restoration(wait._replace(wait_s=wait_s), state)
    verdict = _judge(state, step)
    wait = wait._replace(verdict=verdict, is_judged=True, is_approved=is_approved)
    if is_approved or verdict.is_allowed or _is_released(verdict, state):
        return _decide_allowed(wait, state, step)
    hold = wait._replace(kind=DecisionKind.HOLD, conditions=_build_held(verdict, state))
    return _with_restoration(hold, state)


def _decide_allowed(wait: Decision, state: RoundState, step: TreeStep) -> Decision:
    """Return the decision about a plan that is not held."""
    verdict = wait.verdict or _judge(state, step)
    if state.block:
        return _block(wait, state, verdict.hash)
    names = [action.name for action in state.actions]
    wait_s = compute_damping_s(wait.memory.last_writes, names, state.now_s)
    if wait_s > 0 and not state.is_removal:  # a person asked for a removal, so it does not wait
        conditions = build_damped(len(names), state.conflict_text)
        return _with_restoration(wait._replace(conditions=conditions, wait_s=wait_s), state)
    write = wait._replace(
        kind=DecisionKind.WRITE,
        plan_hash=verdict.hash,
        record=_build_record(state, step, verdict),
        approval=verdict.hash if wait.is_approved else "",
    )
    return _with_plan(write, state)


def _restore(state: RoundState, memory: WriteMemory) -> Decision:
    """Return the decision about a plan that only writes what was decided before."""
    plan = hash_plan(state.actions)
    wait = Decision(DecisionKind.WAIT, memory=memory, pending=memory.pending)
    if state.block:
        return _block(wait, state, plan)
    names = [action.name for action in state.actions]
    wait_s = compute_damping_s(memory.last_restores, names, state.now_s)
    if wait_s > 0:
        return wait._replace(wait_s=wait_s)
    return _with_plan(wait._replace(kind=DecisionKind.RESTORE, plan_hash=plan), state)


def _with_plan(decision: Decision, state: RoundState) -> Decision:
    """Return the decision to carry out the whole plan."""
    return decision._replace(
        plan=state.actions,
        actions=state.actions,
        conditions=_build_in_sync(state),
        memory=decision.memory._replace(pending=None),
    )


def _with_restoration(decision: Decision, state: RoundState) -> Decision:
    """Return the decision with the actions that undo edits of what was decided last.

    An object that is edited again and again waits longer.
    """
    last = None if state.record is None else state.record.tree
    is_possible = state.is_writing and state.is_restorable and not state.is_decision_only
    if last is None or not last.domains or not is_possible:
        return decision
    key, memory = (last, state.observed), decision.memory
    cached_key, actions = memory.restoration or (None, ())
    if cached_key != key:
        actions = plan_changes(render_hypernodes(last), state.observed)
        decision = decision._replace(memory=memory._replace(restoration=(key, actions)))
    names = [action.name for action in actions]
    wait_s = compute_damping_s(memory.last_restores, names, state.now_s)
    if wait_s > 0:
        return decision._replace(wait_s=min(wait_s, decision.wait_s or wait_s))
    if not actions:
        return decision
    return decision._replace(plan=actions, plan_hash=hash_plan(actions), actions=actions)


def _build_step(state: RoundState) -> TreeStep:
    return build_step(
        state.record,
        None if state.planned is None else state.planned.desired,
        existing=state.existing,
        budget=state.policy.budget,
        now=state.now,
    )


def _is_released(verdict: PlanVerdict, state: RoundState) -> bool:
    """Return whether a plan has been held for as long as the budget says."""
    held = build_held_plan(verdict, before=state.held, now=state.now)
    return is_released(held, state.policy.budget.release_after_seconds, state.now)


def _build_record(state: RoundState, step: TreeStep, verdict: PlanVerdict) -> TreeRecord:
    """Return the record of a step; changes that a person or time released use no budget."""
    is_charged = verdict.is_allowed
    return build_record(
        step,
        moved=verdict.moved if is_charged else (),
        deleted=verdict.deleted if is_charged else (),
        now=state.now,
    )


def _build_in_sync(state: RoundState) -> tuple[ConditionChange, ...]:
    """Return the conditions when nothing is left to write."""
    if state.is_removal:
        return (build_ready(reason="NotWanted", message=NOT_WANTED),)
    ready = build_ready(
        reason=FOREIGN_REASON if state.conflict_text else "", message=state.conflict_text
    )
    if state.is_decision_only:
        ready = ready._replace(reason="TreeDecided")
    return ready, build_change_blocked(None)


def _build_held(verdict: PlanVerdict, state: RoundState) -> tuple[ConditionChange, ...]:
    blocked = build_change_blocked(verdict)
    reason = FOREIGN_REASON if state.conflict_text else "ChangeBlocked"
    message = join_messages(state.conflict_text, blocked.message)
    return build_ready(reason=reason, message=message), blocked


def _block(wait: Decision, state: RoundState, plan: str) -> Decision:
    """Return the decision not to write an allowed plan."""
    num = len(state.actions)
    text = f"plan {plan} of {num} {'change' if num == 1 else 'changes'} is not written"
    message = join_messages(text, state.policy.unknown, state.conflict_text)
    conditions = build_ready(reason=state.block, message=message), build_change_blocked(None)
    return wait._replace(kind=DecisionKind.BLOCK, conditions=conditions, block=state.block)


def join_messages(*messages: str) -> str:
    """Return the messages that are not empty as one line."""
    return "; ".join(filter(None, messages))
