"""Fabric: the object in which the generator says who sweeps, `fabrics.toponaut.io`.

Agents read it and sweep only where they are elected. pydantic lives at this edge only. A reader
takes what it knows and leaves the rest alone: policy stands in the same object, and an agent may
be older than its generator.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, StringConstraints, ValidationError

from topology.model.errors import ConfigError
from topology.model.validation import describe_validation, check_object
from topology.model.wire_model import WireModel
from topology.reports.neighbor_report import (
    API_VERSION,
    Name,
    ReportMetadata,
    Subnet,
)

FABRIC_KIND: Final = "Fabric"
FABRIC_NAME: Final = "default"
"""Of the one object that an agent reads."""
MAX_SWEEPERS: Final = 4096

Label = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")]
"""Name of an RDMA device; it becomes a word of a command."""


class SweepRole(StrEnum):
    """What a node is to a subnet's sweep."""

    ELECTED = "elected"
    """Sweeps."""
    SPARE = "spare"
    """Is elected when the elected one falls silent; does not sweep until then."""


class _Model(WireModel):
    model_config = ConfigDict(extra="ignore")


class Sweeper(_Model):
    """A node, and the port of it that a subnet is swept from."""

    subnet: Subnet
    """Prefix, 16 hex digits."""
    node: Name
    device: Label
    """RDMA device, such as mlx5_0."""
    port: Annotated[int, Field(ge=1, le=255)]
    role: SweepRole


class CountedSweep(_Model):
    """Whose sweep of a subnet counts now; all others withdraw theirs."""

    subnet: Subnet
    node: Name


class FabricStatus(_Model):
    """What the generator found out."""

    sweepers: Annotated[tuple[Sweeper, ...], Field(max_length=MAX_SWEEPERS)] = ()
    """Sorted by subnet and role: one elected node a subnet, and a spare where there is another."""
    sweeps: Annotated[tuple[CountedSweep, ...], Field(max_length=MAX_SWEEPERS)] = ()
    """Sorted by subnet."""


class FabricObject(_Model):
    """The fabric as one object."""

    api_version: Literal["toponaut.io/v1alpha1"] = API_VERSION
    kind: Literal["Fabric"] = FABRIC_KIND
    metadata: ReportMetadata = ReportMetadata(name=FABRIC_NAME)
    status: FabricStatus = FabricStatus()


def parse_fabric(document: object) -> FabricStatus:
    """Return the status in a decoded Fabric object.

    Raises:
        ConfigError: another kind or version, or a field that is wrong; the message names it.
    """
    found = check_object(document, FABRIC_KIND, API_VERSION)
    if isinstance(found, str):
        raise ConfigError(found)
    try:
        return FabricObject.model_validate(found).status
    except ValidationError as error:
        raise ConfigError("; ".join(describe_validation(error))) from error


def render_fabric(status: FabricStatus, base: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the object with a status; what `base` holds beside it stays as it is."""
    kept = dict(base or {})
    told = kept.get("status")
    found = status.model_dump(mode="json", by_alias=True)
    head = {"apiVersion": API_VERSION, "kind": FABRIC_KIND, "metadata": {"name": FABRIC_NAME}}
    return head | kept | {"status": (told if isinstance(told, dict) else {}) | found}
