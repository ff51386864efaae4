"""The ports and neighbor entries of claims as rows of numbers; each device is read once.

The rows of one claim are contiguous. A port and an entry name a port by keys, and a row holds the
hashes of the keys; see `port_numbers.port_keys`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topology.identity.device_kinds import BY_MAC, BY_NAME, FORWARDS, STATION, UNKNOWN_STYLE
from topology.join.neighbor_links import Numbers
from topology.join.port_numbers import port_keys, select_best_source, sort_ports
from topology.join.port_table import PortTable, PortTableBuilder, encode_port
from topology.model.claims import strong_key
from topology.model.fabric_columns import Codes, Flags, Index
from topology.model.facts import Capability, Device, Neighbor, Port, Source
from topology.model.ids import IdKind

Hashes = NDArray[np.int64]


def neighbor_entries(devices: Iterable[Device]) -> Iterator[tuple[Port, Sequence[Neighbor]]]:
    """Yield the claimed ports of a device, each with its neighbor entries that count."""
    for device in devices:
        for port in sort_ports(device.ports):
            yield port, select_best_source(port.neighbors)


def port_name_style(neighbor: Neighbor) -> str:
    """Return the subtype of the port id that a neighbor sends; empty without a port id."""
    return next(
        (
            identifier.subtype
            for identifier in neighbor.port_ids
            if identifier.kind is IdKind.PORT_ID
        ),
        "",
    )


def encode_style(neighbor: Neighbor) -> int:
    """Return how a neighbor identifies its port and what its capabilities say; see `PeerColumns`.

    A router that is no bridge counts as forwarding only with a MAC as its chassis id: a host that
    routes to its pods says Router, too, with a name of its own as systemd-networkd sends it.
    """
    style = port_name_style(neighbor)
    code = UNKNOWN_STYLE if not style else BY_MAC if style == "mac" else BY_NAME
    capabilities = neighbor.capabilities
    if not capabilities:
        return code
    if capabilities == (Capability.STATION,):
        return code | STATION
    has_mac = any(one.subtype == "mac" for one in neighbor.device_ids)
    is_router = Capability.ROUTER in capabilities and has_mac
    return code | FORWARDS if Capability.BRIDGE in capabilities or is_router else code


class EntryColumns(NamedTuple):
    """Neighbor entries, one entry per row, in the order of their ports."""

    rows: Numbers
    """The row of the port that hears."""
    first_keys: Hashes
    """Hash of the first strong key of the device that is heard."""
    has_key: Flags
    """Whether the entry has a strong key of the device."""
    is_swept: Flags
    """Whether a sweep reports the entry."""
    styles: Codes
    """How the peer identifies its port, see `device_kinds`."""
    key_stops: Numbers
    """The end of each entry's keys in `keys`."""
    keys: Hashes
    """Hashes of the keys of the port that is heard, strongest first."""


class PortRows(NamedTuple):
    """Claimed ports, one row per port of a claim."""

    table: PortTable
    """Its devices are the numbers of claims."""
    has_name: Flags
    """Whether the last key is the name of the port."""
    key_stops: Numbers
    """The end of each port's keys in `keys`."""
    keys: Hashes
    """Hashes of the keys of the port, strongest first."""
    entry_stops: Numbers
    """The end of each port's neighbor entries."""
    entries: EntryColumns


def expand_spans(starts: Index, sizes: Index) -> Index:
    """Return the indices of spans, one span after the other."""
    stops = np.cumsum(sizes)
    offsets = starts - (stops - sizes)
    return np.repeat(offsets, sizes) + np.arange(int(sizes.sum()))


def _hash_array() -> array[int]:
    return array("q")


@dataclass(slots=True)
class DeviceRows:
    """The rows of claims whose devices are built; each list has one entry per port or per entry."""

    rows: array[int] = field(default_factory=_hash_array)
    """By port: its row."""
    table: PortTableBuilder = field(default_factory=PortTableBuilder)
    has_name: bytearray = field(default_factory=bytearray)
    key_sizes: array[int] = field(default_factory=_hash_array)
    keys: array[int] = field(default_factory=_hash_array)
    entry_sizes: array[int] = field(default_factory=_hash_array)
    first_keys: array[int] = field(default_factory=_hash_array)
    has_key: bytearray = field(default_factory=bytearray)
    is_swept: bytearray = field(default_factory=bytearray)
    styles: bytearray = field(default_factory=bytearray)
    far_key_sizes: array[int] = field(default_factory=_hash_array)
    far_keys: array[int] = field(default_factory=_hash_array)

    def add(self, claim_number: int, device: Device, row: int) -> None:
        """Add the ports of a claim, in the order of `sort_ports`. Cost: 10 µs a port."""
        for number, (port, neighbors) in enumerate(neighbor_entries((device,)), row):
            self.rows.append(number)
            self.table.add(claim_number, port)
            self.has_name.append(bool(port.name))
            keys = port_keys(port.ids, port.name)
            self.keys.extend(map(hash, keys))
            self.key_sizes.append(len(keys))
            self.entry_sizes.append(len(neighbors))
            for neighbor in neighbors:
                self._add_entry(neighbor)

    def _add_entry(self, neighbor: Neighbor) -> None:
        keys = (key for identifier in neighbor.device_ids if (key := strong_key(identifier)))
        key = next(keys, None)
        self.first_keys.append(0 if key is None else hash(key))
        self.has_key.append(key is not None)
        self.is_swept.append(neighbor.source is Source.IB)
        self.styles.append(encode_style(neighbor))
        far_keys = port_keys(neighbor.port_ids, neighbor.port_name)
        self.far_keys.extend(map(hash, far_keys))
        self.far_key_sizes.append(len(far_keys))


class ShapeRows:
    """The rows of all ports of one shape; each column has one entry per port."""

    def __init__(self, number: int, port: Port, texts: tuple[int, int]) -> None:
        """Take what the rows have in common.

        Args:
            number: of the shape.
            port: with marks in place of its texts.
            texts: the numbers of its RDMA device, if it is part of the shape, and of its subnet.
        """
        near = next(iter(port.neighbors), None)
        self.number, self.port, self._texts = number, port, texts
        self.neighbor: Neighbor | None = near
        self.keys = [_hash_array() for _ in port_keys(port.ids, port.name)]
        """By key of a port: its hash."""
        far = port_keys(near.port_ids, near.port_name) if near else ()
        self.far_keys = [_hash_array() for _ in far]
        self.first_keys = _hash_array()
        """Empty if the device that is heard has no strong id."""
        self.rdma = array("i")
        """Empty if it is part of the shape."""

    def entry_codes(self) -> tuple[bool, bool, int]:
        """Return whether entries have a strong key, whether a sweep reports them, their style."""
        if self.neighbor is None:
            return False, False, 0
        is_swept = self.neighbor.source is Source.IB
        return bool(self.first_keys), is_swept, encode_style(self.neighbor)

    def fill(self, table: PortTable, rows: Index) -> None:
        """Fill in the columns of the ports of this shape, without their devices and names."""
        rdma, subnet = self._texts
        codes = encode_port(self.port)
        table.media[rows], table.states[rows] = codes.medium, codes.state
        table.rates[rows], table.distances[rows] = codes.rate, codes.distance
        table.firmware_lldp[rows], table.subnets[rows] = codes.firmware_lldp, subnet
        table.rdma[rows] = np.array(self.rdma, np.int32) if self.rdma else rdma


@dataclass(slots=True)
class PortRowBuilder:
    """Collects the rows of claims: of devices that are built, and of packed ones by shape."""

    read: DeviceRows = field(default_factory=DeviceRows)
    shapes: list[ShapeRows] = field(default_factory=list)
    num_rows: int = 0
    num_entries: int = 0
    _claims: array[int] = field(default_factory=lambda: array("q"))
    """By port of a packed claim, as the following: the number of the claim."""
    _shapes: array[int] = field(default_factory=lambda: array("i"))
    _rows: array[int] = field(default_factory=lambda: array("q"))
    _names: array[int] = field(default_factory=lambda: array("i"))

    def __len__(self) -> int:
        """Return the number of ports so far."""
        return self.num_rows

    @property
    def table(self) -> PortTableBuilder:
        """Numbers the texts of all rows."""
        return self.read.table

    def add(self, claim_number: int, device: Device) -> None:
        """Add the ports of a claim. Cost: 10 µs a port."""
        num_before = len(self.read.has_key)
        self.read.add(claim_number, device, self.num_rows)
        self.num_rows += len(device.ports)
        self.num_entries += len(self.read.has_key) - num_before

    def add_shape(self, port: Port) -> ShapeRows:
        """Return the rows of a further shape, to which the texts of its ports are added.

        Args:
            port: a port of the shape with at most one neighbor, with marks in place of its texts.
        """
        rdma = 0 if port.rdma_device else self.table.intern(port.rdma_device)
        texts = rdma, self.table.intern(port.subnet)
        self.shapes.append(ShapeRows(len(self.shapes), port, texts))
        return self.shapes[-1]

    def add_ports(
        self, claim_number: int, shapes: Sequence[int], ranks: Sequence[int], names: array[int]
    ) -> None:
        """Add the ports of a packed claim, in their order.

        Args:
            claim_number: the number of the claim.
            shapes: by port: the number of its shape.
            ranks: by port: its rank in the order of `sort_ports`.
            names: by port: the number of its name.
        """
        first = self.num_rows
        self._claims.extend(repeat(claim_number, len(shapes)))
        self._shapes.extend(shapes)
        self._rows.extend([first + rank for rank in ranks])
        self._names.extend(names)
        self.num_rows += len(shapes)
        are_heard = [shape.neighbor is not None for shape in self.shapes]
        self.num_entries += sum(map(are_heard.__getitem__, shapes))

    def build(self) -> PortRows:
        """Return all rows. Cost: O(n log n) in ports, as arrays."""
        return _RowAssembly(self).build()

    def rows_by_shape(self) -> Sequence[Index]:
        """Return the rows of the ports of each shape, in the order in which they were added."""
        shapes = np.array(self._shapes, np.int32)
        order = np.argsort(shapes, kind="stable")
        stops = np.cumsum(np.bincount(shapes, minlength=len(self.shapes)))
        rows = np.array(self._rows, np.intp)[order]
        return np.split(rows, stops[:-1]) if self.shapes else ()

    def build_table(self, by_shape: Sequence[Index]) -> PortTable:
        """Return the ports of all rows.

        Args:
            by_shape: by `rows_by_shape`.
        """
        read, rows = self.table.build(), np.array(self.read.rows, np.intp)
        columns = []
        for column in read.columns:
            filled = np.zeros(self.num_rows, column.dtype)
            filled[rows] = column
            columns.append(filled)
        table = PortTable._make((*columns, read.texts))
        shaped = np.array(self._rows, np.intp)
        table.devices[shaped] = np.array(self._claims, np.intp)
        table.names[shaped] = np.array(self._names, np.int32)
        for shape, own in zip(self.shapes, by_shape, strict=True):
            shape.fill(table, own)
        return table


class _RowAssembly:
    """Puts the rows in one order: every column is filled at the rows of each part."""

    def __init__(self, builder: PortRowBuilder) -> None:
        """Compute where the keys and entries of each row are."""
        self._builder, self._read = builder, builder.read
        self._read_rows = np.array(builder.read.rows, np.intp)
        self._shapes = list(zip(builder.shapes, builder.rows_by_shape(), strict=True))
        read = builder.read
        self._keys = self._span(read.key_sizes, lambda shape: len(shape.keys))
        self._entries = self._span(read.entry_sizes, lambda shape: shape.neighbor is not None)

    def _span(self, read: array[int], size: Callable[[ShapeRows], int]) -> _Spans:
        """Return how many items each row has, and where they start."""
        sizes = np.zeros(self._builder.num_rows, np.intp)
        sizes[self._read_rows] = np.array(read, np.intp)
        for shape, rows in self._shapes:
            sizes[rows] = size(shape)
        return _Spans.of(sizes)

    def build(self) -> PortRows:
        """Return all rows."""
        read, keys = self._read, self._keys
        has_name = np.zeros(self._builder.num_rows, np.bool_)
        has_name[self._read_rows] = np.array(read.has_name, np.bool_)
        hashes = np.zeros(keys.total, np.int64)
        hashes[keys.of_rows(self._read_rows)] = np.array(read.keys, np.int64)
        for shape, rows in self._shapes:
            has_name[rows] = bool(shape.port.name)
            for place, column in enumerate(shape.keys):
                hashes[keys.starts[rows] + place] = np.array(column, np.int64)
        return PortRows(
            table=self._builder.build_table([rows for _, rows in self._shapes]),
            has_name=has_name,
            key_stops=keys.stops.astype(np.int32),
            keys=hashes,
            entry_stops=self._entries.stops.astype(np.int32),
            entries=self._build_entries(),
        )

    def _build_entries(self) -> EntryColumns:
        read, entries = self._read, self._entries
        at_read = entries.of_rows(self._read_rows)
        shaped = [(shape, entries.starts[rows]) for shape, rows in self._shapes if shape.neighbor]
        key_sizes = np.zeros(entries.total, np.intp)
        key_sizes[at_read] = np.array(read.far_key_sizes, np.intp)
        for shape, at in shaped:
            key_sizes[at] = len(shape.far_keys)
        keys = _Spans.of(key_sizes)
        hashes = np.zeros(keys.total, np.int64)
        hashes[keys.of_rows(at_read)] = np.array(read.far_keys, np.int64)
        first_keys = np.zeros(entries.total, np.int64)
        first_keys[at_read] = np.array(read.first_keys, np.int64)
        has_key, is_swept, styles = (np.zeros(entries.total, np.uint8) for _ in range(3))
        flags = (has_key, read.has_key), (is_swept, read.is_swept), (styles, read.styles)
        for column, values in flags:
            column[at_read] = np.array(values, np.uint8)
        for shape, at in shaped:
            for place, far_keys in enumerate(shape.far_keys):
                hashes[keys.starts[at] + place] = np.array(far_keys, np.int64)
            first_keys[at] = np.array(shape.first_keys, np.int64) if shape.first_keys else 0
            has_key[at], is_swept[at], styles[at] = shape.entry_codes()
        return EntryColumns(
            rows=np.repeat(np.arange(len(entries.sizes)), entries.sizes).astype(np.int32),
            first_keys=first_keys,
            has_key=has_key.astype(np.bool_),
            is_swept=is_swept.astype(np.bool_),
            styles=styles,
            key_stops=keys.stops.astype(np.int32),
            keys=hashes,
        )


class _Spans(NamedTuple):
    """Where the items of each row start and end in the list of the items of all rows."""

    sizes: Index
    starts: Index
    stops: Index
    total: int

    @classmethod
    def of(cls, sizes: Index) -> _Spans:
        """Return spans of these sizes, one after the other."""
        stops = np.cumsum(sizes)
        return cls(sizes, stops - sizes, stops, int(sizes.sum()))

    def of_rows(self, rows: Index) -> Index:
        """Return the items of some rows, row by row."""
        return expand_spans(self.starts[rows], self.sizes[rows])
