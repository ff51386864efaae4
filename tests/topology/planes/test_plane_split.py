"""Which ports of a host are in the compute plane, and which switches and links a plane has."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.topology.cables import heard_from, report
from tests.topology.compute_trees import select_compute_plane
from tests.topology.networks import linked, planes_of_ports, rdma, split_of, switches_of
from topology.join.fabric_join import build_fabric
from topology.model.claims import Claim
from topology.model.facts import DeviceKind, GpuDistance, Medium, Neighbor, Port, PortState, Source
from topology.model.ids import Id, IdKind
from topology.planes.policy import COMPUTE, STORAGE

GBIT = 10**9


def port(name: str, rate: int | None = 400, *, is_linked: bool = True, rdma: str = "") -> Port:
    return Port(
        name,
        rate_bps=None if rate is None else rate * GBIT,
        rdma_device=rdma or None,
        state=PortState.UP if is_linked else PortState.DOWN,
        neighbors=(heard_from(f"leaf-{name}", "1"),) if is_linked else (),
    )


def near(port: Port, distance: GpuDistance) -> Port:
    return port._replace(gpu_distance=distance)


@pytest.mark.parametrize(
    ("ports", "chosen"),
    [
        pytest.param([port("a"), port("b", 100), port("c", 25)], ["a"], id="the fastest"),
        pytest.param([port("a", None), port("b", 400)], ["a", "b"], id="an unknown rate belongs"),
        pytest.param([port("a", 25), port("b", 25)], ["a", "b"], id="all if all are alike"),
        pytest.param(
            [port("a", 100, rdma="mlx5_0"), port("b", 400)], ["a"], id="RDMA before a faster rate"
        ),
        pytest.param(
            [port("a", is_linked=False, rdma="mlx5_0"), port("b", 25)],
            ["b"],
            id="others if no RDMA port is up or near a GPU",
        ),
        pytest.param(
            [near(port("a", 100), GpuDistance.SWITCH), near(port("b"), GpuDistance.NUMA)],
            ["a"],
            id="the nearest to a GPU before the fastest",
        ),
        pytest.param(
            [
                near(port("a", rdma="mlx5_0"), GpuDistance.NUMA),
                near(port("eno1", 1), GpuDistance.NUMA),
            ],
            ["a"],
            id="no management port on the NUMA node of a GPU",
        ),
        pytest.param(
            [near(port("a"), GpuDistance.OTHER), near(port("b", 1), GpuDistance.OTHER)],
            ["a"],
            id="the rate if all are far from GPUs",
        ),
        pytest.param(
            [port("a"), port("b", 10, is_linked=False)], ["a", "b"], id="a dark port of any rate"
        ),
        pytest.param(
            [port("a")._replace(medium=Medium.INFINIBAND), port("b", 400)],
            ["a"],
            id="InfiniBand before Ethernet",
        ),
    ],
)
def test_it_selects(ports: list[Port], chosen: list[str]) -> None:
    fabric = build_fabric([host_with(ports)])
    plane = select_compute_plane(fabric)
    assert sorted(fabric.ports[number].name for number in plane.ports) == chosen


def host_with(ports: list[Port]) -> Claim:
    host = report("h1", {})
    device = host.device
    return Claim(type(device)(device.kind, device.name, device.ids, tuple(ports)), host.origin)


def test_it_leaves_out_switches_that_no_host_of_the_plane_reaches() -> None:
    fabric = build_fabric(
        [
            host_with([port("a")]),
            report("leaf-a", {"up": [heard_from("spine", "1")]}),
            report("spine", {"1": [heard_from("leaf-a", "up")]}),
            report("other", {"1": [heard_from("another", "1")]}),
            report("another", {"1": [heard_from("other", "1")]}),
        ]
    )
    plane = select_compute_plane(fabric)
    assert [fabric.devices[number].name for number in plane.switches] == ["leaf-a", "spine"]
    assert len(plane.switch_edges) == 1


def uplink(name: str, to: str, far: str) -> Port:
    return Port(name, state=PortState.UP, neighbors=(heard_from(to, far),))


def test_it_does_not_treat_a_management_port_as_an_uplink() -> None:
    """The name of `sw9` does not show its purpose, but the ports of the leaves do."""
    hosts = {f"h{k}": [linked("a", f"leaf{k % 2}")] for k in range(4)}
    leaves = {
        f"leaf{k}": [uplink("up", "spine", f"d{k}"), uplink("eth0", "sw9", f"p{k}")]
        for k in range(2)
    }
    split = split_of({**hosts, **leaves, "spine": [], "sw9": []})
    assert switches_of(split, COMPUTE) == ["leaf0", "leaf1", "spine"]
    assert len(split.plane(COMPUTE).switch_edges) == 2


def test_it_does_not_treat_a_leaf_of_another_network_as_a_spine() -> None:
    """One fabric carries both: the storage leaf is cabled to the spine of the compute leaves."""
    ports = [near(rdma(linked("a", "leaf1")), GpuDistance.SWITCH), rdma(linked("b", "leaf2"))]
    split = split_of(
        {
            **{f"h{k}": ports for k in range(3)},
            "leaf1": [uplink("up", "spine", "1")],
            "leaf2": [uplink("up", "spine", "2")],
            "spine": [],
        }
    )
    assert switches_of(split, COMPUTE) == ["leaf1", "spine"]
    assert switches_of(split, STORAGE) == ["leaf2", "spine"]


def test_it_keeps_a_spine_that_a_host_of_another_network_is_on() -> None:
    ports = [near(rdma(linked("a", f"leaf{k}")), GpuDistance.SWITCH) for k in range(3)]
    split = split_of(
        {
            **{f"h{k}": [ports[k], linked("b", "spine", 1)] for k in range(3)},
            **{
                f"leaf{k}": [uplink(f"up{at}", "spine", f"{k}/{at}") for at in range(2)]
                for k in range(3)
            },
            "spine": [],
        }
    )
    assert switches_of(split, COMPUTE) == ["leaf0", "leaf1", "leaf2", "spine"]


def test_it_does_not_assign_nvlink_to_a_network() -> None:
    domain = Neighbor(
        (Id(IdKind.CHASSIS_ID, "u.1", "nvlink"),),
        "nvlink-u-1",
        (),
        "",
        Source.OTHER,
        DeviceKind.SWITCH,
    )
    nvlink = Port("nvlink", medium=Medium.NVLINK, state=PortState.UP, neighbors=(domain,))
    split = split_of({f"h{k}": [linked("a", "leaf1"), nvlink] for k in range(2)})
    assert split.names == (COMPUTE,)
    assert planes_of_ports(split, "h1") == {"a": COMPUTE}
    assert switches_of(split, COMPUTE) == ["leaf1"]


def test_it_leaves_a_plane_without_ports_empty() -> None:
    plane = split_of({"h1": [linked("a", "leaf1")]}).plane("none")
    assert (plane.switches, [*plane.host_edges], [*plane.switch_edges]) == ((), [], [])
    assert not plane.ports
    assert len(plane.hosts) == 1


@settings(max_examples=examples(30))
@given(st.permutations(range(6)))
def test_it_gives_the_same_planes_for_any_order_of_claims(order: list[int]) -> None:
    devices = {
        **{f"h{k}": [rdma(linked("a", "leaf1")), linked("m", "oob1", 1)] for k in range(3)},
        "leaf1": [uplink("up", "spine", "1"), uplink("eth0", "oob1", "9")],
        "oob1": [],
        "spine": [],
    }
    names = list(devices)
    shuffled = split_of({names[position]: devices[names[position]] for position in order})
    straight = split_of(devices)
    assert shuffled.port_planes == straight.port_planes
    assert [shuffled.plane(name) for name in shuffled.names] == [
        straight.plane(name) for name in straight.names
    ]
