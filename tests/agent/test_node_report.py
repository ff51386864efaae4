"""Joining the facts of collectors into reports; pure, so the facts are made up."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.collection import COLLECTORS, CollectorRun, RunOutcome
from agent.collectors.probe import CollectedFacts, SweepDump
from agent.node_report import build_reports, merge_device
from tests.agent.nodes import settings_for
from tests.effort import examples
from topology.model.facts import DeviceKind, GpuDistance, Medium, Neighbor, Port, PortState, Source
from topology.model.ids import Id, IdKind
from topology.reports.neighbor_report import (
    MAX_TEXT,
    SweepStanding,
    build_report,
    parse_report,
    render_report,
)
from topology.reports.sweep_parts import unpack_sweep

SETTINGS = settings_for(Path("/x"), node_name="n1", hostname="Host.example")
NOW = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
MAC, CHASSIS = Id(IdKind.MAC, "b8:ce:f6:00:00:01"), Id(IdKind.CHASSIS_ID, "x", "local")
IFNAME = Id(IdKind.IFNAME, "eth0")
LEAF = Neighbor((CHASSIS,), "leaf", (), "swp1", Source.LLDP, ttl_s=120)
NIC = Port(
    "eth0",
    (IFNAME, MAC),
    state=PortState.UP,
    rate_bps=10**9,
    bond_master="bond0",
    pci_address="0000:03:00.0",
    gpu_distance=GpuDistance.OTHER,
)
HEARD = Port("eth0", (IFNAME,), neighbors=(LEAF,))
ETHERNET = CollectedFacts(ids=frozenset({MAC}), ports=(NIC,), excluded=frozenset({"veth1"}))
LLDP = CollectedFacts(ids=frozenset({CHASSIS}), ports=(HEARD,))
HCA = CollectedFacts(
    ids=frozenset({Id(IdKind.NODE_GUID, "1" * 16)}),
    ports=(Port("mlx5_0/1", medium=Medium.INFINIBAND),),
    rdma_of_net=frozenset({("eth0", "mlx5_1")}),
)


def attempted(
    name: str, outcome: RunOutcome, facts: CollectedFacts, message: str = ""
) -> CollectorRun:
    return CollectorRun(name, outcome, message, 0.1, facts)


def test_it_joins_the_facts_of_collectors_for_one_port() -> None:
    device = merge_device(SETTINGS, [ETHERNET, HCA, LLDP])
    assert device.kind is DeviceKind.HOST
    assert device.name == "Host.example"
    assert device.ids == (
        CHASSIS,
        Id(IdKind.HOSTNAME, "Host.example"),
        MAC,
        Id(IdKind.NODE_GUID, "1" * 16),
        Id(IdKind.NODE_NAME, "n1"),
    )
    assert device.ports == (
        NIC._replace(rdma_device="mlx5_1", neighbors=(LEAF,)),
        Port("mlx5_0/1", medium=Medium.INFINIBAND),
    )


@pytest.mark.parametrize(
    ("found", "names"),
    [
        pytest.param([LLDP], ["eth0"], id="a port that only lldpd knows"),
        pytest.param(
            [ETHERNET, CollectedFacts(ports=(Port("veth1", neighbors=(LEAF,)),))],
            ["eth0"],
            id="but none that was left out on purpose",
        ),
        pytest.param([], [], id="nothing of nothing"),
    ],
)
def test_it_makes(found: list[CollectedFacts], names: list[str]) -> None:
    assert [port.name for port in merge_device(SETTINGS, found).ports] == names


def test_it_names_left_out_interfaces_that_hear_neighbors() -> None:
    heard = CollectedFacts(ports=(Port("veth1", neighbors=(LEAF,)), HEARD, Port("veth2")))
    attempts = [
        attempted("net_sysfs", RunOutcome.OK, ETHERNET),
        attempted("lldpd", RunOutcome.OK, heard, "2 parts unreadable"),
    ]
    (report,) = build_reports(SETTINGS, attempts, now=NOW)
    assert [one.message for one in report.status.collectors] == [
        "",
        "2 parts unreadable; left out: not physical ports (see --interfaces): veth1",
    ]


def test_it_fills_every_gap_of_the_first_collector() -> None:
    full = NIC._replace(
        rdma_device="mlx5_0",
        neighbors=(LEAF,),
        numa_node=1,
        firmware_lldp=True,
        subnet="fe80000000000000",
    )
    empty = {name for name, value in Port._field_defaults.items() if getattr(full, name) == value}
    assert empty == {"medium"}, "give the port a value in every field"
    found = [CollectedFacts(ports=(port,)) for port in (Port("eth0"), full)]
    assert merge_device(SETTINGS, found).ports == (full,)


def test_it_prefers_the_first_collector() -> None:
    other = NIC._replace(state=PortState.DOWN, rate_bps=7, bond_master="b", pci_address="p")
    merged = merge_device(SETTINGS, [ETHERNET, CollectedFacts(ports=(other,))])
    assert merged.ports == (NIC,)


def found_by(names: list[str], neighbors: tuple[Neighbor, ...], medium: Medium) -> CollectedFacts:
    ports = (Port(name, (Id(IdKind.IFNAME, name),), medium, neighbors=neighbors) for name in names)
    ids = frozenset({MAC} if medium is Medium.ETHERNET else {Id(IdKind.PORT_GUID, "2" * 16)})
    return CollectedFacts(ids=ids, ports=tuple(ports), excluded=frozenset({"veth1"}))


def _facts(
    names: list[str], medium: Medium, neighbors: tuple[Neighbor, ...] = ()
) -> st.SearchStrategy[CollectedFacts]:
    some = st.lists(st.sampled_from(names), unique=True)
    return some.map(lambda chosen: found_by(chosen, neighbors, medium))


_ethernet = _facts(["eth0", "eth1", "eth2", "veth1"], Medium.ETHERNET)
_lldp = _facts(["eth1", "eth2", "eth3", "veth1"], Medium.ETHERNET, (LEAF,))
_infiniband = _facts(["mlx5_0/1", "mlx5_1/1"], Medium.INFINIBAND)
_collected = st.tuples(_ethernet, _infiniband, _lldp)


@settings(max_examples=examples(60), deadline=None)
@given(_collected.flatmap(st.permutations), _collected.flatmap(st.permutations))
def test_it_returns_the_same_report_for_any_order_of_collectors(
    found: list[CollectedFacts], others: list[CollectedFacts]
) -> None:
    everything = [*found, *others]
    one = build_report(merge_device(SETTINGS, everything), name="n1")
    other = build_report(merge_device(SETTINGS, everything[::-1]), name="n1")
    assert render_report(one) == render_report(other)


@settings(max_examples=examples(60), deadline=None)
@given(_collected)
def test_it_restores_facts_that_make_the_same_report_again(
    found: tuple[CollectedFacts, ...],
) -> None:
    first = build_report(merge_device(SETTINGS, found), name="n1")
    device = parse_report(json.loads(json.dumps(render_report(first)))).device
    assert device is not None
    recalled = [collector.restore(device) for collector in COLLECTORS.values()]
    assert build_report(merge_device(SETTINGS, recalled), name="n1") == first


def test_it_reports_when_and_how_the_facts_were_found() -> None:
    (report,) = build_reports(
        SETTINGS,
        [
            attempted("net_sysfs", RunOutcome.OK, ETHERNET),
            attempted("lldpd", RunOutcome.FAILED, LLDP, "m" * 2000),
        ],
        now=NOW.astimezone(timezone(timedelta(hours=9))),
        last_observed_at="before",
    )
    assert report.metadata.name == "n1"
    assert report.status.observed_at == "2026-01-02T03:04:05Z"
    assert report.status.agent_version
    assert [(one.name, one.outcome) for one in report.status.collectors] == [
        ("net_sysfs", "ok"),
        ("lldpd", "failed"),
    ]
    assert report.status.collectors[1].message == "m" * MAX_TEXT
    assert report.spec.ports[0].neighbors[0].name == "leaf"


@pytest.mark.parametrize(
    ("outcomes", "observed_at"),
    [
        pytest.param([RunOutcome.OK], "2026-01-02T03:04:05Z", id="now when all went well"),
        pytest.param(
            [RunOutcome.OK, RunOutcome.FAILED], "2026-01-02T03:04:05Z", id="now when some went well"
        ),
        pytest.param([RunOutcome.NO_DATA], "2026-01-02T03:04:05Z", id="now when there is nothing"),
        pytest.param(
            [RunOutcome.FAILED, RunOutcome.NO_DATA], "before", id="as before when all failed"
        ),
    ],
)
def test_it_dates_the_facts(outcomes: list[RunOutcome], observed_at: str) -> None:
    attempts = [attempted("x", outcome, CollectedFacts()) for outcome in outcomes]
    (report,) = build_reports(SETTINGS, attempts, now=NOW, last_observed_at="before")
    assert report.status.observed_at == observed_at


FOUND = CollectedFacts(sweeps=(SweepDump("fe80000000000000", "the fabric"),))


def test_it_adds_the_numbered_reports_of_a_sweep() -> None:
    _, *parts = build_reports(SETTINGS, [attempted("ib_sweep", RunOutcome.OK, FOUND)], now=NOW)
    assert [part.metadata.name for part in parts] == ["n1.sweep.0"]
    assert unpack_sweep(part.spec.sweep for part in parts if part.spec.sweep) == b"the fabric"
    assert parts[0].status.observed_at == "2026-01-02T03:04:05Z"


def test_it_numbers_the_reports_of_several_sweeps_consecutively() -> None:
    sweeps = tuple(SweepDump(f"fe8000000000000{number}", "a fabric") for number in range(2))
    attempts = [attempted("ib_sweep", RunOutcome.OK, CollectedFacts(sweeps=sweeps))]
    _, *parts = build_reports(SETTINGS, attempts, now=NOW)
    assert [part.metadata.name for part in parts] == ["n1.sweep.0", "n1.sweep.1"]
    assert [part.spec.sweep.subnet[-1] for part in parts if part.spec.sweep] == ["0", "1"]


def test_it_reports_a_sweep_once() -> None:
    attempts = [replace(attempted("ib_sweep", RunOutcome.OK, FOUND), is_repeated=True)]
    (report,) = build_reports(SETTINGS, attempts, now=NOW)
    assert report.status.collectors[0].outcome == "ok"


def test_it_reports_the_sweep_status_of_the_node() -> None:
    standing = SweepStanding(able=True, refused=("fe80000000000000",))
    (report,) = build_reports(SETTINGS, [], now=NOW, sweeping=standing)
    assert report.status.sweeping == standing
    assert parse_report(render_report(report)) == report


def test_it_keeps_the_reports_of_an_older_sweep_when_one_fails() -> None:
    attempts = [attempted("ib_sweep", RunOutcome.FAILED, FOUND)]
    reports = build_reports(SETTINGS, attempts, now=NOW)
    assert [report.metadata.name for report in reports] == ["n1"]


def linked_port(number: int) -> Port:
    name, mac = f"enp{number}s0np0", f"b8:ce:f6:00:00:{number:02x}"
    far = Neighbor(
        (Id(IdKind.CHASSIS_ID, mac, "mac"),),
        f"leaf-{number:02d}",
        (Id(IdKind.IFNAME, "Ethernet17"), Id(IdKind.PORT_ID, "Ethernet17", "ifname")),
        "Ethernet17",
        Source.LLDP,
        ttl_s=120,
    )
    ids = (Id(IdKind.IFNAME, name), Id(IdKind.MAC, mac))
    return Port(
        name,
        ids,
        state=PortState.UP,
        rate_bps=4 * 10**11,
        rdma_device=f"mlx5_{number}",
        pci_address=f"0000:{number:02x}:00.0",
        neighbors=(far,),
    )


def test_it_stays_small_with_eight_linked_ports() -> None:
    ports = tuple(linked_port(number) for number in range(8))
    ids = frozenset(one for port in ports for one in port.ids if one.kind is IdKind.MAC)
    attempts = [attempted("lldpd", RunOutcome.OK, CollectedFacts(ids=ids, ports=ports))]
    (report,) = build_reports(SETTINGS, attempts, now=NOW)
    packed = json.dumps(render_report(report), separators=(",", ":"))
    assert len(packed) < 5 * 1024


def test_the_address_of_a_bmc_is_no_id_although_lldpd_sends_it() -> None:
    bmc = Id(IdKind.CHASSIS_ID, "de:ad:be:ef:00:01", "mac")
    facts = replace(ETHERNET, repeated_macs=frozenset({bmc.value}))
    own = Id(IdKind.CHASSIS_ID, MAC.value, "mac")
    device = merge_device(SETTINGS, [facts, CollectedFacts(ids=frozenset({bmc, own}))])
    assert bmc not in device.ids
    assert own in device.ids


def test_what_another_interface_of_a_port_hears_is_heard_by_the_port() -> None:
    other = Port("eth1", (Id(IdKind.IFNAME, "eth1"),), neighbors=(LEAF,))
    facts = replace(ETHERNET, port_of=frozenset({("eth1", "eth0")}))
    rdma = CollectedFacts(rdma_of_net=frozenset({("eth1", "mlx5_9")}))
    (port,) = merge_device(SETTINGS, [facts, rdma, CollectedFacts(ports=(other,))]).ports
    assert (port.name, port.neighbors, port.rdma_device) == ("eth0", (LEAF,), "mlx5_9")


def test_a_port_keeps_its_own_rdma_device_beside_that_of_another_function() -> None:
    facts = replace(ETHERNET, port_of=frozenset({("eth1", "eth0")}))
    pairs = frozenset({("eth0", "mlx5_0"), ("eth1", "mlx5_1")})
    (port,) = merge_device(SETTINGS, [facts, CollectedFacts(rdma_of_net=pairs)]).ports
    assert port.rdma_device == "mlx5_0"
