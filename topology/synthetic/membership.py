"""Where hosts and units of switches belong by the cables they have now: most of them decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import NamedTuple, TypeVar

from topology.synthetic.faults import DamagedFabric
from topology.synthetic.spec import STORAGE_RANK
from topology.synthetic.wiring import Cable, Switch

UnitT = TypeVar("UnitT", bound=Hashable)


class SwitchUnit(NamedTuple):
    """A leaf group, the spines of a pod, and so on up to the one unit of the top."""

    rank: int
    path: tuple[int, ...]


def unit_of(switch: Switch) -> SwitchUnit:
    """Return the unit of a switch."""
    return SwitchUnit(switch.rank, switch.path)


class Attachments(NamedTuple):
    """How many cables lead where."""

    hosts: Mapping[str, Counter[SwitchUnit]]
    """Per host with a cable left, its cables by leaf group; storage leaves do not count."""
    units: Mapping[SwitchUnit, Counter[SwitchUnit]]
    """Per unit with an upward cable left, these by the unit above."""
    peers: frozenset[tuple[SwitchUnit, SwitchUnit]]
    """Pairs of units of one rank with a cable between them, the lesser first."""


def count_attachments(damaged: DamagedFabric) -> Attachments:
    """Return where the cables of a damaged fabric lead. Cost: O(cables)."""
    unit_by_name = {switch.name: unit_of(switch) for switch in damaged.wiring.switches}
    hosts: dict[str, Counter[SwitchUnit]] = {}
    units: dict[SwitchUnit, Counter[SwitchUnit]] = {}
    peers: set[tuple[SwitchUnit, SwitchUnit]] = set()
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


def find_plurality(held: Mapping[UnitT, int]) -> UnitT | None:
    """Return what holds more than every other does; None for a tie, or for nothing at all."""
    ranked = sorted(held.values(), reverse=True)
    if not ranked or ranked[:1] == ranked[1:2]:
        return None
    return max(held, key=lambda unit: held[unit])


def find_majority(held: Mapping[UnitT, int]) -> UnitT | None:
    """Return what holds more than half of all, None where nothing does."""
    top = find_plurality(held)
    return top if top is not None and 2 * held[top] > sum(held.values()) else None
