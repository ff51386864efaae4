"""A sweep from a report, parsed piece by piece, so that its text is never whole in memory.

The text is what an agent printed with `printer`: each device has one record. So this reader never
reads earlier text again, as `chunks` does for pasted output. A compromised node may write anything:
text that no agent prints, and more than any fabric has (see `sweep_load`), is refused before it
takes memory.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from topology.model.errors import ReportError
from topology.model.facts import ParseResult
from topology.sources.ibnetdiscover.byte_words import Flags
from topology.sources.ibnetdiscover.chunks import NumpyReader
from topology.sources.ibnetdiscover.columns import (
    NUM_NODE_COLUMNS,
    SWITCH,
    Columns,
    ColumnStore,
    DescriptionText,
    Offsets,
    SweepColumns,
    SweptDevices,
    build_columns,
)
from topology.sources.ibnetdiscover.devices import Key, Record
from topology.sources.ibnetdiscover.parser import LineParser, add_row
from topology.sources.ibnetdiscover.sweep_load import MAX_LOAD, SweepLoad, count_unconfirmed

_SHORTEST_ROW_BYTES: Final = 46


@dataclass(frozen=True, slots=True)
class _Pool:
    """Descriptions, each stored once, and their offsets by their bytes."""

    offsets: dict[bytes, int]
    kept: bytearray

    def move(self, piece: bytes, starts: Offsets, stops: Offsets) -> tuple[Offsets, Offsets]:
        """Return where the texts between offsets of a piece are in the pool."""
        moved = array("I")
        offsets, kept = self.offsets, self.kept
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            text = piece[start:stop]
            offset = offsets.get(text)
            if offset is None:
                offset = offsets[text] = len(kept)
                kept.extend(text)
            moved.append(offset)
        first = np.array(moved, np.uint32)
        return first, first + (stops - starts)


class SweepStream:
    """Reads the pieces of one sweep, in their order."""

    def __init__(self, source: str, limit: SweepLoad = MAX_LOAD) -> None:
        """Read nothing yet; errors name the source."""
        self._limit = limit
        self._store = ColumnStore(MAX_LOAD.rows * _SHORTEST_ROW_BYTES)
        self._pool = _Pool({}, bytearray())
        self._lines = LineParser(source)
        self._parts: list[Columns] = []
        self._num_lines = 0
        self.load = SweepLoad()
        """What was read so far."""

    def add(self, piece: bytes) -> None:
        """Read a piece of the text, which ends with a line.

        Raises:
            ReportError: the sweep holds more than is allowed.
        """
        for chunk in NumpyReader().read(piece, 0, len(piece)):
            if chunk.columns is None:
                self._read_lines(piece[chunk.start : chunk.stop])
            else:
                self._store_columns(piece, chunk.columns)
            self._num_lines += piece.count(b"\n", chunk.start, chunk.stop)

    def finish(self) -> ParseResult:
        """Return the devices of all pieces, and the errors of bad lines.

        Raises:
            ReportError: the sweep holds more than is allowed, or what no agent writes.
        """
        columns = self._store.join(self._parts)
        texts = DescriptionText(bytes(self._pool.kept))
        if self._lines.records:
            columns = self._merge_shared_records(columns, texts)
            added, texts = build_columns(self._lines.records.values(), texts)
            columns = _concatenate(columns, added)
        sweep = SweepColumns(columns, texts)
        guids, letters = sweep.columns.guids, sweep.columns.letters
        if ((guids[1:] == guids[:-1]) & (letters[1:] == letters[:-1])).any():
            raise ReportError("sweep refused: a device has two records, which no agent writes")
        self._count(unconfirmed_rows=count_unconfirmed(sweep))
        self._lines.close(is_empty=not len(sweep))
        return ParseResult(SweptDevices(sweep), tuple(self._lines.errors))

    def _store_columns(self, piece: bytes, columns: Columns) -> None:
        self._count(
            devices=len(columns.guids),
            switches=int((columns.letters == SWITCH).sum()),
            rows=len(columns.numbers),
        )
        text_starts, text_stops = self._pool.move(piece, columns.text_starts, columns.text_stops)
        peer_starts, peer_stops = self._pool.move(piece, columns.peer_starts, columns.peer_stops)
        texts, text_bytes = len(self._pool.offsets), len(self._pool.kept)
        self._count(texts=texts - self.load.texts, text_bytes=text_bytes - self.load.text_bytes)
        moved = columns._replace(
            text_starts=text_starts,
            text_stops=text_stops,
            peer_starts=peer_starts,
            peer_stops=peer_stops,
        )
        self._parts.append(self._store.add(moved))
        self._lines.end_record()

    def _count(self, **added: int) -> None:
        """Add to the load, and check it."""
        more = {name: getattr(self.load, name) + number for name, number in added.items()}
        self.load = self.load._replace(**more)
        self.load.check(self._limit)

    def _read_lines(self, text: bytes) -> None:
        """Read text that only the line parser can read."""
        num_lines = text.count(b"\n") + 1
        self._count(unusual_lines=num_lines, rows=num_lines)
        before = len(self._lines.records)
        self._lines.read(text.decode("utf-8", "replace"), 1 + self._num_lines)
        self._count(devices=len(self._lines.records) - before)

    def _merge_shared_records(self, columns: Columns, texts: DescriptionText) -> Columns:
        """Move devices that also have rows of -p to the line parser; return the other devices."""
        keys = np.array(
            [int(guid, 16) for letter, guid in self._lines.records if letter.isupper()], np.uint64
        )
        shared = np.isin(columns.guids, keys)
        if not shared.any():
            return columns
        self._count(unusual_lines=int(columns.num_rows[shared].sum()))
        for record in SweepColumns(_select(columns, shared), texts).records():
            self._add_rows(record.key, record)
        return _select(columns, ~shared)

    def _add_rows(self, key: Key, record: Record) -> None:
        """Add the rows of -p of a device to its record."""
        rows = self._lines.records.get(key)
        if rows is not None:
            for number, row in sorted(rows.port_lines.items()):
                if not add_row(record, number, row):
                    self._lines.error(f"port {number} of {key[1]} has two peers")
        self._lines.records[key] = record


def _select(columns: Columns, is_kept: Flags) -> Columns:
    """Return the nodes that a mask selects, and their rows."""
    rows, every = np.repeat(is_kept, columns.num_rows), _arrays(columns)
    nodes = (column[is_kept] for column in every[:NUM_NODE_COLUMNS])
    return Columns._make((*nodes, *(column[rows] for column in every[NUM_NODE_COLUMNS:])))


def _concatenate(first: Columns, second: Columns) -> Columns:
    pairs = zip(_arrays(first), _arrays(second), strict=True)
    return Columns._make(np.concatenate(pair) for pair in pairs)


def _arrays(columns: Columns) -> tuple[NDArray[Any], ...]:
    return tuple(columns)
