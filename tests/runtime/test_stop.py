"""A stop request that threads share."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from runtime.program import call_on_stop_signal
from runtime.stop import Stop

SOON_S = 10.0


def test_it_stays_set() -> None:
    stop = Stop()
    seen = [stop.is_set, stop.wait(0)]
    for _ in range(2):
        stop.set()
        seen += [stop.is_set, stop.wait(SOON_S)]
    assert seen == [False, False, True, True, True, True]


def test_it_waits_no_longer_than_asked_for() -> None:
    started_s = time.monotonic()
    assert not Stop().wait(0.05)
    assert 0.04 < time.monotonic() - started_s < SOON_S


def test_it_wakes_all_waiting_threads() -> None:
    stop, seen = Stop(), list[bool]()
    waiters = [threading.Thread(target=lambda: seen.append(stop.wait(1e12))) for _ in range(3)]
    for waiter in waiters:
        waiter.start()
    stop.set()
    for waiter in waiters:
        waiter.join(SOON_S)
    assert seen == [True] * 3


def test_it_cancels_within_the_context_only() -> None:
    stop, cancelled = Stop(), list[str]()
    with stop.on_set(lambda: cancelled.append("before")):
        pass
    with stop.on_set(lambda: cancelled.append("within")):
        stop.set()
    with stop.on_set(lambda: cancelled.append("after")):
        assert cancelled == ["within", "after"], "what begins after the request is cancelled too"


def test_it_can_be_set_by_a_signal_while_its_thread_cancels() -> None:
    stop, cancelled = Stop(), list[str]()

    def cancel() -> None:
        cancelled.append("cancelled")

    with call_on_stop_signal(stop.set), stop.on_set(cancel):
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(SOON_S)
    assert cancelled == ["cancelled"]


def test_it_closes_its_descriptors_when_it_is_deleted() -> None:
    stop = Stop()
    descriptor = stop.fileno()
    del stop
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
