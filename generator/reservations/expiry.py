"""What has to be written because of time, of pods, or of a former writer. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from generator.reservations.holds import ReservationUsage
from generator.reservations.records import Refusal, Reservation
from generator.reservations.rules import Step, is_forgettable, expire_if_due, apply_step

_PODS_BOUND: Final = "its pods are bound"
_STALE_WRITE: Final = "written by a leader that was replaced"


class ReservationWriter(NamedTuple):
    """Who writes now."""

    epoch: int
    inherited_ids: frozenset[str]
    """Ids of all that stood when it began."""


def find_due(
    known: Sequence[Reservation],
    left: Mapping[str, ReservationUsage],
    *,
    now: datetime,
    writer: ReservationWriter,
) -> list[Reservation]:
    """Return those that are to be written, as they are to be.

    Args:
        known: all, as they were last written.
        left: of each by id.
        now: with a time zone.
        writer: whose epoch goes on what a former one wrote.
    """
    after = ((one, _update_if_due(one, left[one.id], now, writer)) for one in known)
    return [new for old, new in after if new is not old]


def _update_if_due(
    one: Reservation, left: ReservationUsage, now: datetime, writer: ReservationWriter
) -> Reservation:
    epoch = writer.epoch
    if not one.is_held_at(now):
        return expire_if_due(one, now=now, epoch=epoch)
    is_former = one.epoch < epoch
    if left.is_used_up:
        # Its pods stay its own, even where the API server's clock is ahead of ours.
        ended = max(now, left.last_bound or now)
        after = apply_step(one, Step.RELEASE, now=ended, epoch=epoch, message=_PODS_BOUND)
    elif is_former and one.id not in writer.inherited_ids:
        after = apply_step(one, Step.RELEASE, now=now, epoch=epoch, message=_STALE_WRITE)
    else:
        after = replace(one, epoch=epoch) if is_former else one
    return one if isinstance(after, Refusal) else after


def find_forgettable(
    known: Sequence[Reservation], left: Mapping[str, ReservationUsage], *, now: datetime
) -> list[str]:
    """Return what need not be remembered; what tells whose pods are bound has to be yet."""
    gangs = {one.gang for one in known if one.is_held_at(now)}
    return [
        one.id
        for one in known
        if is_forgettable(one, now) and not (one.gang in gangs and left[one.id].num_bound)
    ]
