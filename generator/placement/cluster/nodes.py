"""Nodes and running gangs, as their cluster describes them; a snapshot counts them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

ONE_SLOT: Mapping[str, int] = MappingProxyType({"slots": 1})
PODS = "pods"
"""The resource that limits the number of pods on a node. A node that does not list it has no limit.
"""
UNLIMITED_PODS = 1 << 40
"""Pods of a node without a limit: above all requests, and small enough for sums over a cluster."""


class Exclusion(StrEnum):
    """Why a node takes no pods, whatever they tolerate."""

    UNSCHEDULABLE = "unschedulable"
    """The node is cordoned, or its entry in the list of nodes has a fault."""
    NOT_READY = "not-ready"
    """The node's condition Ready is False or Unknown."""
    UNLISTED = "unlisted"
    """The node is in the tree, but not in the list of nodes."""


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node as its cluster describes it."""

    name: str
    capacity: Mapping[str, int] = field(default_factory=lambda: ONE_SLOT)
    free: Mapping[str, int] | None = None
    """Capacity minus all pods that are not listed as running; None means the capacity."""
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    taints: tuple[str, ...] = ()
    """`key=value:Effect`; the effect PreferNoSchedule excludes no pod."""
    exclusion: Exclusion | None = None
    """Why the node takes no pods; None: it takes pods."""

    @property
    def initial_free(self) -> Mapping[str, int]:
        """Free quantities before running gangs are subtracted."""
        return self.capacity if self.free is None else self.free


@dataclass(frozen=True, slots=True)
class RunningPods:
    """Equal pods of a gang on one node."""

    node: str
    request: Mapping[str, int] = field(default_factory=lambda: ONE_SLOT)
    count: int = 1
    group: str | None = None
    """Name of their group; None: the gang's only group."""
    indices: tuple[int, ...] = ()
    """Index of each pod in its group; empty if the indices are unknown."""


@dataclass(frozen=True, slots=True)
class RunningGang:
    """A gang that runs; its pods are subtracted from the free capacity."""

    gang: str
    pods: tuple[RunningPods, ...]
    priority: int = 0
    preemptible: bool = True
    min_pods: int | None = None
    """Pods that it must keep; with fewer the whole gang is evicted. None: pods are independent."""
    exclusive: str | None = None
    """A tier: the gang's domains of this tier contain no other gang."""
