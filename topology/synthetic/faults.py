"""What can go wrong in a fabric: lost and swapped cables, silent hosts, lost hosts and switches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

from topology.model.facts import PortName
from topology.synthetic.wiring import Cable, Wiring

ItemT = TypeVar("ItemT")


class RandomSource(Protocol):
    """What draws the faults: a seeded `random.Random`."""

    def sample(self, population: Sequence[ItemT], k: int) -> list[ItemT]:
        """Return k different items in a random order."""


class FaultKind(StrEnum):
    """What broke."""

    LOST_LINK = "lost-link"
    SWAPPED_CABLE = "swapped-cable"
    SILENT_NODE = "silent-node"
    LOST_SWITCH = "lost-switch"
    LOST_HOST = "lost-host"


@dataclass(frozen=True, slots=True)
class FaultSpec:
    """How much shall go wrong; what exactly is drawn at random where it is not named."""

    lose_links: float = 0.0
    """Fraction of all cables that are gone, 0 to 1; above 0 at least one cable."""
    num_swaps: int = 0
    """Pairs of cables that exchange an end; no cable is in two."""
    silent: float = 0.0
    """Fraction of hosts without a report, 0 to 1; above 0 at least one host. The HCAs of a silent
    InfiniBand host still answer a sweep, under the name that its driver gave them."""
    lose_switches: int = 0
    """Switches that are gone with all of their cables, drawn at random."""
    lose_hosts: int = 0
    """Hosts that are gone with all of their cables; the inventory still lists them."""
    swap: float = 0.0
    """Fraction of all cables that exchange an end with another, 0 to 1, on top of `num_swaps`;
    as many of them as fit."""
    lose_rank: int | None = None
    """Rank of the switches that are drawn to be lost; any where None."""
    lost: tuple[str, ...] = ()
    """Names of switches and hosts that are gone besides those that are drawn."""
    shuffle: bool = False
    """Whether hosts are cabled in an order that neither their names nor their GUIDs follow."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that broke."""

    kind: FaultKind
    ports: tuple[PortName, ...]
    """The port ends concerned: both of a lost cable, all four of two swapped ones, each end of
    every cable of a lost switch, the ports of a silent or lost host."""
    is_detectable: bool
    """Whether a reader of the damaged fabric who knows nothing but its symmetry can see it."""


@dataclass(frozen=True, slots=True)
class DamagedFabric:
    """A fabric after its faults."""

    wiring: Wiring
    """As it was planned, or with its hosts in another order."""
    cables: tuple[Cable, ...]
    """As they are now, in the order of the wiring."""
    silent: frozenset[str] = frozenset()
    """Hosts without a report, lost ones among them."""
    lost_switches: frozenset[str] = frozenset()
    """Names of switches that are gone."""
    lost_hosts: frozenset[str] = frozenset()
    """Names of hosts that are gone."""
    faults: tuple[Fault, ...] = ()


def build_undamaged(wiring: Wiring) -> DamagedFabric:
    """Return a fabric in which nothing is wrong."""
    return DamagedFabric(wiring, wiring.cables)
