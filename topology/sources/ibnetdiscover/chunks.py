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

from topology.model.facts import Parsed
from topology.sources.ibnetdiscover.array_parser import read_piece
from topology.sources.ibnetdiscover.byte_words import NotPlain
from topology.sources.ibnetdiscover.columns import (
    Columns,
    ColumnStore,
    SweepColumns,
    Texts,
    columns_of,
    split_last,
)
from topology.sources.ibnetdiscover.lazy_devices import SweptDevices
from topology.sources.ibnetdiscover.line_parser import LineReader

PIECE_BYTES: Final = 2 << 20
"""Arrays of its lines still fit into caches, and calls on them are few."""
SMALLEST_BYTES: Final = 1 << 14
"""A refused piece of this size is not cut again: some 200 lines."""
_PARTS: Final = 8
_BOM: Final = b"\xef\xbb\xbf"
_BETWEEN: Final = b"\n\n"


class Piece(NamedTuple):
    """A part of a dump, from one place to another."""

    start: int
    stop: int
    columns: Columns | None
    """None where it takes care to read it."""


@dataclass(frozen=True, slots=True)
class NumpyReader:
    """Reads whole dumps; the sizes are for tests."""

    piece_bytes: int = PIECE_BYTES
    smallest_bytes: int = SMALLEST_BYTES

    def __call__(self, raw: bytes, source: str) -> Parsed:
        """Return what `parse_ibnetdiscover` returns; its devices are a `SweptDevices`.

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
        joining = _join(dump, pieces, source)
        while again := joining.repeated():
            pieces = [
                piece._replace(columns=None) if at in again else piece
                for at, piece in enumerate(pieces)
            ]
            joining = _join(dump, pieces, source)
        sweep = joining.finish(store)
        joining.reader.close(is_empty=not len(sweep))
        return Parsed(SweptDevices(sweep), tuple(joining.reader.errors))

    def read(self, dump: bytes, start: int, stop: int, *, size: int = 0) -> Iterator[Piece]:
        """Yield the pieces of a part of a dump, each read or refused.

        Args:
            dump: all of it.
            start: where the part starts.
            stop: where it ends.
            size: of pieces in bytes; 0 for the usual one.
        """
        size = size or self.piece_bytes
        for first, last in _cut(dump, start, stop, size=size):
            try:
                yield Piece(first, last, read_piece(dump, first, last))
            except NotPlain:
                yield from self._read_again(dump, first, last, size=size // _PARTS)

    def _read_again(self, dump: bytes, start: int, stop: int, *, size: int) -> Iterator[Piece]:
        """Yield the pieces of a part that was refused as a whole."""
        is_small = size < self.smallest_bytes
        if is_small or next(_cut(dump, start, stop, size=size)) == (start, stop):
            yield Piece(start, stop, None)
        else:
            yield from self.read(dump, start, stop, size=size)


def _cut(dump: bytes, start: int, stop: int, *, size: int) -> Iterator[tuple[int, int]]:
    """Yield parts that end with a blank line after `size` bytes, or with the whole."""
    while start < stop:
        cut = dump.find(_BETWEEN, start + size, stop)
        last = stop if cut < 0 else cut + len(_BETWEEN)
        yield start, last
        start = last


@dataclass(slots=True)
class _Joining:
    """Pieces in their order, while they are put together."""

    dump: bytes
    reader: LineReader
    parts: dict[int, Columns] = field(default_factory=dict)
    """By piece: its columns."""
    open_piece: int | None = None
    """The piece whose last record would go on if lines without a head followed."""

    def add(self, at: int, piece: Piece) -> None:
        columns = piece.columns
        is_between = self.open_piece is not None or self.reader.is_between_records
        if columns is None or not is_between:
            self._read(piece)
            return
        self.parts[at] = columns
        if len(columns.guids):
            self.open_piece = at

    def _read(self, piece: Piece) -> None:
        """Read a piece with care; the record before it becomes the reader's own."""
        if self.open_piece is not None:
            rest, last = split_last(self.parts[self.open_piece])
            self.parts[self.open_piece] = rest
            self.reader.resume(*SweepColumns(last, Texts(self.dump)).records())
            self.open_piece = None
        text = self.dump[piece.start : piece.stop].decode("utf-8", "replace")
        self.reader.read(text, 1 + self.dump.count(b"\n", 0, piece.start))

    def repeated(self) -> set[int]:
        """Return the pieces that hold a node which stands twice."""
        careful, _ = columns_of(self.reader.records.values(), Texts(self.dump))
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
        texts = Texts(self.dump)
        if self.reader.records:
            careful, texts = columns_of(self.reader.records.values(), texts)
            self.parts[-1] = store.add(careful)
        return SweepColumns(store.join(list(self.parts.values())), texts)


def _join(dump: bytes, pieces: Iterable[Piece], source: str) -> _Joining:
    """Put pieces together, reading the refused ones with care."""
    joining = _Joining(dump, LineReader(source))
    for at, piece in enumerate(pieces):
        joining.add(at, piece)
    return joining
