"""A sweep as numbered reports of the sweeping node, small enough for an API server. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Iterable

from topology.model.errors import ReportError
from topology.reports.neighbor_report import NeighborReport, ReportMetadata, ReportSpec, SweepPart

MAX_CHUNK_BYTES = 192 * 1024  # of compressed facts; base64 makes that 256 KiB
MAX_SWEEP_BYTES = 1 << 30  # unpacked; 100k HCAs need about 100 MB
MAX_RATIO = 100
"""Limit of unpacked to packed size: real fabrics have up to 20, a decompression bomb has 1000."""
SMALL_SWEEP_BYTES = 1 << 20
"""Unpacked size that is allowed at any ratio."""


def split_sweep(text: str, *, node: str, subnet: str, first: int = 0) -> list[NeighborReport]:
    """Return the numbered reports `NODE.sweep.<i>` that carry one sweep's canonical text.

    Args:
        text: the output of `render_ibnetdiscover`.
        node: the node that swept.
        subnet: the prefix of the subnet.
        first: the number of the first report; a node may sweep several subnets.
    """
    raw = text.encode(errors="replace")
    packed = zlib.compress(raw, 9)
    pieces = [packed[k : k + MAX_CHUNK_BYTES] for k in range(0, len(packed), MAX_CHUNK_BYTES)]
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
        ReportError: parts are missing, damaged or of different sweeps, or unpack to more than any
            fabric needs.
    """
    ordered = sorted(parts, key=lambda part: part.part)
    if not ordered or [part.part for part in ordered] != list(range(ordered[0].of)):
        have = len(ordered)
        raise ReportError(f"sweep incomplete: {have} of {ordered[0].of if have else '?'} parts")
    if len({(part.subnet, part.sweep_id, part.of) for part in ordered}) > 1:
        raise ReportError("parts of different sweeps")
    try:
        packed = b"".join(base64.b64decode(part.facts, validate=True) for part in ordered)
        unpacker = zlib.decompressobj()
        limit = min(MAX_SWEEP_BYTES, max(SMALL_SWEEP_BYTES, MAX_RATIO * len(packed)))
        raw = unpacker.decompress(packed, limit)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise ReportError(f"sweep damaged: {error}") from error
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise ReportError("sweep damaged or larger than any fabric")
    if hashlib.sha256(raw).hexdigest()[:16] != ordered[0].sweep_id:
        raise ReportError("sweep damaged: its hash does not match its id")
    return raw
