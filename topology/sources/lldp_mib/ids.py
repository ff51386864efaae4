"""Ids and texts of the MIBs: octets and the number of a subtype, and either can be wrong.

Decodes octets into the text that lldpcli would print, and recognizes a MAC address under any
subtype: of a hundred devices, 17 send or store MAC addresses as text, and some of these use the
subtype for a local id. Does not decide whether an id identifies a device; `lldp.ids` does, with
the same rules for every source.

Source: IEEE 802.1AB 8.5.2 and 8.5.3 (chassis and ports number their subtypes differently).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Final

from topology.model.facts import Capability
from topology.model.ids import Id, IdKind, parse_mac
from topology.sources.lldp.ids import SentId, chassis_ids, port_ids
from topology.sources.lldp_mib.tables import RawId

UNKNOWN_SUBTYPE: Final = 0
"""No subtype. LLDP reserves 0, so the table lacks the column or the column was not walked."""
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
_ADDRESS_BYTES: Final = {1: 4, 2: 16}  # by IANA address family


def decode_text(raw: bytes) -> str:
    """Return octets as text up to the first NUL; replaces bytes that are not UTF-8."""
    return raw.partition(b"\0")[0].decode("utf-8", "replace")


def capabilities_of_bits(raw: bytes) -> tuple[Capability, ...]:
    """Return the capabilities in a value of LldpSystemCapabilitiesMap (BITS, first bit first)."""
    first = raw[0] if raw else 0
    return tuple(found for at, found in enumerate(Capability) if first & (0x80 >> at))


def decode_mac(raw: bytes) -> str | None:
    """Return the MAC address in binary octets or, from some agents, in text."""
    return parse_mac(raw.hex(":") if len(raw) == _MAC_BYTES else decode_text(raw))


def decode_port_id(port: RawId) -> SentId:
    """Return a port id in the words of lldpcli."""
    return _decode_id(port, _PORT_WORDS)


def port_ids_of(port: RawId) -> tuple[Id, ...]:
    """Return the ids that a port id yields, sorted."""
    sent = decode_port_id(port)
    mac = _spelled_mac(sent)
    mac_ids = {Id(IdKind.PORT_ID, mac, "mac"), Id(IdKind.MAC, mac)} if mac else set()
    return tuple(sorted({*port_ids(sent), *mac_ids}))


def chassis_ids_of(chassis: RawId, addresses: Iterable[str]) -> tuple[Id, ...]:
    """Return the ids that a chassis id and management addresses yield, sorted."""
    sent = _decode_id(chassis, _CHASSIS_WORDS)
    mac = _spelled_mac(sent)
    mac_ids = {Id(IdKind.CHASSIS_ID, mac, "mac")} if mac else set()
    return tuple(sorted({*chassis_ids(sent, addresses), *mac_ids}))


def _decode_id(raw_id: RawId, words: Mapping[int, str]) -> SentId:
    """Return an id in the words of lldpcli.

    Six octets that are not text are a MAC address, under any subtype. Six printable octets are a
    name, such as `eth100`, unless their subtype says MAC.
    """
    text = decode_text(raw_id.raw)
    is_text = text.isprintable() and len(text) == len(raw_id.raw)
    word = words.get(raw_id.subtype, "unhandled")
    if len(raw_id.raw) == _MAC_BYTES and (word == "mac" or not is_text):
        return SentId("mac", raw_id.raw.hex(":"))
    match word:
        case "mac":
            return SentId(word, _digits_of(text) or raw_id.raw.hex(":"))
        case "ip":
            return SentId(word, _address(raw_id.raw) or raw_id.raw.hex(" "))
        case "unhandled" if raw_id.subtype != UNKNOWN_SUBTYPE or not is_text:
            return SentId(word, raw_id.raw.hex(" "))
        case "unhandled":
            return SentId("local", text)
        case _:
            return SentId(word, text)


def _digits_of(text: str) -> str:
    """Return a MAC address in text form with colons, also an unusable one such as all zeros."""
    digits = re.sub(r"[:\-. ]", "", text).lower()
    is_mac = re.fullmatch(r"[0-9a-f]{12}", digits) is not None
    return ":".join(digits[offset : offset + 2] for offset in range(0, 12, 2)) if is_mac else ""


def _address(raw: bytes) -> str:
    """Return an IP address from a family number and its bytes, or from its text form."""
    if raw and _ADDRESS_BYTES.get(raw[0]) == len(raw) - 1:
        return str(ipaddress.ip_address(raw[1:]))
    try:
        return str(ipaddress.ip_address(decode_text(raw)))
    except ValueError:
        return ""


def _spelled_mac(sent: SentId) -> str | None:
    """Return the MAC address in the text of an id with another subtype."""
    return parse_mac(sent.text) if sent.subtype in {"ifalias", "ifname", "local"} else None
