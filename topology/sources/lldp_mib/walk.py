"""An SNMP walk of one switch: what it is, its ports, and whom they hear.

Takes numeric OIDs and raw values, so that no printed form gets between the switch and the facts;
`lldp_mib_text` reads what people saved of walks, which is the weaker source. Neighbors get the
ids that lldpcli would show for the same frame and besides, where an id of another subtype is or
spells a MAC, that MAC: agents and senders both get subtypes wrong.

Source: IEEE 802.1AB 11.5, and walks of a hundred devices of thirty vendors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from topology.model.errors import ParseError
from topology.model.facts import Device, DeviceKind, Neighbor, Port, PortState, Source
from topology.model.ids import Id, IdKind, natural_key
from topology.sources.lldp.ids import port_name, parse_usable_ip
from topology.sources.lldp_mib.ids import chassis_ids_of, port_ids_of, decode_port_id, decode_text
from topology.sources.lldp_mib.interfaces import Interface, InterfaceTable, build_interfaces
from topology.sources.lldp_mib.tables import (
    LLDP,
    LLDP_V2,
    SYS_DESCR,
    SYS_NAME,
    LocalPort,
    RemoteRow,
    WalkColumns,
    WalkRow,
    cdp_rows,
    local_addresses,
    local_chassis,
    local_ports,
    collect_columns,
    remote_rows,
)
from topology.sources.lldp_mib.walk_text import parse_walk_text

MAX_PORTS: Final = 4096  # as many as a report holds
MAX_NEIGHBORS: Final = 1024  # on one port, likewise
MAX_MACS: Final = 512  # of a device itself; its ports have theirs besides

_Key = tuple[str, int]
"""`if` and an ifIndex, or `lldp` and a lldpLocPortNum that is none."""


@dataclass(slots=True)
class _PortDraft:
    """A port while its facts come together."""

    number: int
    interface: Interface | None = None
    local: LocalPort | None = None
    neighbors: dict[Neighbor, None] = field(default_factory=dict)
    """In the order of the table, without repeats."""


def parse_walk(
    rows: Iterable[WalkRow], *, source: str = "", address: str = ""
) -> tuple[Device | None, tuple[ParseError, ...]]:
    """Return the switch that was walked, None where the rows tell nothing; never raises.

    Its ports are those that may have a cable and those that LLDP runs on. A neighbor that nothing
    identifies, or whose local port is not told, is left out and counted in an error.
    Cost: O(rows log rows).

    Args:
        rows: (OID, octets or number) in any order; columns of no use are ignored.
        source: names the walk in errors.
        address: the one that was polled, if any.
    """
    walk = collect_columns(rows)
    interfaces = build_interfaces(walk)
    ports, problems = _build_ports(walk, interfaces)
    chassis, told_name = local_chassis(walk)
    name = decode_text(told_name) or decode_text(walk.raw(SYS_NAME, (0,)))
    own = {*chassis_ids_of(chassis, local_addresses(walk)), *_macs(interfaces)}
    if name:
        own.add(Id(IdKind.HOSTNAME, name))
    if not own and not ports:
        problems.append("no row that tells a switch or its neighbors")
    errors = tuple(ParseError(problem, source=source) for problem in problems)
    if not own and not ports:
        return None, errors
    polled = parse_usable_ip(address)
    device = Device(
        kind=DeviceKind.SWITCH,
        name=name,
        ids=tuple(sorted(own | ({Id(IdKind.IP, polled)} if polled else set()))),
        ports=ports,
        model=decode_text(walk.raw(SYS_DESCR, (0,))),
    )
    return device, errors


def parse_snmpwalk_text(
    raw: bytes, *, source: str = ""
) -> tuple[Device | None, tuple[ParseError, ...]]:
    """Return the switch of a saved walk, as `parse_walk` does; its printed forms lose some."""
    rows, bad = parse_walk_text(raw, source=source)
    device, errors = parse_walk(rows, source=source)
    return device, (*bad, *errors)


def _macs(interfaces: InterfaceTable) -> Iterator[Id]:
    """Yield the MACs of all interfaces, those that no port will carry first."""
    ordered = sorted(interfaces.by_index.values(), key=lambda one: one.is_physical)
    macs = dict.fromkeys(one.mac for one in ordered if one.mac)
    yield from (Id(IdKind.MAC, mac) for mac in list(macs)[:MAX_MACS])


def _build_ports(
    walk: WalkColumns, interfaces: InterfaceTable
) -> tuple[tuple[Port, ...], list[str]]:
    """Return the ports with their neighbors, in natural order, and what is wrong with them."""
    locals_of_v1 = local_ports(walk, LLDP)
    keys = _local_keys(locals_of_v1, interfaces)
    drafts: dict[_Key, _PortDraft] = {
        ("if", at): _PortDraft(at, one)
        for at, one in interfaces.by_index.items()
        if one.is_physical
    }
    for number, local in locals_of_v1.items():
        _get_draft(drafts, keys[number], interfaces.by_index).local = local
    for number, local in local_ports(walk, LLDP_V2).items():
        draft = _get_draft(drafts, ("if", number), interfaces.by_index)
        draft.local = draft.local or local
    remote, problems = remote_rows(walk)
    problems += _add_neighbors(remote, drafts, keys=keys, interfaces=interfaces)
    heard = {key for key, draft in drafts.items() if draft.neighbors}
    cached = [row for row in cdp_rows(walk) if ("if", row.number) not in heard]
    problems += _add_neighbors(cached, drafts, keys=keys, interfaces=interfaces)
    if len(drafts) > MAX_PORTS:
        problems.append(f"{len(drafts)} ports: those beyond {MAX_PORTS} are left out")
    return _ports(drafts), problems


def _local_keys(ports: Mapping[int, LocalPort], interfaces: InterfaceTable) -> dict[int, _Key]:
    """Return which port each row of lldpLocPortTable is; no interface is two ports."""
    keys: dict[int, _Key] = {}
    taken: set[int] = set()
    for number, local in ports.items():
        at = interfaces.find_local_port(number, local)
        is_free = at is not None and at not in taken
        keys[number] = ("if", at) if at is not None and is_free else ("lldp", number)
        taken.add(-1 if at is None else at)
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
    interfaces: InterfaceTable,
) -> list[str]:
    """Add neighbors to the ports that hear them, and return what is wrong with them."""
    nobody = surplus = 0
    unlisted: set[int] = set()
    for row in rows:
        neighbor = _neighbor(row)
        if not (neighbor.device_ids or neighbor.device_name or neighbor.port_ids):
            nobody += 1
            continue
        key = _key_of(row, keys, interfaces)
        draft = _get_draft(drafts, key, interfaces.by_index)
        if draft.interface is None and draft.local is None:
            unlisted.add(row.number)
        if len(draft.neighbors) >= MAX_NEIGHBORS:
            surplus += 1
        else:
            draft.neighbors[neighbor] = None
    problems = []
    if unlisted:
        first = " ".join(map(str, sorted(unlisted)[:5]))
        problems.append(f"{len(unlisted)} local ports with neighbors are in no table, as {first}")
    if nobody:
        problems.append(f"{nobody} neighbor rows that identify nobody")
    if surplus:
        problems.append(f"{surplus} neighbor rows beyond {MAX_NEIGHBORS} of a port")
    return problems


def _key_of(row: RemoteRow, keys: Mapping[int, _Key], interfaces: InterfaceTable) -> _Key:
    if row.is_ifindex:
        return ("if", row.number)
    if row.number in keys:
        return keys[row.number]
    at = interfaces.find_local_port(row.number, None)
    return ("lldp", row.number) if at is None else ("if", at)


def _neighbor(row: RemoteRow) -> Neighbor:
    name = decode_text(row.name)
    return Neighbor(
        device_ids=chassis_ids_of(row.chassis, row.addresses),
        device_name=name,
        port_ids=port_ids_of(row.port),
        port_name=port_name(decode_port_id(row.port), decode_text(row.descr)),
        source=Source.CDP if row.is_cdp else Source.LLDP,
    )


def _ports(drafts: Mapping[_Key, _PortDraft]) -> tuple[Port, ...]:
    """Return the ports in natural order; those with neighbors stay where there are too many."""
    kept = sorted(drafts.values(), key=lambda draft: (not draft.neighbors, draft.number))
    ports: dict[str, Port] = {}
    for draft in kept[:MAX_PORTS]:
        name = _name(draft)
        name = f"{name}#{draft.number}" if name in ports else name
        ports[name] = _port(draft, name)
    return tuple(ports[name] for name in sorted(ports, key=lambda one: (natural_key(one), one)))


def _name(draft: _PortDraft) -> str:
    interface, local = draft.interface, draft.local
    told = (interface.name or interface.descr) if interface else ""
    if not told and local:
        told = port_name(decode_port_id(local.sent), decode_text(local.descr))
    return told or str(draft.number)


def _port(draft: _PortDraft, name: str) -> Port:
    interface = draft.interface
    ids = set(port_ids_of(draft.local.sent)) if draft.local else set()
    if interface:
        ids.add(Id(IdKind.IFINDEX, str(interface.if_index)))
        ids.update(Id(IdKind.IFNAME, word) for word in (interface.name, interface.descr) if word)
        ids.update({Id(IdKind.MAC, interface.mac)} if interface.mac else ())
    return Port(
        name=name,
        ids=tuple(sorted(ids)),
        state=interface.state if interface else PortState.UNKNOWN,
        rate_bps=interface.rate_bps if interface else None,
        neighbors=tuple(draft.neighbors),
    )
