"""A dump in pieces: the plain ones by numpy, the others line by line, and one result of both.

A piece that the fast reader refuses is cut again, so that one odd line costs its neighborhood and
not the file. Only what stays refused is read with care. Records that come twice add up there, so
all pieces with such a record are read with care, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from topology.model.facts import ParseResult
from topology.sources.ibnetdiscover.array_parser import parse_chunk
from topology.sources.ibnetdiscover.byte_words import NonCanonicalInput
from topology.sources.ibnetdiscover.columns import (
    Columns,
    ColumnStore,
    SweepColumns,
    DescriptionText,
    build_columns,
    split_last,
)
from topology.sources.ibnetdiscover.lazy_devices import SweptDevices
from topology.sources.ibnetdiscover.line_parser import LineParser

CHUNK_BYTES: Final = 2 << 20
"""Arrays of its lines still fit into caches, and calls on them are few."""
SMALLEST_BYTES: Final = 1 << 14
"""A refused piece of this size is not cut again: some 200 lines."""
_PARTS: Final = 8
_BOM: Final = b"\xef\xbb\xbf"
_BETWEEN: Final = b"\n\n"


class Chunk(NamedTuple):
    """A part of a dump, from one place to another."""

    start: int
    stop: int
    columns: Columns | None
    """None where it takes care to read it."""


@dataclass(frozen=True, slots=True)
class NumpyReader:
    """Reads whole dumps; the sizes are for tests."""

    chunk_bytes: int = CHUNK_BYTES
    smallest_bytes: int = SMALLEST_BYTES

    def __call__(self, raw: bytes, source: str) -> ParseResult:
        """Return what `parse_ibnetdiscover` returns; its devices are a `JoinedSweep`.

        Cost: O(bytes), about 0.3 µs a line that is plain, memory 40 bytes a line.
        """
        dump = raw.removeprefix(_BOM)
        if b"\r" in dump:
            dump = dump.replace(b"\r\n", b"\n")
        store = ColumnStore(len(dump))
        pieces = [
            piece._replace(columns=store.add(piece.columns)) if piece.columns else piece
            for piece in self.read(dump, 0, len(dump))
        ]
        joining = _join_chunks(dump, pieces, source)
        while again := joining.find_repeated():
            pieces = [
                piece._replace(columns=None) if at in again else piece
                for at, piece in enumerate(pieces)
            ]
            joining = _join_chunks(dump, pieces, source)
        sweep = joining.finish(store)
        joining.reader.close(is_empty=not len(sweep))
        return ParseResult(SweptDevices(sweep), tuple(joining.reader.errors))

    def read(self, dump: bytes, start: int, stop: int, *, size: int = 0) -> Iterator[Chunk]:
        """Yield the pieces of a part of a dump, each read or refused.

        Args:
            dump: all of it.
            start: where the part starts.
            stop: where it ends.
            size: of pieces in bytes; 0 for the usual one.
        """
        size = size or self.chunk_bytes
        for first, last in _split_chunks(dump, start, stop, size=size):
            try:
                yield Chunk(first, last, parse_chunk(dump, first, last))
            except NonCanonicalInput:
                yield from self._read_again(dump, first, last, size=size // _PARTS)

    def _read_again(self, dump: bytes, start: int, stop: int, *, size: int) -> Iterator[Chunk]:
        """Yield the pieces of a part that was refused as a whole."""
        is_small = size < self.smallest_bytes
        if is_small or next(_split_chunks(dump, start, stop, size=size)) == (start, stop):
            yield Chunk(start, stop, None)
        else:
            yield from self.read(dump, start, stop, size=size)


def _split_chunks(dump: bytes, start: int, stop: int, *, size: int) -> Iterator[tuple[int, int]]:
    """Yield parts that end with a blank line after `size` bytes, or with the whole."""
    while start < stop:
        cut = dump.find(_BETWEEN, start + size, stop)
        last = stop if cut < 0 else cut + len(_BETWEEN)
        yield start, last
        start = last


@dataclass(slots=True)
class _ChunkJoiner:
    """Pieces in their order, while they are put together."""

    dump: bytes
    reader: LineParser
    parts: dict[int, Columns] = field(default_factory=dict)
    """By piece: its columns."""
    open_chunk: int | None = None
    """The piece whose last record would go on if lines without a head followed."""

    def add(self, at: int, piece: Chunk) -> None:
        columns = piece.columns
        is_between = self.open_chunk is not None or self.reader.is_between_records
        if columns is None or not is_between:
            self._read_by_line(piece)
            return
        self.parts[at] = columns
        if len(columns.guids):
            self.open_chunk = at

    def _read_by_line(self, piece: Chunk) -> None:
        """Read a piece with care; the record before it becomes the reader's own."""
        if self.open_chunk is not None:
            rest, last = split_last(self.parts[self.open_chunk])
            self.parts[self.open_chunk] = rest
            self.reader.resume(*SweepColumns(last, DescriptionText(self.dump)).records())
            self.open_chunk = None
        text = self.dump[piece.start : piece.stop].decode("utf-8", "replace")
        self.reader.read(text, 1 + self.dump.count(b"\n", 0, piece.start))

    def find_repeated(self) -> set[int]:
        """Return the pieces that hold a node which stands twice."""
        careful, _ = build_columns(self.reader.records.values(), DescriptionText(self.dump))
        parts = [careful, *self.parts.values()]
        owners = np.repeat([-1, *self.parts], [len(part.guids) for part in parts])
        keys = np.empty(len(owners), [("guid", np.uint64), ("letter", np.uint8)])
        for name, column in (("guid", "guids"), ("letter", "letters")):
            keys[name] = np.concatenate([getattr(part, column) for part in parts])
        guids = np.sort(keys["guid"], kind="stable")  # often in order, and then much quicker
        if (guids[1:] > guids[:-1]).all():
            return set()
        _, places, counts = np.unique(keys, return_inverse=True, return_counts=True)
        return set(owners[counts[places] > 1].tolist()) - {-1}

    def finish(self, store: ColumnStore) -> SweepColumns:
        """Return the whole sweep."""
        texts = DescriptionText(self.dump)
        if self.reader.records:
            careful, texts = build_columns(self.reader.records.values(), texts)
            self.parts[-1] = store.add(careful)
        return SweepColumns(store.join(list(self.parts.values())), texts)


def _join_chunks(dump: bytes, pieces: Iterable[Chunk], source: str) -> _ChunkJoiner:
    """Put pieces together, reading the refused ones with care."""
    joining = _ChunkJoiner(dump, LineParser(source))
    for at, piece in enumerate(pieces):
        joining.add(at, piece)
    return joining
