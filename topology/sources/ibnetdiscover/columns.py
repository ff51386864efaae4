"""A sweep as columns: every node and every port line is a row of arrays.

A sweep of 65,536 HCAs has 400,000 port lines. As arrays they take 15 MB and are ready for the
join. As devices with ports and neighbors they are millions of objects, and building them takes
longer than all work on them. So `SweptDevices` builds objects only on demand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from mmap import mmap
from typing import Any, Final, Literal, NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from topology.model.facts import Device
from topology.model.ids import Id, IdKind
from topology.model.lazy_rows import LazyTuple
from topology.sources.ibnetdiscover.devices import DeviceBuilder, Key, PortLine, Record
from topology.sources.infiniband.link_rates import RATES_BPS
from topology.sources.infiniband.node_names import AGGREGATION_DEVID, host_names, switch_name

Index: TypeAlias = NDArray[np.intp]
Guids: TypeAlias = NDArray[np.uint64]
Offsets: TypeAlias = NDArray[np.uint32]
"""Offsets in a text, in bytes."""

RATES: Final[tuple[int | None, ...]] = (None, *sorted(set(RATES_BPS.values())))
"""Bits per second by rate code; code 0 is an unknown rate."""
RATE_CODES: Final = {rate: code for code, rate in enumerate(RATES)}
SWITCH, HCA, ROUTER = b"SHR"
"""Letters of nodes, as numbers; a lower-case letter means a CA or router with a port GUID, as in
the rows of -p."""
NO_GUID: Final = 0
"""A missing GUID, and the letter of the peer of a port without a peer."""


class Columns(NamedTuple):
    """Nodes and their port lines; one entry per node, or one per port line."""

    letters: NDArray[np.uint8]
    guids: Guids
    images: Guids
    """System image GUIDs."""
    device_ids: Guids
    text_starts: NDArray[np.uint32]
    text_stops: NDArray[np.uint32]
    num_rows: Index
    """Number of port lines of each node; port lines are in the order of nodes."""
    numbers: NDArray[np.uint16]
    """Port numbers, ascending within a node. The first column of port lines."""
    own_guids: Guids
    peer_letters: NDArray[np.uint8]
    peers: Guids
    far_numbers: NDArray[np.uint16]
    far_guids: Guids
    peer_starts: NDArray[np.uint32]
    """Offset of the peer's description, as this end printed it."""
    peer_stops: NDArray[np.uint32]
    rates: NDArray[np.uint8]
    """Rate codes."""


_HOSTS: Final = tuple(b"Hh")
_SIDES: Final[tuple[Literal["left", "right"], ...]] = ("left", "right")
NUM_NODE_COLUMNS: Final = Columns._fields.index("numbers")
"""Number of columns of nodes; the columns of port lines follow."""
_MIN_HEAD_BYTES: Final = len('Ca\t1 "H-0123456789abcdef"\t\t# ""\n')
_MIN_ROW_BYTES: Final = len('[1]\t"S-0123456789abcdef"[1]\t\t# "" lid 0 x\n')
_TYPES: Final[tuple[type[np.generic], ...]] = (
    *(np.uint8, np.uint64, np.uint64, np.uint64, np.uint32, np.uint32, np.intp),
    *(np.uint16, np.uint64, np.uint8, np.uint64, np.uint16, np.uint64),
    *(np.uint32, np.uint32, np.uint8),
)


@dataclass(frozen=True, slots=True)
class DescriptionText:
    """Descriptions by offset: in the dump, or in the extra text after it."""

    dump: bytes
    extra: bytes = b""
    """Descriptions from the line parser; their offsets continue after the end of the dump."""

    def __getitem__(self, place: tuple[int, int]) -> str:
        """Return the text between two offsets."""
        return self.raw(*place).decode("utf-8", "replace")

    def raw(self, start: int, stop: int) -> bytes:
        """Return the bytes between two offsets."""
        size = len(self.dump)
        return self.dump[start:stop] if start < size else self.extra[start - size : stop - size]


class SweepColumns:
    """A whole sweep: nodes sorted by GUID, and the range of port lines of each."""

    def __init__(self, columns: Columns, texts: DescriptionText) -> None:
        """Sort the nodes; the port lines are not moved."""
        self.columns = columns
        self.row_stops: Index = np.cumsum(columns.num_rows)
        """One entry per node: the index after its last port line."""
        if not (columns.guids[1:] > columns.guids[:-1]).all():
            order = np.lexsort((columns.letters, columns.guids))
            nodes = (
                _column(columns, column_index)[order] for column_index in range(NUM_NODE_COLUMNS)
            )
            self.columns = Columns._make((*nodes, *columns[NUM_NODE_COLUMNS:]))
            self.row_stops = self.row_stops[order]
        self.texts = texts

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.columns.guids)

    @property
    def row_starts(self) -> Index:
        """One entry per node: the index of its first port line."""
        return self.row_stops - self.columns.num_rows

    def row_nodes(self) -> Index:
        """Return the node of every port line."""
        by_position = np.argsort(self.row_stops, kind="stable")
        return np.repeat(by_position, self.columns.num_rows[by_position])

    def aggregation(self) -> NDArray[np.bool_]:
        """Return which nodes are SHARP aggregation nodes, by device id and system image."""
        columns = self.columns
        is_switch = columns.letters == SWITCH
        images = np.where(columns.images == NO_GUID, columns.guids, columns.images)[is_switch]
        has_device_id = (columns.letters == HCA) & (columns.device_ids == AGGREGATION_DEVID)
        is_aggregation: NDArray[np.bool_] = has_device_id & np.isin(columns.images, images)
        return is_aggregation

    def description(self, node: int) -> str:
        """Return the description of a node."""
        columns = self.columns
        return self.texts[int(columns.text_starts[node]), int(columns.text_stops[node])]

    def descriptions(self) -> list[str]:
        """Return the description of every node."""
        columns, dump = self.columns, self.texts.dump
        places = zip(columns.text_starts.tolist(), columns.text_stops.tolist(), strict=True)
        if int(columns.text_stops.max(initial=0)) > len(dump):
            return list(map(self.texts.__getitem__, places))
        raw = b"\n".join([dump[start:stop] for start, stop in places])  # no text contains a newline
        return raw.decode("utf-8", "replace").split("\n") if len(self) else []

    def has_same_rows(self, other: SweepColumns) -> bool:
        """Return whether another sweep has equal nodes and port lines. Cost: O(port lines)."""
        spans = ("text_starts", "text_stops", "peer_starts", "peer_stops")
        rows, others = self.columns._asdict(), other.columns._asdict()
        if not all(
            np.array_equal(rows[name], others[name]) for name in rows if name not in spans
        ) or not np.array_equal(self.row_stops, other.row_stops):
            return False
        if self.texts == other.texts and all(
            np.array_equal(rows[name], others[name]) for name in spans
        ):
            return True
        return self.raw_descriptions() == other.raw_descriptions()

    def raw_descriptions(self) -> list[bytes]:
        """Return the descriptions of all nodes, then those of all peers."""
        columns = self.columns
        starts = [*columns.text_starts.tolist(), *columns.peer_starts.tolist()]
        stops = [*columns.text_stops.tolist(), *columns.peer_stops.tolist()]
        return list(map(self.texts.raw, starts, stops))

    def __contains__(self, key: object) -> bool:
        """Return whether the sweep has a record of a node."""
        if not isinstance(key, tuple):
            return False
        letter, guid = key
        columns, number = self.columns, np.uint64(int(guid, 16))
        start, stop = (int(np.searchsorted(columns.guids, number, side)) for side in _SIDES)
        return ord(letter) in columns.letters[start:stop].tolist()

    def records(self, nodes: Iterable[int] | None = None) -> Iterator[Record]:
        """Yield all nodes, or the given ones, as records."""
        node_indexes = range(len(self)) if nodes is None else nodes
        guid_of = _GuidTexts()
        for node in node_indexes:
            yield self._record(node, guid_of)

    def _record(self, node: int, guid_of: _GuidTexts) -> Record:
        columns = self.columns
        stop = int(self.row_stops[node])
        rows = slice(stop - int(columns.num_rows[node]), stop)
        return Record(
            chr(columns.letters[node]),
            guid_of[int(columns.guids[node])] or "",
            image=guid_of[int(columns.images[node])],
            device_id=int(columns.device_ids[node]),
            description=self.description(node),
            port_lines=dict(
                zip(columns.numbers[rows].tolist(), self._rows(rows, guid_of), strict=True),
            ),
        )

    def _rows(self, rows: slice, guid_of: _GuidTexts) -> Iterator[PortLine]:
        columns = [column[rows].tolist() for column in self.columns[NUM_NODE_COLUMNS + 1 :]]
        for own, letter, peer, number, far, start, stop, rate in zip(*columns, strict=True):
            key: Key | None = (chr(letter), guid_of[peer] or "") if letter else None
            text = self.texts[start, stop]
            yield guid_of[own], key, (number, guid_of[far]), text, RATES[rate]


class _GuidTexts(dict[int, str | None]):
    """GUIDs as text, with a cache: a sweep repeats every GUID."""

    def __missing__(self, guid: int) -> str | None:
        text = self[guid] = f"{guid:016x}" if guid != NO_GUID else None
        return text


@dataclass(frozen=True, slots=True, eq=False)
class SweptDevices(LazyTuple[Device]):
    """The devices of a sweep, sorted by GUID; each read builds them, and none is stored."""

    sweep: SweepColumns
    _builders: list[DeviceBuilder] = field(default_factory=list, repr=False)
    """One builder after the first read, empty before."""

    @property
    def _builder(self) -> DeviceBuilder:
        if not self._builders:
            guids = self.sweep.columns.guids[self.sweep.aggregation()].tolist()
            aggregation = {f"{guid:016x}" for guid in guids}
            self._builders.append(DeviceBuilder(self.sweep, aggregation))
        return self._builders[0]

    def _all(self) -> tuple[Device, ...]:
        return tuple(self)

    def names(self) -> list[str]:
        """Return the name of each device."""
        return self.describe()[0]

    def describe(self) -> tuple[list[str], list[str]]:
        """Return the name of each device, and its RDMA name, which is empty if it is no CA."""
        names = self.sweep.descriptions()
        rdma_names = [""] * len(names)
        is_host = np.isin(self.sweep.columns.letters, _HOSTS)
        hosts = np.flatnonzero(is_host).tolist()
        described = host_names([names[device] for device in hosts])
        for device, (name, rdma_name) in zip(hosts, described, strict=True):
            names[device], rdma_names[device] = name, rdma_name
        for device in np.flatnonzero(~is_host).tolist():
            names[device] = switch_name(names[device])
        return names, rdma_names

    def ids_at(self, index: int) -> tuple[Id, ...]:
        """Return the ids of one device, without building it."""
        columns = self.sweep.columns
        kind = IdKind.NODE_GUID if chr(columns.letters[index]).isupper() else IdKind.PORT_GUID
        ids = (Id(kind, f"{columns.guids.item(index):016x}"),)
        image = columns.images.item(index)
        return ids if image == NO_GUID else (*ids, Id(IdKind.SYSTEM_IMAGE_GUID, f"{image:016x}"))

    def __eq__(self, other: object) -> bool:
        """Compare with another sweep by its columns, with any other sequence like a tuple."""
        if isinstance(other, SweptDevices):
            return self is other or self.sweep.has_same_rows(other.sweep)
        return LazyTuple.__eq__(self, other)

    __hash__ = LazyTuple.__hash__

    def __len__(self) -> int:
        """Return the number of devices, without building them."""
        return len(self.sweep)

    @overload
    def __getitem__(self, at: int) -> Device: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Device, ...]: ...
    def __getitem__(self, at: int | slice) -> Device | tuple[Device, ...]:
        """Return one device, or the devices of a slice."""
        places = range(len(self))[at]
        if isinstance(places, range):
            return tuple(self._builder.build(self.sweep.records(places)))
        return next(self._builder.build(self.sweep.records((places,))))

    def __iter__(self) -> Iterator[Device]:
        """Yield all devices, built in batches."""
        return self._builder.build(self.sweep.records())


def build_columns(
    records: Iterable[Record], texts: DescriptionText
) -> tuple[Columns, DescriptionText]:
    """Return the columns of records, and the texts with their descriptions."""
    nodes: list[tuple[int, ...]] = []
    rows: list[tuple[int, ...]] = []
    extra = bytearray(texts.extra)
    start = len(texts.dump)

    def store(text: str) -> tuple[int, int]:
        offset = start + len(extra)
        extra.extend(text.encode())
        return offset, start + len(extra)

    for record in records:
        span = store(record.description)
        ids = (ord(record.letter), _number(record.guid), _number(record.image), record.device_id)
        nodes.append((*ids, *span, len(record.port_lines)))
        for number, (own, key, far, text, rate) in sorted(record.port_lines.items()):
            peer = (ord(key[0]), _number(key[1])) if key else (NO_GUID, NO_GUID)
            far_end = (far[0], _number(far[1]))
            rows.append((number, _number(own), *peer, *far_end, *store(text), RATE_CODES[rate]))
    table = [
        *_transpose(nodes, NUM_NODE_COLUMNS),
        *_transpose(rows, len(_TYPES) - NUM_NODE_COLUMNS),
    ]
    typed = (np.array(column, kind) for column, kind in zip(table, _TYPES, strict=True))
    return Columns._make(typed), DescriptionText(texts.dump, bytes(extra))


def _transpose(rows: list[tuple[int, ...]], width: int) -> list[tuple[int, ...]]:
    return list(zip(*rows, strict=True)) if rows else [()] * width


def _number(guid: str | None) -> int:
    return int(guid, 16) if guid else NO_GUID


def split_last(columns: Columns) -> tuple[Columns, Columns]:
    """Return all nodes but the last one, and the last one."""
    node, row = len(columns.guids) - 1, len(columns.numbers) - int(columns.num_rows[-1])
    nodes, rows = columns[:NUM_NODE_COLUMNS], columns[NUM_NODE_COLUMNS:]
    return (
        Columns._make((*(column[:node] for column in nodes), *(column[:row] for column in rows))),
        Columns._make((*(column[node:] for column in nodes), *(column[row:] for column in rows))),
    )


def _column(columns: Columns, column_index: int) -> NDArray[Any]:
    column: NDArray[Any] = columns[column_index]
    return column


def _reserve(size: int, kind: type[np.generic]) -> NDArray[Any]:
    """Return an array whose pages take memory only after they are written.

    numpy requests pages of 2 MiB for its large arrays, and each array would waste one.
    """
    return np.frombuffer(mmap(-1, size * np.dtype(kind).itemsize), kind)


class ColumnStore:
    """Collects the columns of chunks: one array per column, as long as the dump may need.

    Pages that are never written take no memory, so a large reservation costs little. Keeping the
    columns of chunks apart and joining them afterwards would take twice the memory.
    """

    def __init__(self, num_bytes: int) -> None:
        """Reserve the columns for a dump of so many bytes."""
        max_rows = [num_bytes // _MIN_HEAD_BYTES, num_bytes // _MIN_ROW_BYTES]
        self._whole = Columns._make(
            _reserve(max_rows[index >= NUM_NODE_COLUMNS] + 1, kind)
            for index, kind in enumerate(_TYPES)
        )
        self._used = (0, 0)

    def add(self, columns: Columns) -> Columns:
        """Copy the columns of a chunk to the end, and return the stored part."""
        start = self._used
        self._used = (start[0] + len(columns.guids), start[1] + len(columns.numbers))
        part = self._part(start, self._used)
        for index in range(len(_TYPES)):
            if columns[index].any():  # else the memory is zero already and stays unallocated
                part[index][:] = columns[index]
        return part

    def join(self, parts: Sequence[Columns]) -> Columns:
        """Return the columns of parts joined; without a copy if they are all parts in the store."""
        size = sum(len(part.guids) for part in parts), sum(len(part.numbers) for part in parts)
        if size == self._used:
            return self._part((0, 0), self._used)
        indexes = range(len(_TYPES))
        return Columns._make(
            np.concatenate([_column(part, index) for part in parts]) for index in indexes
        )

    def _part(self, start: tuple[int, int], stop: tuple[int, int]) -> Columns:
        spans = [slice(*span) for span in zip(start, stop, strict=True)]
        return Columns._make(
            _column(self._whole, index)[spans[index >= NUM_NODE_COLUMNS]]
            for index in range(len(_TYPES))
        )
