"""Ports that differ from their peers: which give a finding, and which give none.

Four hosts with two NICs each, both cabled to one pair of switches, unless a test says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from generator.ingest.claims import build_claims
from generator.ingest.inputs import Inputs
from generator.observe.observation import observe, observe_fabric
from tests.packed_reports import packed
from topology.model.claims import SweptClaims
from topology.model.facts import (
    Device,
    DeviceKind,
    Finding,
    FindingKind,
    Medium,
    Neighbor,
    Port,
    PortName,
    PortState,
    Source,
)
from topology.model.ids import Id, IdKind
from topology.reports.neighbor_report import (
    CollectorOutcome,
    NeighborReport,
    ReportStatus,
    build_report,
)
from topology.synthetic import (
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    report_claims,
    sweep_devices,
)

HOSTS = ("n1", "n2", "n3", "n4")
OK = (CollectorOutcome(name="lldpd", outcome="ok"),)
Change = Callable[[str, Port], Port | None]
"""The state of a port by host; None: the host has no such port."""


def port(host: str, number: int) -> Port:
    leaf = f"leaf{number}"
    heard = Neighbor(
        device_ids=(Id(IdKind.CHASSIS_ID, f"02:00:00:00:01:0{number}", "mac"),),
        device_name=leaf,
        port_ids=(Id(IdKind.PORT_ID, f"swp{host[1:]}", "ifname"),),
        port_name=f"swp{host[1:]}",
        source=Source.LLDP,
    )
    mac = f"02:00:00:00:0{number + 1}:0{host[1:]}"
    return Port(
        name=f"eth{number}",
        ids=(Id(IdKind.MAC, mac), Id(IdKind.IFNAME, f"eth{number}")),
        state=PortState.UP,
        rate_bps=100_000_000_000,
        neighbors=(heard,),
    )


def report(host: str, change: Change, status: ReportStatus) -> NeighborReport:
    ports = [change(host, port(host, number)) for number in range(2)]
    kept = tuple(one for one in ports if one is not None)
    return build_report(Device(DeviceKind.HOST, host, (), kept), name=host, status=status)


def findings(
    kind: FindingKind,
    change: Change = lambda _host, same: same,
    *,
    listeners: Sequence[CollectorOutcome] = OK,
    flapping: Sequence[tuple[str, str]] = (),
) -> list[Finding]:
    reports = [
        report(
            host,
            change,
            ReportStatus(
                collectors=tuple(listeners),
                flapping=tuple(name for node, name in flapping if node == host),
            ),
        )
        for host in HOSTS
    ]
    observed = observe(
        Inputs(build_claims(packed(reports)).claims, tuple(packed(reports))),
        now=datetime(2026, 1, 1, tzinfo=UTC),
    )
    assert observed is not None
    return [one for one in observed.observation.findings if one.kind is kind]


def down(*ports: tuple[str, str]) -> Change:
    def change(host: str, same: Port) -> Port:
        is_down = (host, same.name) in ports
        return same._replace(state=PortState.DOWN, neighbors=()) if is_down else same

    return change


def deaf(*ports: tuple[str, str], firmware: bool | None = None) -> Change:
    def change(host: str, same: Port) -> Port:
        is_deaf = (host, same.name) in ports
        return same._replace(neighbors=(), firmware_lldp=firmware) if is_deaf else same

    return change


def test_it_finds_nothing_in_a_healthy_fabric() -> None:
    kinds = (FindingKind.DOWN_PORT, FindingKind.NO_LLDP, FindingKind.FLAPPING_LINK)
    assert [findings(kind) for kind in kinds] == [[], [], []]


def test_it_finds_a_port_that_is_down_while_its_peers_are_up() -> None:
    (found,) = findings(FindingKind.DOWN_PORT, down(("n2", "eth1")))
    assert (found.device, found.port, found.ports) == ("n2", "eth1", (PortName("n2", "eth1"),))
    assert "but 3 of 3 ports of that name on other hosts are up" in found.message


@pytest.mark.parametrize(
    "hosts",
    [
        pytest.param(HOSTS, id="all ports of a name, which no host uses"),
        pytest.param(HOSTS[:3], id="most ports of a name"),
    ],
)
def test_it_treats_ports_that_are_mostly_down_as_unused(hosts: Sequence[str]) -> None:
    assert findings(FindingKind.DOWN_PORT, down(*((host, "eth1") for host in hosts))) == []


def test_it_finds_nothing_about_a_port_without_peers() -> None:
    def change(host: str, same: Port) -> Port:
        odd = same._replace(name="odd0", state=PortState.DOWN, neighbors=())
        return odd if (host, same.name) == ("n1", "eth1") else same

    assert findings(FindingKind.DOWN_PORT, change) == []


def test_it_finds_ports_without_lldp_beside_one_with_lldp() -> None:
    (found,) = findings(FindingKind.NO_LLDP, deaf(("n1", "eth0")))
    assert (found.device, found.port) == ("n1", "eth0")
    assert "or the switch sends none" in found.message


def test_it_groups_all_ports_without_lldp_of_a_host() -> None:
    (found,) = findings(FindingKind.NO_LLDP, deaf(("n1", "eth0"), ("n1", "eth1")))
    assert (found.device, found.port) == ("n1", None)
    assert [end.port for end in found.ports] == ["eth0", "eth1"]


def test_it_names_the_firmware_if_the_card_reports_its_lldp_agent() -> None:
    (found,) = findings(FindingKind.NO_LLDP, deaf(("n1", "eth0"), firmware=True))
    assert "The LLDP agent in the card's firmware consumes the frames" in found.message


@pytest.mark.parametrize(
    "listeners",
    [
        pytest.param((), id="no collector listens there"),
        pytest.param((CollectorOutcome(name="lldpd", outcome="no-data"),), id="there is no lldpd"),
        pytest.param((CollectorOutcome(name="lldpd", outcome="failed"),), id="lldpd failed"),
        pytest.param((CollectorOutcome(name="net_sysfs", outcome="ok"),), id="others work"),
    ],
)
def test_it_expects_no_lldp_where(listeners: Sequence[CollectorOutcome]) -> None:
    assert findings(FindingKind.NO_LLDP, deaf(("n1", "eth0")), listeners=listeners) == []


def test_it_expects_no_lldp_on_a_port_without_a_link() -> None:
    assert findings(FindingKind.NO_LLDP, down(("n1", "eth0"))) == []


def test_it_expects_no_lldp_on_an_infiniband_port() -> None:
    def change(host: str, same: Port) -> Port:
        silent = same._replace(medium=Medium.INFINIBAND, neighbors=())
        return silent if (host, same.name) == ("n1", "eth0") else same

    assert findings(FindingKind.NO_LLDP, change) == []


def test_it_names_both_ends_of_a_flapping_link() -> None:
    (found,) = findings(FindingKind.FLAPPING_LINK, flapping=[("n3", "eth0")])
    assert found.ports == (PortName("n3", "eth0"), PortName("leaf0", "swp3"))
    assert "n3 port eth0 to leaf0 port swp3 went down several times" in found.message


def test_it_names_a_flapping_port_without_a_known_link() -> None:
    (found,) = findings(FindingKind.FLAPPING_LINK, deaf(("n3", "eth0")), flapping=[("n3", "eth0")])
    assert found.ports == (PortName("n3", "eth0"),)


def test_it_reports_a_link_once_if_both_ends_flap() -> None:
    reported = [("n1", "eth0"), ("n2", "eth0")]

    def facing(host: str, same: Port) -> Port | None:
        if host not in ("n1", "n2") or same.name != "eth0":
            return same
        peer = "n2" if host == "n1" else "n1"
        heard = Neighbor(
            device_ids=port(peer, 0).ids[:1],
            device_name=peer,
            port_ids=port(peer, 0).ids[1:],
            port_name="eth0",
            source=Source.LLDP,
        )
        return same._replace(neighbors=(heard,))

    (found,) = findings(FindingKind.FLAPPING_LINK, facing, flapping=reported)
    assert found.ports == (PortName("n1", "eth0"), PortName("n2", "eth0"))


def test_it_ignores_names_of_unknown_ports() -> None:
    assert findings(FindingKind.FLAPPING_LINK, flapping=[("n1", "gone0")]) == []


def observe_hcas(change: Callable[[Port], Port]) -> list[Finding]:
    """Return the down-port findings of a swept fabric; one port of one host is changed."""
    whole = build_undamaged(build_wiring(SyntheticSpec(FabricKind.RAIL, 8, rails=2, radix=8)))
    reports = []
    for row in report_claims(whole):
        ports = row.device.ports
        if row.report == "node-0003":
            ports = (change(ports[0]), *ports[1:])
        reports.append(build_report(replace(row.device, ports=ports), name=row.report))
    swept = SweptClaims(tuple(sweep_devices(whole)))
    inputs = Inputs((*build_claims(packed(reports)).claims, swept), tuple(packed(reports)))
    seen = observe_fabric(inputs)
    assert seen is not None
    assert seen.observation.tree.unplaced == ()
    return [one for one in seen.observation.findings if one.kind is FindingKind.DOWN_PORT]


def test_it_finds_a_port_that_its_agent_reports_down_and_a_sweep_lists() -> None:
    (finding,) = observe_hcas(lambda port: port._replace(state=PortState.DOWN, rate_bps=None))
    assert (finding.device, finding.port) == ("node-0003", "mlx5_0/1")
    assert "reports port mlx5_0/1 down, but the sweep lists its cable to" in finding.message
    assert next(end.device for end in finding.ports) == "node-0003"
    assert "The cable counts until a sweep no longer lists it." in finding.message


def test_it_finds_no_down_port_where_the_agent_and_the_sweep_agree() -> None:
    assert observe_hcas(lambda port: port) == []
