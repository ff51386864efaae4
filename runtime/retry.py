"""Waits: between attempts that fail, between rounds after a failure, and between writes.

Clocks and random sources are arguments. Nothing here sleeps by itself: a `Pause` does, and
`Cooldown` only says whether the wait is over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Final, NamedTuple, Protocol

from runtime.clock import Clock, Monotonic
from runtime.stop import Stop
from topology.model.errors import KubeError

MAX_PERIODS: Final = 5
"""The longest cooldown: after many failures, one attempt in so many periods or sooner."""
_MAX_DOUBLINGS: Final = 30

Uniform = Callable[[float, float], float]
"""Draws a number between two, such as `random.Random().uniform`."""


class Pause(Protocol):
    """Waits, unless a stop is requested; `Stop.wait` and an Event's `wait` are such."""

    def __call__(self, timeout: float) -> bool:
        """Wait for some seconds; return at once, and True, where a stop is requested."""
        ...


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential waits with full jitter, so that many that fail together spread their retries."""

    first_s: float = 0.5
    limit_s: float = 30.0

    def ceiling_s(self, failures: int) -> float:
        """Return the longest wait after the n-th failure in a row."""
        return min(self.limit_s, self.first_s * 2.0 ** min(failures - 1, _MAX_DOUBLINGS))

    def delay_s(self, failures: int, uniform: Uniform, *, asked_s: float | None = None) -> float:
        """Return how long to wait after the n-th failure in a row.

        It is never less than the server asked for, and never less than a tenth of the ceiling: a
        small draw must not make a loop hot.
        """
        ceiling = self.ceiling_s(failures)
        drawn = uniform(ceiling / 10, ceiling)
        return drawn if asked_s is None else asked_s + drawn / 10


class Cooldown:
    """How long to send no requests to an API server that failed, so that agents spread theirs.

    Waits have full jitter and grow with the failures in a row. Rounds ask whether the wait is
    over; meanwhile they go on to collect, and the newest state is what is tried next.
    """

    def __init__(self, clock: Clock, uniform: Uniform, *, period_s: float) -> None:
        """Start without a wait; `period_s` is from one round to the next."""
        self._clock = clock
        self._uniform = uniform
        self._period_s = period_s
        self._backoff = Backoff(period_s, MAX_PERIODS * period_s)
        self._failures = 0
        self._until_s = float("-inf")
        self._error: KubeError | None = None

    @property
    def error(self) -> KubeError | None:
        """The failure that the wait follows; None where the next attempt may be made."""
        return self._error if self._clock.monotonic() < self._until_s else None

    def fail(self, error: KubeError) -> None:
        """Note a failed attempt; a wait that the server asks for is kept, and spread."""
        self._failures += 1
        self._error = error
        if error.retry_after_s is None:
            wait_s = self._uniform(0, self._backoff.ceiling_s(self._failures))
        else:
            wait_s = error.retry_after_s + self._uniform(0, self._period_s)
        self._until_s = self._clock.monotonic() + wait_s

    def succeed(self) -> None:
        """Note an attempt that worked."""
        self._failures = 0
        self._until_s = float("-inf")
        self._error = None


class TokenBucket:
    """Allows so many writes a second in the long run, and some at once."""

    def __init__(self, *, per_second: float, burst: int, clock: Monotonic, pause: Pause) -> None:
        """Start full.

        Args:
            per_second: writes in the long run.
            burst: writes at once after a rest.
            clock: monotonic.
            pause: waits.
        """
        self._per_second = per_second
        self._burst = float(burst)
        self._clock = clock
        self._pause = pause
        self._lock = Lock()
        self._tokens = float(burst)
        self._updated_s = clock()

    def take(self) -> bool:
        """Wait for one token; return False where the wait was broken off, and nothing taken."""
        with self._lock:
            now = self._clock()
            gained = (now - self._updated_s) * self._per_second
            self._tokens = min(self._burst, self._tokens + gained) - 1
            self._updated_s = now
            wait_s = -self._tokens / self._per_second
        if wait_s <= 0 or not self._pause(wait_s):
            return True
        with self._lock:
            self._tokens += 1
        return False


class WaitContext(NamedTuple):
    """What a loop needs to wait between attempts."""

    stop: Stop
    clock: Monotonic
    uniform: Uniform
