"""The time of day of a server, while the clock of its machine jumps."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.clock import JUMP_COUNTS_AFTER_S, MAX_STEP, SteadyTime

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
YEARS = timedelta(days=365 * 73)


class Machine:
    """A machine whose clock may be wrong."""

    def __init__(self) -> None:
        self.passed_s = 0.0
        self.wrong_by = timedelta(0)
        self.time = SteadyTime(lambda: self.true + self.wrong_by, lambda: 1000.0 + self.passed_s)

    @property
    def true(self) -> datetime:
        return NOON + timedelta(seconds=self.passed_s)


def test_it_believes_small_steps() -> None:
    machine = Machine()
    for step in (1, 59, 30, -20, -59):
        machine.passed_s += 10
        machine.wrong_by = timedelta(seconds=step)
        assert machine.time() == machine.true + machine.wrong_by


def test_it_leaves_out_a_jump_ahead_and_logs_it_once(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    machine.wrong_by = YEARS
    for _ in range(5):
        machine.passed_s += 600
        assert machine.time() == machine.true
    assert caplog.messages == ["time of day jumped"]
    machine.wrong_by = timedelta(0)
    assert machine.time() == machine.true
    assert machine.time() == machine.true
    assert [row.levelno for row in caplog.records] == [logging.WARNING]


@pytest.mark.parametrize("hours", [8, -8])
def test_it_believes_a_jump_that_lasts(hours: int) -> None:
    machine = Machine()
    machine.wrong_by = timedelta(hours=hours)
    assert machine.time() == machine.true
    machine.passed_s += JUMP_COUNTS_AFTER_S - 1
    assert machine.time() == machine.true
    machine.passed_s += 1
    assert machine.time() == machine.true + machine.wrong_by
    machine.passed_s += 60
    assert machine.time() == machine.true + machine.wrong_by


def test_it_leaves_out_a_moment_behind() -> None:
    machine = Machine()
    machine.wrong_by = -timedelta(days=1)
    assert machine.time() == machine.true
    machine.passed_s += 60
    machine.wrong_by = timedelta(0)
    assert machine.time() == machine.true


def test_it_believes_no_jump_because_another_one_lasted() -> None:
    machine = Machine()
    machine.wrong_by = -timedelta(hours=2)
    assert machine.time() == machine.true
    machine.passed_s += JUMP_COUNTS_AFTER_S
    machine.wrong_by = YEARS
    assert machine.time() == machine.true
    machine.passed_s += JUMP_COUNTS_AFTER_S
    assert machine.time() == machine.true + YEARS


@pytest.mark.parametrize("step_s", [59, -59, 1, 20])
@pytest.mark.parametrize("every_s", [0.1, 10, 70, 600])
def test_steps_do_not_add_up(step_s: int, every_s: float) -> None:
    machine = Machine()
    while machine.passed_s < JUMP_COUNTS_AFTER_S - every_s:
        machine.passed_s += every_s
        machine.wrong_by += timedelta(seconds=step_s)
        assert abs(machine.time() - machine.true) <= MAX_STEP


@pytest.mark.parametrize("to_and_fro", [True, False], ids=["to and fro", "one way"])
def test_a_clock_that_is_moved_for_a_day_is_believed_a_step_an_hour(*, to_and_fro: bool) -> None:
    machine = Machine()
    for number in range(24 * 60):
        machine.passed_s += 60
        way = -1 if to_and_fro and number % 2 else 1
        machine.wrong_by += timedelta(seconds=way * 59)
        num_hours = machine.passed_s // JUMP_COUNTS_AFTER_S
        assert abs(machine.time() - machine.true) <= (num_hours + 1) * MAX_STEP


def test_corrections_of_a_clock_that_drifts_are_believed_for_days(
    caplog: pytest.LogCaptureFixture,
) -> None:
    machine = Machine()
    for _ in range(4 * 24 * 7):
        machine.passed_s += 900
        machine.wrong_by += timedelta(seconds=5)
        assert machine.time() == machine.true + machine.wrong_by
    assert caplog.messages == []


@given(st.lists(st.tuples(st.floats(0, 900), st.floats(-1e8, 1e8)), max_size=20))
def test_it_is_never_wrong_before_a_jump_has_lasted(rounds: list[tuple[float, float]]) -> None:
    machine = Machine()
    for passed_s, wrong_s in rounds:
        machine.passed_s += passed_s
        if machine.passed_s >= JUMP_COUNTS_AFTER_S:
            break
        machine.wrong_by = timedelta(seconds=wrong_s)
        assert abs(machine.time() - machine.true) <= MAX_STEP
    machine.wrong_by = timedelta(0)
    if machine.passed_s < JUMP_COUNTS_AFTER_S:
        assert abs(machine.time() - machine.true) <= timedelta(microseconds=1)
