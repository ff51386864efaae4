"""A sweep as columns: every node and every port line a row of arrays, and devices made on demand.

A sweep of 65,536 HCAs has 400,000 port lines. As arrays they are 15 MB and ready to be joined;
as devices with ports and neighbors they are millions of objects that take longer to make than
everything that is done with them. So objects are made only for who asks.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from mmap import mmap
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from topology.sources.ibnetdiscover.devices import Key, Record, PortLine
from topology.sources.infiniband.node_names import (
    AGGREGATION_DEVID,
    RATES_BPS,
)

Index: TypeAlias = NDArray[np.intp]
Guids: TypeAlias = NDArray[np.uint64]
Offsets: TypeAlias = NDArray[np.uint32]
"""In a text, in bytes."""

RATES: Final[tuple[int | None, ...]] = (None, *sorted(set(RATES_BPS.values())))
"""Bits per second by rate code; code 0 is an unknown rate."""
RATE_CODES: Final = {rate: code for code, rate in enumerate(RATES)}
SWITCH, HCA, ROUTER = b"SHR"
"""Letters of nodes, as numbers; small ones name a CA or router by a port GUID, as -p does."""
NO_GUID: Final = 0
"""Letter of the peer of a port that nobody answered on, and GUID where none is told."""


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
    """Port lines of each node; they follow each other in the order of nodes."""
    numbers: NDArray[np.uint16]
    """Port numbers, ascending within a node. The first of the columns of port lines."""
    own_guids: Guids
    peer_letters: NDArray[np.uint8]
    peers: Guids
    far_numbers: NDArray[np.uint16]
    far_guids: Guids
    peer_starts: NDArray[np.uint32]
    """Where the peer's description starts, as this end printed it."""
    peer_stops: NDArray[np.uint32]
    rates: NDArray[np.uint8]
    """Rate codes."""


_SIDES: Final[tuple[Literal["left", "right"], ...]] = ("left", "right")
NUM_NODE_COLUMNS: Final = Columns._fields.index("numbers")
"""Columns of nodes; those of port lines follow."""
_MIN_HEAD_BYTES: Final = len('Ca\t1 "H-0123456789abcdef"\t\t# ""\n')
_MIN_ROW_BYTES: Final = len('[1]\t"S-0123456789abcdef"[1]\t\t# "" lid 0 x\n')
_TYPES: Final[tuple[type[np.generic], ...]] = (
    *(np.uint8, np.uint64, np.uint64, np.uint64, np.uint32, np.uint32, np.intp),
    *(np.uint16, np.uint64, np.uint8, np.uint64, np.uint16, np.uint64),
    *(np.uint32, np.uint32, np.uint8),
)


@dataclass(frozen=True, slots=True)
class DescriptionText:
    """Descriptions by where they stand: in the dump, or in what follows it."""

    dump: bytes
    extra: bytes = b""
    """Descriptions that the careful reader found; their places count on from the dump's end."""

    def __getitem__(self, place: tuple[int, int]) -> str:
        """Return the text between two places."""
        return self.raw(*place).decode("utf-8", "replace")

    def raw(self, start: int, stop: int) -> bytes:
        """Return the bytes between two places."""
        size = len(self.dump)
        return self.dump[start:stop] if start < size else self.extra[start - size : stop - size]


class SweepColumns:
    """A whole sweep: nodes sorted by GUID, and where the port lines of each are."""

    def __init__(self, columns: Columns, texts: DescriptionText) -> None:
        """Sort the nodes; their port lines stay where they are."""
        self.columns = columns
        self.row_stops: Index = np.cumsum(columns.num_rows)
        """One entry per node: the index after its last port line."""
        if not (columns.guids[1:] > columns.guids[:-1]).all():
            order = np.lexsort((columns.letters, columns.guids))
            nodes = (_column(columns, at)[order] for at in range(NUM_NODE_COLUMNS))
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
        by_place = np.argsort(self.row_stops, kind="stable")
        return np.repeat(by_place, self.columns.num_rows[by_place])

    def aggregation(self) -> NDArray[np.bool_]:
        """Return which nodes are SHARP aggregation nodes: by device id and system image."""
        found = self.columns
        is_switch = found.letters == SWITCH
        images = np.where(found.images == NO_GUID, found.guids, found.images)[is_switch]
        is_known = (found.letters == HCA) & (found.device_ids == AGGREGATION_DEVID)
        is_tied: NDArray[np.bool_] = is_known & np.isin(found.images, images)
        return is_tied

    def description(self, node: int) -> str:
        """Return what a node calls itself."""
        found = self.columns
        return self.texts[int(found.text_starts[node]), int(found.text_stops[node])]

    def descriptions(self) -> list[str]:
        """Return what every node calls itself."""
        found, dump = self.columns, self.texts.dump
        places = zip(found.text_starts.tolist(), found.text_stops.tolist(), strict=True)
        if int(found.text_stops.max(initial=0)) > len(dump):
            return list(map(self.texts.__getitem__, places))
        raw = b"\n".join([dump[start:stop] for start, stop in places])  # no text holds one
        return raw.decode("utf-8", "replace").split("\n") if len(self) else []

    def without_dump(self) -> SweepColumns:
        """Return the same with no more than the descriptions of its text, each once.

        The text of a large sweep is larger than all else. Cost: O(port lines), 0.5 µs each.
        """
        places: dict[bytes, int] = {}
        kept = bytearray()

        def move(starts: Offsets, stops: Offsets) -> tuple[Offsets, Offsets]:
            moved = array("I")
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
                text = self.texts.raw(start, stop)
                place = places.get(text)
                if place is None:
                    place = places[text] = len(kept)
                    kept.extend(text)
                moved.append(place)
            first = np.array(moved, np.uint32)
            return first, first + (stops - starts)

        found = self.columns
        own = move(found.text_starts, found.text_stops)
        peers = move(found.peer_starts, found.peer_stops)
        columns = Columns._make(np.array(column) for column in found)._replace(
            text_starts=own[0], text_stops=own[1], peer_starts=peers[0], peer_stops=peers[1]
        )
        again = SweepColumns(columns, DescriptionText(bytes(kept)))
        again.row_stops = self.row_stops
        return again

    def __contains__(self, key: object) -> bool:
        """Return whether there is a record of a node."""
        if not isinstance(key, tuple):
            return False
        letter, guid = key
        found, number = self.columns, np.uint64(int(guid, 16))
        start, stop = (int(np.searchsorted(found.guids, number, side)) for side in _SIDES)
        return ord(letter) in found.letters[start:stop].tolist()

    def records(self, nodes: Iterable[int] | None = None) -> Iterator[Record]:
        """Yield nodes as records, all of them or some."""
        chosen = range(len(self)) if nodes is None else nodes
        guid_of = _GuidTexts()
        for node in chosen:
            yield self._record(node, guid_of)

    def _record(self, node: int, guid_of: _GuidTexts) -> Record:
        found = self.columns
        stop = int(self.row_stops[node])
        rows = slice(stop - int(found.num_rows[node]), stop)
        return Record(
            chr(found.letters[node]),
            guid_of[int(found.guids[node])] or "",
            image=guid_of[int(found.images[node])],
            device_id=int(found.device_ids[node]),
            description=self.description(node),
            fetch_rows=dict(
                zip(found.numbers[rows].tolist(), self._rows(rows, guid_of), strict=True),
            ),
        )

    def _rows(self, rows: slice, guid_of: _GuidTexts) -> Iterator[PortLine]:
        columns = [column[rows].tolist() for column in self.columns[NUM_NODE_COLUMNS + 1 :]]
        for own, letter, peer, number, far, start, stop, rate in zip(*columns, strict=True):
            key: Key | None = (chr(letter), guid_of[peer] or "") if letter else None
            text = self.texts[start, stop]
            yield guid_of[own], key, (number, guid_of[far]), text, RATES[rate]


class _GuidTexts(dict[int, str | None]):
    """GUIDs as text; a sweep repeats every one of them."""

    def __missing__(self, guid: int) -> str | None:
        found = self[guid] = f"{guid:016x}" if guid != NO_GUID else None
        return found


def build_columns(
    records: Iterable[Record], texts: DescriptionText
) -> tuple[Columns, DescriptionText]:
    """Return records as columns, and the texts with their descriptions."""
    nodes: list[tuple[int, ...]] = []
    rows: list[tuple[int, ...]] = []
    more = bytearray(texts.extra)
    start = len(texts.dump)

    def note(text: str) -> tuple[int, int]:
        at = start + len(more)
        more.extend(text.encode())
        return at, start + len(more)

    for record in records:
        place = note(record.description)
        ids = (ord(record.letter), _number(record.guid), _number(record.image), record.device_id)
        nodes.append((*ids, *place, len(record.fetch_rows)))
        for number, (own, key, far, text, rate) in sorted(record.fetch_rows.items()):
            peer = (ord(key[0]), _number(key[1])) if key else (NO_GUID, NO_GUID)
            far_end = (far[0], _number(far[1]))
            rows.append((number, _number(own), *peer, *far_end, *note(text), RATE_CODES[rate]))
    table = [
        *_transpose(nodes, NUM_NODE_COLUMNS),
        *_transpose(rows, len(_TYPES) - NUM_NODE_COLUMNS),
    ]
    typed = (np.array(column, kind) for column, kind in zip(table, _TYPES, strict=True))
    return Columns._make(typed), DescriptionText(texts.dump, bytes(more))


def _transpose(rows: list[tuple[int, ...]], width: int) -> list[tuple[int, ...]]:
    return list(zip(*rows, strict=True)) if rows else [()] * width


def _number(guid: str | None) -> int:
    return int(guid, 16) if guid else NO_GUID


def split_last(columns: Columns) -> tuple[Columns, Columns]:
    """Return all nodes but the last, and that one."""
    at, row = len(columns.guids) - 1, len(columns.numbers) - int(columns.num_rows[-1])
    nodes, rows = columns[:NUM_NODE_COLUMNS], columns[NUM_NODE_COLUMNS:]
    return (
        Columns._make((*(one[:at] for one in nodes), *(one[:row] for one in rows))),
        Columns._make((*(one[at:] for one in nodes), *(one[row:] for one in rows))),
    )


def _column(columns: Columns, at: int) -> NDArray[Any]:
    column: NDArray[Any] = columns[at]
    return column


def _reserve(size: int, kind: type[np.generic]) -> NDArray[Any]:
    """Return an array whose pages take memory once they are written.

    numpy's own large arrays ask for pages of 2 MiB, of which each would waste one in the middle.
    """
    return np.frombuffer(mmap(-1, size * np.dtype(kind).itemsize), kind)


class ColumnStore:
    """Where the columns of pieces are gathered: one array each, as long as the dump may need.

    Pages that are never written take no memory, so that much is set aside and little used;
    pieces kept on their own and joined afterwards would take twice as much.
    """

    def __init__(self, num_bytes: int) -> None:
        """Set aside what a dump of so many bytes can hold."""
        most = [num_bytes // _MIN_HEAD_BYTES, num_bytes // _MIN_ROW_BYTES]
        self._whole = Columns._make(
            _reserve(most[at >= NUM_NODE_COLUMNS] + 1, kind) for at, kind in enumerate(_TYPES)
        )
        self._used = (0, 0)

    def add(self, columns: Columns) -> Columns:
        """Copy the columns of a piece to the end, and return that part."""
        start = self._used
        self._used = (start[0] + len(columns.guids), start[1] + len(columns.numbers))
        part = self._part(start, self._used)
        for at in range(len(_TYPES)):
            if columns[at].any():  # else the memory holds zeros already, and takes none
                part[at][:] = columns[at]
        return part

    def join(self, parts: Sequence[Columns]) -> Columns:
        """Return columns one after the other; without a copy where they are all that was added."""
        size = sum(len(part.guids) for part in parts), sum(len(part.numbers) for part in parts)
        if size == self._used:
            return self._part((0, 0), self._used)
        places = range(len(_TYPES))
        return Columns._make(np.concatenate([_column(part, at) for part in parts]) for at in places)

    def _part(self, start: tuple[int, int], stop: tuple[int, int]) -> Columns:
        spans = [slice(*span) for span in zip(start, stop, strict=True)]
        return Columns._make(
            _column(self._whole, at)[spans[at >= NUM_NODE_COLUMNS]] for at in range(len(_TYPES))
        )
