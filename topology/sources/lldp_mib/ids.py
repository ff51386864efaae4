"""Ids and texts as the MIBs hold them: octets with the subtype's number, either of them wrong.

What an id identifies is decided in `lldp_ids`, alike for every source. Here octets become what
lldpcli would show of them, and MACs are recognised under whatever subtype they came: of a
hundred devices 17 send or store MACs as text, and some call that a local id.

Source: IEEE 802.1AB 8.5.2 and 8.5.3 (the subtypes of chassis and ports are numbered apart).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Final

from topology.model.ids import Id, IdKind, parse_mac
from topology.sources.lldp.ids import SentId, chassis_ids, port_ids
from topology.sources.lldp_mib.tables import RawId

UNKNOWN_SUBTYPE: Final = 0
"""No subtype: reserved on the wire, so the table lacks that column or it was not walked."""
PORT_MAC: Final = 3
PORT_IFNAME: Final = 5
PORT_LOCAL: Final = 7
_CHASSIS_WORDS: Final = {2: "ifalias", 4: "mac", 5: "ip", 6: "ifname", 7: "local"}
_PORT_WORDS: Final = {
    1: "ifalias",
    PORT_MAC: "mac",
    4: "ip",
    PORT_IFNAME: "ifname",
    PORT_LOCAL: "local",
}
_MAC_BYTES: Final = 6
_ADDRESS_BYTES: Final = {1: 4, 2: 16}  # by IANA's number of the family


def decode_text(raw: bytes) -> str:
    """Return octets as text, cut at the first NUL as C does; bytes that are not UTF-8 replaced."""
    return raw.partition(b"\0")[0].decode("utf-8", "replace")


def decode_mac(raw: bytes) -> str | None:
    """Return the MAC that octets are or, as some agents have it, that they spell."""
    return parse_mac(raw.hex(":") if len(raw) == _MAC_BYTES else decode_text(raw))


def decode_port_id(port: RawId) -> SentId:
    """Return a port id in the words of lldpcli."""
    return _decode_id(port, _PORT_WORDS)


def port_ids_of(port: RawId) -> tuple[Id, ...]:
    """Return what a port id identifies, sorted."""
    sent = decode_port_id(port)
    mac = _spelled_mac(sent)
    found = {Id(IdKind.PORT_ID, mac, "mac"), Id(IdKind.MAC, mac)} if mac else set()
    return tuple(sorted({*port_ids(sent), *found}))


def chassis_ids_of(chassis: RawId, addresses: Iterable[str]) -> tuple[Id, ...]:
    """Return what a chassis id and management addresses identify, sorted."""
    sent = _decode_id(chassis, _CHASSIS_WORDS)
    mac = _spelled_mac(sent)
    found = {Id(IdKind.CHASSIS_ID, mac, "mac")} if mac else set()
    return tuple(sorted({*chassis_ids(sent, addresses), *found}))


def _decode_id(found: RawId, words: Mapping[int, str]) -> SentId:
    """Return an id in the words of lldpcli; six octets that are no text are a MAC, whatever said.

    Six printable ones are a name, such as `eth100`, unless their subtype is that of MACs.
    """
    text = decode_text(found.raw)
    is_text = text.isprintable() and len(text) == len(found.raw)
    word = words.get(found.subtype, "unhandled")
    if len(found.raw) == _MAC_BYTES and (word == "mac" or not is_text):
        return SentId("mac", found.raw.hex(":"))
    match word:
        case "mac":
            return SentId(word, _digits_of(text) or found.raw.hex(":"))
        case "ip":
            return SentId(word, _address(found.raw) or found.raw.hex(" "))
        case "unhandled" if found.subtype != UNKNOWN_SUBTYPE or not is_text:
            return SentId(word, found.raw.hex(" "))
        case "unhandled":
            return SentId("local", text)
        case _:
            return SentId(word, text)


def _digits_of(text: str) -> str:
    """Return a spelled MAC with colons, also one that identifies nothing, such as all zeros."""
    digits = re.sub(r"[:\-. ]", "", text).lower()
    is_mac = re.fullmatch(r"[0-9a-f]{12}", digits) is not None
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2)) if is_mac else ""


def _address(raw: bytes) -> str:
    """Return the address of a family's number and its bytes, or of an address spelled out."""
    if raw and _ADDRESS_BYTES.get(raw[0]) == len(raw) - 1:
        return str(ipaddress.ip_address(raw[1:]))
    try:
        return str(ipaddress.ip_address(decode_text(raw)))
    except ValueError:
        return ""


def _spelled_mac(sent: SentId) -> str | None:
    """Return the MAC that an id of another subtype spells."""
    return parse_mac(sent.text) if sent.subtype in {"ifalias", "ifname", "local"} else None
