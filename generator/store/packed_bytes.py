"""Unpacks gzip in bounded memory: saved captures are often packed. Pure."""

from __future__ import annotations

import io
import re
import zlib
from typing import Final

from topology.model.errors import CutInput, ParseError

PACKED_SUFFIX: Final = ".gz"
_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 31
MAX_RATIO: Final = 200
"""Limit of unpacked to packed size: lists of equal nodes have up to 60, a bomb has 1000."""
_PIECE_BYTES: Final = 1 << 16
_PADDING: Final = re.compile(rb"\0*+")
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
        try:
            content.write(unpacker.decompress(piece, allowed + 1 - content.tell()))
        except zlib.error as error:
            return ParseError(f"gzip is damaged: {error}", source=source)
        if content.tell() > allowed:
            return ParseError(f"unpacks to more than {allowed} bytes", source=source)
        place += len(piece) - len(unpacker.unused_data)
        if unpacker.eof:
            padding = _PADDING.match(raw, place)
            place = padding.end() if padding else place
            if place < len(raw):
                unpacker = zlib.decompressobj(_GZIP_WINDOW)
    if not unpacker.eof:
        return CutInput("the file is cut: its gzip has no end", source=source)
    return content.getvalue()
