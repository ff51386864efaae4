"""What has to be written because of time, of pods, or of a former writer. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from generator.reservations.holds import Left
from generator.reservations.records import Refusal, Reservation
from generator.reservations.rules import Step, is_forgotten, settled, stepped

_USED_UP: Final = "its pods are bound"
_LATE: Final = "written by a leader that was replaced"


class Writer(NamedTuple):
    """Who writes now."""

    epoch: int
    taken_over: frozenset[str]
    """Ids of all that stood when it began."""


def due_of(
    known: Sequence[Reservation], left: Mapping[str, Left], *, now: datetime, writer: Writer
) -> list[Reservation]:
    """Return those that are to be written, as they are to be.

    Args:
        known: all, as they were last written.
        left: of each by id.
        now: with a time zone.
        writer: whose epoch goes on what a former one wrote.
    """
    after = ((one, _due(one, left[one.id], now, writer)) for one in known)
    return [new for old, new in after if new is not old]


def _due(one: Reservation, left: Left, now: datetime, writer: Writer) -> Reservation:
    epoch = writer.epoch
    if not one.holds(now):
        return settled(one, now=now, epoch=epoch)
    is_former = one.epoch < epoch
    if left.is_used_up:
        # Its pods stay its own, even where the API server's clock is ahead of ours.
        ended = max(now, left.last_bound or now)
        after = stepped(one, Step.RELEASE, now=ended, epoch=epoch, message=_USED_UP)
    elif is_former and one.id not in writer.taken_over:
        after = stepped(one, Step.RELEASE, now=now, epoch=epoch, message=_LATE)
    else:
        after = replace(one, epoch=epoch) if is_former else one
    return one if isinstance(after, Refusal) else after


def forgotten_of(
    known: Sequence[Reservation], left: Mapping[str, Left], *, now: datetime
) -> list[str]:
    """Return what need not be remembered; what tells whose pods are bound has to be yet."""
    gangs = {one.gang for one in known if one.holds(now)}
    return [
        one.id
        for one in known
        if is_forgotten(one, now) and not (one.gang in gangs and left[one.id].num_bound)
    ]
