"""Stop signals, and a stop request that the threads of a process share."""

from __future__ import annotations

import os
import selectors
import signal
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import RLock
from typing import Final

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_MAX_WAIT_S: Final = 1e6
"""The selector takes no wait above 24 days."""


class Stop:
    """A request to stop, which cannot be revoked.

    It ends the waits of other threads, and cancels their streams. Code that waits on descriptors,
    such as for a running command, can wait on it too: it has a `fileno`.
    """

    def __init__(self) -> None:
        """Start without a request."""
        # The byte is never read, so after the request the pipe is readable for every waiter.
        self._readable, self._writable = os.pipe()
        os.set_blocking(self._writable, False)
        for descriptor in (self._readable, self._writable):
            weakref.finalize(self, os.close, descriptor)
        self._lock = RLock()  # a signal may call `set` while its own thread holds the lock
        self._cancels: list[Callable[[], None]] = []

    @property
    def is_set(self) -> bool:
        """Whether a stop was requested."""
        return self._is_readable_within(0)

    def set(self) -> None:
        """Request the stop; from any thread or signal, any number of times."""
        with suppress(BlockingIOError):
            os.write(self._writable, b"x")
        with self._lock:
            cancels = tuple(self._cancels)
        for cancel in cancels:
            cancel()

    def wait(self, timeout: float) -> bool:
        """Sleep until the request, at most `timeout` seconds; return whether it was made."""
        return self._is_readable_within(min(timeout, _MAX_WAIT_S))

    @contextmanager
    def on_set(self, cancel: Callable[[], None]) -> Iterator[None]:
        """Call `cancel` if the stop is requested within the context, or was requested before."""
        with self._lock:
            self._cancels.append(cancel)
        try:
            if self.is_set:
                cancel()
            yield
        finally:
            with self._lock:
                self._cancels.remove(cancel)

    def fileno(self) -> int:
        """Return a descriptor that becomes readable with the request, and stays so."""
        return self._readable

    def _is_readable_within(self, timeout: float) -> bool:
        with selectors.DefaultSelector() as selector:
            selector.register(self, selectors.EVENT_READ)
            return bool(selector.select(timeout))


@contextmanager
def stop_signals() -> Iterator[Callable[[], str]]:
    """Yield a function that blocks until a stop signal comes and returns the signal's name.

    Main thread only. The signal travels through a pipe: its handler only writes a byte, since it
    may interrupt a thread that holds any lock of the program. Child processes inherit no blocked
    signal.
    """
    reading, writing = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(writing, False)
    before = {number: signal.signal(number, lambda *_: None) for number in _wanted_signals()}
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


@contextmanager
def call_on_stop_signal(act: Callable[[], None]) -> Iterator[Callable[[], signal.Signals | None]]:
    """Call `act` when a stop signal comes within the context; main thread only.

    Yields a function that returns the last signal. The default action would end only this process
    and leave its commands running. If the handler raised an exception instead, it could come after
    a command started and before it was recorded.
    """
    received: list[int] = []

    def on_signal(number: int, _: object) -> None:
        received.append(number)
        act()

    before = {number: signal.signal(number, on_signal) for number in _wanted_signals()}
    try:
        yield lambda: signal.Signals(received[-1]) if received else None
    finally:
        for number, action in before.items():
            signal.signal(number, action)


def _wanted_signals() -> list[signal.Signals]:
    """Return the stop signals; `nohup` ignores SIGHUP so that a program outlives its terminal."""
    is_detached = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [number for number in STOP_SIGNALS if number != signal.SIGHUP or not is_detached]
