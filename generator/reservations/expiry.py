"""Reservations to rewrite or delete: expired, used up, or written by a former leader. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from generator.reservations.holds import ReservationUsage
from generator.reservations.records import Refusal, Reservation
from generator.reservations.rules import (
    MAX_RESERVATIONS,
    Step,
    apply_step,
    compute_room,
    expire_if_due,
    is_forgettable,
)
from topology.model.surplus_rows import find_surplus

_PODS_BOUND: Final = "its pods are bound"
_STALE_WRITE: Final = "written by a leader that was replaced"


class ReservationWriter(NamedTuple):
    """The present writer of the store."""

    epoch: int
    inherited_ids: frozenset[str]
    """Ids of all reservations that existed when its epoch began."""


def find_due(
    reservations: Sequence[Reservation],
    usages: Mapping[str, ReservationUsage],
    *,
    now: datetime,
    writer: ReservationWriter,
) -> list[Reservation]:
    """Return the changed reservations, in the state to write.

    Args:
        reservations: all, as last written.
        usages: usage of each reservation by id.
        now: with a time zone.
        writer: its epoch replaces the epoch of a former writer.
    """
    after = (
        (reservation, _update_if_due(reservation, usages[reservation.id], now, writer))
        for reservation in reservations
    )
    return [new for old, new in after if new is not old]


def _update_if_due(
    reservation: Reservation, usage: ReservationUsage, now: datetime, writer: ReservationWriter
) -> Reservation:
    epoch = writer.epoch
    if not reservation.is_held_at(now):
        return expire_if_due(reservation, now=now, epoch=epoch)
    is_former = reservation.epoch < epoch
    if usage.is_used_up and reservation.exclusive is None:
        # Its pods stay assigned to it, even if the API server's clock is ahead of this one.
        ended = max(now, usage.last_bound or now)
        after = apply_step(reservation, Step.RELEASE, now=ended, epoch=epoch, message=_PODS_BOUND)
    elif is_former and reservation.id not in writer.inherited_ids:
        after = apply_step(reservation, Step.RELEASE, now=now, epoch=epoch, message=_STALE_WRITE)
    else:
        after = replace(reservation, epoch=epoch) if is_former else reservation
    return reservation if isinstance(after, Refusal) else after


def find_forgettable(
    reservations: Sequence[Reservation],
    usages: Mapping[str, ReservationUsage],
    *,
    now: datetime,
    limit: int = MAX_RESERVATIONS,
) -> list[Reservation]:
    """Return the reservations to delete: those that ended long ago, and those above the limit.

    Of the holder with the most ended reservations, those that ended first make room. Never deleted
    are reservations that bound pods of a held gang belong to; there are no more than such pods.
    """
    gangs = {reservation.gang for reservation in reservations if reservation.is_held_at(now)}
    ended = [
        reservation
        for reservation in reservations
        if not reservation.is_held_at(now)
        and not (reservation.gang in gangs and usages[reservation.id].num_bound)
    ]
    old = [reservation for reservation in ended if is_forgettable(reservation, now)]
    rest = [reservation for reservation in ended if not is_forgettable(reservation, now)]
    rest.sort(key=_find_end, reverse=True)
    room = max(0, limit - (len(reservations) - len(old) - len(rest)))
    holders = [(reservation.holder,) for reservation in rest]
    return old + find_surplus(rest, holders, room, sizes=[*map(compute_room, rest)])


def _find_end(reservation: Reservation) -> datetime:
    return reservation.ended_at or reservation.expires_at or reservation.created_at
