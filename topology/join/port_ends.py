"""What is at the other end of a port: by its own entry, and by the entries of other devices.

Only LLDP and the like count: a sweep identifies every device by GUID.

A port has one cable. Two descriptions of which each is at the other end of the same ports are of
one device. A port is a device and a key of the port, because each end names it in its own words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

import numpy as np

from topology.identity.device_resolution import Entity
from topology.join.neighbor_resolution import NeighborEntries, neighbor_entries
from topology.join.port_numbers import port_keys
from topology.model.fabric_columns import Flags, Index

FarPort = tuple[int, int]
"""The device of a port, and the hash of one of the port's keys."""
MAX_DESCRIPTIONS: Final = 6
"""More descriptions at the other end of one port are of devices behind an unmanaged switch."""


@dataclass(slots=True)
class PortEnds:
    """The other ends of the ports in neighbor entries, read when they are needed."""

    entities: Sequence[Entity]
    entries: NeighborEntries
    _devices: Index = field(init=False)
    _ports: Index = field(init=False)
    _peers: Index = field(init=False)
    _is_swept: Flags = field(init=False)
    _by_peer: Index = field(init=False)
    _sorted_peers: Index = field(init=False)
    _at_ports: dict[FarPort, list[int]] | None = field(init=False, default=None)
    _own_keys: dict[int, list[tuple[int, ...]]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Index the entries by the device that is heard. Cost: O(n log n) in entries."""
        self._devices = np.array(self.entries.devices, np.intp)
        self._ports = np.array(self.entries.ports, np.intp)
        self._peers = np.array(self.entries.peers, np.intp)
        self._is_swept = np.array(self.entries.is_swept, np.bool_)
        unswept = np.flatnonzero(~self._is_swept)
        self._by_peer = unswept[np.argsort(self._peers[unswept], kind="stable")]
        self._sorted_peers = self._peers[self._by_peer]

    def reporters(self, entity: int) -> set[int]:
        """Return the other devices that hear a device."""
        return set(self._devices[self._rows_about(entity)].tolist()) - {entity}

    def heard_by(self, entity: int) -> set[int]:
        """Return the other devices that a device hears."""
        return set(self._peers[self._rows_of(entity)].tolist()) - {entity}

    def hearing_ports(self, entity: int) -> set[int]:
        """Return the numbers of the ports that hear a device."""
        return set(self._ports[self._rows_about(entity)].tolist())

    def far_ports(self, entity: int) -> set[FarPort]:
        """Return the ports at the other ends of a device's cables, each by all of its keys.

        These are the ports that the device hears, and the ports that hear it.
        """
        heard = {
            (int(self._peers[row]), key)
            for row in self._rows_of(entity).tolist()
            for key in self.entries.keys_of(row)
        }
        hearing = {
            (int(self._devices[row]), key)
            for row in self._rows_about(entity).tolist()
            for key in self._keys_of_own_port(row)
        }
        return {end for end in heard | hearing if end[0] != entity}

    def at_ports(self) -> Mapping[FarPort, Sequence[int]]:
        """Return the entities at the other end of each port. Cost: O(entries), 10 µs each."""
        if self._at_ports is None:
            self._at_ports = defaultdict(list)
            for entity in range(len(self.entities)):
                for end in self.far_ports(entity):
                    self._at_ports[end].append(entity)
        return self._at_ports

    def _rows_of(self, entity: int) -> Index:
        rows = np.arange(*np.searchsorted(self._devices, [entity, entity + 1]))
        own_rows: Index = rows[~self._is_swept[rows]]
        return own_rows

    def _rows_about(self, entity: int) -> Index:
        first, stop = np.searchsorted(self._sorted_peers, [entity, entity + 1])
        rows: Index = self._by_peer[first:stop]
        return rows

    def _keys_of_own_port(self, row: int) -> tuple[int, ...]:
        """Return the keys of the port that hears an entry, as its own device names it."""
        device = int(self._devices[row])
        if device not in self._own_keys:
            claimed = (claim.device for claim in self.entities[device].claims)
            self._own_keys[device] = [
                keys
                for port, neighbors in neighbor_entries(claimed)
                for keys in [tuple(map(hash, port_keys(port.ids, port.name)))] * len(neighbors)
            ]
        return self._own_keys[device][row - int(np.searchsorted(self._devices, device))]


def count_shared_ends(far_ports: Mapping[int, Iterable[FarPort]]) -> dict[tuple[int, int], int]:
    """Return how many devices have a port that two entities both are at the other end of.

    Args:
        far_ports: by entity: the ports at the other ends of its cables.
    """
    devices: dict[tuple[int, int], set[int]] = defaultdict(set)
    for (device, _), pair in _pairs_per_port(far_ports):
        devices[pair].add(device)
    return {pair: len(shared) for pair, shared in devices.items()}


def _pairs_per_port(
    far_ports: Mapping[int, Iterable[FarPort]],
) -> Iterator[tuple[FarPort, tuple[int, int]]]:
    """Yield the pairs of entities at the other end of one port."""
    entities: dict[FarPort, list[int]] = defaultdict(list)
    for entity in sorted(far_ports):
        for end in far_ports[entity]:
            entities[end].append(entity)
    for end, ends in entities.items():
        if len(ends) <= MAX_DESCRIPTIONS:
            yield from ((end, pair) for pair in combinations(ends, 2))
