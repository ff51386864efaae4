"""Rounds at their times, and signals that end them."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from runtime.clock import SystemClock
from runtime.periodic import STOP_SIGNALS, run_periodically


def untold() -> None:
    """Let rounds that run go on."""


class Ticks:
    """Counts its calls, and asks the process to stop at the last one."""

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
def test_it_ticks_until_a_signal_and_leaves_signals_as_they_were(number: signal.Signals) -> None:
    before = [signal.getsignal(one) for one in STOP_SIGNALS]
    ticks = Ticks(3, number)
    run_periodically(ticks, period_s=0.05, jitter_s=0, clock=SystemClock(), stop=untold)
    assert len(ticks.at) >= ticks.last
    assert len(ticks.threads) == 1
    assert [signal.getsignal(one) for one in STOP_SIGNALS] == before
    assert signal.set_wakeup_fd(-1) == -1


def test_it_ticks_at_once_and_then_by_the_period() -> None:
    ticks = Ticks(2)
    started = time.monotonic()
    run_periodically(ticks, period_s=0.4, jitter_s=0.01, clock=SystemClock(), stop=untold)
    first, second = ticks.at[:2]
    assert first - started < second - first
    assert second - first > 0.3


def test_it_is_not_stopped_by_other_signals() -> None:
    ticks, seen = Ticks(2), []
    before = signal.signal(signal.SIGUSR1, lambda number, _: seen.append(number))
    try:
        threading.Timer(0, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        run_periodically(ticks, period_s=0.1, jitter_s=0, clock=SystemClock(), stop=untold)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == [signal.SIGUSR1]
    assert len(ticks.at) >= ticks.last


def test_it_lets_the_running_round_finish() -> None:
    finished = threading.Event()

    def tick() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        finished.wait(0.3)
        finished.set()

    run_periodically(tick, period_s=60, jitter_s=0, clock=SystemClock(), stop=untold)
    assert finished.is_set()


def test_it_says_that_a_round_was_left_out(caplog: pytest.LogCaptureFixture) -> None:
    def tick() -> None:
        while not caplog.messages[1:]:  # the first tells of the start
            threading.Event().wait(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    with caplog.at_level("INFO", "agent"):
        run_periodically(tick, period_s=0.05, jitter_s=0, clock=SystemClock(), stop=untold)
    assert "round left out, the one before goes on" in caplog.messages


def test_it_tells_the_running_round_to_be_short() -> None:
    told = threading.Event()

    def tick() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        assert told.wait(20)

    run_periodically(tick, period_s=60, jitter_s=0, clock=SystemClock(), stop=told.set)
    assert told.is_set()
