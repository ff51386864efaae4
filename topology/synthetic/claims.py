"""What agents, a subnet sweep and SNMP walks would claim about a damaged fabric, as facts."""

from __future__ import annotations

from typing import NamedTuple

from topology.model.facts import (
    Device,
    DeviceKind,
    Medium,
    Neighbor,
    Port,
    PortName,
    PortState,
    Source,
)
from topology.model.ids import Id, IdKind
from topology.sources.host.nvidia_smi import Clique, build_clique_port
from topology.synthetic.device_views import DeviceViews, hca_description, hca_port_ids, subnet_of
from topology.synthetic.faults import DamagedFabric
from topology.synthetic.wiring import Host, Nic, Switch

SWITCH_MODEL = "MQM9700"
TTL_S = 120
NVLINK_CLUSTER = "5c000000-0000-4000-8000-000000000000"


class ReportedDevice(NamedTuple):
    """What one report says."""

    report: str
    """Name of the report."""
    device: Device


def report_claims(damaged: DamagedFabric) -> list[ReportedDevice]:
    """Return what the reports of hosts, and of Ethernet switches, say; silent hosts say nothing.

    An InfiniBand host knows its own HCAs only: what is at the far ends is the sweep's to tell.
    """
    sight = DeviceViews(damaged)
    is_ethernet = sight.medium is Medium.ETHERNET
    claims = [
        ReportedDevice(
            host.name, _ethernet_host(sight, host) if is_ethernet else _ib_host(sight, host)
        )
        for host in damaged.wiring.hosts
        if host.name not in damaged.silent
    ]
    if is_ethernet:
        claims.extend(
            ReportedDevice(f"switch-{switch.mac.replace(':', '')}", _ethernet_switch(sight, switch))
            for switch in sight.switches.values()
        )
    return claims


def sweep_devices(damaged: DamagedFabric, plane: int | None = None) -> list[Device]:
    """Return what ibnetdiscover tells of an InfiniBand fabric, or of one of its planes.

    Sorted by GUID. Only ports with a cable are printed, so an HCA that lost its own is missing.
    """
    sight = DeviceViews(damaged)
    planes = range(damaged.wiring.spec.num_planes) if plane is None else (plane,)
    switches = [
        _swept_switch(sight, switch) for switch in sight.switches.values() if switch.plane in planes
    ]
    hcas = [
        _swept_hca(sight, host, nic)
        for host in damaged.wiring.hosts
        for nic in host.nics
        if nic.plane in planes and sight.far_end(host.name, nic.port)
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


def _ib_host(sight: DeviceViews, host: Host) -> Device:
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
                subnet=subnet_of(nic.plane) if is_up else None,
            )
        )
    ports.extend(_nvlink_ports(host))
    return Device(DeviceKind.HOST, host.name, host_ids(host, sight.medium), tuple(ports))


def _ethernet_host(sight: DeviceViews, host: Host) -> Device:
    ports = tuple(
        _ethernet_port(
            sight,
            PortName(host.name, nic.port),
            (Id(IdKind.IFNAME, nic.port), Id(IdKind.MAC, nic.mac)),
        )
        for nic in host.nics
    )
    ports += _nvlink_ports(host)
    return Device(DeviceKind.HOST, host.name, host_ids(host, sight.medium), ports)


def _nvlink_ports(host: Host) -> tuple[Port, ...]:
    return () if host.clique is None else (build_clique_port(Clique(NVLINK_CLUSTER, host.clique)),)


def _ethernet_switch(sight: DeviceViews, switch: Switch) -> Device:
    ports = tuple(
        _ethernet_port(sight, PortName(switch.name, port), (Id(IdKind.IFNAME, port),))
        for port in sight.ports_of(switch)
    )
    ids = tuple(sorted((Id(IdKind.MAC, switch.mac), chassis_id(switch.mac))))
    return Device(DeviceKind.SWITCH, switch.name, ids, ports)


def _ethernet_port(sight: DeviceViews, port: PortName, ids: tuple[Id, ...]) -> Port:
    far = sight.far_end(*port)
    return Port(
        name=port.port,
        ids=tuple(sorted(ids)),
        state=PortState.UP if far else PortState.DOWN,
        rate_bps=sight.rate_bps if far else None,
        neighbors=(_lldp_neighbor(sight, far),) if far else (),
    )


def _lldp_neighbor(sight: DeviceViews, far: PortName) -> Neighbor:
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


def _swept_switch(sight: DeviceViews, switch: Switch) -> Device:
    ends = (PortName(switch.name, port) for port in sight.ports_of(switch))
    cabled = ((end, sight.far_end(*end)) for end in ends)
    ports = tuple(_swept_port(sight, end, far) for end, far in cabled if far)
    model = f"MF0;{switch.name}:{SWITCH_MODEL}/U1"
    return Device(DeviceKind.SWITCH, switch.name, _swept_ids(switch.guid), ports, model)


def _swept_hca(sight: DeviceViews, host: Host, nic: Nic) -> Device:
    end = PortName(host.name, nic.port)
    far = sight.far_end(*end)
    ports = (_swept_port(sight, end, far),) if far else ()
    model = hca_description(host, nic)
    return Device(DeviceKind.HOST, host.name, _swept_ids(nic.guid), ports, model)


def _swept_ids(guid: str) -> tuple[Id, ...]:
    return (Id(IdKind.NODE_GUID, guid), Id(IdKind.SYSTEM_IMAGE_GUID, guid))


def _swept_port(sight: DeviceViews, end: PortName, far: PortName) -> Port:
    nic = sight.nics.get(end)
    peer = sight.sweep_names(far)
    neighbor = Neighbor(
        device_ids=peer.node_ids,
        device_name=far.device,
        port_ids=peer.port_ids,
        port_name=peer.port_name,
        source=Source.IB,
        kind=DeviceKind.HOST if far in sight.nics else DeviceKind.SWITCH,
    )
    own = sight.sweep_names(end)
    return Port(
        name=own.port_name,
        ids=own.port_ids,
        medium=Medium.INFINIBAND,
        state=PortState.UP,
        rate_bps=sight.rate_bps,
        rdma_device=nic.device if nic else None,
        neighbors=(neighbor,),
    )
