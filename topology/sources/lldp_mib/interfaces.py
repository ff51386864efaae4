"""The interfaces of a switch (RFC 2863), and the interface of each local LLDP port number.

lldpLocPortNum is an ifIndex on most devices, on some ports of other devices, and on no port of the
rest. So the name of a port decides if there is one. If no port table has the port, the number is
that of a bridge port or an ifIndex, the same for the whole device.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from topology.model.facts import PortState
from topology.model.ids import is_shared_mac
from topology.model.port_names import compare_names, spell_port_name
from topology.sources.lldp_mib.ids import (
    PORT_IFNAME,
    PORT_LOCAL,
    PORT_MAC,
    UNKNOWN_SUBTYPE,
    decode_mac,
    decode_text,
)
from topology.sources.lldp_mib.tables import (
    IF_ALIAS,
    IF_DESCR,
    IF_HIGH_SPEED,
    IF_NAME,
    IF_OPER_STATUS,
    IF_PHYS_ADDRESS,
    IF_TYPE,
    LocalPort,
    WalkColumns,
)

_ETHERNET_TYPES: Final = frozenset({6, 62, 69, 117})  # csmacd; fast, fast fiber, gigabit
_LAG_TYPE: Final = 161  # ieee8023adLag
_STATES: Final = {1: PortState.UP, 2: PortState.DOWN, 6: PortState.DOWN, 7: PortState.DOWN}
_LOCALLY_ADMINISTERED: Final = 0x02
_MAX_MBPS: Final = 10_000_000  # 10 Tb/s; a higher value is not a speed
_NAME_SUBTYPES: Final = frozenset({UNKNOWN_SUBTYPE, PORT_IFNAME, PORT_LOCAL})


class Interface(NamedTuple):
    """One interface, physical or not."""

    if_index: int
    name: str
    """ifName, may be empty."""
    descr: str
    alias: str
    """ifAlias: the name that an operator gave it."""
    mac: str | None
    """The MAC address; None if the interface has none that is unique to this device."""
    is_physical: bool
    """Whether the interface may have a cable: its type is Ethernet or unknown."""
    is_lag: bool
    rate_bps: int | None
    state: PortState


@dataclass(frozen=True, slots=True)
class InterfaceTable:
    """All interfaces of a device, found by ifIndex, name, description, MAC or alias."""

    by_index: Mapping[int, Interface]
    """The interfaces in the order of ifIndex."""
    _by_word: dict[str, int] = field(default_factory=dict)
    """Name, description, MAC or alias to ifIndex; -1 if several interfaces share it."""

    def find(self, word: str) -> int | None:
        """Return the ifIndex of the only interface with this name, description, MAC or alias."""
        if_index = self._by_word.get(word, -1)
        return if_index if if_index >= 0 else None

    def find_local_port(self, number: int, local: LocalPort) -> int | None:
        """Return the ifIndex of a local LLDP port; None if its interface is unknown.

        Args:
            number: the port's lldpLocPortNum.
            local: the port's row of lldpLocPortTable.
        """
        text = decode_text(local.sent.raw)
        words = [text] if local.sent.subtype in _NAME_SUBTYPES else []
        if local.sent.subtype in {UNKNOWN_SUBTYPE, PORT_MAC}:
            words.append(decode_mac(local.sent.raw) or "")
        for word in (*words, decode_text(local.descr)):
            if_index = self.find(word)
            if if_index is not None:
                return if_index
        candidate = self.by_index.get(number)
        is_named = local.sent.subtype in _NAME_SUBTYPES and text != str(number)
        if candidate is None or (is_named and not _is_abbreviation(text, candidate)):
            return None
        return number if is_named or (candidate.is_physical and text != str(number)) else None

    def find_numbered_ports(
        self, numbers: Iterable[int], heard: Sequence[int], bridge_ports: Mapping[int, int]
    ) -> dict[int, int]:
        """Map local LLDP ports that have only a number to their ifIndex, if it is known.

        By the LLDP-MIB the number is that of a bridge port on a bridge, else an ifIndex. Real
        devices do either, and each device does only one of them. A reading counts if it maps each
        number to an interface that may hear a neighbor. If both readings do, the interfaces that
        are up decide.

        Args:
            numbers: the numbers of all such ports.
            heard: the numbers of the ports with neighbors, which decide.
            bridge_ports: ifIndex by dot1dBasePort.
        """
        index_of: Mapping[int, int] = {number: number for number in numbers}
        if heard:
            readings = {
                tuple(reading.get(number, -1) for number in heard): reading
                for reading in (bridge_ports, index_of)
            }
            possible = [indexes for indexes in readings if self._can_hear(indexes)]
            if len(possible) > 1:
                possible = [indexes for indexes in possible if not self._count_down(indexes)]
            index_of = readings[possible[0]] if len(possible) == 1 else {}
        found = {number: self.by_index.get(index_of.get(number, -1)) for number in numbers}
        return {
            number: interface.if_index
            for number, interface in found.items()
            if interface and interface.is_physical
        }

    def _can_hear(self, indexes: Sequence[int]) -> bool:
        """Whether neighbors can be heard on all of these interfaces: members of a LAG hear them."""
        found = [self.by_index[index] for index in indexes if index in self.by_index]
        can_all = all(interface.is_physical or interface.is_lag for interface in found)
        return can_all and len(indexes) == len(found) > self._count_down(indexes)

    def _count_down(self, indexes: Iterable[int]) -> int:
        return sum(self.by_index[index].state is PortState.DOWN for index in indexes)


def _is_abbreviation(text: str, interface: Interface) -> bool:
    """Whether a text may be the short form of an interface name, such as `Te0/1`."""
    name = interface.name or interface.descr
    short, full = spell_port_name(text), spell_port_name(name)
    return not name or bool(short and full and compare_names(short, full))


def build_interfaces(walk: WalkColumns) -> InterfaceTable:
    """Return the interfaces of a walk. O(interfaces)."""
    columns = (IF_NAME, IF_DESCR, IF_TYPE, IF_PHYS_ADDRESS)
    interfaces = {
        index[0]: _interface(walk, index) for index in walk.indices(*columns) if len(index) == 1
    }
    words: dict[str, int] = {}
    # An alias is free text, so it never replaces the name of another interface.
    for kind in ("name", "descr", "mac", "alias"):
        new_words: dict[str, int] = {}
        for if_index, interface in interfaces.items():
            word = getattr(interface, kind)
            if word and words.get(word, if_index) == if_index:
                new_words[word] = if_index if new_words.get(word, if_index) == if_index else -1
        words |= {word: if_index for word, if_index in new_words.items() if word not in words}
    return InterfaceTable(interfaces, words)


def _interface(walk: WalkColumns, index: tuple[int, ...]) -> Interface:
    kind = walk.number(IF_TYPE, index)
    is_physical = not kind or kind in _ETHERNET_TYPES
    mbps = walk.number(IF_HIGH_SPEED, index)
    mac = decode_mac(walk.raw(IF_PHYS_ADDRESS, index))
    return Interface(
        if_index=index[0],
        name=decode_text(walk.raw(IF_NAME, index)),
        descr=decode_text(walk.raw(IF_DESCR, index)),
        alias=decode_text(walk.raw(IF_ALIAS, index)),
        mac=mac if mac and _is_unique_mac(mac, is_physical=is_physical) else None,
        is_physical=is_physical,
        is_lag=kind == _LAG_TYPE,
        rate_bps=mbps * 1_000_000 if 0 < mbps <= _MAX_MBPS else None,
        state=_STATES.get(walk.number(IF_OPER_STATUS, index), PortState.UNKNOWN),
    )


def _is_unique_mac(mac: str, *, is_physical: bool) -> bool:
    """Whether a MAC address is unique to this device: gateways share those of routed interfaces."""
    is_assigned = not int(mac[:2], 16) & _LOCALLY_ADMINISTERED
    return (is_physical or is_assigned) and not is_shared_mac(mac)
