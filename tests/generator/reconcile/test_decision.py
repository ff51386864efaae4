"""What a round decides, from what it has read and what the rounds before it left."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from generator.objects.fabric import ChangeBudget, HeldPlan
from generator.objects.tree_record import EMPTY_TREE, RecentChanges, TreeRecord
from generator.objects.write_policy import WritePolicy
from generator.outputs.hypernode.forest import render_hypernodes
from generator.outputs.hypernode.model import HyperNode
from generator.reconcile.decision import DecisionKind, RoundState, WriteMemory, decide
from generator.reconcile.desired import PlannedChanges
from generator.reconcile.guard import hash_plan
from generator.reconcile.hypernode_plan import plan_changes
from generator.reconcile.write_delays import DebounceConfig
from generator.reconcile.writer import carry_out
from tests.generator.reconcile.applies import FusedStore
from topology.model.tree import DomainSpec, TopologyTree, build_tree

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
PACE = DebounceConfig(quiet_s=2.0)


def build(*leaves: str) -> TopologyTree:
    """Return leaves below one spine; each letter is two nodes of a leaf."""
    specs = [
        DomainSpec(
            f"leaf-{number}", 1, "spine", tuple(f"{node}{at}" for node in nodes for at in "12")
        )
        for number, nodes in enumerate(leaves)
    ]
    return build_tree([*specs, DomainSpec("spine", 2, None)], tiers=("leaf", "spine"))


BEFORE = build("abcd", "efgh")
AFTER = build("abcd", "efghi")
"""Two more nodes: within any budget."""
LARGE = build("a")
"""Most nodes are lost: above any budget."""
HYPERNODES = render_hypernodes(BEFORE)
EDITED = HYPERNODES[1:]
"""Somebody deleted a leaf."""


def planned(desired: TopologyTree, observed: tuple[HyperNode, ...] = HYPERNODES) -> PlannedChanges:
    return PlannedChanges(plan_changes(render_hypernodes(desired), observed), (), desired)


def state(desired: TopologyTree, observed: tuple[HyperNode, ...] = HYPERNODES) -> RoundState:
    """Return a round after the tree before it was decided and written."""
    return RoundState(planned(desired, observed), NOON, observed, TreeRecord(BEFORE))


QUIET = state(BEFORE)
SMALL = state(AFTER)
HELD = state(LARGE)
PLAN = hash_plan(HELD.actions)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        pytest.param(QUIET, DecisionKind.NOTHING, id="nothing has changed"),
        pytest.param(SMALL, DecisionKind.WRITE, id="a change is within the budget"),
        pytest.param(SMALL._replace(pace=PACE), DecisionKind.WAIT, id="the plan is new"),
        pytest.param(HELD, DecisionKind.HOLD, id="a change is above the budget"),
        pytest.param(HELD._replace(is_dry_run=True), DecisionKind.HOLD, id="held in a dry run"),
        pytest.param(SMALL._replace(is_dry_run=True), DecisionKind.BLOCK, id="it is a dry run"),
        pytest.param(
            SMALL._replace(policy=WritePolicy(is_paused=True)), DecisionKind.BLOCK, id="paused"
        ),
        pytest.param(SMALL._replace(is_leader=False), DecisionKind.FOLLOW, id="another leads"),
        pytest.param(state(BEFORE, EDITED), DecisionKind.RESTORE, id="a leaf was deleted by hand"),
        pytest.param(
            HELD._replace(policy=WritePolicy(approved_plan=PLAN)),
            DecisionKind.WRITE,
            id="a person approved the plan",
        ),
        pytest.param(
            HELD._replace(approved=PLAN), DecisionKind.WRITE, id="a command approved the plan"
        ),
        pytest.param(
            HELD._replace(
                held=HeldPlan(
                    hash=PLAN,
                    since=(NOON - timedelta(minutes=10)).isoformat(),
                    creates=0,
                    updates=0,
                    deletes=0,
                    moved_nodes=0,
                ),
                policy=WritePolicy(ChangeBudget(release_after_seconds=600)),
            ),
            DecisionKind.WRITE,
            id="the hold has lasted for long enough",
        ),
        pytest.param(
            QUIET._replace(planned=None), DecisionKind.UNKNOWN, id="the fabric is unknown"
        ),
    ],
)
def test_it_decides_by_the_plan_the_budget_and_the_settings_when(
    given: RoundState, kind: DecisionKind
) -> None:
    decision = decide(given)
    assert decision.kind is kind
    is_carried_out = kind in (DecisionKind.WRITE, DecisionKind.RESTORE)
    assert (decision.actions == given.actions != ()) is is_carried_out
    new_record = TreeRecord(given.planned.desired) if given.planned else None
    if kind is DecisionKind.WRITE:
        assert decision.record is not None
        assert new_record is not None
        assert decision.record.tree == new_record.tree
    else:
        assert decision.record is None


@pytest.mark.parametrize("waits", [SMALL._replace(pace=PACE), HELD, QUIET._replace(planned=None)])
def test_it_undoes_an_edit_while_a_plan_waits_is_held_or_unknown(waits: RoundState) -> None:
    decision = decide(waits._replace(observed=EDITED))
    assert decision.kind is decide(waits).kind
    assert decision.actions == plan_changes(HYPERNODES, EDITED)
    following = decide(waits._replace(observed=EDITED, is_leader=False))
    assert following.actions == ()


def test_an_approval_of_another_plan_is_removed_and_does_not_count() -> None:
    other = WritePolicy(approved_plan=PLAN[::-1])
    assert decide(HELD._replace(policy=other)).void_approval == PLAN[::-1]
    assert decide(QUIET._replace(policy=other)).void_approval == PLAN[::-1]
    assert decide(QUIET._replace(planned=None, policy=other)).void_approval == "", (
        "unknown: it waits"
    )
    ended = WriteMemory(void_approval=PLAN)
    again = decide(HELD._replace(policy=WritePolicy(approved_plan=PLAN)), ended)
    assert (again.kind, again.void_approval) == (DecisionKind.HOLD, PLAN)


def test_without_hypernodes_the_decision_alone_is_written_and_damped() -> None:
    given = SMALL._replace(observed=(), is_decision_only=True, pace=DebounceConfig(quiet_s=0.0))
    decision = decide(given)
    assert (decision.kind, decision.actions) == (DecisionKind.WRITE, ())
    store = FusedStore()
    outcome = carry_out(decision, store, pace=given.pace)
    assert store.decided == AFTER
    assert store.cluster.state == {}
    back = RoundState(
        planned(BEFORE, render_hypernodes(AFTER)),
        NOON,
        render_hypernodes(AFTER),
        TreeRecord(AFTER),
        is_decision_only=True,
        pace=given.pace,
    )
    assert (decide(back, outcome.memory).kind, decide(back, outcome.memory).wait_s) == (
        DecisionKind.WAIT,
        5.0,
    )


def test_hypernodes_that_are_no_output_any_more_are_removed_whatever_is_decided() -> None:
    unwanted = plan_changes((), HYPERNODES)
    for given in (QUIET, SMALL._replace(pace=PACE), HELD):
        asked = given._replace(is_decision_only=True, observed=HYPERNODES)
        assert decide(asked).actions == unwanted
        paused = asked._replace(policy=WritePolicy(is_paused=True))
        assert decide(paused).actions == ()


def test_all_outputs_are_removed_without_a_budget_and_without_a_wait_for_windows() -> None:
    removal = RoundState(
        PlannedChanges(plan_changes((), HYPERNODES), (), EMPTY_TREE),
        NOON,
        HYPERNODES,
        TreeRecord(BEFORE),
        is_removal=True,
    )
    decision = decide(removal)
    assert (decision.kind, decision.record) == (DecisionKind.WRITE, TreeRecord(EMPTY_TREE))
    assert [change.reason for change in decision.conditions] == ["NotWanted"]


def test_times_of_a_clock_that_was_ahead_are_recorded_anew_in_any_round() -> None:
    ahead = RecentChanges({"a1": int((NOON + timedelta(days=1)).timestamp())})
    for given in (QUIET, HELD, SMALL._replace(pace=PACE)):
        record = decide(given._replace(record=TreeRecord(BEFORE, ahead))).record
        assert record == TreeRecord(BEFORE, RecentChanges({"a1": int(NOON.timestamp())}))
