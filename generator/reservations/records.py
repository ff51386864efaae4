"""Values of the package: reservations, requests, refusals and totals. Pure.

Every outcome that a caller can cause is a value: a reservation, or a refusal with its kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from generator.objects.reservation import ReservationPhase
from generator.placement.answer import Placement
from generator.placement.request import PlacementRequest

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
    """In the order of ranks."""


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
    """Of the lowest domain that contains the whole gang."""
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
        """Return whether it holds its nodes at a moment, even if its end is not written yet."""
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
