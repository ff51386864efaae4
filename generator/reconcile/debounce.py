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
class Pace:
    """How long to wait for what."""

    quiet_s: float = 2.0
    """Without another change, before a plan is written."""
    at_most_s: float = 15.0
    """From the first change on, however often it changes; longer than any one event takes."""
    first_window_s: float = 5.0
    """After the first write of an object, until it may be written again."""
    last_window_s: float = 240.0
    """Windows double up to this."""
    calm_s: float = 480.0
    """Without a write for so long, an object starts with the first window again."""


AT_ONCE = Pace(0.0, 0.0, 0.0, 0.0, 0.0)


class Waiting(NamedTuple):
    """A plan that differs from what exists, and since when."""

    plan: str
    """Its hash."""
    since_s: float
    """When the first of the plans that were not written was seen."""
    changed_s: float
    """When this one was."""

    def wait_s(self, now_s: float, pace: Pace) -> float:
        """Return how long to wait still, 0 where it has waited enough."""
        due_s = min(self.changed_s + pace.quiet_s, self.since_s + pace.at_most_s)
        return max(0.0, due_s - now_s)


def wait_for(plan: str, before: Waiting | None, now_s: float) -> Waiting:
    """Return what is waited for now that a plan is seen, be it another one or the same."""
    if before is None:
        return Waiting(plan, now_s, now_s)
    return before if before.plan == plan else Waiting(plan, before.since_s, now_s)


class Written(NamedTuple):
    """The last write of an object."""

    at_s: float
    window_s: float
    """From then on, until the next."""


def note_writes(
    before: Mapping[str, Written], names: Iterable[str], now_s: float, *, pace: Pace
) -> dict[str, Written]:
    """Return the last writes after those of `names`; objects that became calm are forgotten."""
    kept = {name: last for name, last in before.items() if now_s - last.at_s < pace.calm_s}
    for name in set(names):
        last = kept.get(name)
        window_s = (
            pace.first_window_s if last is None else min(2 * last.window_s, pace.last_window_s)
        )
        kept[name] = Written(now_s, window_s)
    return kept


def damping_s(before: Mapping[str, Written], names: Iterable[str], now_s: float) -> float:
    """Return how long it takes until all of some objects may be written.

    A plan is ordered so that each step is valid, so it waits as a whole for the last of them.
    """
    ends = (before[name].at_s + before[name].window_s for name in names if name in before)
    return max(0.0, max(ends, default=now_s) - now_s)
