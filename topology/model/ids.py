"""Identifiers of devices and ports: their kinds, canonical forms, and the order of names.

An id is a (kind, value) pair, an LLDP one keeps its subtype. What ids *join* is decided in
`fabric`; here is only what they are. Sources: IEEE 802.1AB 8.5.2 and 8.5.3 for the subtypes.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple


class IdKind(StrEnum):
    """What an id identifies. GUIDs of nodes and ports are separate name spaces."""

    # Enum's own hash is a Python call and differs from that of the equal text; ids are keys of
    # dictionaries by the hundred thousand.
    __hash__ = str.__hash__

    NODE_NAME = "node-name"
    HOSTNAME = "hostname"
    MAC = "mac"
    NODE_GUID = "node-guid"
    PORT_GUID = "port-guid"
    SYSTEM_IMAGE_GUID = "system-image-guid"
    CHASSIS_ID = "chassis-id"
    IP = "ip"
    PORT_ID = "port-id"
    IFNAME = "ifname"
    IFINDEX = "ifindex"


class Id(NamedTuple):
    """One identifier in canonical form."""

    kind: IdKind
    value: str
    subtype: str = ""
    """Of a chassis or port id: mac, ip, ifname, ifalias, local, unhandled."""


_HEX16 = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16})\Z")
_MAC = re.compile(r"(?:[0-9a-fA-F]{2}([:\-. ]))(?:[0-9a-fA-F]{2}\1){4}[0-9a-fA-F]{2}\Z")
_MAC_DOTTED = re.compile(r"[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}\Z")
_DIGITS = re.compile(r"(\d+)")
_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?\Z")
_NO_GUID = frozenset({"0" * 16, "f" * 16})
MAX_NODE_NAME = 253


def parse_guid(text: str) -> str | None:
    """Return a GUID as 16 lower-case digits; None for other text, all zeros and all ones.

    Takes `0x2c90…`, forms without leading zeros, and sysfs' `0002:c903:007b:78b0`.
    """
    found = _HEX16.match(text.strip().replace(":", ""))
    guid = found.group(1).lower().zfill(16) if found else ""
    return guid if guid and guid not in _NO_GUID else None


def parse_mac(text: str) -> str | None:
    """Return a MAC as `aa:bb:cc:dd:ee:ff`; None for what identifies no single port.

    All-zero, broadcast and group addresses identify nothing. Devices print the same address
    with colons, hyphens, blanks or as Cisco's `aabb.ccdd.eeff`.
    """
    text = text.strip()
    if not (_MAC.match(text) or _MAC_DOTTED.match(text)):
        return None
    digits = re.sub(r"[^0-9a-fA-F]", "", text).lower()
    if digits == "0" * 12 or int(digits[:2], 16) & 1:
        return None
    return ":".join(digits[k : k + 2] for k in range(0, 12, 2))


def parse_node_name(text: str) -> str | None:
    """Return a Kubernetes node name, None where the text cannot be one (DNS-1123 subdomain)."""
    return text if len(text) <= MAX_NODE_NAME and _NODE_NAME.match(text) else None


def short_name(name: str) -> str:
    """Return a name as it is compared: lower case, without its domain. IP literals stay whole."""
    folded = name.strip().lower()
    return folded if re.fullmatch(r"[\d.]+", folded) else folded.split(".")[0]


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key under which node-2 comes before node-10.

    Numbers are compared by length and digits and never converted: foreign names may hold
    thousands of digits, which `int` refuses.
    """
    return tuple(
        [  # a list is quicker to make than to be generated, and names come by the ten thousand
            (0, len(digits := part.lstrip("0")), f"{digits}.{part}")
            if part.isdecimal() and part.isascii()
            else (1, 0, part)
            for part in _DIGITS.split(name)
            if part
        ]
    )
