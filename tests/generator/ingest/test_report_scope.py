"""What a report may say, by the name that it was written under."""

from dataclasses import replace

import pytest

from generator.ingest.claims import build_claims
from generator.ingest.report_scope import MAX_NEIGHBOR_IDS, limit_to_scope
from tests.packed_reports import packed
from topology.model.facts import Device, DeviceKind, FindingKind, Medium, Neighbor, Port, Source
from topology.model.ids import Id, IdKind
from topology.reports.neighbor_report import build_report
from topology.sources.host.nvidia_smi import Clique, build_clique_port

LEAF = Neighbor(
    (Id(IdKind.CHASSIS_ID, "02:5c:00:00:00:01", "mac"),),
    "leaf-1",
    (Id(IdKind.PORT_ID, "swp1", "ifname"),),
    "swp1",
    Source.LLDP,
)
HOST = Device(DeviceKind.HOST, "node-1", (Id(IdKind.NODE_NAME, "node-1"),), (Port("eth0"),))
GUID = Id(IdKind.NODE_GUID, "0002c90000000001")
CLIQUE = build_clique_port(Clique("5c000000-0000-4000-8000-000000000000", 1))


def with_port(port: Port) -> Device:
    return replace(HOST, ports=(port,))


def kept(device: Device, name: str = "node-1", *, is_node: bool = True) -> Device | None:
    return limit_to_scope(name, device, is_node=is_node).device


@pytest.mark.parametrize(
    "port",
    [Port("eth0", neighbors=(LEAF,)), CLIQUE, Port("mlx5_0/1", medium=Medium.INFINIBAND)],
    ids=["LLDP", "an NVLink domain", "an HCA"],
)
def test_it_keeps_what_an_agent_can_see(port: Port) -> None:
    device = with_port(port)
    assert kept(device) is device


@pytest.mark.parametrize(
    "neighbor",
    [
        LEAF._replace(source=Source.IB),
        LEAF._replace(device_ids=(GUID,)),
        LEAF._replace(device_ids=CLIQUE.neighbors[0].device_ids),
    ],
    ids=["an entry of a sweep", "a GUID alone", "an NVLink domain on a network port"],
)
def test_it_leaves_out_what_no_agent_can_see(neighbor: Neighbor) -> None:
    scoped = limit_to_scope(
        "node-1", with_port(Port("eth0", neighbors=(neighbor, LEAF))), is_node=True
    )
    assert scoped.device is not None
    assert scoped.device.ports[0].neighbors == (LEAF,)
    assert "no agent can have seen" in scoped.problems[0]


def test_it_leaves_out_what_an_infiniband_port_seems_to_hear() -> None:
    port = Port("mlx5_0/1", medium=Medium.INFINIBAND, neighbors=(LEAF, LEAF))
    scoped = limit_to_scope("node-1", with_port(port), is_node=True)
    assert scoped.device == with_port(port._replace(neighbors=()))
    assert "on InfiniBand ports" in scoped.problems[0]


def test_it_keeps_an_entry_without_its_guids() -> None:
    neighbor = LEAF._replace(device_ids=tuple(sorted((*LEAF.device_ids, GUID))))
    device = kept(with_port(Port("eth0", neighbors=(neighbor,))))
    assert device is not None
    assert device.ports[0].neighbors == (LEAF,)


def test_it_takes_no_switch_as_the_far_end_of_nvlink() -> None:
    device = kept(with_port(CLIQUE._replace(neighbors=(LEAF,))))
    assert device is not None
    assert device.ports[0].neighbors == ()


@pytest.mark.parametrize(
    ("name", "kind", "is_node", "counts"),
    [
        ("node-1", DeviceKind.SWITCH, True, False),
        ("leaf-1", DeviceKind.SWITCH, False, True),
        ("switch-025c00000001", DeviceKind.SWITCH, False, True),
        ("switch-025c00000001", DeviceKind.SWITCH, True, False),
        ("switch-1", DeviceKind.HOST, True, True),
        ("node-1.sweep.0", DeviceKind.HOST, False, False),
        ("node-1.sweep.12", DeviceKind.SWITCH, False, False),
        ("node-1", DeviceKind.ROUTER, True, False),
    ],
)
def test_it_takes_a_device_only_under_its_own_kind_of_name(
    name: str,
    kind: DeviceKind,
    is_node: bool,  # noqa: FBT001 - one column of a table
    counts: bool,  # noqa: FBT001 - one column of a table
) -> None:
    scoped = limit_to_scope(name, replace(HOST, kind=kind, ids=()), is_node=is_node)
    assert (scoped.device is not None) is counts
    assert bool(scoped.problems) is not counts


def test_a_report_that_does_not_count_names_no_reporter() -> None:
    taken = build_claims(packed([build_report(HOST, name="node-1.sweep.0")]))
    assert (taken.claims, taken.reporters) == ((), frozenset())
    assert "report node-1.sweep.0" in str(taken.problems[0])


def test_a_switch_under_the_name_of_a_listed_node_does_not_count() -> None:
    switch = build_report(replace(HOST, kind=DeviceKind.SWITCH, ids=()), name="switch-1")
    assert len(build_claims(packed([switch])).claims) == 1
    assert build_claims(packed([switch]), frozenset({"switch-1"})).claims == ()


def neighbors(number: int) -> tuple[Neighbor, ...]:
    """Return entries about invented switches."""
    return tuple(
        LEAF._replace(device_ids=(Id(IdKind.CHASSIS_ID, f"x{at}", "local"),))
        for at in range(number)
    )


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        pytest.param([1, 1, 64], [1, 1, 64], id="one crowded segment"),
        pytest.param([1, 65], [1, 64], id="a port with too many"),
        pytest.param([64, 64, 64, 64], [64, 64, 64, 64], id="as many as allowed"),
        pytest.param([1, 64, 64, 64, 64, 1024], [1, 51, 51, 51, 51, 51], id="too many in all"),
        pytest.param([1] * 300, [1] * 256 + [0] * 44, id="more ports than a host has"),
    ],
)
def test_it_keeps_as_many_neighbors_as_a_host_has(sizes: list[int], expected: list[int]) -> None:
    ports = tuple(Port(f"eth{at}", neighbors=neighbors(size)) for at, size in enumerate(sizes))
    scoped = limit_to_scope("node-1", replace(HOST, ports=ports), is_node=True)
    assert scoped.device is not None
    assert [len(port.neighbors) for port in scoped.device.ports] == expected
    left_out = sum(sizes) - sum(expected)
    said = [problem for problem in scoped.problems if f"; {left_out} entries are" in problem]
    assert len(said) == (left_out > 0)


def test_it_leaves_out_a_neighbor_with_more_ids_than_a_frame_carries() -> None:
    ids = tuple(Id(IdKind.CHASSIS_ID, f"x{at}", "local") for at in range(MAX_NEIGHBOR_IDS + 1))
    crowd = (LEAF, LEAF._replace(device_ids=ids), LEAF._replace(port_ids=ids))
    device = kept(with_port(Port("eth0", neighbors=crowd)))
    assert device is not None
    assert device.ports[0].neighbors == (LEAF,)


def test_a_host_with_more_ids_than_any_host_has_does_not_count() -> None:
    macs = tuple(Id(IdKind.MAC, f"02:00:00:00:00:{at:02x}") for at in range(64))
    ports = tuple(Port(f"eth{at}", ids=macs) for at in range(33))
    scoped = limit_to_scope("node-1", replace(HOST, ports=ports), is_node=True)
    assert scoped.device is None
    assert "ids, more than 2048" in scoped.problems[0]


def test_an_excess_is_a_finding_that_names_the_node() -> None:
    ports = tuple(Port(f"eth{at}", neighbors=neighbors(200)) for at in range(3))
    report = build_report(replace(HOST, ports=ports), name="node-1")
    (finding,) = build_claims(packed([report])).findings
    assert (finding.kind, finding.device) == (FindingKind.UNUSABLE_REPORT, "node-1")
    assert "more neighbors than a host has" in finding.message
