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


class Reported(NamedTuple):
    """What one report says."""

    report: str
    """Name of the report."""
    device: Device


class Swept(NamedTuple):
    """How a sweep names one port, whichever end of its cable tells."""

    node_ids: tuple[Id, ...]
    port_ids: tuple[Id, ...]
    port_name: str


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
        self._swept: dict[PortName, Swept] = {}
        self._far = dict(damaged.cables) | {cable.high: cable.low for cable in damaged.cables}

    def far_end(self, device: str, port: str) -> PortName | None:
        """Return the port at the other end of the cable, None where there is no cable."""
        return self._far.get(PortName(device, port))

    def chassis_mac(self, device: str) -> str:
        """Return the MAC that a device sends as its chassis id: a host takes its first NIC's."""
        host = self.hosts.get(device)
        return host.nics[0].mac if host else self.switches[device].mac

    def is_nameless(self, device: str) -> bool:
        """Return whether a device is a host whose HCAs carry a factory's description."""
        return device in self.damaged.silent

    def swept(self, port: PortName) -> Swept:
        """Return how a sweep names a port; one value per port, which both ends share."""
        found = self._swept.get(port)
        return found or self._swept.setdefault(port, self._sweep(port))

    def _sweep(self, port: PortName) -> Swept:
        nic = self.nics.get(port)
        if nic is None:
            guid = self.switches[port.device].guid
            port_ids = (Id(IdKind.NODE_GUID, guid, port.port),)
            return Swept((Id(IdKind.NODE_GUID, guid),), port_ids, port.port)
        name = f"{nic.guid}/1" if self.is_nameless(port.device) else port.port
        return Swept((Id(IdKind.NODE_GUID, nic.guid),), hca_port_ids(nic), name)

    @cached_property
    def nics(self) -> dict[PortName, Nic]:
        """Every port of a host."""
        return {
            PortName(host.name, nic.port): nic for host in self.hosts.values() for nic in host.nics
        }


def report_claims(damaged: Damaged) -> list[Reported]:
    """Return what the reports of hosts, and of Ethernet switches, say; silent hosts say nothing.

    An InfiniBand host knows its own HCAs only: what is at the far ends is the sweep's to tell.
    """
    sight = Sight(damaged)
    is_ethernet = sight.medium is Medium.ETHERNET
    claims = [
        Reported(host.name, _ethernet_host(sight, host) if is_ethernet else _ib_host(sight, host))
        for host in damaged.wiring.hosts
        if host.name not in damaged.silent
    ]
    if is_ethernet:
        claims.extend(
            Reported(f"switch-{switch.mac.replace(':', '')}", _ethernet_switch(sight, switch))
            for switch in sight.switches.values()
        )
    return claims


def sweep_devices(damaged: Damaged) -> list[Device]:
    """Return what ibnetdiscover tells of an InfiniBand fabric, by whatever island it sees.

    Sorted by GUID. Only ports with a cable are printed, so an HCA that lost its own is missing.
    """
    sight = Sight(damaged)
    switches = [_swept_switch(sight, switch) for switch in sight.switches.values()]
    hcas = [
        _swept_hca(sight, host, nic)
        for host in damaged.wiring.hosts
        for nic in host.nics
        if sight.far_end(host.name, nic.port)
    ]
    return sorted(hcas + switches, key=lambda device: device.ids)


def host_ids(host: Host, medium: Medium) -> tuple[Id, ...]:
    """Return the ids by which a host is known to itself, sorted."""
    ids = [Id(IdKind.NODE_NAME, host.name), Id(IdKind.HOSTNAME, host.name)]
    if medium is Medium.INFINIBAND:
        kinds = (IdKind.NODE_GUID, IdKind.PORT_GUID, IdKind.SYSTEM_IMAGE_GUID)
        ids.extend(Id(kind, nic.guid) for nic in host.nics for kind in kinds)
    else:
        ids.extend(Id(IdKind.MAC, nic.mac) for nic in host.nics)
        ids.append(chassis_id(host.nics[0].mac))
    return tuple(sorted(ids))


def chassis_id(mac: str) -> Id:
    """Return the LLDP chassis id of a device that uses a MAC for it."""
    return Id(IdKind.CHASSIS_ID, mac, "mac")


def description(sight: Sight, host: Host, nic: Nic) -> str:
    """Return the node description of an HCA: a silent host never set its own."""
    return FACTORY_TEXT if sight.is_nameless(host.name) else f"{host.name} {nic.device}"


def _ib_host(sight: Sight, host: Host) -> Device:
    ports = []
    for nic in host.nics:
        is_up = sight.far_end(host.name, nic.port) is not None
        ports.append(
            Port(
                name=nic.port,
                ids=hca_port_ids(nic),
                medium=Medium.INFINIBAND,
                state=PortState.UP if is_up else PortState.DOWN,
                rate_bps=sight.rate_bps if is_up else None,
                rdma_device=nic.device,
            )
        )
    return Device(DeviceKind.HOST, host.name, host_ids(host, sight.medium), tuple(ports))


def hca_port_ids(nic: Nic) -> tuple[Id, ...]:
    """Return the ids of an HCA's only port."""
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
    nic = sight.nics.get(far)
    if nic:
        port_ids = (Id(IdKind.MAC, nic.mac), Id(IdKind.PORT_ID, nic.mac, "mac"))
    else:
        port_ids = (Id(IdKind.IFNAME, far.port), Id(IdKind.PORT_ID, far.port, "ifname"))
    return Neighbor(
        device_ids=(chassis_id(sight.chassis_mac(far.device)),),
        device_name=far.device,
        port_ids=tuple(sorted(port_ids)),
        port_name=far.port,
        source=Source.LLDP,
        ttl_s=TTL_S,
    )


def _swept_switch(sight: Sight, switch: Switch) -> Device:
    ends = (PortName(switch.name, port) for port in sight.switch_ports)
    cabled = ((end, sight.far_end(*end)) for end in ends)
    ports = tuple(_swept_port(sight, end, far) for end, far in cabled if far)
    model = f"MF0;{switch.name}:{SWITCH_MODEL}/U1"
    return Device(DeviceKind.SWITCH, switch.name, _swept_ids(switch.guid), ports, model)


def _swept_hca(sight: Sight, host: Host, nic: Nic) -> Device:
    end = PortName(host.name, nic.port)
    far = sight.far_end(*end)
    ports = (_swept_port(sight, end, far),) if far else ()
    name = "" if sight.is_nameless(host.name) else host.name
    model = description(sight, host, nic)
    return Device(DeviceKind.HOST, name, _swept_ids(nic.guid), ports, model)


def _swept_ids(guid: str) -> tuple[Id, ...]:
    return (Id(IdKind.NODE_GUID, guid), Id(IdKind.SYSTEM_IMAGE_GUID, guid))


def _swept_port(sight: Sight, end: PortName, far: PortName) -> Port:
    nic = None if sight.is_nameless(end.device) else sight.nics.get(end)
    peer = sight.swept(far)
    neighbor = Neighbor(
        device_ids=peer.node_ids,
        device_name="" if sight.is_nameless(far.device) else far.device,
        port_ids=peer.port_ids,
        port_name=peer.port_name,
        source=Source.IB,
        kind=DeviceKind.HOST if far in sight.nics else DeviceKind.SWITCH,
    )
    own = sight.swept(end)
    return Port(
        name=own.port_name,
        ids=own.port_ids,
        medium=Medium.INFINIBAND,
        state=PortState.UP,
        rate_bps=sight.rate_bps,
        rdma_device=nic.device if nic else None,
        neighbors=(neighbor,),
    )
