"""How a server waits for a stop signal."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from runtime.program import STOP_SIGNALS, call_on_stop_signal, stop_signals
from runtime.stop import Stop

SOON_S = 10.0


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_it_waits_for_a_stop_signal_and_leaves_signals_as_they_were(number: signal.Signals) -> None:
    before = [signal.getsignal(one) for one in STOP_SIGNALS]
    with stop_signals() as wait_for_stop:
        os.kill(os.getpid(), number)
        assert wait_for_stop() == number.name
    assert [signal.getsignal(one) for one in STOP_SIGNALS] == before


def test_it_is_not_stopped_by_other_signals() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: seen.append(number))
    try:
        with stop_signals() as wait_for_stop:
            os.kill(os.getpid(), signal.SIGUSR1)
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
            assert wait_for_stop() == "SIGTERM"
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == [signal.SIGUSR1]


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_it_calls_back_at_a_stop_signal_within_the_context(number: signal.Signals) -> None:
    before, stop = signal.getsignal(number), Stop()
    with call_on_stop_signal(stop.set) as received:
        assert received() is None
        os.kill(os.getpid(), number)
        assert stop.wait(SOON_S)
    assert received() is number
    assert signal.getsignal(number) == before


def test_it_goes_on_without_its_terminal_under_nohup() -> None:
    before, stop = signal.signal(signal.SIGHUP, signal.SIG_IGN), Stop()
    try:
        with call_on_stop_signal(stop.set) as received:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop.wait(0.1)
        assert received() is None
    finally:
        signal.signal(signal.SIGHUP, before)
