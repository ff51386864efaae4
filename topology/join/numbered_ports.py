"""Number the ports of all devices: as arrays if two rows at most share a key, else key by key.

The ports of one device are numbered in the order of its claims. Two claims may describe the same
port; a key that they share shows that. Keys are hashes, see `port_rows.port_keys`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, TypeAlias

import numpy as np

from topology.identity.claim_facts import HashRows
from topology.identity.device_resolution import Entity
from topology.join.claim_columns import (
    NO_SWEEP,
    FabricRows,
    KeyRows,
    PairedRows,
)
from topology.join.port_rows import (
    NO_PORT,
    SEVERAL_PORTS,
    Hashes,
    PortTable,
    expand_spans,
    find_port,
    index_port,
)
from topology.model.fabric import STATE_CODES, UNKNOWN_RATE, Flags, Index, Numbers
from topology.model.facts import PortState

KeyIndex: TypeAlias = dict[int, int]
"""Hash of a port key to port; SEVERAL_PORTS if several ports share the key."""
_UNKNOWN: Final = STATE_CODES[PortState.UNKNOWN]


@dataclass(slots=True)
class _KeyedPorts:
    """The ports of one entity that was numbered key by key; ports count within the entity."""

    rows: list[int]
    """All rows of the entity."""
    ports: list[int]
    """The port of each row, in the order of `rows`."""
    near: list[int]
    """The port that each row's own keys name, or NO_PORT, in the order of `rows`."""
    is_named: list[bool]
    """Whether the first key of each row names its port alone, in the order of `rows`."""
    first_rows: list[int]
    """By port: the first row that describes it."""
    index: KeyIndex


@dataclass(slots=True)
class NumberedPorts:
    """The claimed ports of a fabric."""

    table: PortTable
    ports: Numbers
    """By row: the port of the fabric."""
    near: Numbers
    """By row: the port that the row's own keys name, or NO_PORT."""
    is_named: Flags
    """By row: whether the first key of the row names this port alone."""
    entities: Numbers
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
    _keys: KeyRows = field(init=False)
    """The keys of entities whose rows may share one."""
    _paired: PairedRows = field(init=False)

    def number_ports(self) -> NumberedPorts:
        """Return all claimed ports.

        Cost: O(n log n); 4 µs for each port of an entity that is numbered key by key.
        """
        rows, columns = self.rows, self.rows.columns
        claims, owners = self.claims_in_order()
        sizes = columns.num_rows[claims]
        own_rows = expand_spans(rows.first_rows[claims], sizes)
        row_owners = np.repeat(owners, sizes)
        may_share = self._find_devices_to_compare(claims, owners)
        self._pair_rows(own_rows, np.repeat(np.arange(len(claims)), sizes), row_owners, may_share)
        for entity in np.flatnonzero(may_share & ~self._paired.is_paired).tolist():
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

    def _pair_rows(
        self, own_rows: Numbers, own_claims: Index, row_owners: Index, may_share: Flags
    ) -> None:
        """Find, for each port that two claims describe, the row of the earlier claim.

        An entity with more complicated matches stays unpaired, and is numbered key by key.

        Args:
            own_rows: the rows of all claims, entity by entity in the order of the fabric.
            own_claims: the position of each row's claim in that order.
            row_owners: the entity of each row.
            may_share: one flag per entity: whether two of its rows may share a key.
        """
        positions = np.full(self.rows.table.size, NO_PORT, np.int32)
        positions[own_rows] = own_claims
        chosen = may_share[row_owners]
        self._keys = self.rows.key_rows(own_rows[chosen], row_owners[chosen])
        self._paired = self._keys.pair(positions, may_share)

    def _build_ports(
        self, own_rows: Numbers, row_owners: Index, ports: Index, num_ports: int
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
        entities = np.full(num_rows, NO_PORT, np.int32)
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
        return NumberedPorts(table, row_ports, near, is_named, entities)

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

    def claims_in_order(self) -> tuple[Index, Index]:
        """Return the claims of all entities in order, and the entity of each."""
        ordered = self.order.tolist()
        numbers = [self.entities[entity].numbers for entity in ordered]
        sizes = np.fromiter(map(len, numbers), np.intp, len(numbers))
        return np.fromiter(chain.from_iterable(numbers), np.intp), np.repeat(self.order, sizes)

    def _find_devices_to_compare(self, claims: Index, owners: Index) -> Flags:
        """Return one flag per entity: whether two of its rows may share a key.

        The port lines of one node of a sweep never do, see `swept_nodes`.

        Args:
            claims: the claims of all entities.
            owners: the entity of each.
        """
        columns, num_entities = self.rows.columns, len(self.entities)
        has_rows = columns.num_rows[claims] > 0
        was_read = has_rows & (columns.sweep_of_claim[claims] == NO_SWEEP)
        num_claims = np.bincount(owners[has_rows], minlength=num_entities)
        may_share: Flags = num_claims > 1
        may_share[owners[was_read]] = True
        return may_share

    def _number_by_key(self, entity: int) -> _KeyedPorts:
        """Number the ports of one entity; ports of later claims are searched by their keys."""
        ports = _KeyedPorts([], [], [], [], [], {})
        key_rows: list[tuple[list[int], bool]] = []
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
                key_rows.append((keys, row >= len(has_names) or has_names.item(row)))
        for port, (keys, has_name) in zip(ports.ports, key_rows, strict=True):
            # The name is the last key: it finds the port, unless several ports have the name.
            near = ports.index.get(keys[-1]) if has_name else None
            if near is None or near == SEVERAL_PORTS:
                near = find_port(ports.index, keys)
            ports.near.append(NO_PORT if near is None else near)
            ports.is_named.append(bool(keys) and ports.index[keys[0]] == port)
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
        """Return the keys of ports, each mixed with its entity, ascending; and the ports.

        The ports of devices that one node of a sweep alone describes are not among them.
        """
        is_keyed = np.zeros(len(self.entities), np.bool_)
        is_keyed[list(self._keyed)] = True
        used = ~is_keyed[self._keys.entities]
        codes, found = [self._keys.codes[used]], [numbered.ports[self._keys.rows[used]]]
        for entity in self._keyed:
            index = self.index_of(entity)
            keys = np.fromiter(index, np.int64, len(index))
            codes.append(HashRows(keys, np.full(len(keys), entity)).codes())
            found.append(np.fromiter(index.values(), np.int32, len(index)))
        all_codes, all_ports = np.concatenate(codes), np.concatenate(found)
        order = np.argsort(all_codes, kind="stable")
        return all_codes[order], all_ports[order]


def find_codes(table: tuple[Hashes, Numbers], keys: Hashes, entities: Numbers) -> Numbers:
    """Return the port of each key in an entity; NO_PORT if no single port has the key."""
    codes, ports = table
    if not len(codes):
        return np.full(len(keys), NO_PORT, np.int32)
    wanted = HashRows(keys, entities).codes()
    positions = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    return np.where(codes[positions] == wanted, ports[positions], NO_PORT).astype(np.int32)
