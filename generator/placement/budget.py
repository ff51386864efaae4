"""The budget of a query: steps of work, a deadline, and whether the caller still wants an answer.

The caller passes the clock and the cancellation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

MAX_DELAY_S, MAX_DELAY_SHARE = 0.02, 0.2
"""A deadline is kept within this time, or within this share of it, whichever is more."""
GRACE_STEPS_PER_S = 50_000
"""Steps per second of that time, to prepare a query and to place it greedily."""
NODES_PER_STEP = 100
"""Nodes over which arrays are counted or compared in the time of one search step."""


IsCancelled: TypeAlias = Callable[[], bool]
"""Returns whether the caller no longer waits for the answer; each step of a search checks it."""


class BudgetExhausted(Exception):  # noqa: N818 - caught by the engine, never shown
    """The budget ended before the search did."""


class SearchCancelledError(Exception):
    """The caller no longer waits for the answer."""


def never_cancelled() -> bool:
    """Return False: the caller waits as long as the search takes."""
    return False


@dataclass
class Budget:
    """The steps and the time that remain for a search, or for one query with all its steps."""

    steps: int = sys.maxsize
    clock: Callable[[], float] | None = None
    deadline_at_s: float = 0.0
    is_cancelled: IsCancelled = never_cancelled
    _grace_steps: int = 0
    """Steps that may follow the deadline, for what a first answer takes."""
    _has_grace: bool = False
    """Whether this part of the query may use them."""
    _started_at_s: float = 0.0
    _deadline_s: float = 0.0

    @classmethod
    def of_query(
        cls,
        deadline_s: float | None,
        clock: Callable[[], float] | None,
        is_cancelled: IsCancelled = never_cancelled,
    ) -> Budget:
        """Start the clock of a query, if it has a deadline."""
        if deadline_s is None or clock is None:
            return cls(is_cancelled=is_cancelled)
        delay_s = max(MAX_DELAY_S, MAX_DELAY_SHARE * deadline_s)
        return cls(
            clock=clock,
            is_cancelled=is_cancelled,
            _grace_steps=round(GRACE_STEPS_PER_S * delay_s),
            _started_at_s=clock(),
            _deadline_s=deadline_s,
        )

    def renew(self, steps: int, *, share: float = 1.0, has_grace: bool = False) -> Budget:
        """Allow this many steps until this share of the time has passed, or the grace is spent."""
        self.steps, self._has_grace = steps, has_grace
        self.deadline_at_s = self._started_at_s + share * self._deadline_s
        return self

    def end(self) -> None:
        """Lift all limits: an explanation is always complete."""
        self.steps, self.clock = sys.maxsize, None

    def spend(self, steps: int) -> None:
        """Subtract steps of work.

        Raises:
            BudgetExhausted: no steps are left, or the deadline has passed.
            SearchCancelledError: the caller no longer waits for the answer.
        """
        self.check_cancellation()
        self.steps -= steps
        is_late = self.clock is not None and self.clock() > self.deadline_at_s
        if is_late and self._has_grace:
            self._grace_steps -= max(steps, 1)
        if self.steps < 0 or (is_late and (self._grace_steps < 0 or not self._has_grace)):
            raise BudgetExhausted

    def check_cancellation(self) -> None:
        """Raise SearchCancelledError if the caller no longer waits for the answer."""
        if self.is_cancelled():
            raise SearchCancelledError

    def check(self) -> None:
        """Raise as `spend` does if the deadline has passed."""
        self.spend(0)

    def spend_on_arrays(self, num_nodes: int) -> None:
        """Subtract the steps of one pass over arrays of this many nodes; raises as `spend` does."""
        self.spend(1 + num_nodes // NODES_PER_STEP)

    def limited_to(self, steps: int) -> Budget:
        """Return a budget of these steps that ends with the time of this one."""
        return Budget(steps, self.clock, self.deadline_at_s, self.is_cancelled)
