"""Number the ports of all devices: as arrays where no port shares a key, else key by key.

The ports of one device are numbered in the order of its claims. Two claims may describe the same
port; a key that they share shows that. Keys are hashes, see `port_numbers.port_keys`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Final, TypeAlias

import numpy as np

from topology.identity.device_resolution import Entity
from topology.join.claim_columns import NO_SWEEP
from topology.join.claim_rows import Hashes, expand_spans
from topology.join.fabric_rows import FabricRows, PairedRows, mix_keys, no_pairs, pair_rows
from topology.join.neighbor_links import NO_PORT, Numbers
from topology.join.port_numbers import SEVERAL_PORTS, find_port, index_port
from topology.join.port_table import PortTable
from topology.model.fabric_columns import STATE_CODES, UNKNOWN_RATE, Flags, Index
from topology.model.facts import PortState
from topology.sources.ibnetdiscover.columns import HCA, NO_GUID

KeyIndex: TypeAlias = dict[int, int]
"""Hash of a port key to port; SEVERAL_PORTS if several ports share the key."""
_SPREAD: Final = 0x1E3779B97F4A7C15
"""Spreads the numbers of entities over 64 bits, so that an entity and a key make one number."""
_UNKNOWN: Final = STATE_CODES[PortState.UNKNOWN]


@dataclass(slots=True)
class _KeyedPorts:
    """The ports of one entity that was numbered key by key; ports are numbers in the entity."""

    rows: list[int]
    """All rows of the entity."""
    ports: list[int]
    """In the order of `rows`: the port of the row."""
    near: list[int]
    """In the order of `rows`: the port that the row's own keys name, or NO_PORT."""
    is_named: list[bool]
    """In the order of `rows`: whether the first key of the row names its port alone."""
    first_rows: list[int]
    """By port: the first row that describes it."""
    index: KeyIndex


@dataclass(slots=True)
class NumberedPorts:
    """The claimed ports of a fabric."""

    table: PortTable
    first_ports: Index
    """By entity: its first port."""
    ports: Numbers
    """By row: the port of the fabric."""
    near: Numbers
    """By row: the port that the row's own keys name, or NO_PORT."""
    is_named: Flags
    """By row: whether the first key of the row names this port alone."""
    entities: Index
    """By row: the entity that has the port."""


@dataclass(slots=True)
class PortNumberer:
    """Numbers the ports of all entities, and finds ports by their keys."""

    rows: FabricRows
    entities: Sequence[Entity]
    order: Index
    """The entities in the order in which the fabric numbers them."""
    _keyed: dict[int, _KeyedPorts] = field(default_factory=dict)
    """By entity."""
    _indexes: dict[int, KeyIndex] = field(default_factory=dict)
    """By entity, for those that were asked for; ports are numbers of the fabric."""
    _first_ports: Index = field(default_factory=lambda: np.zeros(0, np.intp))
    _row_ports: Numbers = field(default_factory=lambda: np.zeros(0, np.int32))
    """By row: its port."""
    _paired: PairedRows = field(default_factory=no_pairs)

    def number_ports(self) -> NumberedPorts:
        """Return all claimed ports.

        Cost: O(n log n); 4 µs for each port of an entity that is numbered key by key.
        """
        rows, columns = self.rows, self.rows.columns
        claims, owners = self._claims_in_order()
        sizes = columns.num_rows[claims]
        own_rows = expand_spans(rows.first_rows[claims], sizes)
        row_owners = np.repeat(owners, sizes)
        shared = self._find_shared_keys(claims, owners, own_rows, row_owners)
        positions = np.full(rows.table.size, NO_PORT, np.intp)
        positions[own_rows] = np.repeat(np.arange(len(claims)), sizes)
        chosen = shared[row_owners]
        paired = own_rows[chosen], row_owners[chosen]
        self._paired = pair_rows(rows, paired, positions, shared)
        for entity in np.flatnonzero(shared & ~self._paired.is_paired).tolist():
            self._keyed[entity] = self._number_by_key(entity)
        # The second row of a port has the number of the first one.
        is_first = self._paired.first_rows[own_rows] == NO_PORT
        num_rows = np.bincount(row_owners[is_first], minlength=len(self.entities))
        counts = num_rows.copy()
        for entity, keyed in self._keyed.items():
            counts[entity] = len(keyed.first_rows)
        stops = np.cumsum(counts[self.order])
        self._first_ports = first_ports = np.zeros(len(self.entities), np.intp)
        first_ports[self.order] = stops - counts[self.order]
        row_stops = np.cumsum(num_rows[self.order])
        first_of_entity = np.zeros(len(self.entities), np.intp)
        first_of_entity[self.order] = row_stops - num_rows[self.order]
        ports = first_ports[row_owners] + np.cumsum(is_first) - 1 - first_of_entity[row_owners]
        return self._build_ports(own_rows, row_owners, ports, int(counts.sum()))

    def _build_ports(
        self, own_rows: Index, row_owners: Index, ports: Index, num_ports: int
    ) -> NumberedPorts:
        """Return the ports, given the rows of all entities in order and their fast numbers."""
        num_rows = self.rows.table.size
        row_ports = self._row_ports = np.full(num_rows, NO_PORT, np.int32)
        row_ports[own_rows] = ports
        second = np.flatnonzero(self._paired.first_rows != NO_PORT)
        row_ports[second] = row_ports[self._paired.first_rows[second]]
        near = row_ports.copy()
        read = self.rows.read
        near[: self.rows.num_read][np.diff(read.key_stops, prepend=0) == 0] = NO_PORT
        is_named = np.ones(num_rows, np.bool_)
        entities = np.full(num_rows, NO_PORT, np.intp)
        entities[own_rows] = row_owners
        is_keyed = np.zeros(len(self.entities), np.bool_)
        is_keyed[list(self._keyed)] = True
        plain = ~is_keyed[row_owners] & (self._paired.first_rows[own_rows] == NO_PORT)
        first_rows = np.zeros(num_ports, np.intp)
        first_rows[ports[plain]] = own_rows[plain]
        for entity, keyed in self._keyed.items():
            first = self._first_ports.item(entity)
            chosen = np.array(keyed.rows, np.intp)
            row_ports[chosen] = np.array(keyed.ports, np.int32) + first
            own_near = np.array(keyed.near, np.int32)
            near[chosen] = np.where(own_near == NO_PORT, NO_PORT, own_near + first)
            first_rows[first : first + len(keyed.first_rows)] = keyed.first_rows
            is_named[chosen] = keyed.is_named
        table = self.rows.table.select(first_rows)
        devices = np.empty(len(self.order), np.intp)
        devices[self.order] = np.arange(len(self.order))
        table = self._fill_in(table._replace(devices=devices[entities[first_rows]]))
        return NumberedPorts(table, self._first_ports, row_ports, near, is_named, entities)

    def _fill_in(self, table: PortTable) -> PortTable:
        """Fill in rates and states that the first claim about a port does not contain."""
        rates, states = table.rates, table.states
        second = np.flatnonzero(self._paired.first_rows != NO_PORT)
        ports = self._row_ports[second]
        unknown = rates[ports] == UNKNOWN_RATE
        rates[ports[unknown]] = self.rows.table.rates[second[unknown]]
        unknown = states[ports] == _UNKNOWN
        states[ports[unknown]] = self.rows.table.states[second[unknown]]
        for entity, keyed in self._keyed.items():
            first = self._first_ports.item(entity)
            for row, port in zip(keyed.rows, keyed.ports, strict=True):
                if rates[first + port] == UNKNOWN_RATE:
                    rates[first + port] = self.rows.table.rates[row]
                if states[first + port] == _UNKNOWN:
                    states[first + port] = self.rows.table.states[row]
        return table

    def _claims_in_order(self) -> tuple[Index, Index]:
        """Return the claims of all entities in order, and the entity of each."""
        ordered = self.order.tolist()
        numbers = [self.entities[entity].numbers for entity in ordered]
        sizes = np.fromiter(map(len, numbers), np.intp, len(numbers))
        return np.fromiter(chain.from_iterable(numbers), np.intp), np.repeat(self.order, sizes)

    def _find_shared_keys(
        self, claims: Index, owners: Index, own_rows: Index, row_owners: Index
    ) -> Flags:
        """Return one flag per entity: whether two of its ports may share a key.

        Args:
            claims: the claims of all entities, in order.
            owners: the entity of each claim.
            own_rows: the rows of these claims.
            row_owners: the entity of each row.
        """
        is_shared = np.zeros(len(self.entities), np.bool_)
        is_read = own_rows < self.rows.num_read
        num_claims = np.zeros(len(self.entities), np.intp)
        num_read_claims = np.zeros(len(self.entities), np.intp)
        columns = self.rows.columns
        has_rows = columns.num_rows[claims] > 0
        was_read = has_rows & (columns.sweep_of_claim[claims] == NO_SWEEP)
        np.add.at(num_claims, owners[has_rows], 1)
        np.add.at(num_read_claims, owners[was_read], 1)
        is_shared |= (num_read_claims > 0) & (num_claims > 1)
        is_shared[self._find_repeated_keys(own_rows[is_read], row_owners[is_read])] = True
        several = (num_claims > 1) & (num_read_claims == 0)
        chosen = ~is_read & several[row_owners]
        is_shared[self._find_repeated_names(own_rows[chosen], row_owners[chosen])] = True
        return is_shared

    def _find_repeated_keys(self, read_rows: Index, owners: Index) -> Index:
        """Return the entities of rows that were read in which two rows share a key."""
        stops = self.rows.read.key_stops.astype(np.intp)
        sizes = np.diff(stops, prepend=0)[read_rows]
        codes = self.rows.read.keys[
            expand_spans((stops - np.diff(stops, prepend=0))[read_rows], sizes)
        ]
        codes = mix_keys(codes, np.repeat(owners, sizes))
        key_rows, key_owners = np.repeat(read_rows, sizes), np.repeat(owners, sizes)
        order = np.lexsort((key_rows, codes))
        codes, key_rows = codes[order], key_rows[order]
        repeated = np.flatnonzero((codes[1:] == codes[:-1]) & (key_rows[1:] != key_rows[:-1]))
        found: Index = key_owners[order][repeated]
        return found

    def _find_repeated_names(self, swept_rows: Index, owners: Index) -> Index:
        """Return the entities of several swept nodes in which two ports may share a key."""
        found = [np.zeros(0, np.intp)]
        guids = np.zeros(len(swept_rows), np.int64)
        port_guids = np.zeros(len(swept_rows), np.int64)
        spans = zip(self.rows.sweeps, pairwise(self.rows.first_lines), strict=True)
        for sweep, (start, stop) in spans:
            chosen = (swept_rows >= start) & (swept_rows < stop)
            columns, lines = sweep.sweep.columns, swept_rows[chosen] - start
            nodes = sweep.line_nodes[lines]
            found.append(owners[chosen][columns.letters[nodes] != HCA])
            numbers = columns.numbers[lines].astype(np.int64)
            guids[chosen] = columns.guids[nodes].view(np.int64) ^ (numbers * _SPREAD)
            port_guids[chosen] = columns.own_guids[lines].view(np.int64)
        has_guid = port_guids != NO_GUID
        names = self.rows.table.names[swept_rows]
        found += [
            _owners_of_repeated(names, owners),
            _owners_of_repeated(guids, owners),
            _owners_of_repeated(port_guids[has_guid], owners[has_guid]),
        ]
        return np.concatenate(found)

    def _number_by_key(self, entity: int) -> _KeyedPorts:
        """Number the ports of one entity; ports of later claims are searched by their keys."""
        ports = _KeyedPorts([], [], [], [], [], {})
        named: list[tuple[Sequence[int], bool]] = []
        has_names = self.rows.read.has_name
        for position, claim in enumerate(self.entities[entity].numbers):
            first = self.rows.first_rows.item(claim)
            for row, keys in enumerate(self.rows.own_keys(claim), first):
                port = find_port(ports.index, keys) if position else None
                if port is None:
                    port = len(ports.first_rows)
                    ports.first_rows.append(row)
                index_port(ports.index, port, keys)
                ports.rows.append(row)
                ports.ports.append(port)
                named.append((keys, row >= len(has_names) or has_names.item(row)))
        for port, (own, has_name) in zip(ports.ports, named, strict=True):
            near = ports.index.get(own[-1]) if has_name else None
            if near is None or near == SEVERAL_PORTS:
                near = find_port(ports.index, own)
            ports.near.append(NO_PORT if near is None else near)
            ports.is_named.append(bool(own) and ports.index[own[0]] == port)
        return ports

    def index_of(self, entity: int) -> KeyIndex:
        """Return the keys of all claimed ports of an entity; later calls return the same object."""
        index = self._indexes.get(entity)
        if index is None:
            index = self._indexes[entity] = self._build_index(entity)
        return index

    def _build_index(self, entity: int) -> KeyIndex:
        first = self._first_ports.item(entity)
        keyed = self._keyed.get(entity)
        if keyed is not None:
            return {
                key: port if port == SEVERAL_PORTS else first + port
                for key, port in keyed.index.items()
            }
        index: KeyIndex = {}
        for claim in self.entities[entity].numbers:
            for row, keys in enumerate(self.rows.own_keys(claim), self.rows.first_rows.item(claim)):
                index_port(index, self._row_ports.item(row), keys)
        return index

    def key_columns(self, numbered: NumberedPorts) -> tuple[Hashes, Numbers]:
        """Return the keys of the ports that were read, each with its entity, ascending; and ports.

        Ports of swept nodes have keys only in entities whose ports were numbered key by key.
        """
        rows = self.rows
        stops = rows.read.key_stops.astype(np.intp)
        owners = np.repeat(numbered.entities[: rows.num_read], np.diff(stops, prepend=0))
        ports = np.repeat(numbered.ports[: rows.num_read], np.diff(stops, prepend=0))
        is_keyed = np.zeros(len(self.entities) + 1, np.bool_)
        is_keyed[list(self._keyed)] = True
        used = (owners != NO_PORT) & ~is_keyed[owners]
        paired = self._paired
        codes = [mix_keys(rows.read.keys[used], owners[used]), paired.line_codes]
        found = [ports[used].astype(np.int32), numbered.ports[paired.line_rows]]
        for entity in self._keyed:
            index = self.index_of(entity)
            keys = np.fromiter(index, np.int64, len(index))
            codes.append(mix_keys(keys, np.full(len(keys), entity)))
            found.append(np.fromiter(index.values(), np.int32, len(index)))
        all_codes, all_ports = np.concatenate(codes), np.concatenate(found)
        order = np.argsort(all_codes, kind="stable")
        return all_codes[order], all_ports[order]


def find_codes(table: tuple[Hashes, Numbers], keys: Hashes, entities: Index) -> Numbers:
    """Return the port of each key in an entity; SEVERAL_PORTS or NO_PORT, which are equal."""
    codes, ports = table
    if not len(codes):
        return np.full(len(keys), NO_PORT, np.int32)
    wanted = mix_keys(keys, entities)
    positions = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    return np.where(codes[positions] == wanted, ports[positions], NO_PORT).astype(np.int32)


def _owners_of_repeated(codes: Hashes | Numbers, owners: Index) -> Index:
    """Return the entities that have one of their codes twice."""
    order = np.lexsort((codes, owners))
    codes, owners = codes[order], owners[order]
    is_repeated = (codes[1:] == codes[:-1]) & (owners[1:] == owners[:-1])
    found: Index = owners[1:][is_repeated]
    return found
