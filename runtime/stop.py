"""A stop request that the threads of a process share; `program` handles signals."""

from __future__ import annotations

import os
import selectors
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import RLock
from typing import Final

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
