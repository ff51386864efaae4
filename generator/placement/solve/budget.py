"""The budget of a query: steps of work, and a deadline on a clock that the caller passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


class BudgetExhausted(Exception):  # noqa: N818 - caught by the engine, never shown
    """The budget ended before the search did."""


@dataclass
class Budget:
    """The steps and the time that a search may still use."""

    steps: int
    clock: Callable[[], float] | None = None
    deadline_at_s: float = 0.0

    def spend(self, steps: int) -> None:
        """Subtract steps of work.

        Raises:
            BudgetExhausted: no steps are left, or the deadline has passed.
        """
        self.steps -= steps
        if self.steps < 0 or (self.clock is not None and self.clock() > self.deadline_at_s):
            raise BudgetExhausted
