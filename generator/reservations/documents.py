"""PlacementReservation objects from reservations, and back. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from generator.objects.reservation import (
    RESERVATION_KIND,
    PlacementReservation,
    ReservationStatus,
    ReservedGroup,
    parse_reservation,
)
from generator.placement.quantities import ceil_quantity, count_request, render_quantities
from generator.reservations.records import HeldGroup, RankRun, Reservation
from topology.model.errors import ConfigError, show
from topology.reports.neighbor_report import API_VERSION
from topology.reports.observed_time import parse_observed_at

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
