"""Phases of a reservation, the steps between them, and the limits of a request. Pure.

    reserved ──confirm──▶ confirmed ──release──▶ released
       │ └─────release──────────────────────────────▲
       └──expire──▶ expired

A repeated step is not an error: a repeated call gets the same answer as the first. Time is an
argument: a reservation past its time counts as expired, even if that is not written yet.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, StrEnum
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final

from generator.objects.reservation import MAX_PRIORITY, MAX_TTL_S, ReservationPhase
from generator.placement.answer import Placement
from generator.placement.groups import GangGroup
from generator.placement.node_selection import Toleration
from generator.placement.quantities import render_quantity
from generator.placement.request import EvictionPolicy, PlacementRequest, PresetOptions
from generator.reservations.records import (
    HeldGroup,
    RankRun,
    Refusal,
    RefusalKind,
    Reservation,
    ReservationRequest,
)
from topology.model.errors import show

DEFAULT_TTL_S: Final = 60
MAX_GROUPS: Final = 128
MAX_RESOURCES: Final = 16
MAX_RUNS: Final = 8192
"""Runs of one group; the PlacementReservation schema sets the same limit."""
MAX_RUNS_BYTES: Final = 1 << 20
"""Size of all runs as text: etcd limits an object to 1.5 MiB."""
MAX_PLACES_BYTES: Final = 3 << 20
"""Size of the node names of all pods: an answer has 4 MiB at most."""
_RUN_BYTES: Final = 32
RETENTION_S: Final = 600
"""An ended reservation is kept for this time, or for its TTL if that is longer."""
MAX_HELD: Final = 4096
"""Room of the held reservations of all holders; one holder has at most as much as is left."""
MAX_RESERVATIONS: Final = 8192
"""Room of held and ended reservations together; ended ones make room for new ones."""
_ROOM_BYTES: Final = 4096
"""A reservation takes the room of one more for each so many bytes: 4,096 of the largest would take
gigabytes."""
_UUID4: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_GANG: Final = re.compile(r"(?:[^/]{1,63}/)?[^/]{1,253}")
_PLANE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_MAX_NAME: Final = 63
_UNNAMED: Final = "self"


class Step(StrEnum):
    """A transition of a reservation."""

    CONFIRM = "confirm"
    RELEASE = "release"
    EXPIRE = "expire"


_RESERVED, _CONFIRMED = ReservationPhase.RESERVED, ReservationPhase.CONFIRMED
_RELEASED, _EXPIRED = ReservationPhase.RELEASED, ReservationPhase.EXPIRED
STEPS: Final[Mapping[tuple[ReservationPhase, Step], ReservationPhase]] = MappingProxyType(
    {
        (_RESERVED, Step.CONFIRM): _CONFIRMED,
        (_CONFIRMED, Step.CONFIRM): _CONFIRMED,
        (_RESERVED, Step.RELEASE): _RELEASED,
        (_CONFIRMED, Step.RELEASE): _RELEASED,
        (_RELEASED, Step.RELEASE): _RELEASED,
        (_EXPIRED, Step.RELEASE): _EXPIRED,
        (_RESERVED, Step.EXPIRE): _EXPIRED,
    }
)
"""The phase after a step, by present phase; all other steps are refused."""


def apply_step(
    reservation: Reservation, step: Step, *, now: datetime, epoch: int, message: str = ""
) -> Reservation | Refusal:
    """Return a reservation after a step, the identical object if the step was made already.

    Args:
        reservation: the reservation as last written.
        step: the step to make.
        now: the current time, with a time zone.
        epoch: the epoch of the writer.
        message: the reason, for people.
    """
    if step is not Step.EXPIRE:
        reservation = expire_if_due(reservation, now=now, epoch=epoch)
    to = STEPS.get((reservation.phase, step))
    if to is None:
        problem = f"reservation {reservation.id} is {reservation.phase.value}: reserve again"
        return Refusal(RefusalKind.ENDED, problem)
    if to is reservation.phase:
        return reservation
    has_ended = to in {_RELEASED, _EXPIRED}
    return replace(
        reservation,
        phase=to,
        epoch=epoch,
        expires_at=None if to is _CONFIRMED else reservation.expires_at,
        ended_at=now if has_ended else None,
        message=message,
    )


def expire_if_due(reservation: Reservation, *, now: datetime, epoch: int) -> Reservation:
    """Return a reservation in its phase at a moment: expired if its time is up."""
    if reservation.is_ended or reservation.is_held_at(now):
        return reservation
    return replace(reservation, phase=_EXPIRED, epoch=epoch, ended_at=reservation.expires_at)


def is_forgettable(reservation: Reservation, now: datetime) -> bool:
    """Return whether an ended reservation may be deleted."""
    if not reservation.is_ended or reservation.ended_at is None:
        return False
    return now >= reservation.ended_at + timedelta(seconds=max(RETENTION_S, reservation.ttl_s))


def find_refusal(request: ReservationRequest) -> Refusal | None:
    """Return why a request is malformed, None if it is valid; O(groups)."""
    for field, problem in _find_faults(request):
        return Refusal(RefusalKind.MALFORMED, problem, field)
    return None


def _find_faults(request: ReservationRequest) -> list[tuple[str, str]]:
    gang_request = request.placement_request
    checks = [
        ("request_id", "expected a UUID of version 4 in lower case", _UUID4, request.id),
        ("gang", "expected NAMESPACE/NAME, or a name without slashes", _GANG, gang_request.gang),
        ("plane", "expected the name of a network", _PLANE, gang_request.plane),
    ]
    faults = [
        (field, f"{problem}, got '{show(text)}'")
        for field, problem, pattern, text in checks
        if not (pattern.fullmatch(text) and text.isprintable())
    ]
    if gang_request.gang == _UNNAMED:
        faults.append(("gang", "expected a name: 'self' does not identify a gang"))
    if not 1 <= request.ttl_s <= MAX_TTL_S:
        faults.append(("ttl_s", f"expected 1 to {MAX_TTL_S} seconds, got {request.ttl_s}"))
    if abs(gang_request.priority) > MAX_PRIORITY:
        faults.append(("priority", f"expected at most {MAX_PRIORITY}, got {gang_request.priority}"))
    if gang_request.eviction is not EvictionPolicy.NEVER:
        faults.append(("preemption", "expected never: a reservation preempts no pods"))
    if len(gang_request.groups) > MAX_GROUPS:
        faults.append(("groups", f"expected at most {MAX_GROUPS}, got {len(gang_request.groups)}"))
    return faults + _find_group_faults(gang_request)


def _find_group_faults(request: PlacementRequest) -> list[tuple[str, str]]:
    faults = []
    for group_index, group in enumerate(request.groups):
        if len(group.name) > _MAX_NAME or not group.name.isprintable():
            problem = f"expected at most {_MAX_NAME} printable characters"
            faults.append((f"groups[{group_index}].name", problem))
        if len(group.request) > MAX_RESOURCES:
            problem = f"expected at most {MAX_RESOURCES} resources, got {len(group.request)}"
            faults.append((f"groups[{group_index}].request", problem))
    return faults


_LATER_FIELDS: Final = frozenset({"affinity", "exclusive", "max_per_node", "spread"})
_HASHED_NAMES: Final = {"preferred_labels": "wishes"}
"""By field: the name that earlier versions gave it. Stored hashes depend on it."""


def hash_request(request: ReservationRequest) -> str:
    """Return a digest of a request, as 64 hexadecimal digits.

    It detects an id that is used for two requests. The deadline is left out, because a repeated
    call has less time left.
    """
    hashed = (replace(request.placement_request, deadline_s=None), request.ttl_s, request.holder)
    return hashlib.sha256(json.dumps(_to_json_value(hashed), sort_keys=True).encode()).hexdigest()


def _to_json_value(value: Any) -> Any:  # noqa: ANN401 - of any type that a request holds
    """Return a value in a JSON form that is the same in every process."""
    if isinstance(value, Toleration) and value.text:  # earlier versions knew the text form only
        return value.text
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        row = {
            _HASHED_NAMES.get(item.name, item.name): _to_json_value(getattr(value, item.name))
            for item in fields(value)
        }
        for name in _LATER_FIELDS & row.keys():
            if not row[name]:  # earlier versions had no such field, and hashed the rest
                del row[name]
        if isinstance(value, GangGroup):  # as the caller wrote it, in whatever units it is counted
            row["request"] = [[name, render_quantity(name, num)] for name, num in value.request]
        return row
    if isinstance(value, PresetOptions) and not value.sample:
        value = value[:-1]  # earlier versions had no sample, and hashed the rest
    if isinstance(value, frozenset):
        return sorted(map(_to_json_value, value), key=lambda item: (isinstance(item, list), item))
    if isinstance(value, tuple):
        return [_to_json_value(item) for item in value]
    return value


def build_reservation(
    request: ReservationRequest, placement: Placement, *, now: datetime, epoch: int
) -> Reservation | Refusal:
    """Return the reservation of a placement, or a refusal if it is too large."""
    groups = tuple(
        HeldGroup(group.name, group.request, _group_runs(placement.assignment[group.name]))
        for group in request.placement_request.groups
        if group.count
    )
    problem = _find_size_problem(groups)
    if problem:
        return Refusal(RefusalKind.MALFORMED, problem, "groups")
    return Reservation(
        id=request.id,
        request_hash=hash_request(request),
        holder=request.holder,
        gang=request.placement_request.gang,
        priority=request.placement_request.priority,
        plane=request.placement_request.plane,
        tier=placement.tier or "",
        exclusive=request.placement_request.exclusive,
        is_proved=placement.is_proved,
        groups=groups,
        ttl_s=request.ttl_s,
        created_at=now,
        phase=_RESERVED,
        epoch=epoch,
        expires_at=now + timedelta(seconds=request.ttl_s),
    )


def _find_size_problem(groups: tuple[HeldGroup, ...]) -> str:
    """Return why the node list is too large to store or to send; empty if it is not."""
    runs = [run for group in groups for run in group.runs]
    max_runs = max(len(group.runs) for group in groups)
    if max_runs > MAX_RUNS:
        return f"a group needs {max_runs} runs of nodes, more than {MAX_RUNS}"
    if sum(len(run.node or "") + _RUN_BYTES for run in runs) > MAX_RUNS_BYTES:
        return f"the node list takes more than {MAX_RUNS_BYTES} bytes to store"
    if sum(run.count * (len(run.node or "") + 2) for run in runs) > MAX_PLACES_BYTES:
        return f"the node list takes more than {MAX_PLACES_BYTES} bytes to send"
    return ""


def compute_room(reservation: Reservation) -> int:
    """Return the room that a reservation takes in the table: 1, and more if it is large."""
    num_runs = sum(len(group.runs) for group in reservation.groups)
    names = [name for group in reservation.groups for name, _ in group.request]
    return 1 + (_RUN_BYTES * (num_runs + len(names)) + sum(map(len, names))) // _ROOM_BYTES


def _group_runs(nodes: tuple[str | None, ...]) -> tuple[RankRun, ...]:
    return tuple(RankRun(node, sum(1 for _ in pods)) for node, pods in groupby(nodes))


def restore_placement(reservation: Reservation) -> Placement:
    """Return the placement of a reservation, without the details that are not stored."""
    return Placement(
        is_feasible=True,
        assignment=MappingProxyType(
            {
                group.name: tuple(run.node for run in group.runs for _ in range(run.count))
                for group in reservation.groups
            }
        ),
        tier=reservation.tier,
        objective=MappingProxyType({}),
        is_proved=reservation.is_proved,
    )
