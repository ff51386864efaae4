"""Status of the Fabric object, `fabrics.toponaut.io`: which node sweeps which subnet.

The generator writes the status. Agents read it and sweep only the subnets that they are elected
for. A reader ignores fields that it does not know: the same object holds the policy, and an agent
may be older than its generator. pydantic is used at this edge only.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, StringConstraints, ValidationError

from topology.model.errors import ConfigError
from topology.model.validation import check_object, describe_validation
from topology.model.wire_model import Name, ObjectMetadata, WireModel
from topology.reports.neighbor_report import API_VERSION

FABRIC_KIND: Final = "Fabric"
FABRIC_NAME: Final = "default"
"""Name of the only Fabric object that an agent reads."""
MAX_SWEEPERS: Final = 4096

Subnet = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
Label = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")]
"""Name of an RDMA device; it becomes an argument of a command."""


class SweepRole(StrEnum):
    """The role of a node in the sweep of a subnet."""

    ELECTED = "elected"
    """The node sweeps, and its sweep is used."""
    SPARE = "spare"
    """The node sweeps too: its sweep confirms that of the elected node, and replaces it if the
    elected node falls silent."""


class _Model(WireModel):
    model_config = ConfigDict(extra="ignore")


class Sweeper(_Model):
    """A node, and its port from which it sweeps a subnet."""

    subnet: Subnet
    """Prefix, 16 hex digits."""
    node: Name
    device: Label
    """RDMA device, such as mlx5_0."""
    port: Annotated[int, Field(ge=1, le=255)]
    role: SweepRole


class CountedSweep(_Model):
    """The node whose sweep of a subnet counts; nodes that are not elected withdraw theirs."""

    subnet: Subnet
    node: Name


class SweepWitness(_Model):
    """The node whose sweep of a subnet the sweep that counts was last compared with.

    It keeps its sweep, also if it is elected no longer, until another sweeper has swept.
    """

    subnet: Subnet
    node: Name


class FabricStatus(_Model):
    """The part of the Fabric status that agents read."""

    sweepers: Annotated[tuple[Sweeper, ...], Field(max_length=MAX_SWEEPERS)] = ()
    """Sorted by subnet and role: per subnet one elected node, and a spare if there is another."""
    sweeps: Annotated[tuple[CountedSweep, ...], Field(max_length=MAX_SWEEPERS)] = ()
    """Sorted by subnet."""
    witnesses: Annotated[tuple[SweepWitness, ...], Field(max_length=MAX_SWEEPERS)] = ()
    """Sorted by subnet."""


class FabricObject(_Model):
    """The Fabric object, as far as agents read it."""

    api_version: Literal["toponaut.io/v1alpha1"] = API_VERSION
    kind: Literal["Fabric"] = FABRIC_KIND
    metadata: ObjectMetadata = ObjectMetadata.model_construct(name=FABRIC_NAME)
    status: FabricStatus = FabricStatus.model_construct()


def parse_fabric(document: object) -> FabricStatus:
    """Return the status in a decoded Fabric object.

    Raises:
        ConfigError: another kind or version, or a wrong field; the message names the field.
    """
    document_or_problem = check_object(document, FABRIC_KIND, API_VERSION)
    if isinstance(document_or_problem, str):
        raise ConfigError(document_or_problem)
    try:
        return FabricObject.model_validate(document_or_problem).status
    except ValidationError as error:
        raise ConfigError("; ".join(describe_validation(error))) from error


def fabric_head() -> dict[str, Any]:
    """Return the fields that every Fabric object has: apiVersion, kind and metadata."""
    return {"apiVersion": API_VERSION, "kind": FABRIC_KIND, "metadata": {"name": FABRIC_NAME}}


def render_fabric(status: FabricStatus, base: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the object with a status; all other fields of `base` stay unchanged."""
    rendered = dict(base or {})
    old_status = rendered.get("status")
    status_document = status.model_dump(mode="json", by_alias=True)
    return (
        fabric_head()
        | rendered
        | {"status": (old_status if isinstance(old_status, dict) else {}) | status_document}
    )
