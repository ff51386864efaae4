"""Policies: rules by which a person assigns the ports of hosts to planes.

Policies are checked first, in their order. `default_policy` assigns the ports that match none, but
never to a plane that a policy names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import translate
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from topology.model.facts import GpuDistance, Medium

if TYPE_CHECKING:
    from topology.model.fabric import FabricPort  # loads numpy

COMPUTE: Final = "compute"
STORAGE: Final = "storage"
MANAGEMENT: Final = "management"
DEFAULT_PLANE_NAMES: Final = (COMPUTE, STORAGE, MANAGEMENT)
"""The planes that exist without a policy."""
DISTANCE_ORDER: Final = (GpuDistance.SWITCH, GpuDistance.NUMA, GpuDistance.OTHER)
"""Nearest first."""


class PlaneReason(StrEnum):
    """Why a port is in its plane."""

    POLICY = "a rule of the plane's policy"
    SWITCH_NAME = "the name of its switch"
    SAME_PORT = "where the same port of other hosts is cabled to"
    NEIGHBORS = "what most ports on its switch are for"
    NEAREST = "nearest to a GPU"
    RDMA = "InfiniBand or RDMA"
    FAST = "as fast as the node's ports get"
    SAME_SWITCHES = "on the same switches as the compute ports"
    OTHER_SWITCHES = "as fast as the compute ports, but on other switches on every host"
    FARTHER = "fast, but farther from GPUs, slower, of another medium or without RDMA"
    SLOW = "slower than a quarter of the node's fastest, and without RDMA"


class PortPlane(NamedTuple):
    """The plane of one port, and the reason."""

    plane: str
    reason: PlaneReason


class PortView(NamedTuple):
    """A host's port and its switches, as rules see them."""

    port: FabricPort
    host: str
    switches: tuple[str, ...]
    """Names of the switches; empty for a port without a link to a switch."""
    subnets: frozenset[str]
    """Subnet prefixes that the port reports, or else that other ports on its switches report."""


@dataclass(frozen=True, slots=True)
class PortRule:
    """The conditions that a port must meet; an empty field sets no condition.

    Patterns use shell wildcards and ignore case.
    """

    media: frozenset[Medium] = frozenset()
    ports: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
    """A port without a link matches no switch name."""
    subnets: frozenset[str] = frozenset()
    """Prefixes of InfiniBand subnets, 16 hex digits."""
    min_rate_bps: int | None = None
    """Ports of unknown rate match, because a port without a link reports no rate."""
    max_rate_bps: int | None = None
    gpu: GpuDistance | None = None
    """The largest distance from the nearest GPU; ports of unknown distance do not match."""

    def matches(self, view: PortView) -> bool:
        """Return whether a port meets all conditions."""
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
    """A plane, and the rules that assign ports to it."""

    name: str
    rules: tuple[PortRule, ...]
    """A port belongs to the plane if it matches at least one rule."""


def match_policies(view: PortView, policies: Sequence[PlanePolicy]) -> PortPlane | None:
    """Return the plane of the first policy that the port matches; None if it matches none."""
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
