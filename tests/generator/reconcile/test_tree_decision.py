"""The changes that count with a new plan: those within the window, whatever the clock did."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.objects.fabric import ChangeBudget
from generator.objects.tree_record import RecentChanges, TreeRecord
from generator.reconcile.tree_decision import (
    CLOCK_TOLERANCE,
    build_decision,
    build_record,
    with_past_times,
)

START = datetime(2026, 11, 23, 4, 0, 0, tzinfo=UTC)
NOTHING = TreeRecord((), RecentChanges())


def recorded(at: datetime) -> TreeRecord:
    """Return the record of a plan that moved one node and deleted one domain."""
    decision = build_decision(NOTHING, (), budget=ChangeBudget(), now=at)
    return build_record(decision, moved=["n1"], deleted=[(1, "leaf")], now=at)


def num_recent(record: TreeRecord, window_s: int, now: datetime) -> int:
    budget = ChangeBudget(window_seconds=window_s)
    recent = build_decision(record, (), budget=budget, now=now).recent
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
