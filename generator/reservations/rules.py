"""What becomes of a reservation: one table of steps, and what is asked before each. Pure.

    reserved ──confirm──▶ confirmed ──release──▶ released
       │ └─────release──────────────────────────────▲
       └──expire──▶ expired

Steps that were made already are no error: who repeats a call gets the answer of the first. Time
is an argument: what is due has expired, be that written yet or not.
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

from generator.objects.reservation import MAX_PRIORITY, ReservationPhase
from generator.placement.answer import Placement
from generator.placement.request import EvictionPolicy, PlacementRequest
from generator.reservations.records import (
    HeldGroup,
    Refusal,
    RefusalKind,
    Reservation,
    RankRun,
    ReservationRequest,
)
from topology.model.errors import show

DEFAULT_TTL_S: Final = 60
MAX_TTL_S: Final = 86_400
MAX_GROUPS: Final = 128
MAX_RESOURCES: Final = 16
MAX_RUNS: Final = 8192
"""Of one group, as its kind says."""
MAX_RUNS_BYTES: Final = 1 << 20
"""Of all runs as text: etcd takes objects of 1.5 MiB."""
MAX_PLACES_BYTES: Final = 3 << 20
"""Of the names of the nodes of all pods: an answer has 4 MiB at most."""
_RUN_BYTES: Final = 32
RETENTION_S: Final = 600
"""An ended reservation is remembered so long, or for its TTL if that is longer."""
MAX_HELD: Final = 4096
MAX_RESERVATIONS: Final = 8192
"""Ended ones among them."""
_UUID4: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_GANG: Final = re.compile(r"(?:[^/]{1,63}/)?[^/]{1,253}")
_PLANE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_MAX_NAME: Final = 63
_UNNAMED: Final = "self"


class Step(StrEnum):
    """What can be done to a reservation."""

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
"""To which phase a step leads from which; there is no other step."""


def apply_step(
    found: Reservation, step: Step, *, now: datetime, epoch: int, message: str = ""
) -> Reservation | Refusal:
    """Return a reservation after a step, the very same where the step was made already.

    Args:
        found: as it was last written.
        step: that is wished.
        now: with a time zone.
        epoch: of who writes.
        message: why, for people.
    """
    if step is not Step.EXPIRE:
        found = expire_if_due(found, now=now, epoch=epoch)
    to = STEPS.get((found.phase, step))
    if to is None:
        problem = f"reservation {found.id} is {found.phase.value}: reserve again"
        return Refusal(RefusalKind.ENDED, problem)
    if to is found.phase:
        return found
    has_ended = to in {_RELEASED, _EXPIRED}
    return replace(
        found,
        phase=to,
        epoch=epoch,
        expires_at=None if to is _CONFIRMED else found.expires_at,
        ended_at=now if has_ended else None,
        message=message,
    )


def expire_if_due(found: Reservation, *, now: datetime, epoch: int) -> Reservation:
    """Return a reservation as it is at a moment: expired where its time is up."""
    if found.is_ended or found.is_held_at(now):
        return found
    return replace(found, phase=_EXPIRED, epoch=epoch, ended_at=found.expires_at)


def is_forgettable(found: Reservation, now: datetime) -> bool:
    """Return whether an ended reservation need not be remembered any longer."""
    if not found.is_ended or found.ended_at is None:
        return False
    return now >= found.ended_at + timedelta(seconds=max(RETENTION_S, found.ttl_s))


def find_refusal(wish: ReservationRequest) -> Refusal | None:
    """Return why a wish makes no sense, None where it does; O(groups)."""
    for field, problem in _find_faults(wish):
        return Refusal(RefusalKind.MALFORMED, problem, field)
    return None


def _find_faults(wish: ReservationRequest) -> list[tuple[str, str]]:
    request = wish.placement_request
    faults = [
        ("request_id", "expected a UUID of version 4 in lower case", _UUID4, wish.id),
        ("gang", "expected NAMESPACE/NAME, or a name without slashes", _GANG, request.gang),
        ("plane", "expected the name of a network", _PLANE, request.plane),
    ]
    found = [
        (field, f"{problem}, got '{show(text)}'")
        for field, problem, pattern, text in faults
        if not (pattern.fullmatch(text) and text.isprintable())
    ]
    if request.gang == _UNNAMED:
        found.append(("gang", "expected a name: nodes are kept for a gang that can be told apart"))
    if not 1 <= wish.ttl_s <= MAX_TTL_S:
        found.append(("ttl_s", f"expected 1 to {MAX_TTL_S} seconds, got {wish.ttl_s}"))
    if abs(request.priority) > MAX_PRIORITY:
        found.append(("priority", f"expected at most {MAX_PRIORITY}, got {request.priority}"))
    if request.eviction is not EvictionPolicy.NEVER:
        found.append(("preemption", "expected never: a reservation evicts nobody"))
    if len(request.groups) > MAX_GROUPS:
        found.append(("groups", f"expected at most {MAX_GROUPS}, got {len(request.groups)}"))
    return found + _find_group_faults(request)


def _find_group_faults(request: PlacementRequest) -> list[tuple[str, str]]:
    found = []
    for at, group in enumerate(request.groups):
        if len(group.name) > _MAX_NAME or not group.name.isprintable():
            problem = f"expected at most {_MAX_NAME} printable characters"
            found.append((f"groups[{at}].name", problem))
        if len(group.request) > MAX_RESOURCES:
            problem = f"expected at most {MAX_RESOURCES} resources, got {len(group.request)}"
            found.append((f"groups[{at}].request", problem))
    return found


def hash_request(wish: ReservationRequest) -> str:
    """Return what tells a wish from another with the same id, as 64 hexadecimal digits.

    Its deadline is no part of it: who repeats a call has less time left.
    """
    told = (replace(wish.placement_request, deadline_s=None), wish.ttl_s, wish.holder)
    return hashlib.sha256(json.dumps(_to_json_value(told), sort_keys=True).encode()).hexdigest()


def _to_json_value(value: Any) -> Any:  # noqa: ANN401 - of any type that a request holds
    """Return a value as JSON can say it, the same in every process."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {one.name: _to_json_value(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, frozenset):
        return sorted(_to_json_value(one) for one in value)
    if isinstance(value, tuple):
        return [_to_json_value(one) for one in value]
    return value


def build_reservation(
    wish: ReservationRequest, placement: Placement, *, now: datetime, epoch: int
) -> Reservation | Refusal:
    """Return the reservation that a placement comes to."""
    groups = tuple(
        HeldGroup(group.name, group.request, _group_runs(placement.assignment[group.name]))
        for group in wish.placement_request.groups
    )
    problem = _find_size_problem(groups)
    if problem:
        return Refusal(RefusalKind.MALFORMED, problem, "groups")
    return Reservation(
        id=wish.id,
        request_hash=hash_request(wish),
        holder=wish.holder,
        gang=wish.placement_request.gang,
        priority=wish.placement_request.priority,
        plane=wish.placement_request.plane,
        tier=placement.tier or "",
        is_proved=placement.is_proved,
        groups=groups,
        ttl_s=wish.ttl_s,
        created_at=now,
        phase=_RESERVED,
        epoch=epoch,
        expires_at=now + timedelta(seconds=wish.ttl_s),
    )


def _find_size_problem(groups: tuple[HeldGroup, ...]) -> str:
    """Return why places cannot be kept, or not be told, empty where they can."""
    runs = [run for group in groups for run in group.runs]
    most = max(len(group.runs) for group in groups)
    if most > MAX_RUNS:
        return f"a group lies on {most} runs of nodes, more than {MAX_RUNS}"
    if sum(len(run.node or "") + _RUN_BYTES for run in runs) > MAX_RUNS_BYTES:
        return f"the places take more than {MAX_RUNS_BYTES} bytes to keep"
    if sum(run.count * (len(run.node or "") + 2) for run in runs) > MAX_PLACES_BYTES:
        return f"the places take more than {MAX_PLACES_BYTES} bytes to tell"
    return ""


def _group_runs(nodes: tuple[str | None, ...]) -> tuple[RankRun, ...]:
    return tuple(RankRun(node, sum(1 for _ in pods)) for node, pods in groupby(nodes))


def restore_placement(found: Reservation) -> Placement:
    """Return the placement that a reservation keeps: what is the same each time it is told."""
    return Placement(
        is_feasible=True,
        assignment=MappingProxyType(
            {
                group.name: tuple(run.node for run in group.runs for _ in range(run.count))
                for group in found.groups
            }
        ),
        tier=found.tier,
        objective=MappingProxyType({}),
        is_proved=found.is_proved,
    )
