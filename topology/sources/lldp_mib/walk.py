"""An SNMP walk of one switch: the device, its ports, and their neighbors.

Takes numeric OIDs and raw values, so that no printed form distorts them; `walk_text` reads saved
walks, a weaker source. A neighbor gets the ids that lldpcli would print for the same frame. If an
id of another subtype is a MAC address, in octets or in text, the neighbor gets that MAC address
too: both agents and senders use wrong subtypes.

Source: IEEE 802.1AB 11.5, and walks of a hundred devices of thirty vendors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from topology.model.errors import CutInput, ParseError
from topology.model.facts import Device, DeviceKind, Neighbor, Port, PortState, Source
from topology.model.ids import Id, IdKind, natural_key
from topology.sources.lldp.ids import parse_usable_ip, port_name
from topology.sources.lldp_mib.ids import (
    capabilities_of_bits,
    chassis_ids_of,
    decode_port_id,
    decode_text,
    port_ids_of,
)
from topology.sources.lldp_mib.interfaces import Interface, InterfaceTable, build_interfaces
from topology.sources.lldp_mib.tables import (
    IF_ENTRY,
    IFX_ENTRY,
    LLDP,
    LLDP_V2,
    SYS_DESCR,
    SYS_NAME,
    LocalPort,
    Oid,
    RemoteRow,
    WalkColumns,
    WalkRow,
    bridge_ports,
    cdp_rows,
    collect_columns,
    is_unnamed,
    local_addresses,
    local_chassis,
    local_ports,
    remote_rows,
)
from topology.sources.lldp_mib.walk_text import parse_walk_text

_NUM_RECORD_BARS: Final = 2  # OID|type|value
MAX_PORTS: Final = 4096  # the limit of a report
MAX_NEIGHBORS: Final = 1024  # per port, the limit of a report
MAX_MACS: Final = 512  # of the device itself; its ports have their own

_Key = tuple[str, int]
"""`if` and an ifIndex, or `lldp` and a lldpLocPortNum that is not an ifIndex."""


@dataclass(slots=True)
class _PortDraft:
    """A port while its facts are collected."""

    number: int
    interface: Interface | None = None
    local: LocalPort | None = None
    neighbors: dict[Neighbor, None] = field(default_factory=dict)
    """The neighbors in the order of the table, without duplicates."""


def parse_walk(
    rows: Iterable[WalkRow], *, source: str = "", address: str = ""
) -> tuple[Device | None, tuple[ParseError, ...]]:
    """Return the walked switch, None if the rows do not describe one; never raises.

    Its ports are those that may have a cable and those that run LLDP. Skips a neighbor that
    has no ids and no name, or whose local port is unknown, and counts it in an error.
    Cost: O(rows log rows).

    Args:
        rows: (OID, octets or number) in any order; unknown columns are ignored.
        source: the name of the walk in errors.
        address: the polled address, if any.
    """
    walk = collect_columns(rows)
    interfaces = build_interfaces(walk)
    drafts, problems = _draft_ports(walk, interfaces)
    macs = _own_macs(interfaces, drafts)
    ports = _ports(drafts, macs)
    chassis, local_name = local_chassis(walk)
    name = decode_text(local_name) or decode_text(walk.raw(SYS_NAME, (0,)))
    device_ids = {*chassis_ids_of(chassis, local_addresses(walk)), *_mac_ids(interfaces, macs)}
    if name:
        device_ids.add(Id(IdKind.HOSTNAME, name))
    if not device_ids and not ports:
        problems.append("no row describes a switch or its neighbors")
    errors = tuple(ParseError(problem, source=source) for problem in problems)
    if not device_ids and not ports:
        return None, errors
    polled = parse_usable_ip(address)
    device = Device(
        kind=DeviceKind.SWITCH,
        name=name,
        ids=tuple(sorted(device_ids | ({Id(IdKind.IP, polled)} if polled else set()))),
        ports=ports,
        model=decode_text(walk.raw(SYS_DESCR, (0,))),
    )
    return device, errors


def parse_snmpwalk_text(
    raw: bytes, *, source: str = ""
) -> tuple[Device | None, tuple[ParseError, ...]]:
    """Return the switch of a saved walk, as `parse_walk` does; printing loses some facts."""
    rows, text_errors = parse_walk_text(raw, source=source)
    if not rows:
        return None, text_errors
    device, errors = parse_walk(rows, source=source)
    reason = find_cut_walk(rows) or _find_open_line(raw)
    cut = [CutInput(f"the walk is cut: {reason}; walk again", source=source)] if reason else []
    return device, (*cut, *text_errors, *errors)


def _find_open_line(raw: bytes) -> str:
    """Return the problem that the last line may lack its end; otherwise empty.

    Without a line end, only a closed quote shows the end of a text. snmprec files often have none.
    """
    last_line = raw.rpartition(b"\n")[2].strip()
    is_closed = last_line.endswith(b'"') and last_line.count(b'"') % 2 == 0
    is_whole = not last_line or is_closed or last_line.count(b"|") >= _NUM_RECORD_BARS
    return "" if is_whole else "its last line is incomplete"


def _own_macs(interfaces: InterfaceTable, drafts: Mapping[_Key, _PortDraft]) -> dict[int, str]:
    """Return the MAC addresses that are unique to this device, by ifIndex.

    If a port table lists the ports that speak LLDP, no other interface has a cable. Gateways share
    the addresses of routed interfaces, also those of a type of Ethernet.
    """
    speaking = {key for key, draft in drafts.items() if draft.local or draft.neighbors}
    has_table = any(draft.local for draft in drafts.values())
    return {
        if_index: interface.mac
        for if_index, interface in interfaces.by_index.items()
        if interface.mac and (not has_table or ("if", if_index) in speaking)
    }


def _mac_ids(interfaces: InterfaceTable, macs: Mapping[int, str]) -> Iterator[Id]:
    """Yield the device's own MAC addresses, those of interfaces without a port first."""
    ordered = sorted(macs, key=lambda if_index: interfaces.by_index[if_index].is_physical)
    own = dict.fromkeys(macs[if_index] for if_index in ordered)
    yield from (Id(IdKind.MAC, mac) for mac in list(own)[:MAX_MACS])


def _draft_ports(
    walk: WalkColumns, interfaces: InterfaceTable
) -> tuple[dict[_Key, _PortDraft], list[str]]:
    """Return the ports with their neighbors, and the problems."""
    locals_of_v1 = local_ports(walk, LLDP)
    remote, problems = remote_rows(walk)
    heard = {row.number for row in remote if not row.is_ifindex}
    unnamed = [number for number in heard | locals_of_v1.keys() if is_unnamed(number, locals_of_v1)]
    numbered = interfaces.find_numbered_ports(
        unnamed, [number for number in unnamed if number in heard], bridge_ports(walk)
    )
    keys = _local_keys(locals_of_v1, interfaces, numbered)
    drafts: dict[_Key, _PortDraft] = {
        ("if", if_index): _PortDraft(if_index, interface)
        for if_index, interface in interfaces.by_index.items()
        if interface.is_physical
    }
    for number, local in locals_of_v1.items():
        _get_draft(drafts, keys[number], interfaces.by_index).local = local
    for number, local in local_ports(walk, LLDP_V2).items():
        draft = _get_draft(drafts, ("if", number), interfaces.by_index)
        draft.local = draft.local or local
    problems += _add_neighbors(remote, drafts, keys=keys, interfaces=interfaces.by_index)
    keys_with_neighbors = {key for key, draft in drafts.items() if draft.neighbors}
    cached = [row for row in cdp_rows(walk) if ("if", row.number) not in keys_with_neighbors]
    problems += _add_neighbors(cached, drafts, keys=keys, interfaces=interfaces.by_index)
    if len(drafts) > MAX_PORTS:
        problems.append(f"{len(drafts)} ports: those beyond {MAX_PORTS} are dropped")
    return drafts, problems


def _local_keys(
    ports: Mapping[int, LocalPort], interfaces: InterfaceTable, numbered: Mapping[int, int]
) -> dict[int, _Key]:
    """Return the port of each local port number; an interface is the port of one number only.

    Args:
        ports: the rows of lldpLocPortTable.
        interfaces: all interfaces.
        numbered: the interface of each port that has only a number.
    """
    keys: dict[int, _Key] = {}
    used_indexes: set[int] = set()
    for number in [*ports, *(number for number in numbered if number not in ports)]:
        local = ports.get(number)
        if_index = interfaces.find_local_port(number, local) if local else None
        if_index = numbered.get(number) if if_index is None else if_index
        is_free = if_index is not None and if_index not in used_indexes
        keys[number] = ("if", if_index) if if_index is not None and is_free else ("lldp", number)
        used_indexes.add(-1 if if_index is None else if_index)
    return keys


def _get_draft(
    drafts: dict[_Key, _PortDraft], key: _Key, interfaces: Mapping[int, Interface]
) -> _PortDraft:
    kind, number = key
    interface = interfaces.get(number) if kind == "if" else None
    return drafts.setdefault(key, _PortDraft(number, interface))


def _add_neighbors(
    rows: Iterable[RemoteRow],
    drafts: dict[_Key, _PortDraft],
    *,
    keys: Mapping[int, _Key],
    interfaces: Mapping[int, Interface],
) -> list[str]:
    """Add neighbors to their local ports, and return the problems."""
    anonymous = surplus = 0
    unlisted: set[int] = set()
    for row in rows:
        neighbor = _neighbor(row)
        if not (neighbor.device_ids or neighbor.device_name or neighbor.port_ids):
            anonymous += 1
            continue
        key = ("if", row.number) if row.is_ifindex else keys.get(row.number, ("lldp", row.number))
        draft = _get_draft(drafts, key, interfaces)
        if draft.interface is None and draft.local is None:
            unlisted.add(row.number)
        if len(draft.neighbors) >= MAX_NEIGHBORS:
            surplus += 1
        else:
            draft.neighbors[neighbor] = None
    problems = []
    if unlisted:
        first = " ".join(map(str, sorted(unlisted)[:5]))
        problems.append(
            f"{len(unlisted)} local ports with neighbors are in no port table, for example {first}"
        )
    if anonymous:
        problems.append(f"{anonymous} neighbor rows identify no device or port")
    if surplus:
        problems.append(f"{surplus} neighbor rows dropped: over {MAX_NEIGHBORS} on one port")
    return problems


def _neighbor(row: RemoteRow) -> Neighbor:
    name = decode_text(row.name)
    return Neighbor(
        device_ids=chassis_ids_of(row.chassis, row.addresses),
        device_name=name,
        port_ids=port_ids_of(row.port),
        port_name=port_name(decode_port_id(row.port), decode_text(row.descr)),
        source=Source.CDP if row.is_cdp else Source.LLDP,
        capabilities=capabilities_of_bits(row.capabilities),
    )


def _ports(drafts: Mapping[_Key, _PortDraft], macs: Mapping[int, str]) -> tuple[Port, ...]:
    """Return the ports in natural order; if there are too many, keep those with neighbors first."""
    ordered = sorted(drafts.values(), key=lambda draft: (not draft.neighbors, draft.number))
    ports: dict[str, Port] = {}
    for draft in ordered[:MAX_PORTS]:
        name = _name(draft)
        name = f"{name}#{draft.number}" if name in ports else name
        ports[name] = _port(draft, name, macs)
    return tuple(
        ports[name]
        for name in sorted(ports, key=lambda port_name: (natural_key(port_name), port_name))
    )


def _name(draft: _PortDraft) -> str:
    interface, local = draft.interface, draft.local
    label = (interface.name or interface.descr) if interface else ""
    if not label and local:
        label = port_name(decode_port_id(local.sent), decode_text(local.descr))
    return label or str(draft.number)


def _port(draft: _PortDraft, name: str, macs: Mapping[int, str]) -> Port:
    interface = draft.interface
    ids = set(port_ids_of(draft.local.sent)) if draft.local else set()
    if interface:
        ids.add(Id(IdKind.IFINDEX, str(interface.if_index)))
        ids.update(Id(IdKind.IFNAME, word) for word in (interface.name, interface.descr) if word)
        mac = macs.get(interface.if_index)
        if mac:
            ids.add(Id(IdKind.MAC, mac))
    return Port(
        name=name,
        ids=tuple(sorted(ids)),
        state=interface.state if interface else PortState.UNKNOWN,
        rate_bps=interface.rate_bps if interface else None,
        neighbors=tuple(draft.neighbors),
    )


_LOCAL_PORTS: Final[Oid] = (3, 7, 1)
_REMOTE: Final[Oid] = (4, 1, 1)
_LAST_MANDATORY: Final[Mapping[Oid, int]] = {
    (*LLDP, *_LOCAL_PORTS): 3,
    (*LLDP, *_REMOTE): 7,
    (*LLDP_V2, *_LOCAL_PORTS): 3,
    (*LLDP_V2, *_REMOTE): 8,
    IF_ENTRY: 0,
    IFX_ENTRY: 0,
}
"""The last column that every agent has, by table; 0: agents differ.

LLDP-V2-MIB has one more index, `lldpV2RemLocalDestMACAddress`, which moves no column that is read
here but the last one.
"""


def find_cut_walk(rows: Sequence[WalkRow]) -> str:
    """Return why the end of a walk is missing, empty if it looks whole. Cost: O(rows).

    A walk prints a table column by column, each with the same rows. So a cut within a table shows:
    its last column ends early, or a column that every agent has is missing. A cut between two
    tables does not show. Source: IEEE 802.1AB 11.5 (columns that are mandatory), RFC 2863.

    Args:
        rows: the rows in the order of the file.
    """
    last = rows[-1][0] if rows else ()
    table = next((entry for entry in _LAST_MANDATORY if last[: len(entry)] == entry), None)
    if table is None or len(last) <= len(table) + 1:
        return ""
    columns: dict[int, list[Oid]] = {}
    for oid, _ in rows:
        if oid[: len(table)] == table and len(oid) > len(table) + 1:
            columns.setdefault(oid[len(table)], []).append(oid[len(table) + 1 :])
    column = last[len(table)]
    if list(columns)[-1] != column or column != max(columns):
        return ""  # not in the order of a walk
    indexes = columns.pop(column)
    longest = max(columns.values(), key=len, default=[])
    if len(indexes) < len(longest) and indexes == longest[: len(indexes)]:
        return f"column {column} of its last table has {len(indexes)} rows of {len(longest)}"
    if columns and column < _LAST_MANDATORY[table]:
        return f"its last table ends with column {column}"
    return ""
