"""Machine types: hosts with the same ports, as tables with a row per host and a column per slot.

A slot is a port of one name, medium and distance to a GPU, with or without RDMA. Hosts are of one
type if the slots of one are among those of the other, at the same rates: a host can lack a card, or
hide an interface in a pod, and is still the same machine. A slot may decide for all hosts of the
type, so it needs witnesses: hosts with a slot that few others have are of another type.

An outline is the set of slots that some hosts share exactly.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from topology.model.fabric import (
    DISTANCES,
    MEDIA,
    MEDIUM_CODES,
    STATE_CODES,
    UNKNOWN_RATE,
    FabricColumns,
    Flags,
    Index,
    Rates,
)
from topology.model.facts import GpuDistance, Medium, PortState
from topology.model.ids import natural_key
from topology.planes.cables import Cables

NO_SWITCH: Final = -1
_NO_PORT: Final = -1
_USUAL_SHARE: Final = 3
"""The rate of a slot is the highest that a third of its ports reach, so that neither one slow port
nor one odd host changes it."""


MIN_HOSTS: Final = 2
"""Hosts that must have a slot in a type of more hosts."""
MIN_HOSTS_PERCENT: Final = 5
"""Share of the hosts of a type that must have a slot."""


class PortSlot(NamedTuple):
    """What a port is: the same on every host of a machine type."""

    name: str
    medium: Medium
    is_rdma: bool
    """Whether the port is InfiniBand or has an RDMA device."""
    distance: GpuDistance | None


@dataclass(frozen=True, slots=True)
class _SlotTable:
    """The ports to assign, by host, with their slots."""

    numbers: Index
    """The numbers of the ports in the fabric, ascending."""
    hosts: Index
    """One entry per port: the index of its host among the hosts."""
    slots: Index
    """One entry per port: the index of its slot in `distinct`."""
    distinct: tuple[PortSlot, ...]
    rates: Rates
    """One entry per port; UNKNOWN_RATE for a port that is down."""


@dataclass(frozen=True)
class MachineType:
    """The ports of the hosts of one type."""

    slots: tuple[PortSlot, ...]
    """The slots in natural order of their names."""
    numbers: Index
    """The ports, ascending."""
    columns: Index
    """One entry per port: the index of its slot."""
    switches: Index
    """By host and slot: the switch at the other end of the cable, NO_SWITCH if none is known."""
    is_up: Flags
    """By host and slot: whether there is a port, and its state is not down."""
    rates: Rates
    """One entry per slot: its usual rate, UNKNOWN_RATE if no port that is up reports one."""
    roce_devices: Index
    """By host and slot: a number for the RDMA device of an Ethernet port, 0 for none."""

    @cached_property
    def wirings(self) -> tuple[Index, Index]:
        """The distinct rows of `switches`, and the number of hosts that have each."""
        counts: dict[bytes, int] = defaultdict(int)
        for row in self.switches:
            counts[row.tobytes()] += 1
        rows = np.frombuffer(b"".join(counts), np.intp).reshape(len(counts), -1)
        return rows, np.array([*counts.values()], np.intp)

    @cached_property
    def is_linked(self) -> Flags:
        """One flag per slot: whether a port of it has a known cable on any host."""
        is_linked: Flags = (self.switches != NO_SWITCH).any(axis=0)
        return is_linked

    def count_attachments(self, columns: Sequence[int]) -> int:
        """Return the number of slots; Ethernet ports of one RDMA device count as one: a bond."""
        if not columns:
            return 0
        devices = self.roce_devices[:, list(columns)]
        usual = devices[np.argmax((devices > 0).sum(axis=1))]
        return len({*usual[usual > 0].tolist()}) + int(np.count_nonzero(usual == 0))


def find_machine_types(
    columns: FabricColumns, cables: Cables, ports: Index
) -> Iterator[MachineType]:
    """Yield the machine types of the hosts that have these ports.

    Cost: 0.3 µs for each port, and 0.1 ms for each type.

    Args:
        columns: the columns of the fabric.
        cables: the hosts' cables, and the rates of ports.
        ports: ascending.
    """
    if not len(ports):
        return
    table = _read_ports(columns, cables.rates, ports)
    type_of_host = _group_hosts(table)
    switch_of_port = np.full(len(columns.media), NO_SWITCH, np.intp)
    ends = cables.host_edges.columns
    switch_of_port[ends.a_port] = ends.b
    order = np.argsort(type_of_host[table.hosts], kind="stable")
    types = type_of_host[table.hosts][order]
    starts = np.flatnonzero(np.diff(types, prepend=-1))
    for rows in np.split(order, starts[1:]):
        yield _build_type(columns, table, rows, switch_of_port)


def _read_ports(columns: FabricColumns, rates: Rates, ports: Index) -> _SlotTable:
    codes, texts = columns.port_names.code(ports)
    media, rdma = columns.media[ports].astype(np.intp), columns.roce_devices[ports] > 0
    is_rdma = rdma | (media == MEDIUM_CODES[Medium.INFINIBAND])
    distances = columns.distances[ports].astype(np.intp)
    keys = np.ravel_multi_index(
        (codes, media, is_rdma.astype(np.intp), distances),
        (len(texts), len(MEDIA), 2, len(DISTANCES)),
    )
    _, firsts, slots = np.unique(keys, return_index=True, return_inverse=True)
    _, hosts = np.unique(columns.port_devices[ports], return_inverse=True)
    distinct = tuple(
        PortSlot(texts[code], MEDIA[medium], is_capable, DISTANCES[distance])
        for code, medium, is_capable, distance in zip(
            codes[firsts].tolist(),
            media[firsts].tolist(),
            is_rdma[firsts].tolist(),
            distances[firsts].tolist(),
            strict=True,
        )
    )
    is_down = columns.states[ports] == STATE_CODES[PortState.DOWN]
    return _SlotTable(ports, hosts, slots, distinct, np.where(is_down, UNKNOWN_RATE, rates[ports]))


def _group_hosts(table: _SlotTable) -> Index:
    """Return a type number per host.

    Hosts with the same slots are one outline, and outlines that fit together are one type.
    """
    order = np.lexsort((table.slots, table.hosts))
    slots, hosts = table.slots[order], table.hosts[order]
    starts = [*np.flatnonzero(np.diff(hosts, prepend=-1)).tolist(), len(hosts)]
    hosts_by_slots: dict[bytes, list[int]] = defaultdict(list)
    for host, (start, stop) in enumerate(pairwise(starts)):
        hosts_by_slots[slots[start:stop].tobytes()].append(host)
    outline_of_host = np.zeros(len(starts) - 1, np.intp)
    for number, own_hosts in enumerate(hosts_by_slots.values()):
        outline_of_host[own_hosts] = number
    outlines = _find_slot_rates(table, outline_of_host)
    type_of_outline = _group_outlines(outlines, np.bincount(outline_of_host).tolist())
    types: Index = np.array(type_of_outline, np.intp)[outline_of_host]
    return types


def _group_outlines(outlines: Sequence[Mapping[int, int]], sizes: Sequence[int]) -> list[int]:
    """Return the number of the type of each outline.

    Args:
        outlines: the slots of some hosts, with their rates.
        sizes: the number of these hosts.
    """
    ranked = sorted(
        range(len(outlines)),
        key=lambda number: (-len(outlines[number]), -sizes[number], sorted(outlines[number])),
    )
    place_of = {number: place for place, number in enumerate(ranked)}
    types = _join_outlines(outlines, ranked)
    while odd := _find_odd_outlines(outlines, sizes, types):
        ranked = [number for number in ranked if number in types and number not in odd]
        types = _join_outlines(outlines, ranked)
    return [place_of[types.get(number, number)] for number in range(len(outlines))]


def _join_outlines(outlines: Sequence[Mapping[int, int]], ranked: Sequence[int]) -> dict[int, int]:
    """Return the type of each ranked outline: the first earlier type that it fits, else itself."""
    types: dict[int, int] = {}
    types_by_slot: dict[int, list[int]] = defaultdict(list)
    for number in ranked:
        found = _find_larger_type(outlines[number], types_by_slot, outlines)
        if found is None:
            found = number
            for slot in outlines[number]:
                types_by_slot[slot].append(number)
        types[number] = found
    return types


def _find_odd_outlines(
    outlines: Sequence[Mapping[int, int]], sizes: Sequence[int], types: Mapping[int, int]
) -> set[int]:
    """Return the outlines of so few hosts that they must not decide about their type.

    Such an outline has a slot that few other hosts have, or is the only one that joins two types.
    """
    members: dict[int, list[int]] = defaultdict(list)
    for number, found in types.items():
        members[found].append(number)
    odd: set[int] = set()
    for largest, numbers in members.items():
        num_hosts = sum(sizes[number] for number in numbers)
        if len(numbers) == 1 or num_hosts <= MIN_HOSTS:
            continue
        num_needed = max(MIN_HOSTS, -(-num_hosts * MIN_HOSTS_PERCENT // 100))
        num_by_slot = _count_hosts({number: outlines[number] for number in numbers}, sizes)
        odd |= {
            number
            for number in numbers
            if min(num_by_slot[slot] for slot in outlines[number]) < num_needed
        }
        if sizes[largest] < num_needed:
            parts = _join_outlines(outlines, [number for number in numbers if number != largest])
            num_by_part = _count_hosts({number: [part] for number, part in parts.items()}, sizes)
            if sum(num >= num_needed for num in num_by_part.values()) > 1:
                odd.add(largest)
    return odd


def _count_hosts(
    keys_by_outline: Mapping[int, Iterable[int]], sizes: Sequence[int]
) -> Counter[int]:
    """Return how many hosts have each key."""
    counts = Counter[int]()
    for number, keys in keys_by_outline.items():
        for key in keys:
            counts[key] += sizes[number]
    return counts


def _find_slot_rates(table: _SlotTable, outline_of_host: Index) -> list[dict[int, int]]:
    """Return the usual rate of each slot of the hosts that have the same slots."""
    num_slots = len(table.distinct)
    keys, groups = np.unique(
        outline_of_host[table.hosts] * num_slots + table.slots, return_inverse=True
    )
    usual = _find_usual_rates(groups, table.rates, len(keys)).tolist()
    rates: list[dict[int, int]] = [{} for _ in range(int(outline_of_host.max()) + 1)]
    for key, rate in zip(keys.tolist(), usual, strict=True):
        outline, slot = divmod(key, num_slots)
        rates[outline][slot] = rate
    return rates


def _find_larger_type(
    own: Mapping[int, int],
    types_by_slot: Mapping[int, Sequence[int]],
    outlines: Sequence[Mapping[int, int]],
) -> int | None:
    """Return the first type that has all of these slots, at least half of them at the same rate.

    Unknown rates do not count. None if no type fits.
    """
    # A type that fits has every slot, so the types with the rarest slot are enough.
    candidates = min((types_by_slot.get(slot, ()) for slot in own), key=len)
    return next((number for number in candidates if _is_part(own, outlines[number])), None)


def _is_part(own: Mapping[int, int], larger: Mapping[int, int]) -> bool:
    if not own.keys() <= larger.keys():
        return False
    known = [
        (rate, larger[slot])
        for slot, rate in own.items()
        if UNKNOWN_RATE not in (rate, larger[slot])
    ]
    return 2 * sum(left == right for left, right in known) >= len(known)


def _build_type(
    columns: FabricColumns, table: _SlotTable, rows: Index, switch_of_port: Index
) -> MachineType:
    """Return the type of the hosts in these rows of the table."""
    found, own = np.unique(table.slots[rows], return_inverse=True)
    slots = [table.distinct[slot] for slot in found.tolist()]
    order = sorted(range(len(slots)), key=lambda place: _order_of(slots[place]))
    ports, places = table.numbers[rows], np.argsort(order)[own]
    hosts, lines = np.unique(table.hosts[rows], return_inverse=True)
    grid = np.full((len(hosts), len(slots)), _NO_PORT, np.intp)
    grid[lines, places] = ports
    has_port = grid != _NO_PORT
    is_up = has_port & (columns.states[grid] != STATE_CODES[PortState.DOWN])
    return MachineType(
        slots=tuple(slots[place] for place in order),
        numbers=ports,
        columns=places,
        switches=np.where(has_port, switch_of_port[grid], NO_SWITCH),
        is_up=is_up,
        rates=_find_usual_rates(places, table.rates[rows], len(slots)),
        roce_devices=np.where(has_port, columns.roce_devices[grid], 0).astype(np.intp),
    )


def _order_of(slot: PortSlot) -> tuple[object, ...]:
    """Return the sort key of a slot; a report may list one name several times."""
    return natural_key(slot.name), slot.name, slot.medium, slot.is_rdma, slot.distance or ""


def _find_usual_rates(groups: Index, rates: Rates, num_groups: int) -> Rates:
    """Return the usual rate of each group of ports: the highest that a third of them reach."""
    usual = np.full(num_groups, UNKNOWN_RATE)
    is_known = rates != UNKNOWN_RATE
    groups, rates = groups[is_known], rates[is_known]
    order = np.lexsort((-rates, groups))
    groups, rates = groups[order], rates[order]
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    counts = np.diff(starts, append=len(groups))
    # The rates of a group are descending: the last of its first third is what a third reach.
    num_fastest = -(-counts // _USUAL_SHARE)
    usual[groups[starts]] = rates[starts + num_fastest - 1]
    return usual
