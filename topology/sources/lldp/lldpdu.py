"""LLDP frames as a socket receives them: an Ethernet header, then TLVs, read one by one.

The parser never raises. It drops a frame without the three mandatory TLVs (chassis id, port id,
TTL) and says why; it keeps the readable TLVs of any other frame. It skips reserved and foreign
TLVs by their length. A neighbor parsed here equals the neighbor that lldpcli reports for the same
frame.

Source: IEEE 802.1AB-2016 clauses 8 and 9.2.7, 802.1Q annex D, 802.3 clause 79; lldpd 1.0.16.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Final, NamedTuple

from topology.model.errors import ParseError
from topology.model.facts import Capability, Neighbor, Source
from topology.sources.lldp.ids import SentId, chassis_ids, port_ids, port_name

ETHERTYPE: Final = 0x88CC
GROUPS: Final = tuple(bytes.fromhex(f"0180c20000{last}") for last in ("0e", "03", "00"))
"""Nearest bridge, nearest non-TPMR bridge, nearest customer bridge: 802.1AB table 7-1."""

_TAGS: Final = frozenset({0x8100, 0x88A8})
_MAX_TAGS: Final = 2
MAX_FRAME_BYTES: Final = 65535
"""No link carries longer frames; most links carry up to 9 kB, and LLDP frames up to 1.5 kB."""
_END, _CHASSIS, _PORT, _TTL, _PORT_DESCRIPTION, _SYSTEM_NAME = range(6)
_CAPABILITIES: Final = 7
_ADDRESS: Final = 8
_ORGANISATION: Final = 127
_MANDATORY: Final = {_CHASSIS: "chassis id", _PORT: "port id", _TTL: "TTL"}
_ID_LENGTHS: Final = range(2, 257)
# Chassis ids and port ids use different numbers for the same subtype.
_CHASSIS_WORDS: Final = ("unhandled", "ifalias", "unhandled", "mac", "ip", "ifname", "local")
_PORT_WORDS: Final = ("ifalias", "unhandled", "mac", "ip", "ifname", "unhandled", "local")
_IP_BYTES: Final = {1: 4, 2: 16}
"""Address bytes by IANA address family: IPv4, IPv6."""
_NAME_BYTES: Final = 4
# OUI and subtype of organisational TLVs.
_PVID: Final = bytes.fromhex("0080c201")
_FRAME_SIZE: Final = bytes.fromhex("00120f04")
# The TLV moved from 802.3 to 802.1; both are in use.
_AGGREGATION: Final = frozenset({bytes.fromhex("0080c207"), bytes.fromhex("00120f03")})
_UNDECODABLE: Final = re.compile("[\udc80-\udcff]")


class Aggregation(NamedTuple):
    """The sender's link aggregation on its port."""

    is_capable: bool
    is_in_use: bool
    port_id: int
    """The sender's number of the aggregated port, 0 if there is none."""


@dataclass(frozen=True, slots=True)
class Lldpdu:
    """The content of one frame, about the port that sent it."""

    chassis_id: bytes
    """Subtype byte and id, as sent."""
    port_id: bytes
    """Subtype byte and id, as sent."""
    ttl_s: int
    """0 in a shutdown LLDPDU: the sender stops sending."""
    vlan: int | None = None
    """VLAN of the outermost tag; 0 if the tag has a priority only, None without a tag."""
    port_description: str = ""
    system_name: str = ""
    addresses: tuple[str, ...] = ()
    """Management addresses, v4 and v6, as sent."""
    capabilities: tuple[Capability, ...] = ()
    """The enabled ones."""
    pvid: int | None = None
    aggregation: Aggregation | None = None
    max_frame_bytes: int | None = None

    @property
    def neighbor(self) -> Neighbor:
        """The neighbor of the receiving port, as lldpcli would report it."""
        sent = _sent_id(self.port_id, _PORT_WORDS)
        return Neighbor(
            device_ids=chassis_ids(_sent_id(self.chassis_id, _CHASSIS_WORDS), self.addresses),
            device_name=self.system_name,
            port_ids=port_ids(sent),
            port_name=port_name(sent, self.port_description),
            source=Source.LLDP,
            ttl_s=self.ttl_s,
            capabilities=self.capabilities,
        )


@dataclass(frozen=True, slots=True)
class Frame:
    """A parsed frame: its content and its errors."""

    pdu: Lldpdu | None
    """None for a dropped frame; the last error then says why."""
    errors: tuple[ParseError, ...] = ()


class _Tlv(NamedTuple):
    kind: int
    value: bytes
    offset: int
    """Offset of the TLV header in the LLDPDU, in bytes."""


def parse_frame(raw: bytes, *, source: str = "") -> Frame:
    """Parse an Ethernet frame; never raises. Linear in its length.

    Args:
        raw: the frame from its destination address, without checksum; with or without VLAN tags.
        source: the source of the errors, such as the receiving port.
    """
    try:
        vlan, body = _payload(raw)
    except ParseError as refused:
        return Frame(None, (_with_source(refused, source),))
    tlvs, errors = _walk(body)
    try:
        chassis_id, port_id, ttl_s = _mandatory(tlvs)
    except ParseError as refused:
        return Frame(None, tuple(_with_source(error, source) for error in (*errors, refused)))
    pdu = Lldpdu(chassis_id, port_id, ttl_s, vlan)
    for tlv in tlvs[len(_MANDATORY) :] if ttl_s else ():  # a shutdown LLDPDU has no more
        try:
            pdu = _with_tlv(pdu, tlv)
        except ParseError as refused:
            errors.append(refused)
    return Frame(pdu, tuple(_with_source(error, source) for error in errors))


def _with_source(error: ParseError, source: str) -> ParseError:
    return ParseError(error.problem, source=source, excerpt=error.excerpt)


def _payload(raw: bytes) -> tuple[int | None, bytes]:
    """Return the VLAN and the LLDPDU of a frame.

    Raises:
        ParseError: the frame is not LLDP, or its destination is not an LLDP group address.
    """
    if len(raw) > MAX_FRAME_BYTES:
        raise ParseError(f"longer than any frame: {len(raw)} bytes")
    if raw[:6] not in GROUPS:
        raise ParseError("not sent to an LLDP group address", excerpt=raw[:6].hex(":"))
    offset, vlan = 12, None
    for _ in range(_MAX_TAGS):
        if int.from_bytes(raw[offset : offset + 2], "big") not in _TAGS:
            break
        tag = int.from_bytes(raw[offset + 2 : offset + 4], "big") & 0xFFF
        vlan, offset = (tag if vlan is None else vlan), offset + 4
    if int.from_bytes(raw[offset : offset + 2], "big") != ETHERTYPE:
        raise ParseError("not an LLDP frame", excerpt=raw[offset : offset + 2].hex())
    return vlan, raw[offset + 2 :]


def _walk(body: bytes) -> tuple[list[_Tlv], list[ParseError]]:
    """Return the TLVs before the End TLV, and an error if there is no valid End TLV."""
    tlvs: list[_Tlv] = []
    offset = 0
    while offset + 2 <= len(body):
        head = int.from_bytes(body[offset : offset + 2], "big")
        kind, end = head >> 9, offset + 2 + (head & 0x1FF)
        if kind == _END:
            return tlvs, ([_tlv_error("End TLV with a value", body[offset:end])] if head else [])
        if end > len(body):
            problem = f"TLV of type {kind} at byte {offset} runs past the frame"
            return tlvs, [_tlv_error(problem, body[offset:])]
        tlvs.append(_Tlv(kind, body[offset + 2 : end], offset))
        offset = end
    return tlvs, [_tlv_error("no End TLV", body[offset:])]


def _mandatory(tlvs: Sequence[_Tlv]) -> tuple[bytes, bytes, int]:
    """Return the chassis id, the port id and the TTL.

    Raises:
        ParseError: they are not the first TLVs, in this order, once each; or an id has an invalid
            length or subtype (9.2.7.7).
    """
    for place, (kind, name) in enumerate(_MANDATORY.items()):
        if len(tlvs) <= place:
            raise ParseError(f"frame ends before its {name}")
        if tlvs[place].kind != kind:
            raise ParseError(f"TLV of type {tlvs[place].kind} in the place of its {name}")
    for tlv in tlvs[len(_MANDATORY) :]:
        if tlv.kind in _MANDATORY:
            raise ParseError(f"a second {_MANDATORY[tlv.kind]}")
    chassis, port, ttl = tlvs[: len(_MANDATORY)]
    for tlv in (chassis, port):
        is_id = len(tlv.value) in _ID_LENGTHS and 0 < tlv.value[0] <= len(_CHASSIS_WORDS)
        if not is_id:
            raise _tlv_error(f"invalid {_MANDATORY[tlv.kind]}", tlv.value)
    if len(ttl.value) < 2:  # noqa: PLR2004 - a 16-bit number; more bytes are ignored
        raise _tlv_error("invalid TTL", ttl.value)
    return chassis.value, port.value, int.from_bytes(ttl.value[:2], "big")


def _with_tlv(pdu: Lldpdu, tlv: _Tlv) -> Lldpdu:
    """Return the content with an optional TLV added; the last of a repeated TLV counts.

    Raises:
        ParseError: the TLV is too short for its type.
    """
    if tlv.kind == _PORT_DESCRIPTION and tlv.value:
        return replace(pdu, port_description=_text(tlv.value))
    if tlv.kind == _SYSTEM_NAME and tlv.value:
        return replace(pdu, system_name=_text(tlv.value))
    if tlv.kind == _CAPABILITIES:
        enabled = _number(tlv, tlv.value, 4) & 0xFFFF  # the first half are those it could have
        found = tuple(capability for at, capability in enumerate(Capability) if enabled & (1 << at))
        return replace(pdu, capabilities=found)
    if tlv.kind == _ADDRESS:
        return replace(pdu, addresses=pdu.addresses + _address(tlv))
    return _with_organisational(pdu, tlv) if tlv.kind == _ORGANISATION else pdu


def _with_organisational(pdu: Lldpdu, tlv: _Tlv) -> Lldpdu:
    name, value = tlv.value[:_NAME_BYTES], tlv.value[_NAME_BYTES:]
    if len(name) < _NAME_BYTES:
        raise _too_short_error(tlv)
    if name == _PVID:
        return replace(pdu, pvid=_number(tlv, value, 2))
    if name in _AGGREGATION:
        return replace(pdu, aggregation=_aggregation(tlv, value))
    return replace(pdu, max_frame_bytes=_number(tlv, value, 2)) if name == _FRAME_SIZE else pdu


def _aggregation(tlv: _Tlv, value: bytes) -> Aggregation:
    packed = _number(tlv, value, 5)
    status = packed >> 32
    return Aggregation(bool(status & 1), bool(status & 2), packed & 0xFFFFFFFF)


def _number(tlv: _Tlv, value: bytes, length: int) -> int:
    if len(value) < length:
        raise _too_short_error(tlv)
    return int.from_bytes(value[:length], "big")


def _address(tlv: _Tlv) -> tuple[str, ...]:
    """Return the management address as text; empty for a family other than IP."""
    length = tlv.value[0] if tlv.value else 0
    # The numbering subtype and the number of the interface follow the address.
    if length < 2 or len(tlv.value) < 1 + length + 5:  # noqa: PLR2004 - a family and an address
        raise _too_short_error(tlv)
    family, address = tlv.value[1], tlv.value[2 : 1 + length]
    return (str(ip_address(address)),) if _IP_BYTES.get(family) == len(address) else ()


def _too_short_error(tlv: _Tlv) -> ParseError:
    return _tlv_error(f"TLV of type {tlv.kind} at byte {tlv.offset} is too short", tlv.value)


def _tlv_error(problem: str, value: bytes) -> ParseError:
    return ParseError(problem, excerpt=value[:16].hex(" "))


def _sent_id(value: bytes, words: Sequence[str]) -> SentId:
    """Return an id with the word and the text that lldpcli prints for it."""
    word, sent = words[value[0] - 1], value[1:]
    match word:
        case "mac":
            return SentId(word, sent.hex(":"))
        case "ip":
            is_known = _IP_BYTES.get(sent[0]) == len(sent) - 1
            return SentId(word, str(ip_address(sent[1:])) if is_known else sent.hex(" "))
        case "unhandled":
            return SentId(word, sent.hex(" "))
        case _:
            return SentId(word, _text(sent))


def _text(value: bytes) -> str:
    """Return the text up to its first NUL; replaces each invalid byte by U+FFFD, as json0 does."""
    decoded = value.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
    return _UNDECODABLE.sub("\ufffd", decoded)
