"""The devices that agents, a subnet sweep and SNMP walks would report of a damaged fabric."""

from __future__ import annotations

from typing import NamedTuple

from topology.model.facts import (
    Capability,
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
HOST_CAPABILITIES = (Capability.STATION,)
SWITCH_CAPABILITIES = (Capability.BRIDGE, Capability.ROUTER)
NVLINK_CLUSTER = "5c000000-0000-4000-8000-000000000000"


class ReportedDevice(NamedTuple):
    """The device of one report."""

    report: str
    """Name of the report."""
    device: Device


def report_claims(damaged: DamagedFabric) -> list[ReportedDevice]:
    """Return the reports of all hosts that are not silent, and of Ethernet switches.

    An InfiniBand host reports its own HCAs only; the sweep reports the far ends.
    """
    views = DeviceViews(damaged)
    is_ethernet = views.medium is Medium.ETHERNET
    claims = [
        ReportedDevice(
            host.name, _ethernet_host(views, host) if is_ethernet else _ib_host(views, host)
        )
        for host in damaged.wiring.hosts
        if host.name not in damaged.silent
    ]
    if is_ethernet:
        claims.extend(
            ReportedDevice(f"switch-{switch.mac.replace(':', '')}", _ethernet_switch(views, switch))
            for switch in views.switches.values()
        )
    return claims


def sweep_devices(damaged: DamagedFabric, plane: int | None = None) -> list[Device]:
    """Return the devices that ibnetdiscover prints for an InfiniBand fabric, or one of its planes.

    Sorted by GUID. ibnetdiscover prints only ports with a cable, so an HCA without one is missing.
    """
    views = DeviceViews(damaged)
    planes = range(damaged.wiring.spec.num_planes) if plane is None else (plane,)
    switches = [
        _swept_switch(views, switch) for switch in views.switches.values() if switch.plane in planes
    ]
    hcas = [
        _swept_hca(views, host, nic)
        for host in damaged.wiring.hosts
        for nic in host.nics
        if nic.plane in planes and views.far_end(host.name, nic.port)
    ]
    return sorted(hcas + switches, key=lambda device: device.ids)


def host_ids(host: Host, medium: Medium) -> tuple[Id, ...]:
    """Return the ids that a host reports of itself, sorted."""
    ids = [Id(IdKind.NODE_NAME, host.name), Id(IdKind.HOSTNAME, host.name)]
    if medium is Medium.INFINIBAND:
        kinds = (IdKind.NODE_GUID, IdKind.PORT_GUID, IdKind.SYSTEM_IMAGE_GUID)
        ids.extend(Id(kind, nic.guid) for nic in host.nics for kind in kinds)
    else:
        ids.extend(Id(IdKind.MAC, nic.mac) for nic in host.nics)
        ids.append(chassis_id(host.nics[0].mac))
    return tuple(sorted(ids))


def chassis_id(mac: str) -> Id:
    """Return the LLDP chassis id of a device that uses a MAC address."""
    return Id(IdKind.CHASSIS_ID, mac, "mac")


def _ib_host(views: DeviceViews, host: Host) -> Device:
    ports = []
    for nic in host.nics:
        is_up = views.far_end(host.name, nic.port) is not None
        ports.append(
            Port(
                name=nic.port,
                ids=hca_port_ids(nic),
                medium=Medium.INFINIBAND,
                state=PortState.UP if is_up else PortState.DOWN,
                rate_bps=views.rate_bps if is_up else None,
                rdma_device=nic.device,
                subnet=subnet_of(nic.plane) if is_up else None,
            )
        )
    ports.extend(_nvlink_ports(host))
    return Device(DeviceKind.HOST, host.name, host_ids(host, views.medium), tuple(ports))


def _ethernet_host(views: DeviceViews, host: Host) -> Device:
    ports = tuple(
        _ethernet_port(
            views,
            PortName(host.name, nic.port),
            (Id(IdKind.IFNAME, nic.port), Id(IdKind.MAC, nic.mac)),
        )
        for nic in host.nics
    )
    ports += _nvlink_ports(host)
    return Device(DeviceKind.HOST, host.name, host_ids(host, views.medium), ports)


def _nvlink_ports(host: Host) -> tuple[Port, ...]:
    return () if host.clique is None else (build_clique_port(Clique(NVLINK_CLUSTER, host.clique)),)


def _ethernet_switch(views: DeviceViews, switch: Switch) -> Device:
    ports = tuple(
        _ethernet_port(views, PortName(switch.name, port), (Id(IdKind.IFNAME, port),))
        for port in views.ports_of(switch)
    )
    ids = tuple(sorted((Id(IdKind.MAC, switch.mac), chassis_id(switch.mac))))
    return Device(DeviceKind.SWITCH, switch.name, ids, ports)


def _ethernet_port(views: DeviceViews, port: PortName, ids: tuple[Id, ...]) -> Port:
    far_port = views.far_end(*port)
    return Port(
        name=port.port,
        ids=tuple(sorted(ids)),
        state=PortState.UP if far_port else PortState.DOWN,
        rate_bps=views.rate_bps if far_port else None,
        neighbors=(_lldp_neighbor(views, far_port),) if far_port else (),
    )


def _lldp_neighbor(views: DeviceViews, far_port: PortName) -> Neighbor:
    """Return the neighbor in an LLDP frame of the far port.

    A Linux host sends the MAC of a port as its id, a switch sends the name of the port.
    """
    nic = views.nics.get(far_port)
    if nic:
        port_ids = (Id(IdKind.MAC, nic.mac), Id(IdKind.PORT_ID, nic.mac, "mac"))
    else:
        port_ids = (Id(IdKind.IFNAME, far_port.port), Id(IdKind.PORT_ID, far_port.port, "ifname"))
    return Neighbor(
        device_ids=(chassis_id(views.chassis_mac(far_port.device)),),
        device_name=far_port.device,
        port_ids=tuple(sorted(port_ids)),
        port_name=far_port.port,
        source=Source.LLDP,
        ttl_s=TTL_S,
        capabilities=HOST_CAPABILITIES if nic else SWITCH_CAPABILITIES,
    )


def _swept_switch(views: DeviceViews, switch: Switch) -> Device:
    ends = (PortName(switch.name, port) for port in views.ports_of(switch))
    cabled = ((end, views.far_end(*end)) for end in ends)
    ports = tuple(_swept_port(views, end, far_port) for end, far_port in cabled if far_port)
    model = f"MF0;{switch.name}:{SWITCH_MODEL}/U1"
    return Device(DeviceKind.SWITCH, switch.name, _swept_ids(switch.guid), ports, model)


def _swept_hca(views: DeviceViews, host: Host, nic: Nic) -> Device:
    end = PortName(host.name, nic.port)
    far_port = views.far_end(*end)
    ports = (_swept_port(views, end, far_port),) if far_port else ()
    model = hca_description(host, nic)
    return Device(DeviceKind.HOST, host.name, _swept_ids(nic.guid), ports, model)


def _swept_ids(guid: str) -> tuple[Id, ...]:
    return (Id(IdKind.NODE_GUID, guid), Id(IdKind.SYSTEM_IMAGE_GUID, guid))


def _swept_port(views: DeviceViews, end: PortName, far_port: PortName) -> Port:
    nic = views.nics.get(end)
    far_names = views.sweep_names(far_port)
    neighbor = Neighbor(
        device_ids=far_names.node_ids,
        device_name=far_port.device,
        port_ids=far_names.port_ids,
        port_name=far_names.port_name,
        source=Source.IB,
        kind=DeviceKind.HOST if far_port in views.nics else DeviceKind.SWITCH,
    )
    own_names = views.sweep_names(end)
    return Port(
        name=own_names.port_name,
        ids=own_names.port_ids,
        medium=Medium.INFINIBAND,
        state=PortState.UP,
        rate_bps=views.rate_bps,
        rdma_device=nic.device if nic else None,
        neighbors=(neighbor,),
    )
