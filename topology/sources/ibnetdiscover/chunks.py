"""A dump in chunks: numpy parses the canonical chunks, the line parser the others.

A chunk that the numpy parser refuses is split again, so that one unusual line slows down only the
lines around it. The line parser reads the small chunks that are still refused. It merges repeated
records of a node, so it reads the whole of a dump with such a record.
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
    DescriptionText,
    SweepColumns,
    SweptDevices,
    build_columns,
    split_last,
)
from topology.sources.ibnetdiscover.parser import LineParser

CHUNK_BYTES: Final = 2 << 20
"""The arrays of its lines fit into caches, and there are few numpy calls."""
SMALLEST_BYTES: Final = 1 << 14
"""A refused chunk of this size, about 200 lines, is not split again."""
_PARTS: Final = 8
_BOM: Final = b"\xef\xbb\xbf"
_BETWEEN: Final = b"\n\n"


class Chunk(NamedTuple):
    """A part of a dump, by its offsets."""

    start: int
    stop: int
    columns: Columns | None
    """None if the chunk needs the line parser."""


@dataclass(frozen=True, slots=True)
class NumpyReader:
    """Parses whole dumps; the sizes are for tests."""

    chunk_bytes: int = CHUNK_BYTES
    smallest_bytes: int = SMALLEST_BYTES

    def __call__(self, raw: bytes, source: str) -> ParseResult:
        """Return the result of `parse_ibnetdiscover`, with `SweptDevices` as its devices.

        Cost: O(bytes), about 0.3 µs per canonical line, memory 40 bytes per line.
        """
        dump = raw.removeprefix(_BOM)
        if b"\r" in dump:
            dump = dump.replace(b"\r\n", b"\n")
        store = ColumnStore(len(dump))
        chunks = [
            chunk._replace(columns=store.add(chunk.columns)) if chunk.columns else chunk
            for chunk in self.read(dump, 0, len(dump))
        ]
        joiner = _join_chunks(dump, chunks, source)
        if joiner.has_repeated():
            store = ColumnStore(len(dump))
            joiner = _join_chunks(dump, [Chunk(0, len(dump), None)], source)
        sweep = joiner.finish(store)
        joiner.reader.close(is_empty=not len(sweep))
        return ParseResult(SweptDevices(sweep), tuple(joiner.reader.errors))

    def read(self, dump: bytes, start: int, stop: int, *, size: int = 0) -> Iterator[Chunk]:
        """Yield the chunks of a part of a dump, each parsed or refused.

        Args:
            dump: the whole dump.
            start: the offset of the part.
            stop: the end of the part.
            size: the size of chunks in bytes; 0 for the usual size.
        """
        size = size or self.chunk_bytes
        for first, last in _split_chunks(dump, start, stop, size=size):
            try:
                yield Chunk(first, last, parse_chunk(dump, first, last))
            except NonCanonicalInput:
                yield from self._read_again(dump, first, last, size=size // _PARTS)

    def _read_again(self, dump: bytes, start: int, stop: int, *, size: int) -> Iterator[Chunk]:
        """Yield the chunks of a part that was refused as a whole."""
        is_small = size < self.smallest_bytes
        if is_small or next(_split_chunks(dump, start, stop, size=size)) == (start, stop):
            yield Chunk(start, stop, None)
        else:
            yield from self.read(dump, start, stop, size=size)


def _split_chunks(dump: bytes, start: int, stop: int, *, size: int) -> Iterator[tuple[int, int]]:
    """Yield parts that end at the first blank line after `size` bytes, or at `stop`."""
    while start < stop:
        cut = dump.find(_BETWEEN, start + size, stop)
        chunk_end = stop if cut < 0 else cut + len(_BETWEEN)
        yield start, chunk_end
        start = chunk_end


@dataclass(slots=True)
class _ChunkJoiner:
    """Chunks in their order, while they are joined."""

    dump: bytes
    reader: LineParser
    parts: dict[int, Columns] = field(default_factory=dict)
    """Columns by chunk."""
    open_chunk: int | None = None
    """The chunk whose last record continues if lines without a head follow."""

    def add(self, index: int, chunk: Chunk) -> None:
        columns = chunk.columns
        is_between = self.open_chunk is not None or self.reader.is_between_records
        if columns is None or not is_between:
            self._read_by_line(chunk)
            return
        self.parts[index] = columns
        if len(columns.guids):
            self.open_chunk = index

    def _read_by_line(self, chunk: Chunk) -> None:
        """Read a chunk with the line parser, which takes over the record before it."""
        if self.open_chunk is not None:
            columns_before, last_record = split_last(self.parts[self.open_chunk])
            self.parts[self.open_chunk] = columns_before
            self.reader.resume(*SweepColumns(last_record, DescriptionText(self.dump)).records())
            self.open_chunk = None
        text = self.dump[chunk.start : chunk.stop].decode("utf-8", "replace")
        self.reader.read(text, 1 + self.dump.count(b"\n", 0, chunk.start))

    def has_repeated(self) -> bool:
        """Return whether a node appears more than once."""
        line_columns, _ = build_columns(self.reader.records.values(), DescriptionText(self.dump))
        parts = [line_columns, *self.parts.values()]
        keys = np.empty(sum(len(part.guids) for part in parts), [("guid", "u8"), ("letter", "u1")])
        for name, column in (("guid", "guids"), ("letter", "letters")):
            keys[name] = np.concatenate([getattr(part, column) for part in parts])
        guids = np.sort(keys["guid"], kind="stable")  # often in order, and then much faster
        return not (guids[1:] > guids[:-1]).all() and len(np.unique(keys)) < len(keys)

    def finish(self, store: ColumnStore) -> SweepColumns:
        """Return the whole sweep."""
        texts = DescriptionText(self.dump)
        if self.reader.records:
            line_columns, texts = build_columns(self.reader.records.values(), texts)
            self.parts[-1] = store.add(line_columns)
        return SweepColumns(store.join(list(self.parts.values())), texts)


def _join_chunks(dump: bytes, chunks: Iterable[Chunk], source: str) -> _ChunkJoiner:
    """Join chunks; read the refused chunks with the line parser."""
    joiner = _ChunkJoiner(dump, LineParser(source))
    for index, chunk in enumerate(chunks):
        joiner.add(index, chunk)
    return joiner
