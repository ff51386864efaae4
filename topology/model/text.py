"""Text of foreign files: its encoding, by the byte order mark. Pure."""

from __future__ import annotations

import codecs
from typing import Final

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decode_text(raw: bytes) -> str:
    """Return the text of a file without its byte order mark; without a mark it is UTF-8.

    Raises:
        UnicodeDecodeError: the bytes are not text in that encoding.
    """
    mark, encoding = _find_mark(raw)
    return raw[len(mark) :].decode(encoding)


def to_utf8(raw: bytes) -> bytes:
    """Return a file as UTF-8 without a byte order mark, as every parser of bytes expects it.

    A file without a mark is returned as it is. Bytes that are wrong in UTF-16 become U+FFFD.
    """
    mark, encoding = _find_mark(raw)
    if not mark:
        return raw
    body = raw[len(mark) :]
    return body if encoding == "utf-8" else body.decode(encoding, "replace").encode()


def _find_mark(raw: bytes) -> tuple[bytes, str]:
    return next((row for row in _MARKS if raw.startswith(row[0])), (b"", "utf-8"))
