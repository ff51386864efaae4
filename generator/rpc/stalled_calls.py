"""Cancels stalled calls: the client does not finish its request, or does not read the answer.

Each would hold a thread or memory of the synchronous server until its deadline, which may be an
hour away. One thread checks all calls; a call in time costs two dictionary accesses.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final, Protocol

from generator.rpc.limits import STALL_S

CHECK_PERIOD_S: Final = 1.0


class Cancellable(Protocol):
    """A call that can be cancelled, such as gRPC's context."""

    def cancel(self) -> object:
        """Cancel the call."""
        ...


class StallWatch:
    """Cancels calls whose client stalls."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        stall_s: float = STALL_S,
        check_period_s: float = CHECK_PERIOD_S,
    ) -> None:
        """Start a thread that checks periodically; it ends with `stop`."""
        self._clock = clock
        self._stall_s = stall_s
        self._ends_at_s: dict[Cancellable, float] = {}
        self._check_period_s = check_period_s
        self._ended = Event()
        Thread(target=self._run, name="rpc-stalling", daemon=True).start()

    @contextmanager
    def watch(self, call: Cancellable, *, max_s: float = math.inf) -> Iterator[None]:
        """Cancel the call if the body of the context takes too long, or longer than a time."""
        self.begin(call, max_s=max_s)
        try:
            yield
        finally:
            self.end(call)

    def begin(self, call: Cancellable, *, max_s: float = math.inf) -> None:
        """Start the time limit of a call."""
        self._ends_at_s[call] = self._clock() + min(max_s, self._stall_s)

    def end(self, call: Cancellable) -> None:
        """End the time limit of a call."""
        self._ends_at_s.pop(call, None)

    def stop(self) -> None:
        """Stop checking."""
        self._ended.set()

    def cancel_stalled(self) -> None:
        """Cancel the stalled calls."""
        now_s = self._clock()
        for call, ends_at_s in list(self._ends_at_s.items()):
            if ends_at_s <= now_s:
                self.end(call)
                call.cancel()

    def _run(self) -> None:
        while not self._ended.wait(self._check_period_s):
            self.cancel_stalled()
