"""Waiting for the signals that end a program."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stop_signals() -> Iterator[Callable[[], str]]:
    """Yield a function that blocks until a stop signal comes and returns its name.

    Main thread only. The signal travels through a pipe: nothing but a write happens in its own
    context, where any lock of the program may be held.
    """
    reading, writing = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(writing, False)
    before = {number: signal.signal(number, lambda *_: None) for number in STOP_SIGNALS}
    wakeup_before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    names = {number.value: number.name for number in STOP_SIGNALS}

    def wait_for_stop() -> str:
        while True:
            name = names.get(os.read(reading, 1)[0])
            if name:
                return name

    try:
        yield wait_for_stop
    finally:
        signal.set_wakeup_fd(wakeup_before)
        for number, action in before.items():
            signal.signal(number, action)
        os.close(reading)
        os.close(writing)
