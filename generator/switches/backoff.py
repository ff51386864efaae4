"""How long to leave a switch alone that fails again and again. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from generator.switches.targets import Target
from generator.switches.walk import Outcome

MAX_BACKOFF_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """How patient to be with one switch."""

    num_failures: int = 0
    """In a row."""
    not_before_s: float = 0.0
    """When to try again, by the clock of the walks."""

    def after(self, outcome: Outcome, *, now_s: float, period_s: float) -> Backoff:
        """Return the state after a walk: each failure in a row doubles the wait, to an hour.

        A period longer than an hour stays what it is.
        """
        if outcome in {Outcome.OK, Outcome.PARTIAL}:
            return Backoff()
        failures = self.num_failures + 1
        longest = max(period_s, MAX_BACKOFF_S)
        return Backoff(failures, now_s + min(period_s * 2.0 ** min(failures, 32), longest))


def due_targets(
    targets: Iterable[Target], waits: Mapping[Target, Backoff], *, now_s: float
) -> list[Target]:
    """Return the targets to be walked now.

    Args:
        targets: all of them.
        waits: the state of those that failed.
        now_s: by the same clock as the states.
    """
    never = Backoff()
    return [target for target in targets if waits.get(target, never).not_before_s <= now_s]
