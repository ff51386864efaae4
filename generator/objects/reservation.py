"""PlacementReservation: nodes that are kept for a gang until it runs, or until time is up.

`placementreservations.toponaut.io`, cluster-scoped like the nodes. The spec is written once and
never changed; what becomes of it stands in the status. Each writer puts the epoch of its
leadership there, and the API server refuses a smaller one: a leader that was replaced while it
was writing changes nothing any more. `Reservation` without a prefix is Koordinator's.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel

from generator.objects.fabric import Count, Timestamp
from generator.objects.plane_config import PlaneName
from topology.model.errors import ConfigError, show
from topology.model.validation import describe_validation
from topology.model.wire_model import WireModel
from topology.planes.policy import COMPUTE
from topology.reports.neighbor_report import API_VERSION, Name

RESERVATION_KIND: Final = "PlacementReservation"
MAX_PODS: Final = 1_000_000
MAX_PRIORITY: Final = 1 << 53

GroupName = Annotated[str, StringConstraints(min_length=1, max_length=63)]
Quantity = Annotated[int, Field(ge=0, le=1 << 53)]
"""Whole numbers of the resource's base unit; JSON readers keep integers up to 2^53."""


class GangRef(WireModel):
    """Whose pods will run there."""

    namespace: GroupName | None = None
    """None: it belongs to no namespace, so that its pods are not known when they run."""
    name: Name


class PodRun(WireModel):
    """Pods of consecutive ranks on one node."""

    node: Name | None = None
    """None: these pods have no place; a gang may run with fewer."""
    count: Annotated[int, Field(ge=1, le=MAX_PODS)]


class ReservedGroup(WireModel):
    """The places of one group of pods."""

    name: GroupName
    request: Annotated[dict[Name, Quantity], Field(max_length=16)]
    """Of each pod, per resource."""
    pods: Annotated[tuple[PodRun, ...], Field(min_length=1, max_length=8192)]
    """In the order of ranks."""


class ReservationSpec(WireModel):
    """What is reserved, and for whom."""

    request_id: Annotated[
        str,
        StringConstraints(
            pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
        ),
    ]
    """UUID of version 4: the same request, sent again, gets the same reservation."""
    request_hash: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    """Of the whole request: another one with the same id is refused."""
    holder: Name
    """Who asked, by its proven name."""
    gang: GangRef
    priority: Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] = 0
    """Until it is confirmed, gangs of a higher one do not see it."""
    plane: PlaneName = COMPUTE
    tier: GroupName
    """Of the lowest domain around the whole gang."""
    is_proved: Annotated[bool, Field(alias="proved")] = False
    """Whether nothing better existed."""
    groups: Annotated[tuple[ReservedGroup, ...], Field(min_length=1, max_length=128)]
    ttl_seconds: Annotated[int, Field(ge=1, le=86_400)]
    """Without confirmation it expires after this."""


class ReservationPhase(StrEnum):
    """What became of a reservation."""

    RESERVED = "reserved"
    CONFIRMED = "confirmed"
    RELEASED = "released"
    EXPIRED = "expired"


class ReservationStatus(WireModel):
    """What became of it."""

    phase: ReservationPhase
    epoch: Count
    """Of the leader that wrote this; never shrinks."""
    expires_at: Timestamp | None = None
    """None once it is confirmed."""
    ended_at: Timestamp | None = None
    """When it was released, or expired."""
    message: Annotated[str, StringConstraints(max_length=512)] = ""
    """For people."""


class ReservationMetadata(BaseModel):
    """The object's name and age; what else an API server adds is accepted and dropped."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="ignore", frozen=True, populate_by_name=True
    )

    name: Name
    creation_timestamp: Timestamp | None = None


class PlacementReservation(WireModel):
    """The whole object."""

    api_version: Literal["toponaut.io/v1alpha1"] = API_VERSION
    kind: Literal["PlacementReservation"] = RESERVATION_KIND
    metadata: ReservationMetadata
    spec: ReservationSpec
    status: ReservationStatus | None = None
    """None for a moment after it was made."""


def parse_reservation(document: object) -> PlacementReservation:
    """Return the reservation of a decoded object.

    Raises:
        ConfigError: another kind or version, or a field that is unknown or wrong; the message
            names each.
    """
    if not isinstance(document, Mapping):
        raise ConfigError(f"expected a {RESERVATION_KIND}, got {type(document).__name__}")
    try:
        found = PlacementReservation.model_validate(document)
    except ValidationError as error:
        raise ConfigError("; ".join(describe_validation(error))) from error
    names = [group.name for group in found.spec.groups]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"spec.groups: two of them are named '{show(twice)}'")
    return found
