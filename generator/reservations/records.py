"""Reservations, requests, refusals and totals as values; PlacementReservation objects. Pure.

Every outcome that a caller can cause is a value: a reservation, or a refusal with its kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from generator.objects.reservation import (
    RESERVATION_KIND,
    PlacementReservation,
    ReservationPhase,
    ReservationStatus,
    ReservedGroup,
    parse_reservation,
)
from generator.placement.answer import Placement
from generator.placement.quantities import ceil_quantity, count_request, render_quantities
from generator.placement.request import PlacementRequest
from topology.model.errors import ConfigError, show
from topology.reports.neighbor_report import API_VERSION
from topology.reports.observed_time import parse_observed_at

LOCAL_HOLDER: Final = "local"
"""The holder where callers are not authenticated."""


@dataclass(frozen=True, slots=True)
class RankRun:
    """Pods of consecutive ranks on one node."""

    node: str | None
    """None: the pods have no node; a gang may run with fewer pods."""
    count: int


@dataclass(frozen=True, slots=True)
class HeldGroup:
    """The places of one group of pods."""

    name: str
    request: tuple[tuple[str, int], ...]
    """Per pod: (resource, quantity), sorted."""
    runs: tuple[RankRun, ...]
    """The runs in the order of ranks."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation, as last written."""

    id: str
    """The UUID of the request that created it."""
    request_hash: str
    """Hash of the whole request; detects an id that is used for another request."""
    holder: str
    """Authenticated name of the caller that reserved."""
    gang: str
    """`NAMESPACE/NAME`, or a bare name."""
    priority: int
    plane: str
    tier: str
    """The tier of the lowest domain that contains the whole gang."""
    is_proved: bool
    groups: tuple[HeldGroup, ...]
    ttl_s: int
    created_at: datetime
    phase: ReservationPhase
    epoch: int
    """Epoch of the leader, or of the server start, that wrote the reservation last."""
    expires_at: datetime | None = None
    """None after the reservation is confirmed."""
    ended_at: datetime | None = None
    message: str = ""
    exclusive: str | None = None
    """A tier: the gang's domains of this tier are reserved for this gang only."""

    @property
    def is_ended(self) -> bool:
        """Whether the stored phase is an end: the reservation holds no nodes at any time."""
        return self.phase in {ReservationPhase.RELEASED, ReservationPhase.EXPIRED}

    def is_held_at(self, now: datetime) -> bool:
        """Return whether nodes are held at a moment, even if the end is not written yet."""
        if self.phase is ReservationPhase.CONFIRMED:
            return True
        is_due = self.expires_at is not None and now >= self.expires_at
        return self.phase is ReservationPhase.RESERVED and not is_due


class ReservationRequest(NamedTuple):
    """A request to reserve nodes for a gang."""

    id: str
    """UUID version 4 in lower case; a repeat returns the same reservation."""
    holder: str
    placement_request: PlacementRequest
    ttl_s: int
    is_trial: bool = False
    """Return what would be reserved, and store nothing."""


class ReservationResult(NamedTuple):
    """The answer to a reservation request."""

    placement: Placement
    reservation: Reservation | None
    """None if the gang is infeasible, and for a trial."""


class RefusalKind(StrEnum):
    """Why a call changed nothing."""

    MALFORMED = "malformed"
    REUSED = "reused"
    """The id was used for another request."""
    UNKNOWN = "unknown"
    ENDED = "ended"
    """A released or expired reservation cannot be confirmed."""
    NOT_HOLDER = "not-holder"
    NOT_LEADER = "not-leader"
    """Another replica leads."""
    NO_LEADER = "no-leader"
    NO_TREE = "no-tree"
    FULL = "full"
    CHANGED = "changed"
    """Another request or writer was first; repeating the call may succeed at once."""
    STORE = "store"
    """The store cannot be read or written at present."""


class Refusal(NamedTuple):
    """The reason a call changed nothing."""

    kind: RefusalKind
    problem: str
    """One line for people."""
    field: str = ""
    """The invalid field of the request; empty if no field is invalid."""
    leader: str = ""
    """`HOST:PORT` of the leader, if another replica leads and other machines can reach it."""


class ReservedTotals(NamedTuple):
    """How much is reserved."""

    phases: Mapping[ReservationPhase, int] = MappingProxyType({})
    amounts: Mapping[str, int] = MappingProxyType({})
    """Held for pods that are not bound yet: quantity by resource."""


_MAX_MESSAGE: Final = 512


def render_spec(reservation: Reservation) -> dict[str, Any]:
    """Return the object with its spec, which never changes after creation.

    An API server replaces the creation time by its own.
    """
    namespace, _, name = reservation.gang.rpartition("/")
    gang = {"namespace": namespace, "name": name} if namespace else {"name": name}
    return {
        "apiVersion": API_VERSION,
        "kind": RESERVATION_KIND,
        "metadata": {
            "name": reservation.id,
            "creationTimestamp": _render_time(reservation.created_at),
        },
        "spec": {
            "requestId": reservation.id,
            "requestHash": reservation.request_hash,
            "holder": reservation.holder,
            "gang": gang,
            "priority": reservation.priority,
            "plane": reservation.plane,
            "tier": reservation.tier,
            **({"exclusive": reservation.exclusive} if reservation.exclusive else {}),
            "proved": reservation.is_proved,
            "groups": [_render_group(group) for group in reservation.groups],
            "ttlSeconds": reservation.ttl_s,
        },
    }


def render_status(reservation: Reservation) -> dict[str, Any]:
    """Return the status: phase, epoch, times and message."""
    status: dict[str, Any] = {"phase": reservation.phase.value, "epoch": reservation.epoch}
    if reservation.expires_at is not None:
        status["expiresAt"] = _render_time(reservation.expires_at)
    if reservation.ended_at is not None:
        status["endedAt"] = _render_time(reservation.ended_at)
    if reservation.message:
        status["message"] = reservation.message[:_MAX_MESSAGE]
    return status


def render_reservation(reservation: Reservation) -> dict[str, Any]:
    """Return the whole object."""
    return render_spec(reservation) | {"status": render_status(reservation)}


def parse_stored_reservation(document: object) -> Reservation | None:
    """Return the reservation of an object; None while the object has no status and holds nothing.

    Raises:
        ConfigError: the object is not a PlacementReservation, or a field is wrong.
    """
    parsed = parse_reservation(document)
    if parsed.metadata.name != parsed.spec.request_id:
        raise ConfigError("metadata.name: expected the value of spec.requestId")
    if parsed.status is None:
        return None
    if parsed.metadata.creation_timestamp is None:
        raise ConfigError("metadata.creationTimestamp: is missing")
    return _build_record(parsed, parsed.status, parsed.metadata.creation_timestamp)


def _build_record(
    document: PlacementReservation, status: ReservationStatus, made_at: str
) -> Reservation:
    spec = document.spec
    namespace = spec.gang.namespace
    return Reservation(
        id=spec.request_id,
        request_hash=spec.request_hash,
        holder=spec.holder,
        gang=f"{namespace}/{spec.gang.name}" if namespace else spec.gang.name,
        priority=spec.priority,
        plane=spec.plane,
        tier=spec.tier,
        exclusive=spec.exclusive,
        is_proved=spec.is_proved,
        groups=tuple(
            HeldGroup(
                group.name,
                _parse_request(group),
                tuple(RankRun(run.node, run.count) for run in group.pods),
            )
            for group in spec.groups
        ),
        ttl_s=spec.ttl_seconds,
        created_at=_parse_time(made_at, "metadata.creationTimestamp"),
        phase=status.phase,
        epoch=status.epoch,
        expires_at=_parse_optional_time(status.expires_at, "status.expiresAt"),
        ended_at=_parse_optional_time(status.ended_at, "status.endedAt"),
        message=status.message,
    )


def _render_group(group: HeldGroup) -> dict[str, Any]:
    return {
        "name": group.name,
        **_render_request(group),
        "pods": [
            {"count": run.count} if run.node is None else {"node": run.node, "count": run.count}
            for run in group.runs
        ],
    }


def _render_request(group: HeldGroup) -> dict[str, Any]:
    """Return the request rounded up to whole numbers, and the quantities that this changed."""
    quantities = render_quantities(group.request)
    exact = {name: row for name, row in quantities.items() if isinstance(row, str)}
    request = {name: ceil_quantity(row) for name, row in quantities.items()}
    return {"request": request} | ({"exactRequest": exact} if exact else {})


def _parse_request(group: ReservedGroup) -> tuple[tuple[str, int], ...]:
    try:
        units = count_request({**group.request, **group.exact_request})
    except ValueError as error:
        raise ConfigError(f"spec.groups: {show(group.name)}: {show(str(error))}") from error
    return tuple(sorted(units.items()))


def _render_time(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _parse_optional_time(text: str | None, path: str) -> datetime | None:
    return None if text is None else _parse_time(text, path)


def _parse_time(text: str, path: str) -> datetime:
    time = parse_observed_at(text)
    if time is None:
        raise ConfigError(f"{path}: expected a time with its zone, got '{show(text)}'")
    return time
