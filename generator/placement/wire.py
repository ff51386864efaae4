"""The written form of a placement request: what pydantic checks at the edge, and nothing more."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from generator.placement.presets import Preset

MAX_PODS = 1_000_000
MAX_GROUPS = 256
"""Each may be a kind of pod of its own, which costs arrays over all nodes."""
MAX_QUANTITY = 2**53
"""Largest quantity that JSON readers keep exact; sums over a cluster stay below 64 bits."""


def _tier_name(value: object) -> object:
    """Let an integer stand for a tier; a boolean, which is one to Python, stays wrong."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Tier = Annotated[str, BeforeValidator(_tier_name), Field(min_length=1)]
Name = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1, le=MAX_PODS, strict=True)]
Natural = Annotated[int, Field(ge=0, le=MAX_PODS, strict=True)]
Weight = Annotated[int, Field(ge=0, le=MAX_PODS, strict=True)]
Quantity = Annotated[int, Field(ge=0, le=MAX_QUANTITY, strict=True)]


class _RequestModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LayerRow(_RequestModel):
    """One slice layer; a size of 0, or none, is an answer (bad-slice), not a malformed request."""

    size: Natural = 0
    tier: Tier | None = None
    remainder: Literal["reject", "short"] = "reject"
    min: Natural = 0
    placement: Literal["any", "spread", "consolidate"] = "any"
    indexed: bool = False


class GroupRow(_RequestModel):
    """One group, leaf or parent."""

    name: Name
    count: Count | None = None
    min: Natural | None = None
    request: dict[Name, Quantity] = {"slots": 1}
    required: Tier | None = None
    preferred: list[Tier] = []
    slices: list[LayerRow] = []
    multiple_of: dict[Tier, Count] = {}
    node_selector: dict[Name, str | list[str]] = {}
    tolerations: list[str] = []
    node_preference: dict[Name, str] = {}
    leader_of: Name | None = None
    children: list[GroupRow] = []


class SortRow(_RequestModel):
    """A user's rule on domains."""

    resource: Name
    dimension: Literal["Capacity", "Available"] = "Capacity"
    order: Literal["Ascending", "Descending"] = "Ascending"


class AffinityRow(_RequestModel):
    """Roles, by names of groups, that want to share a node or to stay apart."""

    attract: list[list[Name]] = []
    repel: list[list[Name]] = []
    order: list[Name] = []


class OptionsRow(_RequestModel):
    """What only one preset knows."""

    weight: dict[Name, Natural] | Annotated[float, Field(gt=0, le=1e6)] | None = None
    """slurm-tree: of nodes, lighter first; task-topology: of its scores."""
    preferred_nodes: list[Name] = []
    """godel: nodes that steer which domains are tried."""
    ever_scheduled: bool = False
    """godel: the gang ran before, so that one pod is enough."""
    spare_islands: bool = False
    """optimal: the tightest top domains come before fewer domains inside them."""
    arguments: dict[str, Any] = {}
    """volcano: of its plugin; they weigh scores and change no placement of ours."""


class Spec(_RequestModel):
    """The request proper."""

    preset: Preset = Preset.OPTIMAL
    gang: Name = "self"
    priority: int = 0
    preemption: Literal["never", "topologyFirst", "fewestVictims", "perDomain"] = "never"
    groups: Annotated[list[GroupRow], Field(min_length=1, max_length=MAX_GROUPS)]
    min: Natural = 0
    required: Tier | None = None
    preferred: list[Tier] = []
    strategies: list[tuple[Tier, Tier]] = []
    sort: list[SortRow] = []
    affinity: AffinityRow = AffinityRow()
    traffic: list[tuple[Name, Name, Weight]] = []
    max_domains: dict[Tier, Natural] = {}
    options: OptionsRow = OptionsRow()
    plane: Name = "compute"
    across_islands: bool = False
    deadline_s: Annotated[float, Field(gt=0, le=3600)] | None = None


class Document(_RequestModel):
    """A document of kind PlacementRequest; foreign metadata is let through unread."""

    api_version: Annotated[Literal["toponaut.io/v1alpha1"], Field(alias="apiVersion")]
    kind: Literal["PlacementRequest"]
    metadata: dict[str, Any] = {}
    spec: Spec
