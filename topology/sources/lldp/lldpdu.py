"""LLDP frames as a socket hears them: Ethernet header, then TLVs, walked one by one.

Whatever a frame holds, nothing is raised. A frame without the three TLVs that say who sent it is
dropped with its reason; of any other the readable TLVs are kept. Reserved and foreign TLVs are
skipped by their length. A neighbor read here equals what lldpcli tells of the same frame.

Source: IEEE 802.1AB-2016 clauses 8 and 9.2.7, 802.1Q annex D, 802.3 clause 79; lldpd 1.0.16.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Final, NamedTuple

from topology.model.errors import ParseError
from topology.model.facts import Neighbor, Source
from topology.sources.lldp.ids import SentId, chassis_ids, port_ids, port_name

ETHERTYPE: Final = 0x88CC
GROUPS: Final = tuple(bytes.fromhex(f"0180c20000{last}") for last in ("0e", "03", "00"))
"""Nearest bridge, nearest non-TPMR bridge, nearest customer bridge: 802.1AB table 7-1."""

_TAGS: Final = frozenset({0x8100, 0x88A8})
_MAX_TAGS: Final = 2
MAX_FRAME_BYTES: Final = 65535
"""No link carries longer frames; most of them end at 9 kB, and LLDP's at 1.5."""
_END, _CHASSIS, _PORT, _TTL, _PORT_DESCRIPTION, _SYSTEM_NAME = range(6)
_ADDRESS: Final = 8
_ORGANISATION: Final = 127
_MANDATORY: Final = {_CHASSIS: "chassis id", _PORT: "port id", _TTL: "TTL"}
_ID_LENGTHS: Final = range(2, 257)
# Chassis and port ids number the same kinds differently.
_CHASSIS_WORDS: Final = ("unhandled", "ifalias", "unhandled", "mac", "ip", "ifname", "local")
_PORT_WORDS: Final = ("ifalias", "unhandled", "mac", "ip", "ifname", "unhandled", "local")
_IP_BYTES: Final = {1: 4, 2: 16}
"""Address bytes by IANA address family: IPv4, IPv6."""
_NAME_BYTES: Final = 4
# Of organisational TLVs, which are named by an OUI and a subtype.
_PVID: Final = bytes.fromhex("0080c201")
_FRAME_SIZE: Final = bytes.fromhex("00120f04")
# It moved from 802.3 to 802.1; both are in use.
_AGGREGATION: Final = frozenset({bytes.fromhex("0080c207"), bytes.fromhex("00120f03")})
_UNDECODABLE: Final = re.compile("[\udc80-\udcff]")


class Aggregation(NamedTuple):
    """What the sender says of link aggregation on its port."""

    is_capable: bool
    is_in_use: bool
    port_id: int
    """Its number for the aggregated port, 0 where it has none."""


@dataclass(frozen=True, slots=True)
class Lldpdu:
    """What one frame says of the port that sent it."""

    chassis_id: bytes
    """Subtype byte and id, as sent."""
    port_id: bytes
    """Subtype byte and id, as sent."""
    ttl_s: int
    """0 in a shutdown LLDPDU: the sender takes its leave."""
    vlan: int | None = None
    """Of the outermost tag; 0 where the tag holds a priority only, None without one."""
    port_description: str = ""
    system_name: str = ""
    addresses: tuple[str, ...] = ()
    """Management addresses, v4 and v6, as sent."""
    pvid: int | None = None
    aggregation: Aggregation | None = None
    max_frame_bytes: int | None = None

    @property
    def neighbor(self) -> Neighbor:
        """What the receiving port hears, as lldpcli would tell it."""
        sent = _sent_id(self.port_id, _PORT_WORDS)
        return Neighbor(
            device_ids=chassis_ids(_sent_id(self.chassis_id, _CHASSIS_WORDS), self.addresses),
            device_name=self.system_name,
            port_ids=port_ids(sent),
            port_name=port_name(sent, self.port_description),
            source=Source.LLDP,
            ttl_s=self.ttl_s,
        )


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame read: what it says, and what of it could not be read."""

    pdu: Lldpdu | None
    """None for a frame that is dropped; then the last error says why."""
    errors: tuple[ParseError, ...] = ()


class _Tlv(NamedTuple):
    kind: int
    value: bytes
    offset: int
    """Of its header in the LLDPDU."""


def parse_frame(raw: bytes, *, source: str = "") -> Frame:
    """Return what an Ethernet frame says; never raises. Linear in its length.

    Args:
        raw: from the destination address on, without checksum; with or without VLAN tags.
        source: of the errors, such as the receiving port.
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
    for tlv in tlvs[len(_MANDATORY) :] if ttl_s else ():  # a shutdown LLDPDU says no more
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
        ParseError: it is none of LLDP, or not sent to one of its groups.
    """
    if len(raw) > MAX_FRAME_BYTES:
        raise ParseError(f"longer than any frame: {len(raw)} bytes")
    if raw[:6] not in GROUPS:
        raise ParseError("not sent to an LLDP group", excerpt=raw[:6].hex(":"))
    at, vlan = 12, None
    for _ in range(_MAX_TAGS):
        if int.from_bytes(raw[at : at + 2], "big") not in _TAGS:
            break
        tag = int.from_bytes(raw[at + 2 : at + 4], "big") & 0xFFF
        vlan, at = (tag if vlan is None else vlan), at + 4
    if int.from_bytes(raw[at : at + 2], "big") != ETHERTYPE:
        raise ParseError("no LLDP frame", excerpt=raw[at : at + 2].hex())
    return vlan, raw[at + 2 :]


def _walk(body: bytes) -> tuple[list[_Tlv], list[ParseError]]:
    """Return the TLVs before the End, and an error where the walk ends without one."""
    tlvs: list[_Tlv] = []
    at = 0
    while at + 2 <= len(body):
        head = int.from_bytes(body[at : at + 2], "big")
        kind, end = head >> 9, at + 2 + (head & 0x1FF)
        if kind == _END:
            return tlvs, ([_tlv_error("End TLV with a value", body[at:end])] if head else [])
        if end > len(body):
            problem = f"TLV of type {kind} at byte {at} runs past the frame"
            return tlvs, [_tlv_error(problem, body[at:])]
        tlvs.append(_Tlv(kind, body[at + 2 : end], at))
        at = end
    return tlvs, [_tlv_error("no End TLV", body[at:])]


def _mandatory(tlvs: Sequence[_Tlv]) -> tuple[bytes, bytes, int]:
    """Return chassis id, port id and TTL, which come first, in this order, once each.

    Raises:
        ParseError: they do not, or an id has a length or subtype that no id has (9.2.7.7).
    """
    for place, (kind, name) in enumerate(_MANDATORY.items()):
        if len(tlvs) <= place:
            raise ParseError(f"ends before its {name}")
        if tlvs[place].kind != kind:
            raise ParseError(f"type {tlvs[place].kind} where its {name} belongs")
    for tlv in tlvs[len(_MANDATORY) :]:
        if tlv.kind in _MANDATORY:
            raise ParseError(f"a second {_MANDATORY[tlv.kind]}")
    chassis, port, ttl = tlvs[: len(_MANDATORY)]
    for tlv in (chassis, port):
        is_id = len(tlv.value) in _ID_LENGTHS and 0 < tlv.value[0] <= len(_CHASSIS_WORDS)
        if not is_id:
            raise _tlv_error(f"no {_MANDATORY[tlv.kind]}", tlv.value)
    if len(ttl.value) < 2:  # noqa: PLR2004 - a 16-bit number; more is ignored
        raise _tlv_error("no TTL", ttl.value)
    return chassis.value, port.value, int.from_bytes(ttl.value[:2], "big")


def _with_tlv(pdu: Lldpdu, tlv: _Tlv) -> Lldpdu:
    """Return what is said with an optional TLV too; of a repeated one the last counts.

    Raises:
        ParseError: it is too short for what it is.
    """
    if tlv.kind == _PORT_DESCRIPTION and tlv.value:
        return replace(pdu, port_description=_text(tlv.value))
    if tlv.kind == _SYSTEM_NAME and tlv.value:
        return replace(pdu, system_name=_text(tlv.value))
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
    """Return a management address, none of a family that is not IP."""
    length = tlv.value[0] if tlv.value else 0
    # The interface's numbering and number follow the address.
    if length < 2 or len(tlv.value) < 1 + length + 5:  # noqa: PLR2004 - a family and an address
        raise _too_short_error(tlv)
    family, address = tlv.value[1], tlv.value[2 : 1 + length]
    return (str(ip_address(address)),) if _IP_BYTES.get(family) == len(address) else ()


def _too_short_error(tlv: _Tlv) -> ParseError:
    return _tlv_error(f"TLV of type {tlv.kind} at byte {tlv.offset} is too short", tlv.value)


def _tlv_error(problem: str, value: bytes) -> ParseError:
    return ParseError(problem, excerpt=value[:16].hex(" "))


def _sent_id(value: bytes, words: Sequence[str]) -> SentId:
    """Return an id in the word and with the text that lldpcli has for it."""
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
    """Return text up to its first NUL; each byte that is no UTF-8 becomes U+FFFD, as in json0."""
    decoded = value.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
    return _UNDECODABLE.sub("\ufffd", decoded)
