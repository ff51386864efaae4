"""Faults of a fabric: lost and swapped cables, silent hosts, lost hosts and switches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

from topology.model.facts import PortName
from topology.synthetic.wiring import Cable, Wiring

ItemT = TypeVar("ItemT")


class RandomSource(Protocol):
    """Draws the faults: a seeded `random.Random`."""

    def sample(self, population: Sequence[ItemT], k: int) -> list[ItemT]:
        """Return k different items in a random order."""


class FaultKind(StrEnum):
    """Kinds of faults."""

    LOST_LINK = "lost-link"
    SWAPPED_CABLE = "swapped-cable"
    SILENT_NODE = "silent-node"
    LOST_SWITCH = "lost-switch"
    LOST_HOST = "lost-host"


@dataclass(frozen=True, slots=True)
class FaultSpec:
    """The faults to apply; devices and cables are drawn at random unless named."""

    lose_links: float = 0.0
    """Fraction of all cables that are lost, 0 to 1; above 0 at least one cable."""
    num_swaps: int = 0
    """Pairs of cables that exchange an end; a cable is in one pair at most."""
    silent: float = 0.0
    """Fraction of hosts without a report, 0 to 1; above 0 at least one host. The HCAs of a silent
    InfiniBand host still appear in a sweep, under the name that its driver set."""
    lose_switches: int = 0
    """Switches that are lost with all of their cables, drawn at random."""
    lose_hosts: int = 0
    """Hosts that are lost with all of their cables; the inventory still lists them."""
    swap: float = 0.0
    """Fraction of all cables that exchange an end with another, 0 to 1, in addition to
    `num_swaps`; fewer if there are not enough pairs."""
    lose_rank: int | None = None
    """Rank from which lost switches are drawn; None for any rank."""
    lost: tuple[str, ...] = ()
    """Names of switches and hosts that are lost, in addition to those drawn."""
    shuffle: bool = False
    """Whether the order of cabling differs from the order of host names and GUIDs."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a damaged fabric, and whether the fabric shows it."""

    kind: FaultKind
    ports: tuple[PortName, ...]
    """The ports of the fault: both ends of a lost cable, all four ends of two swapped cables, both
    ends of every cable of a lost switch, the ports of a silent or lost host."""
    is_detectable: bool
    """Whether the fault is visible in the damaged fabric from its symmetry alone."""


@dataclass(frozen=True, slots=True)
class DamagedFabric:
    """A fabric with the faults applied: cables, devices and reports that are left."""

    wiring: Wiring
    """The wiring as planned, or with its hosts in another order."""
    cables: tuple[Cable, ...]
    """The cables after the faults, in the order of the wiring."""
    silent: frozenset[str] = frozenset()
    """Names of hosts without a report, including lost hosts."""
    lost_switches: frozenset[str] = frozenset()
    """Names of lost switches."""
    lost_hosts: frozenset[str] = frozenset()
    """Names of lost hosts."""
    faults: tuple[Fault, ...] = ()


def build_undamaged(wiring: Wiring) -> DamagedFabric:
    """Return a fabric without faults."""
    return DamagedFabric(wiring, wiring.cables)
