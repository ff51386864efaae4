"""Find both ports of every neighbor entry, and pair the entries to links.

An entry names a port in a way that only the port's owner can resolve: by keys. An entry of a sweep
names a port line, which is found by node and number. An entry is read again only if the owner of
its port does not claim the port.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from topology.identity.device_resolution import Entity
from topology.join.claim_columns import FabricRows
from topology.join.neighbor_resolution import NeighborEntries
from topology.join.numbered_ports import KeyIndex, PortNumberer, find_codes
from topology.join.port_rows import (
    NO_PORT,
    PortTable,
    PortTableBuilder,
    far_port_name,
    find_port,
    index_port,
    join_tables,
    port_keys,
)
from topology.model.claims import Origin
from topology.model.fabric import (
    MEDIA,
    MEDIUM_CODES,
    STATE_CODES,
    UNKNOWN_RATE,
    Flags,
    Index,
    LinkColumns,
    Numbers,
    Rates,
)
from topology.model.facts import Medium, Port, PortState
from topology.model.ids import natural_key


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
    is_lacking = pairer.find_lacking_ports(table)
    is_node = np.array([entities[index].node is not None for index in order], np.bool_)
    del pairer, rows, entries  # their arrays are larger than those of `pair_ends`
    return PairingResult(table, pair_ends(neighbor_rows).links(is_lacking, is_node[table.devices]))


class _NamedEnd(NamedTuple):
    """The port that an entry refers to, and that its owner does not claim under a known name."""

    peer: int
    keys: Sequence[int]
    name: str


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
        self._num_claimed = self._num_ports = self._ports.table.size
        self._place = np.empty(len(order), np.int32)
        self._place[order] = np.arange(len(order))
        self._near = self._ports.near[entries.rows]
        self._claimed_far = self._find_claimed_ports()
        self._heard_back: set[int] = set()
        """Devices that hear another one by names that it does not know, and are heard so."""

    def build_table(self) -> PortTable:
        """Return all ports: the claimed ones, then those that `find_far_ends` added."""
        if self._num_ports == self._num_claimed:
            return self._ports.table
        return join_tables([self._ports.table, self._added_ports.build()])

    def _find_claimed_ports(self) -> Numbers:
        """Return the claimed port that each entry means, or NO_PORT."""
        entries, ports = self._entries, self._ports
        far_rows = self._rows.far_rows[entries.numbers]
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
        """Fill in the ports of the entries that name a port by a key, not by a line of a sweep."""
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
        far_ports = self._claimed_far.copy()
        missing = np.flatnonzero((self._claimed_far == NO_PORT) & (self._near != NO_PORT))
        answers, is_mutual = self._find_answers(missing), self._find_mutual(missing)
        ends = self._read_far_ends(missing)
        port_indexes: dict[int, KeyIndex] = {}
        open_ends: dict[int, _NamedEnd] = {}
        for entry, end, may_be_paired in zip(
            missing.tolist(), ends, is_mutual.tolist(), strict=True
        ):
            if end.peer not in port_indexes:
                port_indexes[end.peer] = dict(self._numberer.index_of(end.peer))
            port = find_port(port_indexes[end.peer], end.keys)
            answering_ports = answers.get((end.peer, int(self._near[entry])), set())
            if port is None and len(answering_ports) == 1:
                (port,) = answering_ports
            if port is not None:
                far_ports[entry] = port
            elif may_be_paired:
                open_ends[entry] = end
            else:
                far_ports[entry] = self._add(entry, end, port_indexes[end.peer])
        paired = self._pair_open_ends(open_ends)
        for entry, end in open_ends.items():
            index = port_indexes[end.peer]
            port = paired.get(entry, find_port(index, end.keys))
            far_ports[entry] = self._add(entry, end, index) if port is None else port
        return far_ports

    def _read_far_ends(self, missing: Index) -> list[_NamedEnd]:
        """Return the port that each entry names, with the keys that identify only this port.

        A MAC that several ports hear, such as that of the whole switch, identifies none of them. A
        name that several ports hear identifies none of them if its other keys differ. If they are
        equal, one of the entries may be stale.
        """
        ends: list[_NamedEnd] = []
        codes, ports, others, names = array("q"), array("i"), array("q"), bytearray()
        for entry in missing.tolist():
            peer, near = self._entries.peers.item(entry), int(self._near[entry])
            neighbor = self._rows.neighbor(
                self._entries.claims.item(entry), self._entries.numbers.item(entry)
            )
            keys = port_keys(neighbor.port_ids, neighbor.port_name)
            hashes = [hash(key) for key in keys]
            ends.append(_NamedEnd(peer, hashes, far_port_name(neighbor)))
            codes.extend(hash((peer, key)) for key in hashes)
            names.extend(key[0] == "name" for key in keys)
            ports.extend([near] * len(keys))
            others.extend([hash(tuple(hashes))] * len(keys))
        code, port, other = np.array(codes), np.array(ports), np.array(others)
        order = np.lexsort((other, port, code))
        code, port, other = code[order], port[order], other[order]
        is_repeated = (code[1:] == code[:-1]) & (port[1:] != port[:-1])
        is_repeated &= ~np.array(names, np.bool_)[order][1:] | (other[1:] != other[:-1])
        shared = frozenset(code[1:][is_repeated].tolist())
        return [
            end._replace(keys=[key for key in end.keys if hash((end.peer, key)) not in shared])
            for end in ends
        ]

    def _find_mutual(self, missing: Index) -> Flags:
        """Return which entries are mutual: each of the two devices has one about the other."""
        devices, peers = self._entries.devices[missing], self._entries.peers[missing]
        devices, peers = devices.astype(np.int64), peers.astype(np.int64)
        is_mutual: Flags = np.isin(devices << _HALF | peers, peers << _HALF | devices)
        return is_mutual & ~self._rows.is_swept[self._entries.numbers[missing]]

    def _pair_open_ends(self, open_ends: Mapping[int, _NamedEnd]) -> dict[int, int]:
        """Return the hearing port of the other end for entries that only elimination can resolve.

        If two devices have equally many entries about each other, each pair is a cable. If one
        device has more, the surplus is cables that the other device does not hear. The names that
        one end gives the ports of the other end are in the order of those ports. Without such
        names, the cables are in the order of their ports.
        """
        by_pair: dict[tuple[int, int], list[int]] = defaultdict(list)
        for entry, end in open_ends.items():
            by_pair[self._entries.devices.item(entry), end.peer].append(entry)
        names = self._ports.table.port_names()
        found: dict[int, int] = {}

        def order(entries: Sequence[int], *, is_far: bool) -> list[int]:
            return sorted(
                entries,
                key=lambda entry: natural_key(
                    open_ends[entry].name if is_far else names[int(self._near[entry])]
                ),
            )

        for (device, peer), entries in by_pair.items():
            others = by_pair.get((peer, device), [])
            if device >= peer or not others:
                continue
            self._heard_back.update((device, peer))
            near, far = order(entries, is_far=False), order(others, is_far=False)
            by_far_names = dict(zip(order(entries, is_far=True), far, strict=False))
            by_near_names = dict(zip(near, order(others, is_far=True), strict=False))
            is_ordered = len(near) == len(far) and by_far_names == by_near_names
            cables = by_far_names if is_ordered else dict(zip(near, far, strict=False))
            for entry, other in cables.items():
                found[entry], found[other] = int(self._near[other]), int(self._near[entry])
        return found

    def _add(self, entry: int, end: _NamedEnd, index: KeyIndex) -> int:
        hearing = MEDIA[self._ports.table.media.item(int(self._near[entry]))]
        # A cable has one medium.
        medium = Medium.INFINIBAND if hearing is Medium.INFINIBAND else Medium.ETHERNET
        self._added_ports.add(int(self._place[end.peer]), Port(end.name, medium=medium))
        index_port(index, port_number := self._num_ports, end.keys)
        self._num_ports += 1
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
        are_swept = self._rows.is_swept[entries.numbers]
        return NeighborRows(
            near=self._near,
            far=far,
            can_confirm=self._have_reported_media()[entries.peers, are_swept.astype(np.intp)],
            is_swept=are_swept,
            rates=self._rows.table.rates[entries.rows],
        )

    def _have_reported_media(self) -> Flags:
        """Return, by device, whether its claims would show its Ethernet and InfiniBand cables.

        Only a sweep shows the cables of an HCA; the host's own report does not.
        """
        table, (claims, owners) = self._rows.columns.table, self._numberer.claims_in_order()
        origins = table.origins()
        shows_ethernet = np.array([facts.shows_ethernet for facts in table.facts], np.bool_)
        shows_ethernet &= origins == Origin.REPORT
        shows_ethernet |= origins == Origin.CAPTURE
        media = np.zeros((len(self._entities), 2), np.bool_)
        media[owners[shows_ethernet[claims]], 0] = True
        media[owners[origins[claims] == Origin.SWEEP], 1] = True
        return media

    def find_lacking_ports(self, table: PortTable) -> Flags:
        """Return one flag per port: whether the full report of its device lacks it.

        A device that reports what its ports hear lacks a port that only others name, unless one of
        its own ports may be that port: a port that is not down and hears nothing.
        """
        is_lacking = np.zeros(table.size, np.bool_)
        if table.size == self._num_claimed:
            return is_lacking
        claimed = np.arange(self._num_claimed)
        is_open = (table.media[claimed] == MEDIUM_CODES[Medium.ETHERNET]) & (
            table.states[claimed] != STATE_CODES[PortState.DOWN]
        )
        hearing = self._near[self._near != NO_PORT]
        is_open[hearing] = False
        has_report = np.zeros(len(self._entities), np.bool_)
        has_report[self._place] = [Origin.REPORT in entity.origins for entity in self._entities]
        may_have_more = np.ones(len(self._entities), np.bool_)
        may_have_more[table.devices[hearing]] = False
        may_have_more |= ~has_report
        may_have_more[table.devices[claimed[is_open]]] = True
        may_have_more[self._place[list(self._heard_back)]] = True
        added = np.arange(self._num_claimed, table.size)
        is_lacking[added] = ~may_have_more[table.devices[added]]
        return is_lacking


_HALF = 32
"""Bits for one of the two port numbers in a key."""


class NeighborRows(NamedTuple):
    """Every neighbor entry of a fabric, one entry per row."""

    near: Numbers
    """The hearing port; NO_PORT if several ports share its names."""
    far: Numbers
    """The port that is heard; NO_PORT if `near` is NO_PORT."""
    can_confirm: Flags
    """Whether the peer would report this cable."""
    is_swept: Flags
    """Whether a sweep reports the entry; its lines may be lost, but nobody forges them."""
    rates: Rates
    """Rate of the hearing port in its claim."""


class CableColumns(NamedTuple):
    """The cables that neighbor entries report, sorted by their ports."""

    a: Index
    """The lower port."""
    b: Index
    is_reported_by_a: Flags
    """Whether an entry of port `a` reports the cable."""
    is_reported_by_b: Flags
    can_confirm: Flags
    """Whether the peer of any of its entries would report the cable."""
    is_swept: Flags
    """Whether a sweep reports any of its entries."""
    rates: Rates
    """The lowest rate in its entries."""

    def links(self, is_lacking: Flags, is_of_node: Flags) -> LinkColumns:
        """Return the cables as links.

        A port has one cable. The word of one end does not count against a cable that both ends
        report, nor against what the other end says about its own port: a host may send frames in
        another's name, and a switch may say anything in its walk.

        Args:
            is_lacking: one flag per port: whether the full report of its device lacks it.
            is_of_node: one flag per port: whether it is a node's; a node's word about its own cable
                moves that node alone, and the walk of a switch may lack ports.
        """
        is_both = self.is_reported_by_a & self.is_reported_by_b
        # The two ends of a cable that one end reports.
        reporter = np.where(self.is_reported_by_a, self.a, self.b)
        silent = np.where(self.is_reported_by_a, self.b, self.a)
        # By port: whether both ends report a cable of it, or it hears a peer that cannot report.
        is_confirmed, hears_another = (np.zeros(len(is_lacking), np.bool_) for _ in range(2))
        is_confirmed[np.concatenate([self.a[is_both], self.b[is_both]])] = True
        hears_another[reporter[~is_both & ~self.can_confirm & ~self.is_swept]] = True
        is_denied = is_confirmed[reporter] & self.can_confirm
        is_without_port = is_lacking[silent] & ~is_of_node[reporter]
        is_contradicted = is_denied | hears_another[silent] | is_without_port
        is_disputed = is_confirmed[silent] | (is_contradicted & ~self.is_swept)
        return LinkColumns(
            a=self.a,
            b=self.b,
            is_one_sided=~is_both & self.can_confirm,
            is_disputed=~is_both & is_disputed,
            rates=self.rates,
        )


def pair_ends(rows: NeighborRows) -> CableColumns:
    """Return the cables that entries report. Cost: O(n log n), and 30 bytes per entry meanwhile."""
    used = np.flatnonzero((rows.near != NO_PORT) & (rows.near != rows.far))
    keys = np.minimum(rows.near[used], rows.far[used]).astype(np.int64) << _HALF
    keys |= np.maximum(rows.near[used], rows.far[used])
    order = np.argsort(keys, kind="stable")
    keys, used = keys[order], used[order]
    del order
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    if not len(starts):
        no_flags = np.zeros(0, np.bool_)
        flags = no_flags, no_flags, no_flags, no_flags
        return CableColumns(starts, starts, *flags, rates=np.zeros(0, np.int64))
    is_low = rows.near[used] == keys >> _HALF
    rates = rows.rates[used]
    rates[rates == UNKNOWN_RATE] = np.iinfo(np.int64).max
    lowest = np.minimum.reduceat(rates, starts)
    return CableColumns(
        a=keys[starts] >> _HALF,
        b=keys[starts] & ((1 << _HALF) - 1),
        is_reported_by_a=np.logical_or.reduceat(is_low, starts),
        is_reported_by_b=np.logical_or.reduceat(~is_low, starts),
        can_confirm=np.logical_or.reduceat(rows.can_confirm[used], starts),
        is_swept=np.logical_or.reduceat(rows.is_swept[used], starts),
        rates=np.where(lowest == np.iinfo(np.int64).max, UNKNOWN_RATE, lowest),
    )
