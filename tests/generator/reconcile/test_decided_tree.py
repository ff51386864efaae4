"""The step from the tree that was decided last, and the changes that count with it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.objects.fabric import ChangeBudget
from generator.objects.tree_record import EMPTY_TREE, RecentChanges, TreeRecord, strip_tree
from generator.outputs.hypernode.forest import render_hypernodes
from generator.reconcile.decided_tree import (
    CLOCK_TOLERANCE,
    PreviousTree,
    add_unplaced,
    build_record,
    build_step,
    with_past_times,
)
from topology.model.tree import DomainSpec, Unplaced, build_tree

TREE = build_tree(
    [
        DomainSpec("spine-1", 2, None),
        DomainSpec("leaf-1", 1, "spine-1", ("a", "b"), ("switch-1",), 0.5),
        DomainSpec("leaf-2", 1, "spine-1", ("c",)),
    ],
    tiers=("leaf", "spine"),
    unplaced=[Unplaced("d", "no report")],
)
DECIDED = strip_tree(TREE)
START = datetime(2026, 11, 23, 4, 0, 0, tzinfo=UTC)
NOTHING = TreeRecord(EMPTY_TREE, RecentChanges())


def recorded(at: datetime) -> TreeRecord:
    """Return the record of a plan that moved one node and deleted one domain."""
    decision = build_step(NOTHING, EMPTY_TREE, budget=ChangeBudget(), now=at)
    return build_record(decision, moved=["n1"], deleted=[(1, "leaf")], now=at)


def num_recent(record: TreeRecord, window_s: int, now: datetime) -> int:
    budget = ChangeBudget(window_seconds=window_s)
    recent = build_step(record, EMPTY_TREE, budget=budget, now=now).recent
    assert len(recent.moved) == len(recent.deleted)
    return len(recent.moved)


@given(
    st.integers(1, 86_400),
    st.integers(0, 999_999),
    st.floats(0, 200_000, allow_nan=False).map(lambda seconds: timedelta(seconds=seconds)),
)
def test_a_change_counts_for_the_whole_window_and_at_most_a_second_longer(
    window_s: int, microsecond: int, age: timedelta
) -> None:
    at = START.replace(microsecond=microsecond)
    counted = num_recent(recorded(at), window_s, at + age)
    if age < timedelta(seconds=window_s):
        assert counted == 1
    if age >= timedelta(seconds=window_s + 1):
        assert counted == 0


@pytest.mark.parametrize("age_s", [-7200, -1, 0, 1])
def test_a_window_of_zero_counts_no_earlier_change(age_s: int) -> None:
    assert num_recent(recorded(START), 0, START + timedelta(seconds=age_s)) == 0


@given(st.integers(0, 10**9), st.integers(0, 86_400))
def test_a_clock_that_is_set_back_neither_frees_nor_holds_the_budget(
    back_s: int, window_s: int
) -> None:
    record, now = recorded(START), START - timedelta(seconds=back_s)
    assert num_recent(record, window_s, now) == bool(window_s)
    past = with_past_times(record, now)
    assert (past is None) is (back_s <= CLOCK_TOLERANCE.total_seconds())
    if past is not None:
        assert with_past_times(past, now) is None
        assert num_recent(past, window_s, now) == bool(window_s)
        assert num_recent(past, window_s, now + timedelta(seconds=window_s + 1)) == 0


def test_a_decided_tree_is_shown_with_every_node_of_the_cluster() -> None:
    found = add_unplaced(DECIDED, nodes=("a", "b", "c", "new"), unplaced=TREE.unplaced)
    assert (found.domains, found.nodes) == (DECIDED.domains, DECIDED.nodes)
    assert found.unplaced == (*TREE.unplaced, Unplaced("new", "not in the tree yet"))


def test_names_come_from_the_record_and_without_one_from_the_hypernodes() -> None:
    hypernodes = render_hypernodes(DECIDED)
    foreign = tuple(replace(row, labels=()) for row in hypernodes)
    assert PreviousTree().find(None, hypernodes) == DECIDED
    assert PreviousTree().find(None, foreign) is None
    assert PreviousTree().find(TreeRecord(None), hypernodes) == DECIDED
    assert PreviousTree().find(TreeRecord(DECIDED), ()) == DECIDED
    assert PreviousTree().find(TreeRecord(EMPTY_TREE), hypernodes) is None


def test_an_unchanged_previous_tree_is_the_identical_object() -> None:
    previous = PreviousTree()
    first = previous.find(TreeRecord(strip_tree(TREE)), ())
    assert previous.find(TreeRecord(strip_tree(TREE), RecentChanges({"a": 1})), ()) is first
    decided = PreviousTree()
    found = decided.find(TreeRecord(strip_tree(TREE)), (), desired=DECIDED, tree=TREE)
    assert found is TREE, "the plan of this process was decided"
