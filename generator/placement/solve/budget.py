"""The budget of a query: steps of work, and a deadline on a clock that the caller passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


class BudgetExhausted(Exception):  # noqa: N818 - caught by the engine, never shown
    """The budget ended before the search did."""


@dataclass
class Budget:
    """What a search may still spend."""

    steps: int
    clock: Callable[[], float] | None = None
    deadline_at_s: float = 0.0

    def spend(self, steps: int) -> None:
        """Count steps of work.

        Raises:
            EffortSpent: they are used up, or the deadline has passed.
        """
        self.steps -= steps
        if self.steps < 0 or (self.clock is not None and self.clock() > self.deadline_at_s):
            raise BudgetExhausted
