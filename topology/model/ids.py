"""Identifiers of devices and ports: their kinds, their canonical forms, and the order of names.

An id is a (kind, value) pair; an LLDP id also has its subtype. Which ids *join* devices is decided
in `claims` and `identity`. Source: IEEE 802.1AB 8.5.2 and 8.5.3 for the subtypes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple


class IdKind(StrEnum):
    """The kind of an id. Node GUIDs and port GUIDs are separate name spaces."""

    # Enum's own hash is a slow Python call and differs from the hash of the equal text. A fabric
    # uses a hundred thousand ids as dictionary keys.
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
    """The subtype of a chassis or port id: mac, ip, ifname, ifalias, local, unhandled."""


_GUID = re.compile(r"(?!0{16}|f{16})[0-9a-f]{16}\Z")
_CANONICAL_MAC = re.compile(
    r"(?!00:00:00:00:00:00)[0-9a-f][02468ace]:[0-9a-f]{2}:[0-9a-f]{2}:[0-9a-f]{2}:[0-9a-f]{2}:"
    r"[0-9a-f]{2}\Z"
)
is_canonical_guid = _GUID.match
"""Match a text that `parse_guid` returns as it is: the form in which our own files are written."""
is_canonical_mac = _CANONICAL_MAC.match
"""Match a text that `parse_mac` returns as it is."""
_HEX16 = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16})\Z")
_MAC = re.compile(r"(?:[0-9a-fA-F]{2}([:\-. ]))(?:[0-9a-fA-F]{2}\1){4}[0-9a-fA-F]{2}\Z")
_MAC_DOTTED = re.compile(r"[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}\Z")
SHARED_MACS: Final = (
    "00:00:5e:00:01:",  # VRRP and CARP, IPv4
    "00:00:5e:00:02:",  # VRRP, IPv6
    "00:00:0c:07:ac:",  # HSRP version 1
    "00:00:0c:9f:f",  # HSRP version 2
    "00:05:73:a0:0",  # HSRP, IPv6
    *(f"00:07:b4:0{group}:" for group in range(4)),  # GLBP: groups have ten bits
    "44:38:39:ff:",  # the range that Cumulus reserves for anycast gateways
    "00:1a:ca:ff:ff:",  # both ends of rshim in each BlueField
    "02:42:",  # bridges and containers of Docker, by their addresses
    "ee:ee:ee:ee:ee:ee",  # Calico's end of each pod's interface
    "fe:ff:ff:ff:ff:ff",  # Xen's end of each guest's interface
    "be:3a:f2:b6:05:9f",  # the USB interface of each BMC of Insyde, and its end in the BMC
    "b0:3a:f2:b6:05:9f",
)
"""How MACs begin that many devices have by design or from the factory.

Source: RFC 9568 section 7.3; Cisco's guides for HSRP and GLBP; Cumulus Linux, VRR and MLAG; the
rshim-user-space README; Docker, libnetwork/netutils (GenerateMACFromIP); Calico's FAQ, "Why do all
cali interfaces have the MAC address ee:ee:ee:ee:ee:ee"; public machine dumps for the BMC.
"""
_DIGITS = re.compile(r"(\d+)")
_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?\Z")
_NO_GUID = frozenset({"0" * 16, "f" * 16})
_ADDRESS = re.compile(r"[\d.]+")
MAX_NODE_NAME = 253
HOSTNAME_LABEL = "kubernetes.io/hostname"
"""The label of a single node, set by the kubelet."""
DEFAULT_HOST_NAMES = frozenset({"", "localhost", "localhost.localdomain", "ubuntu", "(none)"})
"""The names that hosts have before a name is set: such a name means no host."""


def parse_guid(text: str) -> str | None:
    """Return a GUID as 16 lower-case digits; None for other text, all zeros and all ones.

    Accepts `0x2c90…`, forms without leading zeros, and sysfs' `0002:c903:007b:78b0`.
    """
    if is_canonical_guid(text):
        return text
    match = _HEX16.match(text.strip().replace(":", ""))
    guid = match.group(1).lower().zfill(16) if match else ""
    return guid if guid and guid not in _NO_GUID else None


def parse_mac(text: str) -> str | None:
    """Return a MAC as `aa:bb:cc:dd:ee:ff`; None for text that does not identify a single port.

    All-zero, broadcast and group addresses identify no port. Devices print the same address with
    colons, hyphens or blanks; Cisco prints `aabb.ccdd.eeff`.
    """
    if is_canonical_mac(text):
        return text
    text = text.strip()
    if not (_MAC.match(text) or _MAC_DOTTED.match(text)):
        return None
    digits = re.sub(r"[^0-9a-fA-F]", "", text).lower()
    if digits == "0" * 12 or int(digits[:2], 16) & 1:
        return None
    return ":".join(digits[k : k + 2] for k in range(0, 12, 2))


_PARSERS: Final[Mapping[IdKind, Callable[[str], str | None]]] = {
    IdKind.MAC: parse_mac,
    IdKind.NODE_GUID: parse_guid,
    IdKind.PORT_GUID: parse_guid,
    IdKind.SYSTEM_IMAGE_GUID: parse_guid,
}
"""Return the canonical form of an id, or None if it identifies nothing."""
_LLDP_KINDS: Final = frozenset({IdKind.CHASSIS_ID, IdKind.PORT_ID})


def parse_id(kind: IdKind, value: str, subtype: str = "") -> Id | None:
    """Return an id in canonical form; None if it identifies nothing, such as MAC 0."""
    parse = _PARSERS.get(kind)
    if parse is None and subtype == "mac" and kind in _LLDP_KINDS:
        parse = parse_mac
    found = value if parse is None else parse(value)
    return None if found is None else Id(kind, found, subtype)


def is_shared_mac(mac: str) -> bool:
    """Return whether many devices have a MAC, which `parse_mac` returned, by design."""
    return mac.startswith(SHARED_MACS)


def parse_node_name(text: str) -> str | None:
    """Return the text if it can be a Kubernetes node name (DNS-1123 subdomain), else None."""
    return text if len(text) <= MAX_NODE_NAME and _NODE_NAME.match(text) else None


def full_name(name: str) -> str:
    """Return a name in the form for comparing: lower case, without the dot of the DNS root."""
    return name.strip().rstrip(".").lower()


def first_label(full: str) -> str:
    """Return a full name without its domain. IP literals stay whole."""
    if "." not in full or _ADDRESS.fullmatch(full):
        return full
    return full.partition(".")[0]


def short_name(name: str) -> str:
    """Return the first label of a name in the form for comparing."""
    return first_label(full_name(name))


def may_be_one(first: str, second: str) -> bool:
    """Return whether two names may be of one device: their domains do not tell them apart."""
    full, other = full_name(first), full_name(second)
    label = first_label(full)
    return full == other or (label == first_label(other) and label in (full, other))


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key that puts node-2 before node-10.

    Numbers are compared by length and digits and never converted: a foreign name may hold
    thousands of digits, which `int` refuses.
    """
    return tuple(
        [  # a list is faster than a generator, and a fabric has tens of thousands of names
            (0, len(digits := part.lstrip("0")), f"{digits}.{part}")
            if part.isdecimal() and part.isascii()
            else (1, 0, part)
            for part in _DIGITS.split(name)
            if part
        ]
    )
