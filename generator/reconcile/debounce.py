"""When a changed plan is written: not while it still changes, and no object too often.

Reports of one event arrive over seconds, so a plan waits until it has been the same for a while,
though not for ever. An object that keeps changing, such as the leaf of a flapping host, is written
once per window, and each write within the window's memory doubles it. Pure: times are arguments,
in seconds of a clock that never goes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class DebounceConfig:
    """How long to wait for what."""

    quiet_s: float = 2.0
    """Without another change, before a plan is written."""
    max_wait_s: float = 15.0
    """From the first change on, however often it changes; longer than any one event takes."""
    min_window_s: float = 5.0
    """After the first write of an object, until it may be written again."""
    max_window_s: float = 240.0
    """Windows double up to this."""
    window_reset_s: float = 480.0
    """Without a write for so long, an object starts with the first window again."""


NO_DEBOUNCE = DebounceConfig(0.0, 0.0, 0.0, 0.0, 0.0)


class PendingPlan(NamedTuple):
    """A plan that differs from what exists, and since when."""

    plan: str
    """Its hash."""
    first_seen_s: float
    """When the first of the plans that were not written was seen."""
    changed_s: float
    """When this one was."""

    def compute_wait_s(self, now_s: float, pace: DebounceConfig) -> float:
        """Return how long to wait still, 0 where it has waited enough."""
        due_s = min(self.changed_s + pace.quiet_s, self.first_seen_s + pace.max_wait_s)
        return max(0.0, due_s - now_s)


def update_pending(plan: str, before: PendingPlan | None, now_s: float) -> PendingPlan:
    """Return what is waited for now that a plan is seen, be it another one or the same."""
    if before is None:
        return PendingPlan(plan, now_s, now_s)
    return before if before.plan == plan else PendingPlan(plan, before.first_seen_s, now_s)


class LastWrite(NamedTuple):
    """The last write of an object."""

    written_at_s: float
    window_s: float
    """From then on, until the next."""


def record_writes(
    before: Mapping[str, LastWrite], names: Iterable[str], now_s: float, *, pace: DebounceConfig
) -> dict[str, LastWrite]:
    """Return the last writes after those of `names`; objects that became calm are forgotten."""
    kept = {
        name: last
        for name, last in before.items()
        if now_s - last.written_at_s < pace.window_reset_s
    }
    for name in set(names):
        last = kept.get(name)
        window_s = pace.min_window_s if last is None else min(2 * last.window_s, pace.max_window_s)
        kept[name] = LastWrite(now_s, window_s)
    return kept


def compute_damping_s(before: Mapping[str, LastWrite], names: Iterable[str], now_s: float) -> float:
    """Return how long it takes until all of some objects may be written.

    A plan is ordered so that each step is valid, so it waits as a whole for the last of them.
    """
    ends = (before[name].written_at_s + before[name].window_s for name in names if name in before)
    return max(0.0, max(ends, default=now_s) - now_s)
