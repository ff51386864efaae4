"""What is reserved, what is asked, and how it may end. Pure.

Every outcome that a caller can bring about is a value: a reservation, or a refusal with its kind.
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
"""The holder where callers are not asked who they are."""


@dataclass(frozen=True, slots=True)
class RankRun:
    """Pods of consecutive ranks on one node."""

    node: str | None
    """None: they have no place; a gang may run with fewer."""
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
    """One reservation, as it was last written."""

    id: str
    """The UUID of the request that made it."""
    request_hash: str
    """Of the whole request, to know it again."""
    holder: str
    """Who asked, by the proven name."""
    gang: str
    """`NAMESPACE/NAME`, or a bare name."""
    priority: int
    plane: str
    tier: str
    """Of the lowest domain around the whole gang."""
    is_proved: bool
    groups: tuple[HeldGroup, ...]
    ttl_s: int
    created_at: datetime
    phase: ReservationPhase
    epoch: int
    """Of the leadership, or the start, that wrote it last."""
    expires_at: datetime | None = None
    """None once it is confirmed."""
    ended_at: datetime | None = None
    message: str = ""

    @property
    def is_ended(self) -> bool:
        """Whether it holds nothing any more, whatever the time."""
        return self.phase in {ReservationPhase.RELEASED, ReservationPhase.EXPIRED}

    def is_held_at(self, now: datetime) -> bool:
        """Return whether it keeps its nodes at a moment, be its end written already or not."""
        if self.phase is ReservationPhase.CONFIRMED:
            return True
        is_due = self.expires_at is not None and now >= self.expires_at
        return self.phase is ReservationPhase.RESERVED and not is_due


class ReservationRequest(NamedTuple):
    """A request to reserve."""

    id: str
    """UUID of version 4 in lower case: sent again, it gets the same reservation."""
    holder: str
    placement_request: PlacementRequest
    ttl_s: int
    is_trial: bool = False
    """Answer what would be reserved, and keep nothing."""


class ReservationResult(NamedTuple):
    """The answer to a wish."""

    placement: Placement
    reservation: Reservation | None
    """None where the gang is infeasible, and for a trial."""


class RefusalKind(StrEnum):
    """Why a call changed nothing."""

    MALFORMED = "malformed"
    REUSED = "reused"
    """The id was used for another request."""
    UNKNOWN = "unknown"
    ENDED = "ended"
    """What is released or expired cannot be confirmed."""
    NOT_HOLDER = "not-holder"
    NOT_LEADER = "not-leader"
    """Another replica leads, and it is known where."""
    NO_LEADER = "no-leader"
    NO_TREE = "no-tree"
    FULL = "full"
    CHANGED = "changed"
    """Somebody else was quicker: the same call may work at once."""
    STORE = "store"
    """The store cannot be read or written at the moment."""


class Refusal(NamedTuple):
    """Why a call changed nothing."""

    kind: RefusalKind
    problem: str
    """One line for people."""
    field: str = ""
    """Of the request, where one is wrong."""
    leader: str = ""
    """`HOST:PORT` of who can grant it, where that is another."""


class ReservedTotals(NamedTuple):
    """How much is reserved."""

    phases: Mapping[ReservationPhase, int] = MappingProxyType({})
    amounts: Mapping[str, int] = MappingProxyType({})
    """Kept for pods that are not bound yet, by resource."""
