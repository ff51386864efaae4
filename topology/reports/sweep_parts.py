"""A sweep as numbered reports of the sweeping node, small enough for an API server. Pure.

A compromised node can write any bytes into its parts. They are therefore unpacked piece by
piece, and a sweep that is longer than that of any fabric is refused before its text is in memory.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from topology.model.errors import ReportError
from topology.reports.neighbor_report import NeighborReport, ReportMetadata, ReportSpec, SweepPart

MAX_PART_BYTES = 192 * 1024  # of compressed facts; base64 makes that 256 KiB
MAX_SWEEP_BYTES: Final = 384 << 20
"""Limit of the unpacked text: 65,536 HCAs have 40 to 100 MB, 200,000 have 160 to 300 MB."""
MAX_SWEEP_LINES: Final = 4_000_000
"""Limit of lines: 65,536 HCAs have 0.7 to 0.8 million, 200,000 have 2.6 million."""
MAX_RATIO: Final = 40
"""Limit of unpacked to packed size: real fabrics have up to 20, a decompression bomb has 1000."""
SMALL_SWEEP_BYTES: Final = 1 << 20
"""Unpacked size that is allowed at any ratio."""
MAX_LINE_BYTES: Final = 1024
"""Limit of a line: a description has at most 64 bytes on the wire, and a line has one."""
PIECE_BYTES: Final = 1 << 20
"""Size of the pieces of the text; each is parsed before the next is unpacked."""
_MAX_RECORD_BYTES: Final = 512 << 10
"""Limit of the text of one device: a switch with 255 ports has 25 KB."""
_RECORD_END: Final = b"\n\n"


class IncompleteSweep(ReportError):  # noqa: N818 - reads as what happened
    """Parts are missing: the node may still be writing them."""


class SweepSize(NamedTuple):
    """The size of the text of a sweep."""

    num_bytes: int
    num_lines: int


def split_sweep(text: str, *, node: str, subnet: str, first: int = 0) -> list[NeighborReport]:
    """Return the numbered reports `NODE.sweep.<i>` that carry one sweep's canonical text.

    Args:
        text: the output of `print_rows`.
        node: the node that swept.
        subnet: the prefix of the subnet.
        first: the number of the first report; a node may sweep several subnets.
    """
    raw = text.encode(errors="replace")
    packed = zlib.compress(raw, 9)
    pieces = [packed[k : k + MAX_PART_BYTES] for k in range(0, len(packed), MAX_PART_BYTES)]
    sweep_id = hashlib.sha256(raw).hexdigest()[:16]
    return [
        NeighborReport(
            metadata=ReportMetadata(name=f"{node}.sweep.{first + part}"),
            spec=ReportSpec(
                sweep=SweepPart(
                    subnet=subnet,
                    sweep_id=sweep_id,
                    part=part,
                    of=len(pieces),
                    facts=base64.b64encode(piece).decode("ascii"),
                )
            ),
        )
        for part, piece in enumerate(pieces)
    ]


def unpack_sweep(parts: Iterable[SweepPart]) -> bytes:
    """Return the text of a complete set of parts, given in any order.

    Raises:
        ReportError: as `iterate_sweep_text` does.
    """
    return b"".join(iterate_sweep_text(parts))


def measure_sweep(parts: Iterable[SweepPart]) -> SweepSize:
    """Return the size of a sweep's text. Cost: O(bytes), 4 ns each, and memory for one piece.

    Raises:
        ReportError: as `iterate_sweep_text` does; after this call it does not.
    """
    num_bytes = num_lines = 0
    for piece in iterate_sweep_text(parts):
        num_bytes += len(piece)
        num_lines += piece.count(b"\n")
    return SweepSize(num_bytes, num_lines)


def iterate_sweep_text(parts: Iterable[SweepPart]) -> Iterator[bytes]:
    """Yield the text of a complete set of parts in pieces that end between two devices.

    A piece ends at a line end if a device, or the rows of -p, continue for too long. The hash of
    the text is checked with the last piece, so a consumer that must not use a wrong text has to
    read all pieces first.

    Raises:
        ReportError: parts are missing, damaged or of different sweeps, or unpack to more text,
            more lines or longer lines than any fabric has.
    """
    ordered = sorted(parts, key=lambda part: part.part)
    if not ordered or [part.part for part in ordered] != list(range(ordered[0].of)):
        have = len(ordered)
        raise IncompleteSweep(f"sweep incomplete: {have} of {ordered[0].of if have else '?'} parts")
    if len({(part.subnet, part.sweep_id, part.of) for part in ordered}) > 1:
        raise ReportError("parts of different sweeps")
    digest, num_lines = hashlib.sha256(), 0
    for piece in split_records(_unpack(ordered)):
        digest.update(piece)
        num_lines += piece.count(b"\n")
        if num_lines > MAX_SWEEP_LINES:
            raise ReportError(f"sweep refused: more than {MAX_SWEEP_LINES} lines")
        yield piece
    if digest.hexdigest()[:16] != ordered[0].sweep_id:
        raise ReportError("sweep damaged: its hash does not match its id")


def _unpack(ordered: list[SweepPart]) -> Iterator[bytes]:
    """Yield the unpacked text in blocks of bounded size."""
    unpacker = zlib.decompressobj()
    num_packed = sum(len(part.facts) for part in ordered) * 3 // 4
    limit = min(MAX_SWEEP_BYTES, max(SMALL_SWEEP_BYTES, MAX_RATIO * num_packed))
    num_bytes = 0
    try:
        for part in ordered:
            packed = base64.b64decode(part.facts, validate=True)
            while packed and not unpacker.eof:
                block = unpacker.decompress(packed, PIECE_BYTES)
                packed = unpacker.unconsumed_tail
                num_bytes += len(block)
                if num_bytes > limit:
                    raise ReportError("sweep refused: damaged or larger than any fabric")
                yield block
        while not unpacker.eof and (block := unpacker.decompress(b"", PIECE_BYTES)):
            num_bytes += len(block)
            yield block
    except (binascii.Error, ValueError, zlib.error) as error:
        raise ReportError(f"sweep damaged: {error}") from error
    if not unpacker.eof:
        raise ReportError("sweep damaged: its last part is cut off")


def split_records(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the text in blocks that end after a record, or after a line of a long record."""
    rest = b""
    for block in blocks:
        text = rest + block
        cut = text.rfind(_RECORD_END) + len(_RECORD_END)
        if cut < max(len(_RECORD_END), len(text) - _MAX_RECORD_BYTES):
            cut = text.rfind(b"\n") + 1 if len(text) > _MAX_RECORD_BYTES else 0
        _check_lines(text)
        rest = text[cut:]
        if cut:
            yield text[:cut]
    if rest:
        yield rest


def _check_lines(text: bytes) -> None:
    """Refuse a text with a line that is longer than any fabric's. Cost: a jump per 1024 bytes."""
    start = 0
    while len(text) - start > MAX_LINE_BYTES:
        start = text.rfind(b"\n", start, start + MAX_LINE_BYTES + 1) + 1
        if not start:
            raise ReportError(f"sweep refused: a line of more than {MAX_LINE_BYTES} bytes")
