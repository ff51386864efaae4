"""Switches that send another chassis id on each port, such as the MAC of the port on NX-OS.

Descriptions with one name are of one such switch if each has one id that is heard on one port, no
two of them on the same one, and no port hears two of them. What two switches of one name also could
show is not enough, so the management address must be the same; without one, the ids must be in step
with the numbers of the ports, as those of one box are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from topology.join.neighbor_resolution import NeighborResolver
from topology.join.port_ends import PortEnds
from topology.join.port_numbers import PortKey, port_keys
from topology.model.claims import strong_key
from topology.model.facts import DeviceKind, Neighbor
from topology.model.ids import Id, IdKind, full_name

_MAX_STEP: Final = 64
"""MACs from one port to the next: a port may have one for each of its lanes."""


class _PortOfSwitch(NamedTuple):
    """A description that is heard on one port alone."""

    entity: int
    mac: int
    port: tuple[PortKey, ...]
    port_number: int | None
    """The last number in the name of the port."""
    addresses: frozenset[str]
    hearing_ports: frozenset[int]


def find_switches_with_id_per_port(
    resolver: NeighborResolver, ends: PortEnds, members: Iterable[int]
) -> Iterator[list[int]]:
    """Yield the descriptions of each such switch, among those that share a word.

    Cost: O(entries about them); reads the claims that hear them.
    """
    entities = resolver.identities.entities
    by_name: dict[str, list[int]] = defaultdict(list)
    for entity in members:
        is_heard_only = entity >= resolver.num_claimed
        if (
            is_heard_only
            and entities[entity].kind is not DeviceKind.HOST
            and entities[entity].names
        ):
            by_name[full_name(entities[entity].names[0])].append(entity)
    for alike in by_name.values():
        if len(alike) > 1:
            ports = [_read_port(ends, entity, entities[entity].heard_ids) for entity in alike]
            known = [port for port in ports if port is not None]
            if len(known) == len(ports) and _are_of_one_switch(known):
                yield alike


def _read_port(ends: PortEnds, entity: int, ids: Iterable[Id]) -> _PortOfSwitch | None:
    """Return the port on which a description is heard; None if several are, or it has no one id."""
    keys = {key for one in ids if (key := strong_key(one)) is not None}
    heard = ends.entries_about(entity)
    ports = {tuple(port_keys(one.port_ids, one.port_name)) for one in heard}
    if len(keys) != 1 or len(ports) != 1:
        return None
    ((kind, mac),) = keys
    if kind != IdKind.MAC:
        return None
    return _PortOfSwitch(
        entity,
        int(mac.replace(":", ""), 16),
        ports.pop(),
        _last_number(heard[0]),
        frozenset(one.value for one in ids if one.kind is IdKind.IP),
        frozenset(ends.hearing_ports(entity)),
    )


def _last_number(neighbor: Neighbor) -> int | None:
    found = re.findall(r"\d+", neighbor.port_name)
    return int(found[-1]) if found else None


def _are_of_one_switch(ports: Sequence[_PortOfSwitch]) -> bool:
    hearing = [one.hearing_ports for one in ports]
    is_apart = len(frozenset().union(*hearing)) == sum(map(len, hearing))
    if not is_apart or len({one.port for one in ports}) < len(ports):
        return False
    addresses = {one.addresses for one in ports}
    if len(addresses) > 1:
        return False
    return addresses != {frozenset()} or _are_in_step(ports)


def _are_in_step(ports: Sequence[_PortOfSwitch]) -> bool:
    """Return whether ids differ as the numbers of ports do, by a constant step of at most 64."""
    rows = sorted((one.port_number, one.mac) for one in ports if one.port_number is not None)
    if len(rows) < len(ports) or len({number for number, _ in rows}) < len(rows):
        return False
    (first, first_mac), (second, second_mac) = rows[:2]
    step, rest = divmod(second_mac - first_mac, second - first)
    return (
        not rest
        and 0 < step <= _MAX_STEP
        and all(mac - first_mac == step * (number - first) for number, mac in rows)
    )
