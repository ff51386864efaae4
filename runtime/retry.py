"""How long to wait: between attempts, and between writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Lock
from typing import NamedTuple, Protocol

Clock = Callable[[], float]
"""Seconds that only ever grow, from any zero."""

Uniform = Callable[[float, float], float]
"""A number between two, such as `random.Random().uniform`."""


class Pause(Protocol):
    """Waits, unless the end has come; an Event's `wait` is one."""

    def __call__(self, timeout: float) -> bool:
        """Wait for some seconds; return at once, and True, where there is no more to wait for."""
        ...


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential waits with full jitter, so that many who failed together do not return so."""

    first_s: float = 0.5
    limit_s: float = 30.0

    def delay_s(self, failures: int, uniform: Uniform, *, asked_s: float | None = None) -> float:
        """Return how long to wait after the n-th failure in a row, at least what was asked for.

        Never less than a tenth of the ceiling: luck must not make a loop hot.
        """
        ceiling = min(self.limit_s, self.first_s * 2.0 ** min(failures - 1, 30))
        drawn = uniform(ceiling / 10, ceiling)
        return drawn if asked_s is None else asked_s + drawn / 10


class TokenBucket:
    """Allows so many writes a second in the long run, and some at once."""

    def __init__(self, *, per_second: float, burst: int, clock: Clock, pause: Pause) -> None:
        """Start full.

        Args:
            per_second: of the long run.
            burst: at once after a rest.
            clock: monotonic.
            pause: waits.
        """
        self._per_second = per_second
        self._burst = float(burst)
        self._clock = clock
        self._pause = pause
        self._lock = Lock()
        self._level = float(burst)
        self._at = clock()

    def take(self) -> bool:
        """Wait for one token; return False where the wait was broken off, and nothing taken."""
        with self._lock:
            now = self._clock()
            gained = (now - self._at) * self._per_second
            self._level = min(self._burst, self._level + gained) - 1
            self._at = now
            wait_s = -self._level / self._per_second
        if wait_s <= 0 or not self._pause(wait_s):
            return True
        with self._lock:
            self._level += 1
        return False


class Ending:
    """The wish of one thread that others end: it breaks off their waits and their streams."""

    def __init__(self) -> None:
        """Nobody wishes it yet."""
        self._event = Event()
        self._lock = Lock()
        self._cancels: list[Callable[[], None]] = []

    @property
    def is_wished(self) -> bool:
        """Whether there is no more to wait for."""
        return self._event.is_set()

    def wish(self) -> None:
        """Break off every wait and every stream, now and from now on."""
        self._event.set()
        with self._lock:
            cancels = tuple(self._cancels)
        for cancel in cancels:
            cancel()

    def pause(self, timeout: float) -> bool:
        """Wait, as a `Pause` does."""
        return self._event.wait(timeout)

    @contextmanager
    def breaking(self, cancel: Callable[[], None]) -> Iterator[None]:
        """Call `cancel` when the end is wished within the context, or was before it."""
        with self._lock:
            self._cancels.append(cancel)
        try:
            if self.is_wished:
                cancel()
            yield
        finally:
            with self._lock:
                self._cancels.remove(cancel)


class Pace(NamedTuple):
    """What a loop needs to wait."""

    ending: Ending
    clock: Clock
    uniform: Uniform
