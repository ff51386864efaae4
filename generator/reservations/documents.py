"""Reservations as objects of kind PlacementReservation, both ways; files hold the same. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from generator.objects.reservation import (
    RESERVATION_KIND,
    PlacementReservation,
    ReservationStatus,
    parse_reservation,
)
from generator.reservations.records import HeldGroup, Reservation, RankRun
from topology.model.errors import ConfigError, show
from topology.reports.neighbor_report import API_VERSION

_MAX_MESSAGE: Final = 512


def render_spec(found: Reservation) -> dict[str, Any]:
    """Return the object that is made once, and never changes."""
    namespace, _, name = found.gang.rpartition("/")
    gang = {"namespace": namespace, "name": name} if namespace else {"name": name}
    return {
        "apiVersion": API_VERSION,
        "kind": RESERVATION_KIND,
        "metadata": {"name": found.id},
        "spec": {
            "requestId": found.id,
            "requestHash": found.request_hash,
            "holder": found.holder,
            "gang": gang,
            "priority": found.priority,
            "plane": found.plane,
            "tier": found.tier,
            "proved": found.is_proved,
            "groups": [_render_group(group) for group in found.groups],
            "ttlSeconds": found.ttl_s,
        },
    }


def render_status(found: Reservation) -> dict[str, Any]:
    """Return what became of it."""
    status: dict[str, Any] = {"phase": found.phase.value, "epoch": found.epoch}
    if found.expires_at is not None:
        status["expiresAt"] = _render_time(found.expires_at)
    if found.ended_at is not None:
        status["endedAt"] = _render_time(found.ended_at)
    if found.message:
        status["message"] = found.message[:_MAX_MESSAGE]
    return status


def render_reservation(found: Reservation) -> dict[str, Any]:
    """Return all of it, with the time at which it was made."""
    document = render_spec(found)
    document["metadata"]["creationTimestamp"] = _render_time(found.created_at)
    return document | {"status": render_status(found)}


def parse_stored_reservation(document: object) -> Reservation | None:
    """Return the reservation of an object; None where it has no status yet, and counts for nobody.

    Raises:
        ConfigError: it is none, or a field is wrong.
    """
    found = parse_reservation(document)
    if found.metadata.name != found.spec.request_id:
        raise ConfigError("expected spec.requestId as its name")
    if found.status is None:
        return None
    if found.metadata.creation_timestamp is None:
        raise ConfigError("metadata.creationTimestamp: is missing")
    return _build_record(found, found.status, found.metadata.creation_timestamp)


def _build_record(
    found: PlacementReservation, status: ReservationStatus, made_at: str
) -> Reservation:
    spec = found.spec
    namespace = spec.gang.namespace
    return Reservation(
        id=spec.request_id,
        request_hash=spec.request_hash,
        holder=spec.holder,
        gang=f"{namespace}/{spec.gang.name}" if namespace else spec.gang.name,
        priority=spec.priority,
        plane=spec.plane,
        tier=spec.tier,
        is_proved=spec.is_proved,
        groups=tuple(
            HeldGroup(
                group.name,
                tuple(sorted(group.request.items())),
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
        "request": dict(group.request),
        "pods": [
            {"count": run.count} if run.node is None else {"node": run.node, "count": run.count}
            for run in group.runs
        ],
    }


def _render_time(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _parse_optional_time(text: str | None, path: str) -> datetime | None:
    return None if text is None else _parse_time(text, path)


def _parse_time(text: str, path: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(f"{path}: expected a time, got '{show(text)}'") from error
    if found.tzinfo is None:
        raise ConfigError(f"{path}: expected a time with its zone, got '{show(text)}'")
    return found
