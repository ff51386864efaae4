"""The budget of a query: steps of work, and a deadline on a clock that the caller passes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

NODES_PER_STEP = 100
"""Nodes over which arrays are counted or compared in the time of one search step."""


class BudgetExhausted(Exception):  # noqa: N818 - caught by the engine, never shown
    """The budget ended before the search did."""


@dataclass
class Budget:
    """The steps and the time that remain for a search."""

    steps: int = sys.maxsize
    clock: Callable[[], float] | None = None
    deadline_at_s: float = 0.0
    grace_steps: int = 0
    """Steps that may follow the deadline, for what a first answer takes."""
    has_grace: bool = False
    """Whether this part of the query may use them."""

    def spend(self, steps: int) -> None:
        """Subtract steps of work.

        Raises:
            BudgetExhausted: no steps are left, or the deadline has passed.
        """
        self.steps -= steps
        is_late = self.clock is not None and self.clock() > self.deadline_at_s
        if is_late and self.has_grace:
            self.grace_steps -= max(steps, 1)
        if self.steps < 0 or (is_late and (self.grace_steps < 0 or not self.has_grace)):
            raise BudgetExhausted

    def check(self) -> None:
        """Raise as `spend` does if the deadline has passed."""
        self.spend(0)

    def spend_on_arrays(self, num_nodes: int) -> None:
        """Subtract the steps of one pass over arrays of this many nodes; raises as `spend` does."""
        self.spend(1 + num_nodes // NODES_PER_STEP)
