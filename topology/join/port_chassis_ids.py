"""Switches that send another chassis id on each port, such as the MAC of the port on NX-OS.

Descriptions with one name are of one such switch if each has one id that one port hears, no two of
them come from the same port, no port hears two of them, no management addresses contradict it, and
the ids are in step with the numbers of the ports, as those of one box are. Two switches with the
same default name and address meet all of these conditions but the last. So if only the last fails,
the case is undecided, and a finding says so.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from topology.identity.device_kinds import FORWARDS
from topology.join.neighbor_resolution import NeighborResolver
from topology.join.port_ends import PortEnds
from topology.join.port_rows import PortKey, encode_style, port_keys
from topology.model.claims import strong_key
from topology.model.facts import DeviceKind
from topology.model.ids import Id, IdKind, full_name

_MAX_STEP: Final = 8
"""The most MACs of one port, which may have one for each lane. A switch has at least 16."""


class NamesakePorts(NamedTuple):
    """Descriptions of one name, each heard on a port of its own."""

    name: str
    descriptions: Sequence[int]
    are_one_switch: bool
    """Otherwise they may be of one device or of several."""
    are_forwarding: bool
    """Whether each says that it is a bridge or a router."""


class _PortOfSwitch(NamedTuple):
    """A description that is heard on one port alone."""

    mac: int
    port: tuple[PortKey, ...]
    numbers: tuple[int, ...]
    """All numbers in the name of the port."""
    addresses: frozenset[str]
    hearing_port: int
    is_forwarding: bool


def find_ids_per_port(
    resolver: NeighborResolver, ends: PortEnds, members: Iterable[int]
) -> Iterator[NamesakePorts]:
    """Yield the descriptions of switches that send an id per port, among those that share a word.

    Cost: O(entries about them); reads the claims that hear them.
    """
    entities = resolver.identities.entities
    by_name: dict[str, list[int]] = defaultdict(list)
    for entity in members:
        names, kind = entities[entity].names, entities[entity].kind
        if entity >= resolver.num_claimed and names and kind is not DeviceKind.HOST:
            by_name[full_name(names[0])].append(entity)
    for name, alike in by_name.items():
        if len(alike) > 1:
            ports = [_read_port(ends, entity, entities[entity].heard_ids) for entity in alike]
            known = [port for port in ports if port is not None]
            if len(known) == len(ports) and _may_be_one_switch(known):
                are_forwarding = all(port.is_forwarding for port in known)
                yield NamesakePorts(name, alike, _are_in_step(known), are_forwarding)


def _read_port(ends: PortEnds, entity: int, ids: Iterable[Id]) -> _PortOfSwitch | None:
    """Return the port on which a description is heard; None unless it has one id and one hearer."""
    keys = {key for identifier in ids if (key := strong_key(identifier)) is not None}
    macs = [value for kind, value in keys if kind == IdKind.MAC]
    heard, hearing = ends.entries_about(entity), ends.hearing_ports(entity)
    ports = {tuple(port_keys(neighbor.port_ids, neighbor.port_name)) for neighbor in heard}
    if not len(keys) == len(macs) == len(ports) == len(hearing) == 1:
        return None
    return _PortOfSwitch(
        int(macs[0].replace(":", ""), 16),
        ports.pop(),
        tuple(map(int, re.findall(r"[0-9]+", heard[0].port_name))),
        frozenset(identifier.value for identifier in ids if identifier.kind is IdKind.IP),
        hearing.pop(),
        any(FORWARDS & encode_style(neighbor) for neighbor in heard),
    )


def _may_be_one_switch(ports: Sequence[_PortOfSwitch]) -> bool:
    hearing_ports = {port.hearing_port for port in ports}
    sending_ports = {port.port for port in ports}
    are_apart = len(hearing_ports) == len(sending_ports) == len(ports)
    addresses = [port.addresses for port in ports if port.addresses]
    is_contradicted = bool(addresses) and not frozenset.intersection(*addresses)
    return are_apart and not is_contradicted


def _are_in_step(ports: Sequence[_PortOfSwitch]) -> bool:
    """Return whether the ids differ by the same steps as the numbers of the ports."""
    if len({len(port.numbers) for port in ports}) > 1:
        return False
    columns = zip(*(port.numbers for port in ports), strict=True)
    differing = [place for place, column in enumerate(columns) if len(set(column)) > 1]
    if len(differing) != 1:
        return False
    rows = sorted((port.numbers[differing[0]], port.mac) for port in ports)
    (first, first_mac), (second, second_mac) = rows[:2]
    if first == second:
        return False
    step, rest = divmod(second_mac - first_mac, second - first)
    is_even = all(mac - first_mac == step * (number - first) for number, mac in rows)
    return is_even and not rest and 0 < step <= _MAX_STEP
