"""The printed TopologyTree as a model, for its JSON schema; `topology.model.tree` renders it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from topology.model.wire_model import DEFERRED


class _TreeModel(BaseModel):
    model_config = ConfigDict(**DEFERRED, extra="forbid", populate_by_name=True)


class DomainRow(_TreeModel):
    """One domain."""

    name: str
    parent: str | None
    """The domain of a higher tier that contains this one; not always of the next tier."""
    nodes: list[str] = Field(default_factory=list)
    """The nodes of a domain of tier 1, sorted."""
    children: list[str] = Field(default_factory=list)
    """Above tier 1: the child domains, sorted."""
    switches: list[str]
    """Names of the switches, or ids of unnamed ones."""
    margin: Annotated[float, Field(ge=0, le=1)]
    """How far the decisions behind this domain were from a tie."""


class TierRow(_TreeModel):
    """All domains of one tier."""

    tier: Annotated[int, Field(ge=1)]
    """1 is nearest the nodes."""
    name: str
    other_names: list[str] = Field(default_factory=list, alias="otherNames")
    """Names that the source of the tree uses for the tier, such as label keys."""
    hyper_node_tier: int | None = Field(default=None, alias="hyperNodeTier")
    """The tier number in HyperNodes, if it differs from `tier`."""
    domains: list[DomainRow]


class UnplacedRow(_TreeModel):
    """A node in no domain."""

    node: str
    reason: str


class TreeDocument(_TreeModel):
    """The output of `toponaut tree -o json`."""

    api_version: Literal["toponaut.io/v1alpha1"] = Field(alias="apiVersion")
    kind: Literal["TopologyTree"]
    plane: str
    islands: bool = True
    """Whether domains without a common ancestor share no cable; labels do not show that."""
    tiers: list[TierRow]
    """Bottom-up."""
    unplaced: list[UnplacedRow]
