"""Saved frames: capture files of tcpdump, or one raw frame.

Extracts the frames; `lldpdu` parses them. A capture has the frames of both directions, so the
capturing device is among the neighbors.

Source: draft-ietf-opsawg-pcap. pcapng, the default of Wireshark, is refused with advice.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from topology.model.errors import ParseError
from topology.model.facts import Neighbor
from topology.sources.lldp.lldpdu import ETHERTYPE, GROUPS, parse_frame

_ORDERS: Final = {
    bytes.fromhex("a1b2c3d4"): ">",
    bytes.fromhex("a1b23c4d"): ">",  # times in nanoseconds
    bytes.fromhex("d4c3b2a1"): "<",
    bytes.fromhex("4d3cb2a1"): "<",
}
_NEXT_GENERATION: Final = bytes.fromhex("0a0d0d0a")
_HEAD_BYTES: Final = 24
_RECORD_BYTES: Final = 16
_ETHERNET: Final = 1


@dataclass(frozen=True, slots=True)
class SavedFrames:
    """The content of a file of frames."""

    num_frames: int = 0
    num_lldp: int = 0
    neighbors: tuple[Neighbor, ...] = ()
    """The neighbors in LLDP frames, each once, in the order of the file."""
    errors: tuple[ParseError, ...] = ()


def is_saved_frames(raw: bytes) -> bool:
    """Return whether a file has frames, by its first bytes."""
    return raw[:4] in _ORDERS or raw[:4] == _NEXT_GENERATION or raw[:6] in GROUPS


def parse_saved_frames(raw: bytes, *, source: str = "") -> SavedFrames:
    """Return the neighbors in the LLDP frames of a file; never raises. Linear in its length.

    Skips an unreadable frame. A truncated record ends the file.
    """
    if raw[:6] in GROUPS:
        return _decode_frames([raw], [], source)
    order = _ORDERS.get(raw[:4])
    if order is None:
        return _refuse("not a pcap file; convert a pcapng file with tshark -F pcap", source)
    if len(raw) < _HEAD_BYTES:
        return _refuse("file ends within its header", source)
    (link,) = struct.unpack_from(f"{order}I", raw, 20)
    if link & 0xFFFF != _ETHERNET:
        return _refuse(f"link type {link & 0xFFFF} is not Ethernet", source)
    frames: list[bytes] = []
    offset = _HEAD_BYTES
    while offset + _RECORD_BYTES <= len(raw):
        (length,) = struct.unpack_from(f"{order}I", raw, offset + 8)
        frames.append(raw[offset + _RECORD_BYTES : offset + _RECORD_BYTES + length])
        offset += _RECORD_BYTES + length
    problems = (
        [] if offset == len(raw) else [ParseError("the last frame is truncated", source=source)]
    )
    return _decode_frames(frames, problems, source)


def _refuse(problem: str, source: str) -> SavedFrames:
    return SavedFrames(errors=(ParseError(problem, source=source),))


def _decode_frames(frames: list[bytes], problems: list[ParseError], source: str) -> SavedFrames:
    neighbors: dict[Neighbor, None] = {}
    errors: list[ParseError] = []
    num_lldp = 0
    for number, raw in enumerate(frames, 1):
        if not _is_lldp(raw):
            continue
        num_lldp += 1
        frame = parse_frame(raw, source=f"{source} frame {number}".strip())
        errors += frame.errors
        if frame.pdu is not None and frame.pdu.ttl_s:
            neighbors[frame.pdu.neighbor] = None
    return SavedFrames(len(frames), num_lldp, tuple(neighbors), (*errors, *problems))


def _is_lldp(raw: bytes) -> bool:
    kinds = (raw[offset : offset + 2] for offset in (12, 16, 20))  # after up to two VLAN tags
    return ETHERTYPE.to_bytes(2, "big") in kinds and raw[:6] in GROUPS
