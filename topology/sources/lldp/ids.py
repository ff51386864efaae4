"""What an LLDP id identifies: the same rules for lldpcli's words and for frames read by ourselves.

A sent id is the word lldpcli has for its subtype, and the text lldpcli shows of it. Senders put
almost anything into either, so an id counts only where it can identify one device or port.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from topology.model.ids import Id, IdKind, parse_mac

_HEX_BYTES: Final = re.compile(r"[0-9a-f]{2}(?:[: -][0-9a-f]{2})*")
_TEXT_SUBTYPES: Final = frozenset({"ifname", "ifalias", "local", "unhandled"})
_MAC_BYTES: Final = 6


class SentId(NamedTuple):
    """A chassis or port id as its sender put it."""

    subtype: str
    """mac, ip, ifname, ifalias, local or unhandled."""
    text: str


def chassis_ids(sent: SentId, addresses: Iterable[str]) -> tuple[Id, ...]:
    """Return chassis id and management addresses, sorted, without those that identify nothing."""
    usable = (parse_usable_ip(text) for text in addresses)
    ids = {Id(IdKind.IP, address) for address in usable if address}
    value, subtype = _canonical(sent)
    if value:
        ids.add(Id(IdKind.CHASSIS_ID, value, subtype))
    return tuple(sorted(ids))


def port_ids(sent: SentId) -> tuple[Id, ...]:
    """Return a port's id, and the MAC or interface name that it is, sorted."""
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
    """Return the far port's name: senders put it into the id or, with MAC ids, the description.

    Juniper sends its ifIndex as a local id and the name as description.
    """
    subtype, text = sent
    is_name = subtype in {"ifname", "ifalias"} or (subtype == "local" and not text.isdigit())
    return (text if is_name else "") or description or text


def parse_usable_ip(text: str) -> str | None:
    """Return an address in canonical form; None where it is none or nobody's alone."""
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        return None
    is_common = (
        address.is_unspecified
        or address.is_link_local
        or address.is_loopback
        or address.is_multicast
    )
    return None if is_common or "%" in text else str(address)


def _canonical(sent: SentId) -> tuple[str, str]:
    """Return (value, subtype) of an id, an empty value where it identifies nothing.

    A MAC of another length, and an address of an unknown family, are printed as hex bytes and
    kept as `unhandled`. A local id that looks like a MAC stays local: anybody can send that.
    """
    subtype, text = sent.subtype, sent.text.strip()
    if subtype == "mac" and (mac := parse_mac(text)):
        return mac, subtype
    if subtype == "ip" and (address := parse_usable_ip(text)):
        return address, subtype
    if subtype in _TEXT_SUBTYPES:
        return text, subtype
    text = text.lower()
    digits = re.sub(r"[: -]", "", text)
    is_id = _HEX_BYTES.fullmatch(text) and digits.strip("0") and len(digits) != 2 * _MAC_BYTES
    return (text if is_id else ""), "unhandled"
