"""Which ports of a host are the compute plane's."""

import pytest

from tests.topology.cables import heard_from, report
from topology.fabric import build_fabric
from topology.facts import GpuDistance, Medium, Port, PortState
from topology.identity import Claim
from topology.planes import select_compute

GBIT = 10**9


def port(name: str, rate: int | None = 400, *, is_linked: bool = True, rdma: str = "") -> Port:
    return Port(
        name,
        rate_bps=None if rate is None else rate * GBIT,
        rdma_device=rdma or None,
        state=PortState.UP if is_linked else PortState.DOWN,
        neighbors=(heard_from("leaf", f"to-{name}"),) if is_linked else (),
    )


def near(found: Port, distance: GpuDistance) -> Port:
    return found._replace(gpu_distance=distance)


@pytest.mark.parametrize(
    ("ports", "chosen"),
    [
        pytest.param(
            [port("a"), port("b", 100), port("c", 25)], ["a", "b"], id="a quarter or more"
        ),
        pytest.param([port("a", None), port("b", 400)], ["a", "b"], id="an unknown rate belongs"),
        pytest.param([port("a", 25), port("b", 25)], ["a", "b"], id="all where all are alike"),
        pytest.param(
            [port("a", 100, rdma="mlx5_0"), port("b", 400)], ["a"], id="RDMA before a faster rate"
        ),
        pytest.param(
            [port("a", is_linked=False, rdma="mlx5_0"), port("b", 25)],
            ["a", "b"],
            id="all where no RDMA port has a link",
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
            id="the rate where all are far from GPUs",
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
    plane = select_compute(fabric)
    assert sorted(fabric.ports[at].name for at in plane.ports) == chosen


def host_with(ports: list[Port]) -> Claim:
    host = report("h1", {})
    device = host.device
    return Claim(type(device)(device.kind, device.name, device.ids, tuple(ports)), host.origin)


def test_it_leaves_out_switches_that_no_host_of_the_plane_reaches() -> None:
    fabric = build_fabric(
        [
            host_with([port("a")]),
            report("leaf", {"up": [heard_from("spine", "1")]}),
            report("spine", {"1": [heard_from("leaf", "up")]}),
            report("other", {"1": [heard_from("another", "1")]}),
            report("another", {"1": [heard_from("other", "1")]}),
        ]
    )
    plane = select_compute(fabric)
    assert [fabric.devices[at].name for at in plane.switches] == ["leaf", "spine"]
    assert len(plane.switch_edges) == 1
