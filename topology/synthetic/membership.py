"""The unit in which a host or unit of switches belongs: most of its present cables decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import NamedTuple, TypeVar

from topology.synthetic.faults import DamagedFabric
from topology.synthetic.spec import STORAGE_RANK
from topology.synthetic.wiring import Cable, Switch

UnitT = TypeVar("UnitT", bound=Hashable)


class SwitchUnit(NamedTuple):
    """A leaf group, the spines of a pod, and so on up to the single unit at the top."""

    rank: int
    path: tuple[int, ...]


def unit_of(switch: Switch) -> SwitchUnit:
    """Return the unit of a switch."""
    return SwitchUnit(switch.rank, switch.path)


class Attachments(NamedTuple):
    """Numbers of cables by the unit to which they lead."""

    hosts: Mapping[str, Counter[SwitchUnit]]
    """Per host with a cable, the number of cables by leaf group, without storage leaves."""
    units: Mapping[SwitchUnit, Counter[SwitchUnit]]
    """Per unit with a cable upwards, the number of these by the unit above."""
    peers: frozenset[tuple[SwitchUnit, SwitchUnit]]
    """Pairs of units of one rank with a cable between them; the smaller unit is first."""


def count_attachments(damaged: DamagedFabric) -> Attachments:
    """Count the cables of a damaged fabric by unit. Cost: O(cables)."""
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
    """Return whether the lower end of a cable is a host; `switches` has all switch names."""
    return cable.low.device not in switches


def find_plurality(counts: Mapping[UnitT, int]) -> UnitT | None:
    """Return the unit with the largest count; None for a tie or if there are no counts."""
    ranked = sorted(counts.values(), reverse=True)
    if not ranked or ranked[:1] == ranked[1:2]:
        return None
    return max(counts, key=lambda unit: counts[unit])


def find_majority(counts: Mapping[UnitT, int]) -> UnitT | None:
    """Return the unit with more than half of the total, None if there is none."""
    top = find_plurality(counts)
    return top if top is not None and 2 * counts[top] > sum(counts.values()) else None
