"""Sweeps of one synthetic InfiniBand fabric: true ones, forged ones, and the hosts' own reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from msgspec import structs

from generator.ingest.sweep_views import SweepView, read_view
from tests.generator.sweep_reports import NOW
from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from topology.model.facts import Device, DeviceKind, Neighbor, Port
from topology.reports.neighbor_report import (
    NeighborReport,
    ReportStatus,
    SweepStanding,
    build_report,
)
from topology.reports.sweep_parts import split_sweep
from topology.sources.ibnetdiscover.devices import SweptDevices
from topology.synthetic import (
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    report_claims,
    sweep_devices,
)
from topology.synthetic.sweep_output import render_ibnetdiscover

SUBNET = "fe80000000000000"
FABRIC = build_undamaged(build_wiring(SyntheticSpec(FabricKind.FAT_TREE, 16, rails=1, radix=8)))
DEVICES: Sequence[Device] = sweep_devices(FABRIC)
HOSTS = [host.name for host in FABRIC.wiring.hosts]
ABLE = SweepStanding(able=True)


def host_reports(able: Sequence[str] = ()) -> list[NeighborReport]:
    """Return the report of each host; those that are able offer to sweep."""
    return [
        build_report(
            claim.device,
            name=claim.report,
            status=ReportStatus(
                observed_at=NOW.isoformat(), sweeping=ABLE if claim.report in able else None
            ),
        )
        for claim in report_claims(FABRIC)
    ]


def sweep_by(
    node: str,
    devices: Sequence[Device] = DEVICES,
    *,
    subnet: str = SUBNET,
    ahead: timedelta = timedelta(),
) -> list[NeighborReport]:
    """Return the parts of a node's sweep."""
    status = ReportStatus(observed_at=(NOW + ahead).isoformat())
    parts = split_sweep(render_ibnetdiscover(devices), node=node, subnet=subnet)
    return [structs.replace(part, status=status) for part in parts]


def exchange(first: str, second: str, devices: Sequence[Device] = DEVICES) -> list[Device]:
    """Return the sweep of a fabric in which two hosts have each other's cables."""
    hcas = {device.name: device for device in devices if device.kind is DeviceKind.HOST}
    swapped = {hcas[first].ids[:1]: hcas[second], hcas[second].ids[:1]: hcas[first]}

    def turn(neighbor: Neighbor) -> Neighbor:
        other = swapped.get(neighbor.device_ids[:1])
        if other is None:
            return neighbor
        port = other.ports[0]
        return neighbor._replace(
            device_ids=other.ids[:1],
            device_name=other.name,
            port_ids=port.ids,
            port_name=port.name,
        )

    def rewire(port: Port) -> Port:
        return port._replace(neighbors=tuple(turn(neighbor) for neighbor in port.neighbors))

    def recable(device: Device) -> Device:
        other = swapped.get(device.ids[:1])
        if other is None:
            return replace(device, ports=tuple(rewire(port) for port in device.ports))
        cables = [port.neighbors for port in other.ports]
        ports = zip(device.ports, cables, strict=True)
        return replace(device, ports=tuple(port._replace(neighbors=far) for port, far in ports))

    return [recable(device) for device in devices]


def without(is_lost: Callable[[Device], bool]) -> list[Device]:
    """Return the sweep without some devices and their cables."""
    lost = {device.ids[0] for device in DEVICES if is_lost(device)}

    def cut(port: Port) -> Port:
        kept = [one for one in port.neighbors if one.device_ids[0] not in lost]
        return port._replace(neighbors=tuple(kept))

    return [
        replace(device, ports=tuple(map(cut, device.ports)))
        for device in DEVICES
        if device.ids[0] not in lost
    ]


def view_devices(devices: Sequence[Device]) -> SweepView:
    """Return the view of a sweep of devices."""
    swept = parse_ibnetdiscover(render_ibnetdiscover(devices).encode()).devices
    assert isinstance(swept, SweptDevices)
    return read_view(swept)
