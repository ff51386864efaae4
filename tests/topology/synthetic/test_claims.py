import pytest

from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from tests.topology.synthetic.fabrics import (
    SPECS,
    cut,
    seeded,
    silence,
)
from topology.model.facts import Device, DeviceKind, Medium, Port, PortState
from topology.model.ids import Id, IdKind
from topology.reports.neighbor_report import build_report
from topology.synthetic import (
    DamagedFabric,
    FaultSpec,
    build_undamaged,
    build_wiring,
    damage_fabric,
    report_claims,
    sweep_devices,
)
from topology.synthetic.sweep_output import render_ibnetdiscover

RAILS = build_undamaged(build_wiring(SPECS["rails in three tiers"]))
PAIRS = build_undamaged(build_wiring(SPECS["MLAG pairs on Ethernet"]))
FAULTS = FaultSpec(lose_links=0.03, num_swaps=3, silent=0.1, lose_switches=1)
WIRINGS = {
    title: build_wiring(spec) for title, spec in SPECS.items() if title != "one full leaf alone"
}
BROKEN = [
    pytest.param(damage_fabric(wiring, FAULTS, seeded(3)), id=title)
    for title, wiring in WIRINGS.items()
]
BROKEN_IB = [
    pytest.param(damage_fabric(wiring, FAULTS, seeded(3)), id=title)
    for title, wiring in WIRINGS.items()
    if wiring.spec.medium is Medium.INFINIBAND
]


def reported(damaged: DamagedFabric, name: str) -> Device:
    return next(claim.device for claim in report_claims(damaged) if claim.device.name == name)


def port_of(device: Device, name: str) -> Port:
    return next(port for port in device.ports if port.name == name)


@pytest.mark.parametrize("damaged", BROKEN_IB)
def test_it_sweeps_the_devices_that_the_parser_returns(damaged: DamagedFabric) -> None:
    devices = sweep_devices(damaged)
    parsed = parse_ibnetdiscover(render_ibnetdiscover(devices).encode())
    assert parsed.errors == ()
    assert list(parsed.devices) == devices


@pytest.mark.parametrize("damaged", BROKEN)
def test_it_reports_claims_that_survive_a_report(damaged: DamagedFabric) -> None:
    for name, device in report_claims(damaged):
        assert build_report(device, name=name).device == device


@pytest.mark.parametrize("damaged", BROKEN_IB)
def test_it_sweeps_every_cable_from_both_ends(damaged: DamagedFabric) -> None:
    ports = {port.ids[0]: port for device in sweep_devices(damaged) for port in device.ports}
    assert len(ports) == 2 * len(damaged.cables)
    far = {own: port.neighbors[0].port_ids[0] for own, port in ports.items()}
    assert all(far[far[own]] == own for own in far)


def test_it_reports_hosts_by_node_name_and_guids_without_neighbors() -> None:
    host = RAILS.wiring.hosts[1]
    device = reported(RAILS, "node-0002")
    assert (device.kind, device.ids[-1].kind) == (DeviceKind.HOST, IdKind.SYSTEM_IMAGE_GUID)
    assert {Id(IdKind.NODE_GUID, nic.guid) for nic in host.nics} <= set(device.ids)
    assert Id(IdKind.NODE_NAME, "node-0002") in device.ids
    assert [(port.name, port.state, port.neighbors) for port in device.ports] == [
        (f"mlx5_{index}/1", PortState.UP, ()) for index in range(4)
    ]
    assert device.ports[2].ids == (
        Id(IdKind.NODE_GUID, host.nics[2].guid, "1"),
        Id(IdKind.PORT_GUID, host.nics[2].guid),
    )


@pytest.mark.parametrize(
    ("damaged", "port"), [(RAILS, "mlx5_1/1"), (PAIRS, "eth1")], ids=["InfiniBand", "Ethernet"]
)
def test_it_reports_a_port_without_a_cable_as_down(damaged: DamagedFabric, port: str) -> None:
    device = reported(cut(damaged, ("node-0001", port)), "node-0001")
    assert [found.state for found in device.ports].count(PortState.DOWN) == 1
    dark = port_of(device, port)
    assert (dark.state, dark.rate_bps, dark.neighbors) == (PortState.DOWN, None, ())


def test_it_reports_the_nvlink_domain_of_a_host_as_a_shared_switch() -> None:
    damaged = build_undamaged(build_wiring(SPECS["NVLink domains below MLAG pairs"]))
    heard = [
        port_of(reported(damaged, f"node-{number:04}"), "nvlink").neighbors for number in (1, 2, 3)
    ]
    assert heard[0] == heard[1] != heard[2]
    assert [(one.kind, one.device_ids[0].subtype) for one in heard[0]] == [
        (DeviceKind.SWITCH, "nvlink")
    ]


def test_it_reports_the_subnet_of_the_plane_that_a_port_is_in() -> None:
    damaged = build_undamaged(build_wiring(SPECS["two planes of rails"]))
    subnets = [port.subnet for port in reported(damaged, "node-0001").ports]
    assert subnets == ["fe80000000000000"] * 2 + ["fe80000000000001"] * 2


def test_it_sweeps_one_plane_or_all() -> None:
    damaged = build_undamaged(build_wiring(SPECS["two planes of rails"]))
    parts = [sweep_devices(damaged, plane) for plane in range(2)]
    assert not set(parts[0]) & set(parts[1])
    assert sorted(parts[0] + parts[1], key=lambda device: device.ids) == sweep_devices(damaged)


def test_it_reports_ethernet_switches_with_the_hosts_they_hear_also_silent_ones() -> None:
    host = PAIRS.wiring.hosts[1]
    leaf = next(one for one in PAIRS.wiring.switches if one.name == "leaf-p01-g01-b")
    claims = {claim.report: claim.device for claim in report_claims(silence(PAIRS, host.name))}
    device = claims[f"switch-{leaf.mac.replace(':', '')}"]
    assert (device.kind, len(device.ports)) == (DeviceKind.SWITCH, 8)
    (heard,) = port_of(device, "swp2").neighbors
    assert heard.device_ids == (Id(IdKind.CHASSIS_ID, host.nics[0].mac, "mac"),)
    assert Id(IdKind.MAC, host.nics[1].mac) in heard.port_ids
    assert (heard.device_name, heard.port_name) == ("node-0002", "eth1")
