"""Find both ports of every neighbor entry, and pair the entries to links.

An entry names a port in a way that only the port's owner can resolve: by keys. An entry of a sweep
names a port line, which is found by node and number. Only entries whose port its owner does not
claim are read again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from topology.identity.device_resolution import Entity
from topology.join.fabric_rows import FabricRows
from topology.join.neighbor_links import NO_PORT, NeighborRows, Numbers, pair_ends
from topology.join.neighbor_resolution import NeighborEntries
from topology.join.numbered_ports import KeyIndex, PortNumberer, find_codes
from topology.join.port_numbers import (
    far_port,
    find_port,
    index_port,
    port_keys,
)
from topology.join.port_table import PortTable, PortTableBuilder, join_tables
from topology.model.claims import Claim, Origin
from topology.model.fabric_columns import Flags, Index, LinkColumns
from topology.model.facts import Port


@dataclass(frozen=True, slots=True)
class PairingResult:
    """All ports and links."""

    table: PortTable
    links: LinkColumns


def pair_entries(
    rows: FabricRows, entities: Sequence[Entity], entries: NeighborEntries, order: Sequence[int]
) -> PairingResult:
    """Return the ports of all devices, and the links between them.

    Cost: O(n log n) in ports and entries, as arrays; 50 µs for an entry whose port its owner does
    not claim.

    Args:
        rows: the port rows and neighbor entries of all claims.
        entities: all devices.
        entries: the neighbor entries of all devices, resolved.
        order: the entities in the order in which the fabric numbers them.
    """
    pairer = _EntryPairer(rows, entities, entries, np.array(order, np.intp))
    neighbor_rows = pairer.neighbor_rows(pairer.find_far_ends())
    table = pairer.build_table()
    cables = pair_ends(neighbor_rows)
    is_confirmed = np.zeros(table.size, np.bool_)
    is_confirmed[cables.confirmed_ports] = True
    return PairingResult(table, cables.links(is_confirmed))


class _EntryPairer:
    def __init__(
        self,
        rows: FabricRows,
        entities: Sequence[Entity],
        entries: NeighborEntries,
        order: Index,
    ) -> None:
        self._added_ports = PortTableBuilder()
        self._rows, self._entities, self._entries = rows, entities, entries
        self._numberer = PortNumberer(rows, entities, order)
        self._ports = self._numberer.number_ports()
        self._num_claimed = self._ports.table.size
        self._place = np.empty(len(order), np.int32)
        self._place[order] = np.arange(len(order))
        self._near = self._ports.near[entries.rows]
        self._claimed_far = self._find_claimed_ports()

    def build_table(self) -> PortTable:
        """Return all ports: the claimed ones, then those that `find_far_ends` added."""
        if not len(self._added_ports):
            return self._ports.table
        return join_tables([self._ports.table, self._added_ports.build()])

    def _find_claimed_ports(self) -> Numbers:
        """Return the claimed port that each entry means, or NO_PORT."""
        entries, ports = self._entries, self._ports
        far_rows = self._rows.far_rows()[entries.numbers]
        is_line = (far_rows != NO_PORT) & (ports.entities[far_rows] == entries.peers)
        is_line &= ports.is_named[far_rows]
        claimed = np.where(is_line, ports.ports[far_rows], NO_PORT).astype(np.int32)
        self._find_by_keys(claimed)
        has_lines = self._have_lines()
        for index in np.flatnonzero((claimed == NO_PORT) & has_lines[entries.peers]).tolist():
            keys = self._rows.far_keys(entries.numbers.item(index))
            port = find_port(self._numberer.index_of(entries.peers.item(index)), keys)
            claimed[index] = NO_PORT if port is None else port
        claimed[self._near == NO_PORT] = NO_PORT
        return claimed

    def _find_by_keys(self, claimed: Numbers) -> None:
        """Fill in the ports that entries of claims that were read name by a key."""
        entries, read = self._entries, self._rows.read.entries
        codes = self._numberer.key_columns(self._ports)
        chosen = np.flatnonzero((entries.numbers < len(read.rows)) & (claimed == NO_PORT))
        numbers = entries.numbers[chosen]
        stops = read.key_stops.astype(np.intp)
        positions, stops = (stops - np.diff(stops, prepend=0))[numbers], stops[numbers]
        while len(chosen):
            is_left = positions < stops
            chosen, positions, stops = chosen[is_left], positions[is_left], stops[is_left]
            found = find_codes(codes, read.keys[positions], entries.peers[chosen])
            claimed[chosen] = found
            is_open = found == NO_PORT
            chosen, positions, stops = chosen[is_open], positions[is_open] + 1, stops[is_open]

    def _have_lines(self) -> Flags:
        """Return one flag per entity: whether a sweep describes one of its ports."""
        has_lines = np.zeros(len(self._entities), np.bool_)
        owners = self._ports.entities[self._rows.num_read :]
        has_lines[owners[owners != NO_PORT]] = True
        # Entries of sweeps name their ports by keys that are not in the columns of keys.
        is_swept = self._entries.numbers >= self._rows.num_read_entries
        has_lines[np.unique(self._entries.peers[is_swept])] = True
        return has_lines

    def find_far_ends(self) -> Numbers:
        """Return the port that each entry refers to; add a port that its owner does not claim."""
        entries, far_ports = self._entries, self._claimed_far.copy()
        missing = np.flatnonzero((self._claimed_far == NO_PORT) & (self._near != NO_PORT))
        answers = self._find_answers(missing)
        port_indexes: dict[int, KeyIndex] = {}
        for entry in missing.tolist():
            peer = entries.peers.item(entry)
            neighbor = self._rows.neighbor(entries.claims.item(entry), entries.numbers.item(entry))
            if peer not in port_indexes:
                port_indexes[peer] = dict(self._numberer.index_of(peer))
            keys = list(map(hash, port_keys(neighbor.port_ids, neighbor.port_name)))
            far_port_number = find_port(port_indexes[peer], keys)
            answering_ports = answers.get((peer, int(self._near[entry])), set())
            if far_port_number is None and len(answering_ports) == 1:
                (far_port_number,) = answering_ports
            if far_port_number is None:
                far_port_number = self._add(entry, far_port(neighbor))
                index_port(port_indexes[peer], far_port_number, keys)
            far_ports[entry] = far_port_number
        return far_ports

    def _add(self, entry: int, port: Port) -> int:
        port_number = self._num_claimed + len(self._added_ports)
        self._added_ports.add(int(self._place[self._entries.peers[entry]]), port)
        return port_number

    def _find_answers(self, missing: Index) -> dict[tuple[int, int], set[int]]:
        """Return the ports of a device that hear a far port, by (device, far port).

        The far ports are the hearing ports of unresolved entries. If a port sends an id that its
        owner does not claim (an alias, a bond's MAC), the port is identified by its own entry: it
        hears the far port back.
        """
        is_needed = (self._claimed_far != NO_PORT) & np.isin(self._claimed_far, self._near[missing])
        answers: dict[tuple[int, int], set[int]] = defaultdict(set)
        for entry in np.flatnonzero(is_needed).tolist():
            answers[self._entries.devices.item(entry), int(self._claimed_far[entry])].add(
                int(self._near[entry])
            )
        return answers

    def neighbor_rows(self, far: Numbers) -> NeighborRows:
        """Return all entries as rows, given the port that each entry refers to."""
        entries = self._entries
        are_swept = self._rows.is_swept()[entries.numbers]
        facts = self._rows.columns.table.facts
        media = [
            _reported_media(
                entity.claims, [facts[number].shows_ethernet for number in entity.numbers]
            )
            for entity in self._entities
        ]
        can_confirm = np.array(media, np.bool_)
        return NeighborRows(
            near=self._near,
            far=far,
            can_confirm=can_confirm.reshape(-1, 2)[entries.peers, are_swept.astype(np.intp)],
            rates=self._rows.table.rates[entries.rows],
        )


def _reported_media(claims: Sequence[Claim], show_ethernet: Iterable[bool]) -> tuple[bool, bool]:
    """Return whether the claims would report an Ethernet cable of a device, and an InfiniBand one.

    Only a sweep shows the cables of an HCA; the host's own report does not.

    Args:
        claims: the claims about the device.
        show_ethernet: for each claim, the result of `shows_ethernet` for a report.
    """
    origins = {claim.origin for claim in claims}
    is_ethernet = Origin.CAPTURE in origins or any(
        claim.origin is Origin.REPORT and is_shown
        for claim, is_shown in zip(claims, show_ethernet, strict=True)
    )
    return is_ethernet, Origin.SWEEP in origins
