"""How long to leave a switch alone that fails again and again. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from generator.switches.targets import Target
from generator.switches.walk import WalkOutcome

MAX_BACKOFF_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class SwitchBackoff:
    """How patient to be with one switch."""

    num_failures: int = 0
    """In a row."""
    retry_at_s: float = 0.0
    """When to try again, by the clock of the walks."""

    def after_walk(self, outcome: WalkOutcome, *, now_s: float, period_s: float) -> SwitchBackoff:
        """Return the state after a walk: each failure in a row doubles the wait, to an hour.

        A period longer than an hour stays what it is.
        """
        if outcome in {WalkOutcome.OK, WalkOutcome.PARTIAL}:
            return SwitchBackoff()
        failures = self.num_failures + 1
        longest = max(period_s, MAX_BACKOFF_S)
        return SwitchBackoff(failures, now_s + min(period_s * 2.0 ** min(failures, 32), longest))


def find_due_targets(
    targets: Iterable[Target], waits: Mapping[Target, SwitchBackoff], *, now_s: float
) -> list[Target]:
    """Return the targets to be walked now.

    Args:
        targets: all of them.
        waits: the state of those that failed.
        now_s: by the same clock as the states.
    """
    never = SwitchBackoff()
    return [target for target in targets if waits.get(target, never).retry_at_s <= now_s]
