"""Ids of LLDP: the same rules for the output of lldpcli and for frames.

A `SentId` has the word that lldpcli prints for the subtype, and the text that lldpcli prints for
the value. Senders put almost anything into either, so an id counts only if it can identify one
device or port.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from topology.model.ids import Id, IdKind, is_shared_mac, parse_mac

_HEX_BYTES: Final = re.compile(r"[0-9a-f]{2}(?:[: -][0-9a-f]{2})*")
_TEXT_SUBTYPES: Final = frozenset({"ifname", "ifalias", "local", "unhandled"})
_MAC_BYTES: Final = 6


class SentId(NamedTuple):
    """A chassis or port id, as sent."""

    subtype: str
    """mac, ip, ifname, ifalias, local or unhandled."""
    text: str


def chassis_ids(sent: SentId, addresses: Iterable[str]) -> tuple[Id, ...]:
    """Return the chassis id and management addresses that can identify a device, sorted."""
    usable = (parse_usable_ip(text) for text in addresses)
    ids = {Id(IdKind.IP, address) for address in usable if address}
    value, subtype = _canonical(sent)
    if value:
        ids.add(Id(IdKind.CHASSIS_ID, value, subtype))
    return tuple(sorted(ids))


def port_ids(sent: SentId) -> tuple[Id, ...]:
    """Return the port id, and the same value as a MAC address or interface name, sorted."""
    value, subtype = _canonical(sent)
    if not value:
        return ()
    ids = {Id(IdKind.PORT_ID, value, subtype)}
    if subtype == "mac":
        ids.add(Id(IdKind.MAC, value))
    elif subtype == "ifname":
        ids.add(Id(IdKind.IFNAME, value))
    return tuple(sorted(ids))


def port_name(sent: SentId, description: str) -> str:
    """Return the name of the far port: from its id or, for example with MAC ids, its description.

    Juniper sends its ifIndex as a local id, and the name as the description.
    """
    subtype, text = sent
    is_name = subtype in {"ifname", "ifalias"} or (subtype == "local" and not text.isdigit())
    return (text if is_name else "") or description or text


def parse_usable_ip(text: str) -> str | None:
    """Return an IP address in canonical form; None if it is invalid or not unique to one device."""
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        return None
    is_shared = (
        address.is_unspecified
        or address.is_link_local
        or address.is_loopback
        or address.is_multicast
    )
    return None if is_shared or "%" in text else str(address)


def _canonical(sent: SentId) -> tuple[str, str]:
    """Return (value, subtype) of an id; the value is empty if the id identifies nothing.

    lldpcli prints a MAC of another length and an address of an unknown family as hex bytes; they
    become `unhandled`. A local id that looks like a MAC stays local: any device can send it.
    """
    subtype, text = sent.subtype, sent.text.strip()
    if subtype == "mac" and (mac := parse_mac(text)):
        return "" if is_shared_mac(mac) else mac, subtype
    if subtype == "ip" and (address := parse_usable_ip(text)):
        return address, subtype
    if subtype in _TEXT_SUBTYPES:
        return text, subtype
    text = text.lower()
    digits = re.sub(r"[: -]", "", text)
    is_id = _HEX_BYTES.fullmatch(text) and digits.strip("0") and len(digits) != 2 * _MAC_BYTES
    return (text if is_id else ""), "unhandled"
