"""Which generations of the tree are kept: the newest of each minute, hour and day. Pure.

A cable that flaps makes a generation in every round. If the oldest generations made room for these,
a day of flapping would erase a year. So each span of time has a place for one generation: a minute
for a day, an hour for 31 days, a day for 400 days. That is at most 2,600 generations.

Findings that ended share a room, in which a large finding takes more than a small one. Days share
it equally, and so do the devices of a day. So a device whose findings end every second pushes out
only its own findings, and a device with ever new names pushes out only findings of the same days.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from topology.model.surplus_rows import find_surplus

MINUTE_S: Final = 60
HOUR_S: Final = 3600
DAY_S: Final = 86_400
KEPT_S: Final = 400 * DAY_S
"""Older history is forgotten, except for the state at the beginning of the history."""
SPANS: Final = ((DAY_S, MINUTE_S), (31 * DAY_S, HOUR_S), (KEPT_S, DAY_S))
"""Up to this age, one generation for each span of this length."""
ROOM_BYTES: Final = 1024


class EndedFinding(NamedTuple):
    """A finding that ended, without its content."""

    device: str
    ended_s: int
    """When the finding ended, in seconds since 1970."""
    num_bytes: int


def compute_room(num_bytes: int) -> int:
    """Return the room that a finding of a size takes: 1 up to a KiB, and 1 more for each KiB."""
    return 1 + num_bytes // ROOM_BYTES


def find_surplus_findings(ended: Sequence[EndedFinding], limit: int) -> list[int]:
    """Return the indexes of the findings that make room for the others.

    Args:
        ended: the ended findings, in any order.
        limit: room of the findings to keep.
    """
    rows = sorted(range(len(ended)), key=lambda row: ended[row].ended_s, reverse=True)
    owners = [(ended[row].ended_s // DAY_S, ended[row].device) for row in rows]
    sizes = [compute_room(ended[row].num_bytes) for row in rows]
    return find_surplus(rows, owners, limit, sizes=sizes)


def choose_kept(
    times_s: Sequence[int], now_s: int, *, spans: Sequence[tuple[int, int]] = SPANS
) -> list[int]:
    """Return the times to keep, sorted.

    The newest is always kept, because it is the present state, and so is the newest of those that
    are too old: it was the state when the kept history begins.

    Args:
        times_s: the times of the generations in seconds since 1970, in any order.
        now_s: the present.
        spans: an age, and the length of the spans up to this age, youngest first.
    """
    newest_of: dict[tuple[int, int], int] = {}
    for time_s in sorted(times_s):
        span_s = next((span for age, span in spans if now_s - time_s < age), 0)
        newest_of[span_s, time_s // span_s if span_s else 0] = time_s
    return sorted({*newest_of.values(), *([max(times_s)] if times_s else ())})
