"""How long a changed plan waits before it is written. Pure.

The reports of one event arrive over seconds, so a plan is written once it has not changed for a
while, or after a maximum wait. An object that keeps changing, such as the leaf of a flapping
host, is written once per window, and each further write doubles the window. Times are arguments,
in seconds of a monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class DebounceConfig:
    """The delays before writes, in seconds."""

    quiet_s: float = 2.0
    """A plan is written when it has not changed for this long."""
    max_wait_s: float = 15.0
    """Longest wait after the first change, however often the plan changes again. It is longer
    than the reports of one event take."""
    min_window_s: float = 5.0
    """After its first write, an object is not written again for this long."""
    max_window_s: float = 240.0
    """The longest window; each write doubles the window up to this."""
    restore_window_s: float = 0.25
    """The same as `min_window_s`, after an object was restored to what was decided before."""
    window_reset_s: float = 480.0
    """After this long without a write, an object starts with the shortest window again."""


NO_DEBOUNCE = DebounceConfig(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


class PendingPlan(NamedTuple):
    """A plan that waits to be written."""

    plan: str
    """Its hash."""
    first_seen_s: float
    """When the first plan since the last write was seen."""
    changed_s: float
    """When this plan was first seen."""

    def compute_wait_s(self, now_s: float, pace: DebounceConfig) -> float:
        """Return the remaining wait in seconds, 0 if the plan may be written."""
        due_s = min(self.changed_s + pace.quiet_s, self.first_seen_s + pace.max_wait_s)
        return max(0.0, due_s - now_s)


def update_pending(plan: str, before: PendingPlan | None, now_s: float) -> PendingPlan:
    """Return the pending plan after a round that saw `plan`, the same or another one."""
    if before is None:
        return PendingPlan(plan, now_s, now_s)
    return before if before.plan == plan else PendingPlan(plan, before.first_seen_s, now_s)


class LastWrite(NamedTuple):
    """The last write of an object."""

    written_at_s: float
    window_s: float
    """Seconds after the write until the object may be written again."""


def record_writes(
    before: Mapping[str, LastWrite], names: Iterable[str], now_s: float, *, pace: DebounceConfig
) -> dict[str, LastWrite]:
    """Return the last writes, with those of `names` now; entries older than the reset are dropped.

    Args:
        before: last writes by object name.
        names: objects written now.
        now_s: in seconds of the same clock.
        pace: the windows.
    """
    recent = {
        name: last
        for name, last in before.items()
        if now_s - last.written_at_s < pace.window_reset_s
    }
    for name in set(names):
        last = recent.get(name)
        window_s = pace.min_window_s if last is None else min(2 * last.window_s, pace.max_window_s)
        recent[name] = LastWrite(now_s, window_s)
    return recent


def compute_damping_s(before: Mapping[str, LastWrite], names: Iterable[str], now_s: float) -> float:
    """Return the seconds until all of these objects may be written.

    Each action of a plan is valid only after those before it, so the whole plan waits for the
    object with the longest remaining window.
    """
    ends = (before[name].written_at_s + before[name].window_s for name in names if name in before)
    return max(0.0, max(ends, default=now_s) - now_s)
