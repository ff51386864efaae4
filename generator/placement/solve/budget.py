"""The budget of a query: steps of work, and a deadline on a clock that the caller passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


class EffortSpent(Exception):  # noqa: N818 - caught by the engine, never shown
    """The budget ended before the search did."""


@dataclass
class Effort:
    """What a search may still spend."""

    steps: int
    clock: Callable[[], float] | None = None
    ends_at: float = 0.0

    def spend(self, steps: int) -> None:
        """Count steps of work.

        Raises:
            EffortSpent: they are used up, or the deadline has passed.
        """
        self.steps -= steps
        if self.steps < 0 or (self.clock is not None and self.clock() > self.ends_at):
            raise EffortSpent
