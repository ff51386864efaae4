"""The PlacementReservation object: nodes reserved for a gang until it runs, or until it expires.

`placementreservations.toponaut.io`, cluster-scoped like the nodes. The spec is written once and
never changed; the status holds the phase. Each writer puts the epoch of its leadership into the
status, and the API server refuses a smaller one: so a late write of a former leader has no
effect. The kind has a prefix because `Reservation` is Koordinator's.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel

from generator.objects.fabric import Count
from generator.objects.plane_config import PlaneName
from topology.model.errors import ConfigError, show
from topology.model.validation import describe_validation
from topology.model.wire_model import DEFERRED, Name, Timestamp, WireModel
from topology.planes.policy import COMPUTE
from topology.reports.neighbor_report import API_VERSION

RESERVATION_KIND: Final = "PlacementReservation"
MAX_PODS: Final = 1_000_000
MAX_PRIORITY: Final = 1 << 53
MAX_TTL_S: Final = 86_400

ExactQuantity = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,16}m$")]
GroupName = Annotated[str, StringConstraints(min_length=1, max_length=63)]
Quantity = Annotated[int, Field(ge=0, le=1 << 53)]
"""Whole numbers of the resource's base unit; JSON readers keep integers up to 2^53."""


class GangRef(WireModel):
    """The gang whose pods will run on the reserved nodes."""

    namespace: GroupName | None = None
    """Absent: the gang has no namespace, so its running pods cannot be recognised."""
    name: Name


class PodRun(WireModel):
    """Pods of consecutive ranks on one node."""

    node: Name | None = None
    """Absent: these pods have no node; the gang may run with fewer pods."""
    count: Annotated[int, Field(ge=1, le=MAX_PODS)]


class ReservedGroup(WireModel):
    """The reserved nodes of one group of pods."""

    name: GroupName
    request: Annotated[dict[Name, Quantity], Field(max_length=16)]
    """The request of each pod, per resource; what is not whole is rounded up."""
    exact_request: Annotated[dict[Name, ExactQuantity], Field(max_length=16)] = Field(
        default_factory=dict
    )
    """The requests that are not whole in base units, such as `7900m` of cpu."""
    pods: Annotated[tuple[PodRun, ...], Field(min_length=1, max_length=8192)]
    """The pods in the order of ranks."""


class ReservationSpec(WireModel):
    """The reserved nodes, the gang and the holder."""

    request_id: Annotated[
        str,
        StringConstraints(
            pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
        ),
    ]
    """A UUID of version 4: the same request, sent again, gets the same reservation."""
    request_hash: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    """Hash of the whole request: a different request with the same id is refused."""
    holder: Name
    """The authenticated name of the client that reserved."""
    gang: GangRef
    priority: Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] = 0
    """Until it is confirmed, gangs of higher priority ignore this reservation."""
    plane: PlaneName = COMPUTE
    """The plane of the tree that the gang was placed by."""
    tier: GroupName
    """Name of the tier of the lowest domain that contains the whole gang."""
    exclusive: GroupName | None = None
    """A tier: the gang's domains of this tier are kept for this gang only."""
    is_proved: Annotated[bool, Field(alias="proved")] = False
    """Whether it is proved that no better placement existed."""
    groups: Annotated[tuple[ReservedGroup, ...], Field(min_length=1, max_length=128)]
    ttl_seconds: Annotated[int, Field(ge=1, le=MAX_TTL_S)]
    """The reservation expires after this time unless it is confirmed."""


class ReservationPhase(StrEnum):
    """The phase of a reservation's life."""

    RESERVED = "reserved"
    CONFIRMED = "confirmed"
    RELEASED = "released"
    EXPIRED = "expired"


class ReservationStatus(WireModel):
    """The phase of a reservation, and its times."""

    phase: ReservationPhase
    epoch: Count
    """Epoch of the leader that wrote this status; never decreases."""
    expires_at: Timestamp | None = None
    """Absent once the reservation is confirmed."""
    ended_at: Timestamp | None = None
    """When the reservation was released or expired."""
    message: Annotated[str, StringConstraints(max_length=512)] = ""
    """For people."""


class ReservationMetadata(BaseModel):
    """The object's name and age; all other metadata of an API server is ignored."""

    model_config = ConfigDict(
        **DEFERRED, alias_generator=to_camel, extra="ignore", frozen=True, populate_by_name=True
    )

    name: Name
    creation_timestamp: Timestamp | None = None


class PlacementReservation(WireModel):
    """A reservation of nodes for a gang."""

    api_version: Literal["toponaut.io/v1alpha1"] = API_VERSION
    kind: Literal["PlacementReservation"] = RESERVATION_KIND
    metadata: ReservationMetadata
    spec: ReservationSpec
    status: ReservationStatus | None = None
    """Absent for a moment after the object is created."""


def parse_reservation(document: object) -> PlacementReservation:
    """Return the reservation of a decoded object.

    Raises:
        ConfigError: another kind or version, or a field that is unknown or wrong; the message
            names each.
    """
    if not isinstance(document, Mapping):
        raise ConfigError(f"expected a {RESERVATION_KIND}, got {type(document).__name__}")
    try:
        reservation = PlacementReservation.model_validate(document)
    except ValidationError as error:
        raise ConfigError("; ".join(describe_validation(error))) from error
    names = [group.name for group in reservation.spec.groups]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise ConfigError(f"spec.groups: two groups are named '{show(duplicate)}'")
    return reservation
