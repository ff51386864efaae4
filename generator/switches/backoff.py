"""The wait before the next walk of a switch that fails repeatedly. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from generator.switches.targets import Target
from generator.switches.walk import WalkOutcome

MAX_BACKOFF_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class SwitchBackoff:
    """The failures of one switch, and when it is walked again."""

    num_failures: int = 0
    """Failed walks in a row."""
    retry_at_s: float = 0.0
    """Time of the next walk, in seconds of the clock of the walks."""

    def after_walk(self, outcome: WalkOutcome, *, now_s: float, period_s: float) -> SwitchBackoff:
        """Return the state after a walk: each failure in a row doubles the wait, up to an hour.

        If the period is longer than an hour, the wait is one period.
        """
        if outcome in {WalkOutcome.OK, WalkOutcome.PARTIAL}:
            return SwitchBackoff()
        failures = self.num_failures + 1
        max_wait_s = max(period_s, MAX_BACKOFF_S)
        return SwitchBackoff(failures, now_s + min(period_s * 2.0 ** min(failures, 32), max_wait_s))


def find_due_targets(
    targets: Iterable[Target], waits: Mapping[Target, SwitchBackoff], *, now_s: float
) -> list[Target]:
    """Return the targets to be walked now.

    Args:
        targets: all targets.
        waits: the state of targets that failed.
        now_s: in seconds of the same clock.
    """
    no_wait = SwitchBackoff()
    return [target for target in targets if waits.get(target, no_wait).retry_at_s <= now_s]
