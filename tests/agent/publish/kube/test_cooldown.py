"""How long an agent leaves an API server alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.publish.kube.cooldown import MAX_PERIODS, Patience
from tests.agent.fakes import FakeClock
from topology.model.errors import KubeUnavailable

PERIOD_S = 60.0
ERROR = KubeUnavailable("away")


class Waiting:
    """A patience on a clock that a test moves; luck is the share of what could be waited."""

    def __init__(self, luck: float) -> None:
        self.clock = FakeClock()
        self.patience = Patience(
            self.clock, lambda low, high: low + luck * (high - low), period_s=PERIOD_S
        )

    def waits_s(self) -> float:
        """Return how long it waits, to a second; the clock moves by one whenever it is read."""
        begun_s = self.clock.monotonic()
        while self.patience.waits_for is not None:
            pass
        return self.clock.monotonic() - begun_s


def test_it_waits_for_nothing_at_first() -> None:
    assert Waiting(1).patience.waits_for is None


def test_it_waits_longer_after_each_failure_but_not_for_ever() -> None:
    waiting, found = Waiting(1), []
    for _ in range(6):
        waiting.patience.fail(ERROR)
        found.append(waiting.waits_s() / PERIOD_S)
    assert found == pytest.approx([1, 2, 4, MAX_PERIODS, MAX_PERIODS, MAX_PERIODS], abs=0.1)


def test_it_begins_anew_after_a_success() -> None:
    waiting = Waiting(1)
    for _ in range(5):
        waiting.patience.fail(ERROR)
    waiting.patience.succeed()
    assert waiting.patience.waits_for is None
    waiting.patience.fail(ERROR)
    assert waiting.waits_s() == pytest.approx(PERIOD_S, abs=4)


def test_it_tells_what_it_waits_for() -> None:
    waiting = Waiting(1)
    waiting.patience.fail(ERROR)
    assert waiting.patience.waits_for is ERROR


@given(st.floats(0, 1), st.floats(0, 300))
def test_it_waits_at_least_as_long_as_it_is_asked_to(luck: float, asked_s: float) -> None:
    waiting = Waiting(luck)
    waiting.patience.fail(KubeUnavailable("busy", retry_after_s=asked_s))
    assert asked_s - 2 <= waiting.waits_s() <= asked_s + PERIOD_S + 4
