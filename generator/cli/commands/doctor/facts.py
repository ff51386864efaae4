"""What a cluster says about itself, as `toponaut doctor` judges it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


class Fact(NamedTuple):
    """The answer to one request."""

    value: Any = None
    """The decoded object; None if there is none, or if it could not be read."""
    problem: str = ""
    """Why it could not be read; empty if it was read, or if it does not exist."""


class CrdFact(NamedTuple):
    """One CustomResourceDefinition."""

    served: frozenset[str]
    """The versions that the API server serves."""
    is_established: bool


class ReportFact(NamedTuple):
    """One NeighborReport, without its ports."""

    name: str
    observed_at: str
    """RFC 3339; empty if the report has no time."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What a cluster says about itself."""

    version: Fact
    """The API server's `/version`."""
    crds: Fact
    """`CrdFact` by name."""
    fabric: Fact
    """The Fabric object."""
    lease: Fact
    """The Lease of the generator."""
    nodes: Fact
    """The names of the nodes, as a tuple."""
    reports: Fact
    """A tuple of `ReportFact`."""
    scheduler_config: Fact
    """The ConfigMap of Volcano's scheduler."""
    controller_config: Fact
    """The ConfigMap of Volcano's controller."""
