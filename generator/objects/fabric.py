"""The Fabric object: people configure Toponaut in its spec and read the result in its status.

`fabrics.toponaut.io`, one per cluster, named `default`. Agents read the elected sweepers in its
status with `topology.reports.fabric_status`; only the generator uses the rest. The CRD in
`daemonset/crds/` has the same fields, and a test keeps both equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from generator.objects.outputs import (
    MAX_OUTPUTS,
    LabelKey,
    Output,
    OutputStatus,
    OutputType,
)
from generator.objects.plane_config import PlaneModel
from topology.model.errors import ConfigError
from topology.model.facts import Severity
from topology.model.tree import TopologyTree, find_tier_name_problem
from topology.model.wire_model import ObjectMetadata, Timestamp, WireModel
from topology.reports.fabric_status import FABRIC_KIND, FABRIC_NAME, FabricStatus
from topology.reports.neighbor_report import API_VERSION

MAX_TIERS: Final = 16

TierName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z]([-A-Za-z0-9_.]*[A-Za-z0-9])?$", max_length=63)
]
"""Begins with a letter, because a number selects a tier by its number."""
Count = Annotated[int, Field(ge=0)]
Percent = Annotated[int, Field(ge=0, le=100)]
NodeName = Annotated[str, StringConstraints(min_length=1, max_length=253)]
PlanHash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16,64}$")]


class ChangeBudget(WireModel):
    """How much may change at once without an approval."""

    nodes_percent: Percent = 10
    """Share of all nodes that may be taken out of a domain within the window."""
    domains_percent: Percent = 25
    """Share of the domains of a tier that may be deleted within the window."""
    window_seconds: Annotated[int, Field(ge=0, le=86_400)] = 3600
    """For how long a change counts; 0: each plan counts alone."""
    release_after_seconds: Annotated[int, Field(ge=60, le=604_800)] | None = None
    """A plan that was held for this long is written; absent: never by time alone."""


class FabricSpec(WireModel):
    """The configuration. Every field has a default."""

    planes: Annotated[tuple[PlaneModel, ...], Field(max_length=64)] = ()
    """Planes that the default rules get wrong; a port is in the first that matches."""
    tier_names: Annotated[tuple[TierName, ...], Field(max_length=MAX_TIERS)] = ()
    """Bottom-up; further tiers keep their default names."""
    outputs: Annotated[tuple[Output, ...], Field(max_length=MAX_OUTPUTS)] = (
        Output.model_construct(type=OutputType.HYPERNODE),
    )
    change_budget: ChangeBudget = ChangeBudget.model_construct()
    sweepers: Annotated[tuple[NodeName, ...], Field(max_length=256)] = ()
    """The only nodes that may sweep; empty: any node that is elected."""
    paused: Annotated[bool, Field(strict=True)] = False
    """While true, no output is written; the status is still updated."""


class TierCount(WireModel):
    """The size of one tier of the tree."""

    tier: Annotated[int, Field(ge=1, le=MAX_TIERS)]
    name: TierName
    domains: Count
    nodes: Count
    """Nodes in a domain of this tier."""


class FindingCount(WireModel):
    """The number of findings of one kind and severity."""

    kind: Annotated[str, StringConstraints(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
    severity: Severity
    count: Count


class HeldPlan(WireModel):
    """A plan that exceeds the budget and waits for approval."""

    hash: PlanHash
    """Names the plan in an approval."""
    since: Timestamp
    """When the plan was first held."""
    creates: Count = 0
    updates: Count = 0
    deletes: Count = 0
    moved_nodes: Count = 0
    """Nodes that would leave one of their domains."""


class ConditionType(StrEnum):
    """The subject of a condition."""

    READY = "Ready"
    """A tree is known, and the outputs agree with it."""
    DEGRADED = "Degraded"
    """Some of the data is missing or contradictory."""
    CHANGE_BLOCKED = "ChangeBlocked"
    """A plan is held."""
    OUTPUTS_WRITTEN = "OutputsWritten"
    """Every output agrees with the tree; absent if there is none."""


class Condition(WireModel):
    """A condition with the usual fields of Kubernetes conditions."""

    type: ConditionType
    status: Literal["True", "False", "Unknown"]
    observed_generation: Count | None = None
    """Generation of the spec that the condition is about."""
    last_transition_time: Timestamp
    reason: Annotated[
        str,
        StringConstraints(pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", max_length=1024),
    ]
    message: Annotated[str, StringConstraints(max_length=32_768)]


class FabricState(FabricStatus):
    """The status: the elected sweepers, and the result of the last round."""

    observed_generation: Count | None = None
    """Generation of the spec that this status is about."""
    generation: Count = 0
    """Generation of the tree: grows with every tree that differs from the last."""
    tiers: Annotated[tuple[TierCount, ...], Field(max_length=MAX_TIERS)] = ()
    """Bottom-up."""
    unplaced: Count = 0
    """Number of nodes in no domain."""
    findings: Annotated[tuple[FindingCount, ...], Field(max_length=128)] = ()
    """Sorted by kind."""
    held: HeldPlan | None = None
    """The held plan; absent if no plan is held."""
    outputs: Annotated[tuple[OutputStatus, ...], Field(max_length=MAX_OUTPUTS)] = ()
    """The state of each output; also of those that are still removed."""
    label_keys: Annotated[tuple[LabelKey, ...], Field(max_length=MAX_TIERS)] = ()
    """The label key of each tier, bottom-up; empty if nodes are not labelled."""
    conditions: Annotated[tuple[Condition, ...], Field(max_length=8)] = ()


class FabricDocument(WireModel):
    """The whole object."""

    api_version: Literal["toponaut.io/v1alpha1"] = API_VERSION
    kind: Literal["Fabric"] = FABRIC_KIND
    metadata: ObjectMetadata = ObjectMetadata.model_construct(name=FABRIC_NAME)
    spec: FabricSpec = FabricSpec.model_construct()
    status: FabricState = FabricState.model_construct()


def with_label_keys(tree: TopologyTree, fabric: Mapping[str, Any] | None) -> TopologyTree:
    """Return a tree that also knows its tiers by the label keys in the status of a Fabric object.

    The same tree if the status is of a tree with another number of tiers, or has no keys.
    """
    status = fabric.get("status") if fabric else None
    keys = status.get("labelKeys") if isinstance(status, Mapping) else None
    if not isinstance(keys, list | tuple) or not all(isinstance(key, str) for key in keys):
        return tree
    if not keys or len(keys) != len(tree.tiers):
        return tree
    return replace(tree, origin=tree.origin._replace(other_names=tuple((key,) for key in keys)))


def check_tier_names(names: Sequence[str]) -> None:
    """Refuse names that cannot be the names of tiers.

    Raises:
        ConfigError: a name is reserved or listed twice.
    """
    problem = find_tier_name_problem(names)
    if problem is not None:
        raise ConfigError(problem)
