"""What several sources say about one true Ethernet fabric, each in its own words.

A dialect is how the switches of a fabric describe themselves in LLDP frames. A view is one source:
whose claims there are, and which facts it lacks. All views of a fabric are true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from topology.model.claims import Claim, Origin
from topology.model.facts import Device, DeviceKind, Medium, Neighbor, Port
from topology.model.ids import Id, IdKind
from topology.sources.lldp_mib.walk import parse_snmpwalk_text
from topology.synthetic import (
    DamagedFabric,
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    render_snmpwalks,
    report_claims,
)

Claims = tuple[Claim, ...]
Dialect = Callable[[Neighbor, str], Neighbor]
"""Rewrites an entry about a switch; the second argument is the number of the switch as text."""
_ETHERNET = Medium.ETHERNET
FAMILIES = {
    "rails": SyntheticSpec(FabricKind.RAIL, 8, rails=2, radix=4, medium=_ETHERNET),
    "a fat tree": SyntheticSpec(FabricKind.FAT_TREE, 8, radix=4, tiers=3, medium=_ETHERNET),
    "leaf pairs": SyntheticSpec(FabricKind.DUAL_HOMED, 8, radix=4, medium=_ETHERNET),
    "islands": SyntheticSpec(FabricKind.RAIL, 12, rails=2, radix=6, islands=1, medium=_ETHERNET),
    "two planes": SyntheticSpec(FabricKind.DUAL_PLANE, 8, rails=2, radix=4, medium=_ETHERNET),
}


def fabric_of(family: str) -> DamagedFabric:
    """Return the undamaged fabric of a family."""
    return build_undamaged(build_wiring(FAMILIES[family]))


def _with_chassis(neighbor: Neighbor, *ids: Id) -> Neighbor:
    return neighbor._replace(device_ids=tuple(sorted(ids)))


def _other_name(name: str) -> str:
    return f"{name.upper()}.dc1.example.com"


DIALECTS: dict[str, Dialect] = {
    "MAC addresses": lambda entry, _: entry,
    "names as chassis ids": lambda entry, _: _with_chassis(
        entry, Id(IdKind.CHASSIS_ID, entry.device_name, "local")
    ),
    "addresses as chassis ids": lambda entry, number: _with_chassis(
        entry, Id(IdKind.CHASSIS_ID, f"10.0.0.{number}", "ip"), Id(IdKind.IP, f"10.0.0.{number}")
    ),
    "names with a domain, in upper case": lambda entry, _: entry._replace(
        device_name=_other_name(entry.device_name)
    ),
    "local numbers as port ids": lambda entry, _: entry._replace(
        port_ids=(Id(IdKind.PORT_ID, str(500 + int(entry.port_name.strip("swp"))), "local"),)
    ),
    "no names": lambda entry, _: entry._replace(device_name=""),
    "no capabilities": lambda entry, _: entry._replace(capabilities=()),
}


def speak(claims: Iterable[Claim], fabric: DamagedFabric, dialect: Dialect) -> Claims:
    """Return claims whose entries about switches are in a dialect."""
    numbers = {switch.name: str(at) for at, switch in enumerate(fabric.wiring.switches, 1)}

    def entry_of(entry: Neighbor) -> Neighbor:
        number = numbers.get(entry.device_name)
        return entry if number is None else dialect(entry, number)

    def port_of(port: Port) -> Port:
        return port._replace(neighbors=tuple(map(entry_of, port.neighbors)))

    return tuple(
        Claim(replace(claim.device, ports=tuple(map(port_of, claim.device.ports))), claim.origin)
        for claim in claims
    )


def agents(fabric: DamagedFabric) -> Claims:
    """Return the reports of all hosts."""
    return tuple(claim for claim in polls(fabric, hosts=True) if is_host(claim))


def polls(fabric: DamagedFabric, *, hosts: bool = False) -> Claims:
    """Return the reports of switches that SNMP polled."""
    reports = (Claim(report.device, Origin.REPORT) for report in report_claims(fabric))
    return tuple(claim for claim in reports if hosts or not is_host(claim))


def walks(fabric: DamagedFabric) -> Claims:
    """Return the saved walks of all switches."""
    parsed = (parse_snmpwalk_text(text.encode()) for _, text in render_snmpwalks(fabric))
    return tuple(Claim(device, Origin.REPORT) for device, _ in parsed if device is not None)


def walks_without_chassis(fabric: DamagedFabric) -> Claims:
    """Return walks of agents that do not report their own chassis id, only their interfaces."""
    return tuple(
        Claim(replace(claim.device, ids=_unlike(claim.device, at)), claim.origin)
        for at, claim in enumerate(walks(fabric), 1)
    )


def _unlike(device: Device, number: int) -> tuple[Id, ...]:
    other = {Id(IdKind.MAC, f"06:00:00:00:00:{number:02x}"), Id(IdKind.IP, f"10.0.0.{number}")}
    kept = {one for one in device.ids if one.kind not in (IdKind.CHASSIS_ID, IdKind.MAC)}
    return tuple(sorted(kept | other))


def captures(fabric: DamagedFabric) -> Claims:
    """Return the captures of all devices, each with its chassis."""
    return tuple(
        Claim(_captured(claim.device, _chassis_ids(claim.device)), Origin.CAPTURE)
        for claim in polls(fabric, hosts=True)
    )


def _chassis_ids(device: Device) -> tuple[Id, ...]:
    chassis = {one for one in device.ids if one.kind is IdKind.CHASSIS_ID}
    return tuple(sorted({*chassis, Id(IdKind.HOSTNAME, device.name)}))


def _captured(device: Device, ids: tuple[Id, ...]) -> Device:
    ports = (
        Port(port.name, (Id(IdKind.IFNAME, port.name),), neighbors=port.neighbors)
        for port in device.ports
        if port.neighbors
    )
    return Device(DeviceKind.UNKNOWN, device.name, ids, tuple(ports))


def bare_captures(fabric: DamagedFabric) -> Claims:
    """Return the captures of all devices, named after their files, without a chassis."""
    return tuple(Claim(replace(claim.device, ids=()), claim.origin) for claim in captures(fabric))


def bare_switch_captures(fabric: DamagedFabric) -> Claims:
    """Return the captures of switches, named after their files, without a chassis."""
    return _of_switches(fabric, bare_captures(fabric))


def misnamed_captures(fabric: DamagedFabric) -> Claims:
    """Return the captures of switches, without a chassis, in files with names of their own."""
    return tuple(
        Claim(replace(claim.device, name=f"capture-{at:03}"), claim.origin)
        for at, claim in enumerate(bare_switch_captures(fabric), 1)
    )


def half_of_captures(fabric: DamagedFabric) -> Claims:
    """Return the captures of every second host."""
    nodes = {host.name for host in fabric.wiring.hosts}
    return tuple(claim for claim in captures(fabric) if claim.name in nodes)[::2]


def half_of_walks(fabric: DamagedFabric) -> Claims:
    """Return the walks of every second switch."""
    return walks(fabric)[::2]


def half_of_switch_captures(fabric: DamagedFabric) -> Claims:
    """Return the captures of every second switch, each with its chassis."""
    return _of_switches(fabric, captures(fabric))[::2]


def half_of_agents(fabric: DamagedFabric) -> Claims:
    """Return the reports of every second host."""
    return agents(fabric)[::2]


def names_of_nodes(fabric: DamagedFabric) -> Claims:
    """Return an inventory of names, as `kubectl get nodes` prints it."""
    return tuple(
        Claim(
            Device(DeviceKind.HOST, host.name, (Id(IdKind.NODE_NAME, host.name),)), Origin.INVENTORY
        )
        for host in fabric.wiring.hosts
    )


def ids_of_nodes(fabric: DamagedFabric) -> Claims:
    """Return an inventory with the MAC addresses of all NICs."""
    return tuple(
        Claim(
            Device(
                DeviceKind.HOST,
                host.name,
                tuple(
                    sorted(
                        [
                            Id(IdKind.NODE_NAME, host.name),
                            *(Id(IdKind.MAC, nic.mac) for nic in host.nics),
                        ]
                    )
                ),
            ),
            Origin.INVENTORY,
        )
        for host in fabric.wiring.hosts
    )


def listed_agents(family: str) -> Claims:
    """Return the list of nodes, and the reports of hosts and switches."""
    fabric = fabric_of(family)
    return (*ids_of_nodes(fabric), *polls(fabric, hosts=True))


VIEWS: dict[str, Callable[[DamagedFabric], Claims]] = {
    "agents": agents,
    "polls": polls,
    "walks": walks,
    "walks without a chassis id": walks_without_chassis,
    "half of the walks": half_of_walks,
    "captures": captures,
    "captures without a chassis": bare_captures,
    "captures of switches without a chassis": bare_switch_captures,
    "captures of switches in files of other names": misnamed_captures,
    "captures of half the hosts": half_of_captures,
    "captures of half the switches": half_of_switch_captures,
    "agents of half the hosts": half_of_agents,
    "a list of names": names_of_nodes,
    "a list with ids": ids_of_nodes,
}


PLAIN: dict[str, Callable[[DamagedFabric], Claims]] = {
    "walks": polls,
    "walks without a chassis id": polls,
    "half of the walks": lambda fabric: polls(fabric)[::2],
    "captures without a chassis": captures,
    "captures of switches without a chassis": lambda fabric: _of_switches(fabric, captures(fabric)),
    "captures of switches in files of other names": lambda fabric: _of_switches(
        fabric, captures(fabric)
    ),
}
"""By view: the same facts with strong ids throughout, if the view has other words."""


def _of_switches(fabric: DamagedFabric, claims: Claims) -> Claims:
    switches = {switch.name for switch in fabric.wiring.switches}
    return tuple(claim for claim in claims if claim.name in switches)


def is_host(claim: Claim) -> bool:
    """Return whether a claim is about a node."""
    return any(one.kind is IdKind.NODE_NAME for one in claim.device.ids)
