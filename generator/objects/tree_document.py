"""The printed TopologyTree as a model, for its schema; `topology.model.tree` renders and parses it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class _TreeModel(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class DomainRow(_TreeModel):
    """One domain."""

    name: str
    parent: str | None
    """A domain of a higher tier, not always the next."""
    nodes: list[str] = Field(default_factory=list)
    """Of tier 1: all its nodes, sorted."""
    children: list[str] = Field(default_factory=list)
    """Above tier 1: its child domains, sorted."""
    switches: list[str]
    """By name, or by id where unnamed."""
    margin: Annotated[float, Field(ge=0, le=1)]
    """How far the decisions behind it were from a tie."""


class TierRow(_TreeModel):
    """All domains of one tier."""

    tier: Annotated[int, Field(ge=1)]
    """1 is nearest the nodes."""
    name: str
    domains: list[DomainRow]


class UnplacedRow(_TreeModel):
    """A node in no domain."""

    node: str
    reason: str


class TreeDocument(_TreeModel):
    """What `toponaut tree -o json` prints."""

    api_version: Literal["toponaut.io/v1alpha1"] = Field(alias="apiVersion")
    kind: Literal["TopologyTree"]
    plane: str
    tiers: list[TierRow]
    """Bottom-up."""
    unplaced: list[UnplacedRow]
