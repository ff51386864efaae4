"""Periodic jobs: they run at their times, never two at once, and end with a stop signal."""

from __future__ import annotations

import os
import signal
import subprocess  # noqa: TID251 - its clock is another one
import sys
import threading
import time
from collections.abc import Callable

import pytest

from runtime.clock import utc_now
from runtime.periodic import PeriodicJob
from runtime.program import STOP_SIGNALS, stop_signals

SOON_S = 10.0
SKIPPED = "round skipped: previous still running"


def run_until_signal(
    tick: Callable[[], None], *, period_s: float, on_stop: Callable[[], None] = lambda: None
) -> None:
    """Run a job as a program does."""
    with stop_signals() as wait_for_stop:
        job = PeriodicJob(tick, period_s=period_s, now=utc_now)
        wait_for_stop()
        on_stop()
        assert job.stop()


class Ticks:
    """Counts its calls, and signals the process at the last one."""

    def __init__(self, last: int, number: signal.Signals = signal.SIGTERM) -> None:
        self.last = last
        self.number = number
        self.at: list[float] = []
        self.threads: set[int] = set()

    def __call__(self) -> None:
        self.at.append(time.monotonic())
        self.threads.add(threading.get_ident())
        if len(self.at) == self.last:
            os.kill(os.getpid(), self.number)


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_it_ticks_in_one_thread_until_a_signal(number: signal.Signals) -> None:
    before = [signal.getsignal(one) for one in STOP_SIGNALS]
    ticks = Ticks(3, number)
    run_until_signal(ticks, period_s=0.05)
    assert len(ticks.at) >= ticks.last
    assert len(ticks.threads) == 1
    assert [signal.getsignal(one) for one in STOP_SIGNALS] == before


def test_it_ticks_at_once_and_then_by_the_period() -> None:
    ticks, both = list[float](), threading.Event()

    def tick() -> None:
        ticks.append(time.monotonic())
        if len(ticks) > 1:
            both.set()

    started = time.monotonic()
    job = PeriodicJob(tick, period_s=0.4, jitter_s=0.01, now=utc_now)
    assert both.wait(SOON_S)
    assert job.stop(deadline_s=SOON_S)
    first, second = ticks[:2]
    assert first - started < second - first
    assert second - first > 0.3


def test_it_ticks_repeatedly() -> None:
    ticks = threading.Semaphore(0)
    job = PeriodicJob(ticks.release, period_s=0.02, now=utc_now)
    try:
        assert all(ticks.acquire(timeout=SOON_S) for _ in range(3))
    finally:
        assert job.stop(deadline_s=SOON_S)


def test_it_ticks_sooner_if_a_tick_requests_it() -> None:
    ticks = threading.Semaphore(0)
    answers = iter([0.0, 0.02, None])

    def tick() -> float | None:
        ticks.release()
        return next(answers)

    job = PeriodicJob(tick, period_s=3600, now=utc_now)
    try:
        assert all(ticks.acquire(timeout=SOON_S) for _ in range(3))
        assert not ticks.acquire(timeout=0.1), "the third asked for nothing"
    finally:
        assert job.stop(deadline_s=SOON_S)


def test_it_ticks_soon_when_it_is_woken_and_once_for_many_requests() -> None:
    ticks = threading.Semaphore(0)
    job = PeriodicJob(ticks.release, period_s=3600, now=utc_now)
    try:
        assert ticks.acquire(timeout=SOON_S)
        for delay_s in (0.2, 0.1, 0.3):
            job.wake(delay_s)
        assert ticks.acquire(timeout=SOON_S)
        assert not ticks.acquire(timeout=0.5), "one call answers them all"
        job.wake(0.0)
        assert ticks.acquire(timeout=SOON_S)
    finally:
        assert job.stop(deadline_s=SOON_S)
    job.wake(0.0)


def test_it_ticks_again_for_a_request_that_came_during_a_tick() -> None:
    begun, may_end = threading.Semaphore(0), threading.Semaphore(0)

    def tick() -> None:
        begun.release()
        may_end.acquire(timeout=SOON_S)

    job = PeriodicJob(tick, period_s=3600, now=utc_now)
    try:
        assert begun.acquire(timeout=SOON_S)
        job.wake(0.0)
        may_end.release(2)
        assert begun.acquire(timeout=SOON_S)
    finally:
        assert job.stop(deadline_s=SOON_S)


def test_it_never_runs_two_ticks_at_once() -> None:
    busy, ticks = threading.Lock(), threading.Semaphore(0)
    overlaps: list[bool] = []

    def tick() -> None:
        overlaps.append(not busy.acquire(blocking=False))
        threading.Event().wait(0.03)
        busy.release()
        ticks.release()

    job = PeriodicJob(tick, period_s=0.01, now=utc_now)
    assert all(ticks.acquire(timeout=SOON_S) for _ in range(4))
    assert job.stop(deadline_s=SOON_S)
    assert not any(overlaps)


def test_it_logs_that_a_tick_was_skipped(caplog: pytest.LogCaptureFixture) -> None:
    late = threading.Event()

    def tick() -> None:
        while SKIPPED not in caplog.messages:
            threading.Event().wait(0.01)
        late.set()

    job = PeriodicJob(tick, period_s=0.05, now=utc_now)
    assert late.wait(SOON_S)
    assert job.stop(deadline_s=SOON_S)


def test_it_stops_without_a_tick_that_takes_too_long() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def tick() -> None:
        begun.set()
        may_end.wait(SOON_S)

    job = PeriodicJob(tick, period_s=60, now=utc_now)
    assert begun.wait(SOON_S)
    assert not job.stop(deadline_s=0.01)
    may_end.set()


def test_it_lets_the_running_tick_finish_without_a_deadline() -> None:
    finished = threading.Event()

    def tick() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        finished.wait(0.3)
        finished.set()

    run_until_signal(tick, period_s=60)
    assert finished.is_set()


def test_it_waits_for_a_running_tick_after_a_stop_signal() -> None:
    told = threading.Event()

    def tick() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        assert told.wait(20)

    run_until_signal(tick, period_s=60, on_stop=told.set)
    assert told.is_set()


CLOCK_THAT_JUMPS = """
import datetime, threading

class Clock(datetime.datetime):
    ahead = datetime.timedelta(0)

    @classmethod
    def now(cls, tz=None):
        return super().now(tz) + cls.ahead

datetime.datetime = Clock
from runtime.clock import utc_now
from runtime.periodic import PeriodicJob

ticks = threading.Semaphore(0)
job = PeriodicJob(ticks.release, period_s=0.1, now=utc_now)
for ahead in (0, 20_000, 0, -2, 0):
    Clock.ahead = datetime.timedelta(days=ahead)
    assert all(ticks.acquire(timeout=10) for _ in range(5)), ahead
job.wake(0.0)
assert job.stop(deadline_s=10)
"""


def test_it_ticks_on_while_the_time_of_day_jumps_ahead_and_back() -> None:
    ran = subprocess.run([sys.executable, "-c", CLOCK_THAT_JUMPS], check=False, timeout=100)
    assert ran.returncode == 0
