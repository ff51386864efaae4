"""What agents, a subnet sweep and SNMP walks would claim about a damaged fabric, as facts."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from topology.facts import Device, DeviceKind, Medium, Neighbor, Port, PortName, PortState, Source
from topology.ids import Id, IdKind
from topology.synthetic.faults import Damaged
from topology.synthetic.wiring import Host, Nic, Switch, switch_port

FACTORY_TEXT = "MT4129 ConnectX7   Mellanox Technologies"
SWITCH_MODEL = "MQM9700"
TTL_S = 120


class Claim(NamedTuple):
    """What one report says."""

    report: str
    """Name of the report."""
    device: Device


class Sight:
    """A damaged fabric, indexed for those who look at it port by port."""

    def __init__(self, damaged: Damaged) -> None:
        """Index the cables by both of their ends."""
        self.damaged = damaged
        self.medium = damaged.wiring.spec.medium
        self.rate_bps = damaged.wiring.spec.rate_bps
        self.switch_ports = tuple(
            switch_port(self.medium, number + 1) for number in range(damaged.wiring.spec.radix)
        )
        self.hosts = {host.name: host for host in damaged.wiring.hosts}
        self.switches = {
            switch.name: switch
            for switch in damaged.wiring.switches
            if switch.name not in damaged.lost_switches
        }
        self._far = dict(damaged.cables) | {cable.high: cable.low for cable in damaged.cables}

    def far_end(self, device: str, port: str) -> PortName | None:
        """Return the port at the other end of the cable, None where there is no cable."""
        return self._far.get(PortName(device, port))

    @cached_property
    def nics(self) -> dict[PortName, Nic]:
        """Every port of a host."""
        return {
            PortName(host.name, nic.port): nic for host in self.hosts.values() for nic in host.nics
        }


def report_claims(damaged: Damaged) -> list[Claim]:
    """Return what the reports of hosts, and of Ethernet switches, say; silent hosts say nothing.

    An InfiniBand host knows its own HCAs only: what is at the far ends is the sweep's to tell.
    """
    sight = Sight(damaged)
    is_ethernet = sight.medium is Medium.ETHERNET
    claims = [
        Claim(host.name, _ethernet_host(sight, host) if is_ethernet else _ib_host(sight, host))
        for host in damaged.wiring.hosts
        if host.name not in damaged.silent
    ]
    if is_ethernet:
        claims.extend(
            Claim(f"switch-{switch.mac.replace(':', '')}", _ethernet_switch(sight, switch))
            for switch in sight.switches.values()
        )
    return claims


def sweep_devices(damaged: Damaged) -> list[Device]:
    """Return what ibnetdiscover tells of an InfiniBand fabric, by whatever island it sees.

    Only ports with a cable are printed, so a host that lost all of its cables is missing.
    """
    sight = Sight(damaged)
    switches = [_swept_switch(sight, switch) for switch in sight.switches.values()]
    hcas = [
        _swept_hca(sight, host, nic)
        for host in damaged.wiring.hosts
        for nic in host.nics
        if sight.far_end(host.name, nic.port)
    ]
    return switches + hcas


def host_ids(host: Host, medium: Medium) -> tuple[Id, ...]:
    """Return the ids by which a host is known to itself, sorted."""
    ids = [Id(IdKind.NODE_NAME, host.name), Id(IdKind.HOSTNAME, host.name)]
    if medium is Medium.INFINIBAND:
        ids.extend(Id(IdKind.NODE_GUID, nic.guid) for nic in host.nics)
    else:
        ids.extend(Id(IdKind.MAC, nic.mac) for nic in host.nics)
        ids.append(chassis_id(host.nics[0].mac))
    return tuple(sorted(ids))


def chassis_id(mac: str) -> Id:
    """Return the LLDP chassis id of a device that uses a MAC for it."""
    return Id(IdKind.CHASSIS_ID, mac, "mac")


def description(sight: Sight, host: Host, nic: Nic) -> str:
    """Return the node description of an HCA: a silent host never set its own."""
    return FACTORY_TEXT if host.name in sight.damaged.silent else f"{host.name} {nic.device}"


def _ib_host(sight: Sight, host: Host) -> Device:
    ports = []
    for nic in host.nics:
        is_up = sight.far_end(host.name, nic.port) is not None
        ports.append(
            Port(
                name=nic.port,
                ids=_hca_port_ids(nic),
                medium=Medium.INFINIBAND,
                state=PortState.UP if is_up else PortState.DOWN,
                rate_bps=sight.rate_bps if is_up else None,
                rdma_device=nic.device,
            )
        )
    return Device(DeviceKind.HOST, host.name, host_ids(host, sight.medium), tuple(ports))


def _hca_port_ids(nic: Nic) -> tuple[Id, ...]:
    return (Id(IdKind.NODE_GUID, nic.guid, "1"), Id(IdKind.PORT_GUID, nic.guid))


def _ethernet_host(sight: Sight, host: Host) -> Device:
    ports = tuple(
        _ethernet_port(
            sight,
            PortName(host.name, nic.port),
            (Id(IdKind.IFNAME, nic.port), Id(IdKind.MAC, nic.mac)),
        )
        for nic in host.nics
    )
    return Device(DeviceKind.HOST, host.name, host_ids(host, sight.medium), ports)


def _ethernet_switch(sight: Sight, switch: Switch) -> Device:
    ports = tuple(
        _ethernet_port(sight, PortName(switch.name, port), (Id(IdKind.IFNAME, port),))
        for port in sight.switch_ports
    )
    ids = tuple(sorted((Id(IdKind.MAC, switch.mac), chassis_id(switch.mac))))
    return Device(DeviceKind.SWITCH, switch.name, ids, ports)


def _ethernet_port(sight: Sight, port: PortName, ids: tuple[Id, ...]) -> Port:
    far = sight.far_end(*port)
    return Port(
        name=port.port,
        ids=tuple(sorted(ids)),
        state=PortState.UP if far else PortState.DOWN,
        rate_bps=sight.rate_bps if far else None,
        neighbors=(_lldp_neighbor(sight, far),) if far else (),
    )


def _lldp_neighbor(sight: Sight, far: PortName) -> Neighbor:
    """Return what an LLDP frame of the far port says.

    A Linux host sends a port's MAC as its id, a switch the port's name.
    """
    host = sight.hosts.get(far.device)
    mac = host.nics[0].mac if host else sight.switches[far.device].mac
    port_id = Id(IdKind.PORT_ID, far.port, "ifname")
    if host:
        port_id = Id(IdKind.PORT_ID, sight.nics[far].mac, "mac")
    return Neighbor(
        device_ids=(chassis_id(mac),),
        device_name=far.device,
        port_ids=(port_id,),
        port_name=far.port,
        source=Source.LLDP,
        ttl_s=TTL_S,
    )


def _swept_switch(sight: Sight, switch: Switch) -> Device:
    cabled = [(port, sight.far_end(switch.name, port)) for port in sight.switch_ports]
    ports = tuple(
        _swept_port(sight, port, (Id(IdKind.NODE_GUID, switch.guid, port),), far)
        for port, far in cabled
        if far
    )
    model = f"MF0;{switch.name}:{SWITCH_MODEL}/U1"
    return Device(DeviceKind.SWITCH, switch.name, _swept_ids(switch.guid), ports, model)


def _swept_hca(sight: Sight, host: Host, nic: Nic) -> Device:
    far = sight.far_end(host.name, nic.port)
    is_named = host.name not in sight.damaged.silent
    ports = (_swept_port(sight, nic.port if is_named else "1", _hca_port_ids(nic), far),)
    name = host.name if is_named else ""
    model = description(sight, host, nic)
    return Device(DeviceKind.HOST, name, _swept_ids(nic.guid), ports, model)


def _swept_ids(guid: str) -> tuple[Id, ...]:
    return (Id(IdKind.NODE_GUID, guid), Id(IdKind.SYSTEM_IMAGE_GUID, guid))


def _swept_port(sight: Sight, name: str, ids: tuple[Id, ...], far: PortName | None) -> Port:
    return Port(
        name=name,
        ids=ids,
        medium=Medium.INFINIBAND,
        state=PortState.UP,
        rate_bps=sight.rate_bps,
        neighbors=(_ib_neighbor(sight, far),) if far else (),
    )


def _ib_neighbor(sight: Sight, far: PortName) -> Neighbor:
    host = sight.hosts.get(far.device)
    if host is None:
        guid = sight.switches[far.device].guid
        port_ids: tuple[Id, ...] = (Id(IdKind.NODE_GUID, guid, far.port),)
    else:
        guid = sight.nics[far].guid
        port_ids = _hca_port_ids(sight.nics[far])
    is_named = far.device not in sight.damaged.silent
    return Neighbor(
        device_ids=(Id(IdKind.NODE_GUID, guid),),
        device_name=far.device if is_named else "",
        port_ids=port_ids,
        port_name=far.port if is_named else "1",
        source=Source.IB,
        kind=DeviceKind.HOST if host else DeviceKind.SWITCH,
    )
