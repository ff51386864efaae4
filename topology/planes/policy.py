"""Which network a host's port belongs to, as people say it: policies of rules.

Policies go first and in their order; what fits none of them is told apart by `plane_default`,
but into planes that no policy names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import translate
from functools import lru_cache
from typing import Final, NamedTuple

from topology.model.fabric import FabricPort
from topology.model.facts import GpuDistance, Medium

COMPUTE: Final = "compute"
STORAGE: Final = "storage"
MANAGEMENT: Final = "management"
DISTANCE_ORDER: Final = (GpuDistance.SWITCH, GpuDistance.NUMA, GpuDistance.OTHER)
"""The nearest first."""


class PlaneReason(StrEnum):
    """What puts a port into its plane."""

    POLICY = "a rule of the plane's policy"
    SWITCH_NAME = "the name of its switch"
    SAME_PORT = "where the same port of other hosts is cabled to"
    NEIGHBORS = "what most ports on its switch are for"
    NEAREST = "nearest to a GPU"
    RDMA = "InfiniBand or RDMA"
    FAST = "as fast as the node's ports get"
    FARTHER = "fast, but farther from GPUs, of another medium or without RDMA"
    SLOW = "slower than a quarter of the node's fastest, and without RDMA"


class PortPlane(NamedTuple):
    """The plane of one port."""

    plane: str
    reason: PlaneReason


class PortView(NamedTuple):
    """What rules look at: a host's port, and what it is cabled to."""

    port: FabricPort
    host: str
    switches: tuple[str, ...]
    """Names; empty for a port without a link to a switch."""
    subnets: frozenset[str]
    """Prefixes, by the port's own report or that of others on its network."""


@dataclass(frozen=True, slots=True)
class PortRule:
    """What a port must be; what is left out does not matter, and empty patterns are left out.

    Patterns have the shell's wildcards and take no notice of case.
    """

    media: frozenset[Medium] = frozenset()
    ports: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
    """A port without a link fits no name of a switch."""
    subnets: frozenset[str] = frozenset()
    """Prefixes of InfiniBand subnets, 16 hex digits."""
    min_rate_bps: int | None = None
    """Ports of unknown rate fit: one without a link tells none."""
    max_rate_bps: int | None = None
    gpu: GpuDistance | None = None
    """The farthest from the nearest GPU; ports of unknown place do not fit."""

    def matches(self, view: PortView) -> bool:
        """Return whether a port is what the rule says."""
        port, rate = view.port, view.port.rate_bps
        return (
            (not self.media or port.medium in self.media)
            and (not self.ports or _any_match(self.ports, (port.name,)))
            and (not self.hosts or _any_match(self.hosts, (view.host,)))
            and (not self.switches or _any_match(self.switches, view.switches))
            and (not self.subnets or bool(self.subnets & view.subnets))
            and (rate is None or self.min_rate_bps is None or rate >= self.min_rate_bps)
            and (rate is None or self.max_rate_bps is None or rate <= self.max_rate_bps)
            and (self.gpu is None or _is_within(port.gpu_distance, self.gpu))
        )


@dataclass(frozen=True, slots=True)
class PlanePolicy:
    """A plane, and the rules by which ports are its own."""

    name: str
    rules: tuple[PortRule, ...]
    """A port that fits one of them belongs."""


def match_policies(view: PortView, policies: Sequence[PlanePolicy]) -> PortPlane | None:
    """Return the first policy's plane that the port fits, None where it fits none."""
    for policy in policies:
        if any(rule.matches(view) for rule in policy.rules):
            return PortPlane(policy.name, PlaneReason.POLICY)
    return None


def _is_within(distance: GpuDistance | None, farthest: GpuDistance) -> bool:
    return distance is not None and DISTANCE_ORDER.index(distance) <= DISTANCE_ORDER.index(farthest)


def _any_match(patterns: Iterable[str], names: Iterable[str]) -> bool:
    names = tuple(names)
    return any(_pattern(pattern).match(name) for pattern in patterns for name in names)


@lru_cache(maxsize=1024)
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(translate(glob), re.IGNORECASE)
