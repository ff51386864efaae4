"""Where hosts and units of switches belong by the cables they have now: most of them decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import NamedTuple, TypeVar

from topology.synthetic.faults import Damaged
from topology.synthetic.spec import STORAGE_RANK
from topology.synthetic.wiring import Cable, Switch

UnitT = TypeVar("UnitT", bound=Hashable)


class Unit(NamedTuple):
    """A leaf group, the spines of a pod, and so on up to the one unit of the top."""

    rank: int
    path: tuple[int, ...]


def unit_of(switch: Switch) -> Unit:
    """Return the unit of a switch."""
    return Unit(switch.rank, switch.path)


class Attachments(NamedTuple):
    """How many cables lead where."""

    hosts: Mapping[str, Counter[Unit]]
    """Per host with a cable left, its cables by leaf group; storage leaves do not count."""
    units: Mapping[Unit, Counter[Unit]]
    """Per unit with an upward cable left, these by the unit above."""
    peers: frozenset[tuple[Unit, Unit]]
    """Pairs of units of one rank with a cable between them, the lesser first."""


def count_attachments(damaged: Damaged) -> Attachments:
    """Return where the cables of a damaged fabric lead. Cost: O(cables)."""
    unit_by_name = {switch.name: unit_of(switch) for switch in damaged.wiring.switches}
    hosts: dict[str, Counter[Unit]] = {}
    units: dict[Unit, Counter[Unit]] = {}
    peers: set[tuple[Unit, Unit]] = set()
    for cable in damaged.cables:
        above = unit_by_name[cable.high.device]
        if above.rank == STORAGE_RANK:
            continue
        if is_host_cable(cable, unit_by_name):
            hosts.setdefault(cable.low.device, Counter())[above] += 1
            continue
        below = unit_by_name[cable.low.device]
        if below.rank < above.rank:
            units.setdefault(below, Counter())[above] += 1
        elif below != above:
            peers.add((min(below, above), max(below, above)))
    return Attachments(hosts, units, frozenset(peers))


def is_host_cable(cable: Cable, switches: Mapping[str, object]) -> bool:
    """Return whether the lower end of a cable is a host, given the switches by name."""
    return cable.low.device not in switches


def most_held(held: Mapping[UnitT, int]) -> UnitT | None:
    """Return what holds more than every other does; None for a tie, or for nothing at all."""
    ranked = sorted(held.values(), reverse=True)
    if not ranked or ranked[:1] == ranked[1:2]:
        return None
    return max(held, key=lambda unit: held[unit])


def majority(held: Mapping[UnitT, int]) -> UnitT | None:
    """Return what holds more than half of all, None where nothing does."""
    top = most_held(held)
    return top if top is not None and 2 * held[top] > sum(held.values()) else None
