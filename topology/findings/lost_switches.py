"""Lost switches: found although all of their neighbors lack the same cables.

A dead spine takes one port of each leaf of its pod. Compared with each other, these leaves look as
designed. So each cohort is compared with the other cohorts of its rank, and with its own port
numbers. A slot is the ports of a cohort that lead to one switch. If one cohort alone has no cable
in a slot, the switch of this slot is gone. If many cohorts lack a slot, or one lacks many, this is
how the fabric is built.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, pairwise
from math import gcd
from typing import Final, NamedTuple

import numpy as np

from topology.findings.missing_links import is_hidden_port
from topology.findings.port_cohorts import (
    Cohort,
    GroupColumns,
    UplinkUse,
    build_group_columns,
    find_cohorts,
)
from topology.findings.usual_counts import MIN_USUAL_PER_ODD, find_most_frequent
from topology.findings.usual_ports import CableIndex, LinkedPorts
from topology.model.fabric import Fabric
from topology.model.facts import Finding, FindingKind, PortName, Severity
from topology.model.ids import natural_key
from topology.model.name_ranges import find_gap, fold_texts
from topology.planes.plane import Plane
from topology.tiers.tier_groups import TierGroups

MIN_MEMBERS: Final = 2
"""One device that lacks a cable lost the cable."""
_MIN_RUN: Final = 3
"""Slots that show at which port numbers the next slots are."""
_MAX_CHANCE: Final = 0.05
"""The greatest probability that single lost cables leave a slot without any cable."""
_MAX_DESIGNS: Final = 64
"""Sets of ports with which each other set is compared: the most frequent ones."""
_LAST_NUMBER: Final = re.compile(r"(.*?)([0-9]{1,9})\Z", re.ASCII | re.DOTALL)


class _Slot(NamedTuple):
    """The ports of a cohort that should be cabled to one switch, and have no cable."""

    cohort: Cohort
    ports: tuple[str, ...]


def find_lost_switches(fabric: Fabric, plane: Plane, grouping: TierGroups) -> Iterator[Finding]:
    """Yield a finding per switch that is gone. Cost: O(links log links).

    Args:
        fabric: the names, and the ports without a link.
        plane: the cables.
        grouping: the groups of the plane.
    """
    yield from _LostSwitchSearch(fabric, plane, build_group_columns(fabric, grouping)).find()


class _LostSwitchSearch:
    def __init__(self, fabric: Fabric, plane: Plane, groups: GroupColumns) -> None:
        self._fabric, self._plane, self._groups = fabric, plane, groups
        self._cohorts: dict[int, list[Cohort]] = defaultdict(list)
        for cohort in find_cohorts(fabric, plane, groups):
            self._cohorts[cohort.rank].append(cohort)
        self._linked = LinkedPorts(fabric)
        self._cables = CableIndex(fabric, plane.switch_edges.columns)

    def find(self) -> Iterator[Finding]:
        """Yield the findings, those about switches of one group together."""
        slots: dict[int, list[_Slot]] = defaultdict(list)
        for cohorts in self._cohorts.values():
            found: dict[tuple[int, Sequence[str]], _Slot] = {}
            for slot in chain(_find_by_peers(cohorts), _find_by_run(cohorts)):
                # The peers and the numbers of the ports often show the same slot.
                found.setdefault((slot.cohort.members[0], slot.ports), slot)
            for slot in found.values():
                if self._is_empty(slot) and not _is_by_chance(slot, cohorts):
                    slots[slot.cohort.group].append(slot)
        for group, lost in sorted(slots.items()):
            above = self._find_ends_above(group, len(lost))
            num_lost = Counter(slot.cohort.members[0] for slot in lost)
            for slot, ends in zip(lost, above, strict=True):
                if slot.cohort.rank or ends or self._is_dark(slot):
                    is_alone = num_lost[slot.cohort.members[0]] == 1
                    name = self._guess_name(slot.cohort) if is_alone else ""
                    yield self._finding(self._list_ends(slot), ends, name)
        yield from self._find_lone_leaf()

    def _guess_name(self, cohort: Cohort) -> str:
        """Return the name that the switches above a cohort lack in their sequence, or nothing."""
        names = [device.name for device in self._fabric.devices]
        name = find_gap([names[upper] for upper in cohort.uppers])
        return "" if name in names else name

    def _is_empty(self, slot: _Slot) -> bool:
        """Return whether nearly all members of a cohort have no link in a slot at all."""
        cohort, ports = slot.cohort, frozenset(slot.ports)
        num_linked = sum(
            not ports.isdisjoint(self._linked.list_names(member)) for member in cohort.members
        )
        return num_linked * MIN_USUAL_PER_ODD <= len(cohort.members)

    def _list_ends(self, slot: _Slot) -> list[PortName]:
        return [
            PortName(self._fabric.devices[member].name, port)
            for member in slot.cohort.members
            for port in slot.ports
            if port not in self._linked.list_names(member)
        ]

    @cached_property
    def _dark_ports(self) -> Mapping[int, Collection[str]]:
        """The ports of the plane that each host reports without a link."""
        columns = self._fabric.columns
        is_dark = self._plane.ports.is_member.copy()
        is_dark[columns.links.a] = is_dark[columns.links.b] = False
        dark: dict[int, list[str]] = defaultdict(list)
        for port in np.flatnonzero(is_dark).tolist():
            if is_hidden_port(self._fabric.ports[port]):
                continue  # a pod owns its interface, so its cable is unknown
            dark[int(columns.port_devices[port])].append(str(columns.port_names[port]))
        return dark

    def _is_dark(self, slot: _Slot) -> bool:
        """Return whether most hosts report the ports of a slot, and no link there."""
        members = slot.cohort.members
        num_dark = sum(
            not frozenset(slot.ports).isdisjoint(self._dark_ports.get(host, ())) for host in members
        )
        return num_dark >= max(MIN_MEMBERS, len(members) / 2)

    def _find_ends_above(self, group: int, num_lost: int) -> list[Sequence[PortName]]:
        """Return the ports of higher switches that lost switches of a group were cabled to.

        One entry per lost switch; empty if it is unknown.
        """
        parent = self._groups.parents[group]
        rank = int(self._groups.ranks[group])
        cohorts = [cohort for cohort in self._cohorts[rank] if cohort.group == parent]
        nothing: list[Sequence[PortName]] = [()] * num_lost
        if len(cohorts) == 1:
            return self._find_gaps_below(cohorts[0], num_lost)
        counts = [
            sum(int(self._groups.switch_group[member]) == group for member in cohort.members)
            for cohort in cohorts
        ]
        usual = find_most_frequent(Counter(counts))
        lacking = [
            cohort for cohort, count in zip(cohorts, counts, strict=True) if count == usual - 1
        ]
        if len(lacking) != num_lost:
            return nothing
        ports = Counter(
            port
            for cohort in cohorts
            if cohort not in lacking
            for upper in cohort.uppers
            for far, port, _ in self._cables.list_cables(upper)
            if self._groups.switch_group[far] == group
        )
        return [self._list_free(cohort.uppers, ports) for cohort in lacking]

    def _find_gaps_below(self, cohort: Cohort, num_lost: int) -> list[Sequence[PortName]]:
        """Return the free ports of the switches above, between their ports to a cohort."""
        uses: dict[str, UplinkUse] = {}
        for upper in cohort.uppers:
            for far, port, _ in self._cables.list_cables(upper):
                if far in cohort.members:
                    uses[port] = UplinkUse(1, far, 1)
        slots = [*_find_gaps(uses)]
        if len(slots) != num_lost:
            names = [self._fabric.devices[upper].name for upper in cohort.uppers]
            return [[PortName(name, "") for name in names]] * num_lost
        return [self._list_free(cohort.uppers, ports) for ports in slots]

    def _list_free(self, devices: Iterable[int], ports: Iterable[str]) -> list[PortName]:
        return [
            PortName(self._fabric.devices[device].name, port)
            for device in devices
            for port in sorted(ports, key=natural_key)
            if port not in self._linked.list_names(device)
        ]

    def _find_lone_leaf(self) -> Iterator[Finding]:
        """Yield the lost leaf of hosts that report no link, if each host has one cable.

        Such hosts are in no cohort. If the present leaves have too few free ports for them, the
        hosts were on another leaf.
        """
        cohorts = self._cohorts[0]
        if not cohorts or max(len(cohort.uses) for cohort in cohorts) > 1:
            return
        num_links = np.bincount(
            self._plane.host_edges.columns.a, minlength=len(self._fabric.devices)
        )
        hosts = [host for host in sorted(self._dark_ports) if not num_links[host]]
        if len(hosts) < MIN_MEMBERS or 2 * self._count_free_ports() >= len(hosts):
            return
        ends = [
            PortName(self._fabric.devices[host].name, port)
            for host in hosts
            for port in self._dark_ports[host]
        ]
        above = [self._find_gaps_below(cohort, 1)[0] for cohort in self._cohorts[1]]
        certain = [found for found in above if len(above) == 1 or all(end.port for end in found)]
        yield self._finding(ends, certain[0] if len(certain) == 1 else ())

    def _count_free_ports(self) -> int:
        """Return the free ports for hosts of all leaves but the emptiest, which may be new."""
        cables = CableIndex(self._fabric, self._plane.host_edges.columns)
        used = [
            {port for _, port, _ in cables.list_cables(leaf)}
            for cohort in self._cohorts[0]
            for leaf in cohort.uppers
        ]
        num_free = sorted(len(frozenset[str]().union(*used) - ports) for ports in used)
        return sum(num_free[:-1])

    def _finding(
        self, below: Sequence[PortName], above: Sequence[PortName], name: str = ""
    ) -> Finding:
        ports = list(dict.fromkeys(end.port for end in below))
        place = f"{'ports' if len(ports) > 1 else 'port'} {fold_texts(ports)}"
        devices = list(dict.fromkeys(end.device for end in below))
        others = list(dict.fromkeys(end.device for end in above))
        likely = f", by the names of its peers {name}," if name else ""
        also = f" It was also cabled to {fold_texts(others)}." if others else ""
        return Finding(
            kind=FindingKind.LOST_SWITCH,
            device=below[0].device,
            port=below[0].port,
            severity=Severity.ERROR,
            message=(
                f"The switch at {place} of {fold_texts(devices)} ({len(devices)} "
                f"devices){likely} is gone: none of them has a link there, but their peers have."
                f"{also} Check the power of the switch. If it was removed on purpose, silence this "
                "finding."
            ),
            ports=(*below, *above),
            lost_name=name,
        )


def _find_by_peers(cohorts: Sequence[Cohort]) -> Iterator[_Slot]:
    """Yield the slots that cohorts of one rank lack, and that most of their peers have.

    Peers have all ports that the cohort has, so they are built alike.
    """
    by_design: dict[frozenset[str], list[Cohort]] = defaultdict(list)
    for cohort in cohorts:
        by_design[frozenset(cohort.usual)].append(cohort)
    frequent = sorted(by_design.items(), key=lambda row: (-len(row[1]), sorted(row[0])))
    for design, own in by_design.items():
        peers = [
            (other, found)
            for other, found in frequent[:_MAX_DESIGNS]
            if other != design and MIN_USUAL_PER_ODD * len(design - other) <= len(design)
        ]
        votes = Counter[str]()
        for other, found in peers:
            votes.update(dict.fromkeys(other - design, len(found)))
        num_peers = sum(len(found) for _, found in peers)
        expected = {
            port
            for port, count in votes.items()
            if _is_rare(len(own) + num_peers - count, of=count)
        }
        model = next((found[0] for other, found in peers if expected <= other), None)
        if model is None or not expected:
            continue
        absent, num_present = _split_slots(model, expected)
        if absent and _is_rare(len(absent), of=num_present):
            yield from (
                _Slot(cohort, ports)
                for cohort in own
                if len(cohort.members) >= MIN_MEMBERS
                for ports in absent
            )


def _is_rare(num: int, *, of: int) -> bool:
    """Return whether a number is too small to be a design: one alone, or few among many."""
    return of > 0 and (num == 1 or num * MIN_USUAL_PER_ODD <= of)


def _split_slots(model: Cohort, expected: Collection[str]) -> tuple[list[tuple[str, ...]], int]:
    """Return the slots of a peer that are expected, and the number of its other slots."""
    slots = _list_slots(model.usual)
    absent = [slot for slot in slots if all(port in expected for port in slot)]
    return absent, len(slots) - len(absent)


def _list_slots(uses: Mapping[str, UplinkUse]) -> list[tuple[str, ...]]:
    """Return the ports to each switch above, if most members use a port for one switch."""
    slots: dict[int, list[str]] = defaultdict(list)
    for port, use in uses.items():
        if 2 * use.num_far > use.num:
            slots[use.far].append(port)
    return sorted(tuple(sorted(ports, key=natural_key)) for ports in slots.values())


def _find_by_run(cohorts: Sequence[Cohort]) -> Iterator[_Slot]:
    """Yield the slots between the used ports of switches, unless most of several cohorts lack them.

    Spines that were never installed leave the same slots unused in every pod.
    """
    slots = [
        _Slot(cohort, ports)
        for cohort in cohorts
        if cohort.rank and len(cohort.members) >= MIN_MEMBERS
        for ports in _find_gaps(cohort.usual)
    ]
    num_lacking = Counter(slot.ports for slot in slots)
    for slot in slots:
        num = num_lacking[slot.ports]
        if num == 1 or 2 * num <= len(cohorts):
            yield slot


def _find_gaps(uses: Mapping[str, UplinkUse]) -> Iterator[tuple[str, ...]]:
    """Yield the unused slots between used ports, if they are few and as wide as the others."""
    slots = _list_slots(uses)
    width = find_most_frequent(Counter(map(len, slots)))
    numbers: dict[str, list[int]] = defaultdict(list)
    for port in uses:
        match = _LAST_NUMBER.match(port)
        if match:
            numbers[match[1]].append(int(match[2]))
    gaps: list[str] = []
    for prefix, used in numbers.items():
        used.sort()
        step = gcd(*(after - before for before, after in pairwise(used))) if used[1:] else 0
        spaces = [range(low + step, high, step) for low, high in pairwise(used)] if step else []
        if sum(map(len, spaces)) > len(used):
            return  # the numbers follow no rule
        gaps += [f"{prefix}{number}" for number in chain(*spaces)]
    if not gaps or len(slots) < _MIN_RUN or len(gaps) % width:
        return
    if _is_rare(len(gaps) // width, of=len(slots)):
        yield from (tuple(gaps[at : at + width]) for at in range(0, len(gaps), width))


def _is_by_chance(slot: _Slot, cohorts: Sequence[Cohort]) -> bool:
    """Return whether cables that were lost one by one explain an empty slot."""
    num_absent = sum(cohort.num_absent for cohort in cohorts)
    num_expected = sum(len(cohort.usual) * len(cohort.members) for cohort in cohorts)
    num_slots = sum(len(cohort.usual) for cohort in cohorts) / len(slot.ports)
    num_cables = len(slot.ports) * len(slot.cohort.members)
    return num_slots * (num_absent / num_expected) ** num_cables > _MAX_CHANCE
