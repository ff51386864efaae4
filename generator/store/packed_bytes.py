"""Unpacks gzip in bounded memory: saved captures are often packed. Pure."""

from __future__ import annotations

import zlib
from typing import Final

from topology.model.errors import CutInput, ParseError

PACKED_SUFFIX: Final = ".gz"
_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 31
MAX_RATIO: Final = 200
"""Limit of unpacked to packed size: lists of equal nodes have up to 60, a bomb has 1000."""
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
    content = bytearray()
    rest = raw
    while rest:
        unpacker = zlib.decompressobj(_GZIP_WINDOW)
        try:
            content += unpacker.decompress(rest, allowed + 1 - len(content))
        except zlib.error as error:
            return ParseError(f"gzip is damaged: {error}", source=source)
        if len(content) > allowed:
            return ParseError(f"unpacks to more than {allowed} bytes", source=source)
        if not unpacker.eof:
            return CutInput("the file is cut: its gzip has no end", source=source)
        rest = unpacker.unused_data.lstrip(b"\0")
    return bytes(content)
