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
"""The longest cooldown in periods, reached after many failures."""
_MAX_DOUBLINGS: Final = 30
_MAX_PASSING: Final = 2
_FORBIDDEN: Final = 403

Uniform = Callable[[float, float], float]
"""Draws a number between two, such as `random.Random().uniform`."""


class Pause(Protocol):
    """Waits unless a stop is requested, as `Stop.wait` and the `wait` of an Event do."""

    def __call__(self, timeout: float) -> bool:
        """Wait for some seconds; return True at once if a stop is requested."""
        ...


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential waits with full jitter: clients that fail together spread their retries."""

    first_s: float = 0.5
    limit_s: float = 30.0

    def ceiling_s(self, failures: int) -> float:
        """Return the longest wait after the n-th failure in a row."""
        return min(self.limit_s, self.first_s * 2.0 ** min(failures - 1, _MAX_DOUBLINGS))

    def delay_s(self, failures: int, uniform: Uniform, *, asked_s: float | None = None) -> float:
        """Return how long to wait after the n-th failure in a row.

        The wait is never shorter than a tenth of the ceiling, so that neither a small draw nor a
        server that asks for no wait makes the loop spin. It is also longer than the server asked
        for, up to the limit, by a tenth of the drawn wait: clients still spread their retries.
        """
        ceiling = self.ceiling_s(failures)
        drawn = uniform(ceiling / 10, ceiling)
        return drawn if asked_s is None else max(drawn, min(asked_s, self.limit_s) + drawn / 10)


class Cooldown:
    """The wait after a failed request to an API server, which spreads the retries of many agents.

    Waits have full jitter and grow with the failures in a row. A round asks whether the wait is
    over; until then it only collects, and the next attempt sends the newest state.
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
        """The failure that started the current wait; None if a request may be sent."""
        return self._error if self._clock.monotonic() < self._until_s else None

    def fail(self, error: KubeError) -> None:
        """Record a failed attempt; waits at least as long as the server asks, plus jitter."""
        self._failures += 1
        self._error = error
        if error.retry_after_s is None:
            wait_s = self._uniform(0, self._backoff.ceiling_s(self._failures))
        else:
            wait_s = error.retry_after_s + self._uniform(0, self._period_s)
        self._until_s = self._clock.monotonic() + wait_s

    def succeed(self) -> None:
        """Record a successful attempt."""
        self._failures = 0
        self._until_s = float("-inf")
        self._error = None


class RefusalStreak:
    """Distinguishes missing rights from refusals that pass.

    An API server that has just started answers 403 until it has read its roles.
    """

    def __init__(self) -> None:
        """Start without a refusal."""
        self._length = 0

    def record(self, error: KubeError | None) -> bool:
        """Record an attempt; return whether it was refused and the refusal may still pass.

        Args:
            error: why the attempt failed; None if it succeeded.
        """
        is_refused = error is not None and error.status == _FORBIDDEN
        self._length = self._length + 1 if is_refused else 0
        return is_refused and self._length <= _MAX_PASSING


class Allowance:
    """Tokens that return at a rate, up to a burst. Callers hold a lock of their own."""

    def __init__(self, *, per_second: float, burst: int, now_s: float) -> None:
        """Start full.

        Args:
            per_second: tokens per second in the long run.
            burst: the most tokens, after a rest.
            now_s: the time of a monotonic clock, as in `refill`.
        """
        self.tokens = float(burst)
        """The tokens that are left; less than 0 if tokens were spent before they returned."""
        self.per_second = per_second
        self._burst = float(burst)
        self._updated_s = now_s

    def refill(self, now_s: float) -> float:
        """Add the tokens that returned since the last call; return those that are left."""
        gained = (now_s - self._updated_s) * self.per_second
        self.tokens = min(self._burst, self.tokens + gained)
        self._updated_s = now_s
        return self.tokens


class TokenBucket:
    """Limits writes to a rate in the long run, and allows short bursts."""

    def __init__(self, *, per_second: float, burst: int, clock: Monotonic, pause: Pause) -> None:
        """Start full.

        Args:
            per_second: writes per second in the long run.
            burst: the most writes at once after a rest.
            clock: the monotonic clock.
            pause: waits until a stop is requested.
        """
        self._clock = clock
        self._pause = pause
        self._lock = Lock()
        self._allowance = Allowance(per_second=per_second, burst=burst, now_s=clock())

    def take(self) -> bool:
        """Wait for one token; return False if a stop ended the wait and no token was taken."""
        allowance = self._allowance
        with self._lock:
            allowance.refill(self._clock())
            allowance.tokens -= 1
            wait_s = -allowance.tokens / allowance.per_second
        if wait_s <= 0 or not self._pause(wait_s):
            return True
        with self._lock:
            allowance.tokens += 1
        return False


class WaitContext(NamedTuple):
    """The arguments of a loop that waits between attempts."""

    stop: Stop
    clock: Monotonic
    uniform: Uniform
