"""Reads local files and stdin up to a size limit, and the inventory of nodes from a file.

Saved captures are often packed by gzip: they are unpacked in bounded memory.
"""

from __future__ import annotations

import io
import re
import sys
import zlib
from pathlib import Path
from typing import Final

from generator.objects.inventory import Inventory, parse_nodes
from generator.store.file_kinds import FileKind, expect_kind
from topology.model.errors import ConfigError, CutInput, ParseError, show
from topology.model.text import to_utf8

PACKED_SUFFIX: Final = ".gz"
_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 31
MAX_RATIO: Final = 200
"""Limit of unpacked to packed size: lists of equal nodes have up to 60, a bomb has 1000."""
_PIECE_BYTES: Final = 1 << 16
_PADDING: Final = re.compile(rb"\0*+")
_STDIN: Final = "-"
SMALL_BYTES: Final = 4 << 20
"""Unpacked size that is allowed at any ratio."""


def unpack_bytes(raw: bytes, limit: int, *, source: str) -> bytes | ParseError:
    """Return the content of a gzip file, or any other bytes as they are.

    Args:
        raw: the bytes of a file; several gzip members in sequence add up.
        limit: the largest size of the content in bytes.
        source: the name of the file in problems.
    """
    if not raw.startswith(_MAGIC):
        return raw
    allowed = min(limit, max(SMALL_BYTES, MAX_RATIO * len(raw)))
    content = io.BytesIO()  # its value is its buffer: no second copy
    view, place = memoryview(raw), 0
    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    while place < len(raw):
        piece = view[place : place + _PIECE_BYTES]
        # One byte more than allowed: either all of the piece is unpacked, or too much is.
        try:
            content.write(unpacker.decompress(piece, allowed + 1 - content.tell()))
        except zlib.error as error:
            return ParseError(f"gzip is damaged: {error}", source=source)
        if content.tell() > allowed:
            return ParseError(f"unpacks to more than {allowed} bytes", source=source)
        place += len(piece) - len(unpacker.unused_data)
        if unpacker.eof:
            place = _skip_padding(raw, place)
            if place < len(raw):
                unpacker = zlib.decompressobj(_GZIP_WINDOW)
    if not unpacker.eof:
        return CutInput("the file is cut: its gzip has no end", source=source)
    return content.getvalue()


def _skip_padding(raw: bytes, place: int) -> int:
    padding = _PADDING.match(raw, place)
    return padding.end() if padding else place


MAX_SWEEP_BYTES: Final = 1 << 30  # 100k HCAs print about 100 MB


def read_inventory(file: Path | None) -> Inventory | None:
    """Return the nodes in a file, or None without a file.

    Raises:
        ConfigError: the file cannot be read, or has no nodes: with an empty list, no node would
            have a place in the tree.
    """
    if file is None:
        return None
    raw = read_whole_file(file, MAX_SWEEP_BYTES)
    if isinstance(raw, ParseError):
        raise ConfigError(str(raw))
    with expect_kind(file, FileKind.NODES):
        inventory = parse_nodes(raw, source=str(file))
        if not inventory.nodes:
            reason = next((f": {problem}" for problem in inventory.problems), "")
            raise ConfigError(f"{file}: no nodes in this file{reason}")
    return inventory


def read_whole_file(file: Path, limit: int) -> bytes | ParseError:
    """Return the content of a file, or the problem if it is unreadable or above the limit.

    A gzip file is unpacked; text is returned as UTF-8 without a byte order mark.
    """
    raw = read_raw_file(file, limit)
    if isinstance(raw, ParseError):
        return raw
    return decode_file(raw, limit, source=str(file))


def read_input(file: str, limit: int) -> tuple[str, bytes]:
    """Return the name to show and the content of a file, or of stdin if its name is `-`.

    Raises:
        ConfigError: the file cannot be read, or is larger than the limit.
    """
    source = "stdin" if file == _STDIN else show(file, 1024)
    raw = _read_stdin(limit) if file == _STDIN else read_whole_file(Path(file), limit)
    if isinstance(raw, ParseError):
        raise ConfigError(str(raw))
    return source, raw


def _read_stdin(limit: int) -> bytes | ParseError:
    try:
        raw = sys.stdin.buffer.read(limit + 1)
    except OSError as error:  # it is closed, or a folder
        return ParseError(f"cannot be read: {error.strerror}", source="stdin")
    return ParseError(f"larger than {limit} bytes", source="stdin") if len(raw) > limit else raw


def read_raw_file(file: Path, limit: int) -> bytes | ParseError:
    """Return the bytes of a file as they are, or the problem if it is unreadable or too large."""
    source = str(file)
    try:
        with file.open("rb") as stream:
            raw = stream.read(limit + 1)
    except OSError as error:
        return ParseError(f"cannot be read: {error.strerror}", source=source)
    if len(raw) > limit:
        return ParseError(f"larger than {limit} bytes", source=source)
    return raw


def decode_file(raw: bytes, limit: int, *, source: str) -> bytes | ParseError:
    """Return the content of a file that may be packed, as UTF-8 without a byte order mark."""
    content = unpack_bytes(raw, limit, source=source)
    return content if isinstance(content, ParseError) else to_utf8(content)


def read_regular_file(file: Path, limit: int) -> bytes | ParseError:
    """Return the content of a regular file; opening a named pipe would wait for its writer."""
    return _check_regular(file) or read_whole_file(file, limit)


def read_secret_file(file: Path, limit: int) -> bytes | ParseError:
    """Return the bytes of a regular file as they are: a secret has no byte order mark."""
    return _check_regular(file) or read_raw_file(file, limit)


def _check_regular(file: Path) -> ParseError | None:
    if file.exists() and not file.is_file():
        return ParseError("not a regular file", source=str(file))
    return None
