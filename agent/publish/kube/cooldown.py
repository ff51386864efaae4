"""How long to leave the API server alone after it failed, so that many agents do not act as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from runtime.clock import Clock
from topology.model.errors import KubeError

MAX_PERIODS: Final = 5
"""After many failures one attempt in so many periods, or sooner."""

Uniform = Callable[[float, float], float]
"""A number between two, such as `random.Random().uniform`."""


class Patience:
    """Waits with full jitter, the longer the more failures in a row; rounds ask whether it is over.

    Nothing sleeps: who has to wait goes on collecting, and its newest state is what is tried next.
    """

    def __init__(self, clock: Clock, uniform: Uniform, *, period_s: float) -> None:
        """Wait for nothing yet; `period_s` is that of the rounds."""
        self._clock = clock
        self._uniform = uniform
        self._period_s = period_s
        self._failures = 0
        self._until_s = float("-inf")
        self._why: KubeError | None = None

    @property
    def waits_for(self) -> KubeError | None:
        """The failure after which it still waits, None where the next attempt may be made."""
        return self._why if self._clock.monotonic() < self._until_s else None

    def fail(self, error: KubeError) -> None:
        """Note an attempt that failed; what the server asks for is kept, and spread."""
        self._failures += 1
        self._why = error
        ceiling_s = self._period_s * min(MAX_PERIODS, 2.0 ** (self._failures - 1))
        if error.retry_after_s is None:
            wait_s = self._uniform(0, ceiling_s)
        else:
            wait_s = error.retry_after_s + self._uniform(0, self._period_s)
        self._until_s = self._clock.monotonic() + wait_s

    def succeed(self) -> None:
        """Note an attempt that worked."""
        self._failures = 0
        self._until_s = float("-inf")
        self._why = None
