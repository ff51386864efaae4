"""Fabric: the object by which people say what they want, and see what is known and withheld.

`fabrics.toponaut.io`, one a cluster, named `default`. Agents read the elected sweepers in its
status by `topology.reports.fabric_status`; the rest is the generator's. The CRD in `daemonset/crds/` says
the same, and a test holds the two equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints, ValidationError

from generator.objects.plane_config import PlaneModel, PlaneName
from topology.model.errors import ConfigError, show
from topology.model.facts import Severity
from topology.model.validation import describe_validation
from topology.model.wire_model import WireModel
from topology.planes.policy import COMPUTE
from topology.reports.fabric_status import FABRIC_KIND, FABRIC_NAME, FabricStatus
from topology.reports.neighbor_report import API_VERSION, ReportMetadata

MAX_TIERS: Final = 16

TierName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z]([-A-Za-z0-9_.]*[A-Za-z0-9])?$", max_length=63)
]
"""Begins with a letter: a number is a tier already."""
Count = Annotated[int, Field(ge=0)]
Percent = Annotated[int, Field(ge=0, le=100)]
Timestamp = Annotated[
    str, Field(min_length=20, max_length=40, json_schema_extra={"format": "date-time"})
]
"""RFC 3339."""
PlanHash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16,64}$")]


class OutputType(StrEnum):
    """What a tree is written as."""

    HYPERNODE = "hypernode"


class Output(WireModel):
    """One form in which a tree is written into the cluster."""

    type: OutputType
    plane: PlaneName = COMPUTE
    """Whose tree."""


class ChangeBudget(WireModel):
    """How much may change at once before a person is asked."""

    nodes_percent: Percent = 10
    """Of all nodes may be moved or removed in one pass."""
    domains_percent: Percent = 25
    """Of the domains of any tier may go in one pass."""
    release_after_seconds: Annotated[int, Field(ge=60, le=604_800)] | None = None
    """What was held back for so long is let through; None: never by time alone."""


class FabricSpec(WireModel):
    """What people want. All of it has a default."""

    planes: Annotated[tuple[PlaneModel, ...], Field(max_length=64)] = ()
    """Networks that the default tells wrongly, in the order in which they are looked at."""
    tier_names: Annotated[tuple[TierName, ...], Field(max_length=MAX_TIERS)] = ()
    """Bottom-up; tiers beyond them keep their own names."""
    outputs: Annotated[tuple[Output, ...], Field(max_length=8)] = (
        Output(type=OutputType.HYPERNODE),
    )
    change_budget: ChangeBudget = ChangeBudget()
    paused: Annotated[bool, Field(strict=True)] = False
    """Nothing is written to outputs meanwhile; what is seen is told all the same."""


class TierCount(WireModel):
    """One tier of the tree of compute."""

    tier: Annotated[int, Field(ge=1, le=MAX_TIERS)]
    name: TierName
    domains: Count
    nodes: Count
    """Nodes that are in a domain of this tier."""


class FindingCount(WireModel):
    """How often one thing is wrong."""

    kind: Annotated[str, StringConstraints(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
    severity: Severity
    count: Count


class HeldPlan(WireModel):
    """A plan that exceeds the budget and waits for approval."""

    hash: PlanHash
    """What an approval names."""
    since: Timestamp
    creates: Count = 0
    updates: Count = 0
    deletes: Count = 0
    moved_nodes: Count = 0
    """Nodes that would leave a domain that they are in."""


class ConditionType(StrEnum):
    """What a condition is about."""

    READY = "Ready"
    """A tree is known, and the outputs say what it says."""
    DEGRADED = "Degraded"
    """Some of the evidence is missing or contradicts itself."""
    CHANGE_BLOCKED = "ChangeBlocked"
    """A plan exceeds the budget."""


class Condition(WireModel):
    """A condition as all of Kubernetes has them."""

    type: ConditionType
    status: Literal["True", "False", "Unknown"]
    observed_generation: Count | None = None
    """Of the spec that it was found for."""
    last_transition_time: Timestamp
    reason: Annotated[
        str,
        StringConstraints(pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", max_length=1024),
    ]
    message: Annotated[str, StringConstraints(max_length=32_768)]


class FabricState(FabricStatus):
    """What the generator found out, beside who sweeps."""

    observed_generation: Count | None = None
    """Of the spec that all this was found for."""
    generation: Count = 0
    """Of the tree: grows with every tree that differs from the last."""
    tiers: Annotated[tuple[TierCount, ...], Field(max_length=MAX_TIERS)] = ()
    """Bottom-up."""
    unplaced: Count = 0
    """Nodes that are in no domain."""
    findings: Annotated[tuple[FindingCount, ...], Field(max_length=128)] = ()
    """Sorted by kind."""
    held: HeldPlan | None = None
    conditions: Annotated[tuple[Condition, ...], Field(max_length=8)] = ()


class FabricDocument(WireModel):
    """The whole object."""

    api_version: Literal["toponaut.io/v1alpha1"] = API_VERSION
    kind: Literal["Fabric"] = FABRIC_KIND
    metadata: ReportMetadata = ReportMetadata(name=FABRIC_NAME)
    spec: FabricSpec = FabricSpec()
    status: FabricState = FabricState()


def parse_fabric_document(document: object) -> FabricDocument:
    """Return the whole Fabric of a decoded object.

    Raises:
        ConfigError: another kind, version or name, or a field that is unknown or wrong; the
            message names each.
    """
    if not isinstance(document, Mapping):
        raise ConfigError(f"expected a {FABRIC_KIND} object, got {type(document).__name__}")
    try:
        found = FabricDocument.model_validate(document)
    except ValidationError as error:
        raise ConfigError("; ".join(describe_validation(error))) from error
    if found.metadata.name != FABRIC_NAME:
        name = show(found.metadata.name)
        raise ConfigError(f"metadata.name: the one {FABRIC_KIND} is named {FABRIC_NAME}: '{name}'")
    _refuse_duplicates("spec.planes", [plane.name for plane in found.spec.planes])
    _refuse_duplicates("spec.tierNames", found.spec.tier_names)
    _refuse_duplicates("spec.outputs", [output.type for output in found.spec.outputs])
    return found


def _refuse_duplicates(field: str, names: Sequence[str]) -> None:
    """Raise where a name is there twice; the API server sees to that by itself, files do not."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"{field}: '{show(twice)}' is there twice")
