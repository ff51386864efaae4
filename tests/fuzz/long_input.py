"""Makes long inputs from short ones, to find quadratic time and deep recursion.

Coverage-guided fuzzing prefers short inputs, so it finds these late.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

MIN_LINE_BYTES: Final = 32
"""Minimum length of a repeated line. Any line costs about 10 µs, so a megabyte of shorter lines
takes seconds without a defect. No tool prints such lines."""
_MAX_LINES: Final = 4
_MAX_MARKS: Final = 8


def stretch(raw: bytes, size: int) -> Iterator[bytes]:
    """Yield variants of an input that repeat one part up to `size` bytes.

    The parts are the whole input, some of its lines, and some of its punctuation, which nests.
    """
    if not raw:
        return
    yield _repeated(raw, 0, len(raw), size)
    starts = [0, *(at + 1 for at, byte in enumerate(raw) if byte == 0x0A and at + 1 < len(raw))]
    for start in starts[:: 1 + len(starts) // _MAX_LINES]:
        end = raw.find(b"\n", start) + 1 or len(raw)
        yield _repeated(raw, start, end, size)
    first = {byte: at for at, byte in reversed([*enumerate(raw)]) if not chr(byte).isalnum()}
    for at in sorted(first.values())[:_MAX_MARKS]:
        yield _repeated(raw, at, at + 1, size)
        yield _repeated(raw, at, min(at + 2, len(raw)), size)


def _repeated(raw: bytes, start: int, end: int, size: int) -> bytes:
    part = raw[start:end]
    if part.count(b"\n") * MIN_LINE_BYTES > len(part):
        part = part.replace(b"\n", b" " * MIN_LINE_BYTES + b"\n")
    count = max(0, size - len(raw)) // len(part) + 1
    return raw[:start] + part * count + raw[end:]
