"""Waits after failures: they grow to a limit, have jitter, and respect what the server asks for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.retry import MAX_PERIODS, Backoff, Cooldown, RefusalStreak
from tests.agent.fakes import FakeClock
from topology.model.errors import KubeError, KubeForbidden, KubeUnavailable

PERIOD_S = 60.0
ERROR = KubeUnavailable("away")


class Waiting:
    """A cooldown on a test clock; `luck` is the drawn share of the longest wait."""

    def __init__(self, luck: float) -> None:
        self.clock = FakeClock()
        self.cooldown = Cooldown(
            self.clock, lambda low, high: low + luck * (high - low), period_s=PERIOD_S
        )

    def waits_s(self) -> float:
        """Return how long it waits, to a second; each reading moves the clock by one."""
        begun_s = self.clock.monotonic()
        while self.cooldown.error is not None:
            pass
        return self.clock.monotonic() - begun_s


def test_it_does_not_wait_at_first() -> None:
    assert Waiting(1).cooldown.error is None


def test_it_waits_longer_after_each_failure_up_to_a_limit() -> None:
    waiting, found = Waiting(1), []
    for _ in range(6):
        waiting.cooldown.fail(ERROR)
        found.append(waiting.waits_s() / PERIOD_S)
    assert found == pytest.approx([1, 2, 4, MAX_PERIODS, MAX_PERIODS, MAX_PERIODS], abs=0.1)


def test_it_starts_again_with_short_waits_after_a_success() -> None:
    waiting = Waiting(1)
    for _ in range(5):
        waiting.cooldown.fail(ERROR)
    waiting.cooldown.succeed()
    assert waiting.cooldown.error is None
    waiting.cooldown.fail(ERROR)
    assert waiting.waits_s() == pytest.approx(PERIOD_S, abs=4)


def test_it_returns_the_failure_that_started_the_wait() -> None:
    waiting = Waiting(1)
    waiting.cooldown.fail(ERROR)
    assert waiting.cooldown.error is ERROR


@given(st.floats(0, 1), st.floats(0, 300))
def test_it_waits_at_least_as_long_as_the_server_asks(luck: float, asked_s: float) -> None:
    waiting = Waiting(luck)
    waiting.cooldown.fail(KubeUnavailable("busy", retry_after_s=asked_s))
    assert asked_s - 2 <= waiting.waits_s() <= asked_s + PERIOD_S + 4


def test_it_keeps_its_limit_after_an_outage_of_a_week() -> None:
    waiting = Waiting(1)
    for _ in range(2000):
        waiting.cooldown.fail(ERROR)
    assert waiting.waits_s() / PERIOD_S == pytest.approx(MAX_PERIODS, abs=0.1)


@given(st.integers(1, 5000), st.floats(0, 1), st.none() | st.floats(0, 300))
def test_it_backs_off_between_a_tenth_of_the_ceiling_and_the_ceiling(
    failures: int, luck: float, asked_s: float | None
) -> None:
    backoff = Backoff(0.5, 30.0)
    ceiling_s = backoff.ceiling_s(failures)
    assert ceiling_s == min(30.0, 0.5 * 2.0 ** min(failures - 1, 10))
    delay_s = backoff.delay_s(
        failures, lambda low, high: low + luck * (high - low), asked_s=asked_s
    )
    asked_s = min(asked_s or 0.0, 30.0)
    assert max(asked_s, ceiling_s / 10) <= delay_s <= asked_s + ceiling_s + 1e-9


def test_it_waits_a_tenth_of_the_ceiling_if_the_server_asks_for_no_wait() -> None:
    assert Backoff(10.0, 30.0).delay_s(1, lambda low, _: low, asked_s=0.0) == 1.0


REFUSED = KubeForbidden("403", status=403)
UNKNOWN = KubeForbidden("401", status=401)


@pytest.mark.parametrize(
    ("attempts", "passing"),
    [
        pytest.param([REFUSED] * 4, [True, True, False, False], id="a right that is missing"),
        pytest.param([REFUSED, REFUSED, None], [True, True, False], id="a server that starts"),
        pytest.param([REFUSED, REFUSED, None, REFUSED], [True, True, False, True], id="two starts"),
        pytest.param([ERROR, UNKNOWN], [False, False], id="other failures"),
    ],
)
def test_a_refusal_may_pass_until_it_is_repeated(
    attempts: list[KubeError | None], passing: list[bool]
) -> None:
    refusals = RefusalStreak()
    assert [refusals.record(attempt) for attempt in attempts] == passing
