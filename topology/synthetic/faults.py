"""What can go wrong in a fabric: lost cables, swapped cables, silent hosts, lost switches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

from topology.facts import PortName
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


@dataclass(frozen=True, slots=True)
class FaultSpec:
    """How much shall go wrong; what exactly is drawn at random."""

    lose_links: float = 0.0
    """Fraction of all cables that are gone, 0 to 1; above 0 at least one cable."""
    num_swaps: int = 0
    """Pairs of cables that exchange an end; no cable is in two."""
    silent: float = 0.0
    """Fraction of hosts without a report, 0 to 1; above 0 at least one host. The HCAs of a silent
    InfiniBand host still answer a sweep, under the name that its driver gave them."""
    lose_switches: int = 0
    """Switches that are gone with all of their cables."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that broke."""

    kind: FaultKind
    ports: tuple[PortName, ...]
    """The port ends concerned: both of a lost cable, all four of two swapped ones, each end of
    every cable of a lost switch, the ports of a silent host."""
    detectable: bool
    """Whether a reader of the damaged fabric who knows nothing but its symmetry can see it."""


@dataclass(frozen=True, slots=True)
class Damaged:
    """A fabric after its faults."""

    wiring: Wiring
    """As it was planned."""
    cables: tuple[Cable, ...]
    """As they are now, in the order of the wiring."""
    silent: frozenset[str] = frozenset()
    """Hosts without a report."""
    lost_switches: frozenset[str] = frozenset()
    """Names of switches that are gone."""
    faults: tuple[Fault, ...] = ()


def undamaged(wiring: Wiring) -> Damaged:
    """Return a fabric in which nothing is wrong."""
    return Damaged(wiring, wiring.cables)
