"""What is at the other end of a port: by its own entry, and by the entries of other devices.

Only LLDP and the like count: a sweep identifies every device by GUID.

A port has one cable. Two descriptions at the other end of the same ports are of one device. A port
is a device and a key of the port, because each end names it in its own words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

import numpy as np

from topology.join.claim_columns import FabricRows
from topology.join.neighbor_resolution import NeighborEntries
from topology.model.fabric import Flags, Index, Numbers
from topology.model.facts import Neighbor

FarPort = tuple[int, int]
"""The device of a port, and the hash of one of the port's keys."""
MAX_DESCRIPTIONS: Final = 6
"""More descriptions at the other end of one port are of devices behind an unmanaged switch."""


@dataclass(slots=True)
class PortEnds:
    """The other ends of the ports in neighbor entries, read when they are needed."""

    rows: FabricRows
    entries: NeighborEntries
    _is_swept: Flags = field(init=False)
    _by_peer: Index = field(init=False)
    _sorted_peers: Numbers = field(init=False)
    _at_ports: dict[FarPort, list[int]] | None = field(init=False, default=None)
    _own_keys: dict[int, list[list[int]]] = field(init=False, default_factory=dict)
    """By claim: the keys of its ports."""

    def __post_init__(self) -> None:
        """Index the entries by the device that is heard. Cost: O(n log n) in entries."""
        self._is_swept = self.rows.is_swept[self.entries.numbers]
        unswept = np.flatnonzero(~self._is_swept)
        self._by_peer = unswept[np.argsort(self.entries.peers[unswept], kind="stable")]
        self._sorted_peers = self.entries.peers[self._by_peer]

    def at_ports(self) -> Mapping[FarPort, Sequence[int]]:
        """Return the entities at the other end of each port. Cost: O(entries), 10 µs each."""
        if self._at_ports is None:
            self._at_ports = defaultdict(list)
            num_entities = 1 + max(
                int(self.entries.devices.max(initial=-1)), int(self.entries.peers.max(initial=-1))
            )
            for entity in range(num_entities):
                for end in self.far_ports(entity):
                    self._at_ports[end].append(entity)
        return self._at_ports

    def reporters(self, entity: int) -> set[int]:
        """Return the other devices that hear a device."""
        return set(self.entries.devices[self._rows_about(entity)].tolist()) - {entity}

    def heard_by(self, entity: int) -> set[int]:
        """Return the other devices that a device hears."""
        return set(self.entries.peers[self._rows_of(entity)].tolist()) - {entity}

    def hearing_ports(self, entity: int) -> set[int]:
        """Return the numbers of the ports that hear a device."""
        return set(self.entries.rows[self._rows_about(entity)].tolist())

    def entries_about(self, entity: int) -> list[Neighbor]:
        """Return the neighbor entries, from all ports, that mean a device."""
        rows, entries = self._rows_about(entity).tolist(), self.entries
        return [
            self.rows.neighbor(entries.claims.item(row), entries.numbers.item(row)) for row in rows
        ]

    def far_ports(self, entity: int) -> set[FarPort]:
        """Return the ports at the other ends of a device's cables, each by all of its keys.

        These are the ports that the device hears, and the ports that hear it.
        """
        heard = {
            (int(self.entries.peers[row]), key)
            for row in self._rows_of(entity).tolist()
            for key in self.rows.far_keys(self.entries.numbers.item(row))
        }
        hearing = {
            (int(self.entries.devices[row]), key)
            for row in self._rows_about(entity).tolist()
            for key in self._keys_of_own_port(row)
        }
        return {end for end in heard | hearing if end[0] != entity}

    def _rows_of(self, entity: int) -> Index:
        rows = np.arange(*np.searchsorted(self.entries.devices, [entity, entity + 1]))
        own_rows: Index = rows[~self._is_swept[rows]]
        return own_rows

    def _rows_about(self, entity: int) -> Index:
        first, stop = np.searchsorted(self._sorted_peers, [entity, entity + 1])
        rows: Index = self._by_peer[first:stop]
        return rows

    def _keys_of_own_port(self, row: int) -> Sequence[int]:
        """Return the keys of the port that hears an entry, as its own device names it."""
        claim = self.entries.claims.item(row)
        if claim not in self._own_keys:
            self._own_keys[claim] = self.rows.own_keys(claim)
        return self._own_keys[claim][self.entries.rows.item(row) - self.rows.first_rows.item(claim)]


def count_shared_ends(far_ports: Mapping[int, Iterable[FarPort]]) -> dict[tuple[int, int], int]:
    """Return, by pair of entities, how many devices have a port at which both are reported.

    Args:
        far_ports: the ports at the other ends of an entity's cables, by entity.
    """
    devices: dict[tuple[int, int], set[int]] = defaultdict(set)
    for (device, _), pair in _pairs_per_port(far_ports):
        devices[pair].add(device)
    return {pair: len(shared) for pair, shared in devices.items()}


def _pairs_per_port(
    far_ports: Mapping[int, Iterable[FarPort]],
) -> Iterator[tuple[FarPort, tuple[int, int]]]:
    """Yield each port with each pair of entities that claim to be at its other end."""
    entities: dict[FarPort, list[int]] = defaultdict(list)
    for entity in sorted(far_ports):
        for end in far_ports[entity]:
            entities[end].append(entity)
    for end, ends in entities.items():
        if len(ends) <= MAX_DESCRIPTIONS:
            yield from ((end, pair) for pair in combinations(ends, 2))
