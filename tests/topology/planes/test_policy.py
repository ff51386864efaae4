"""Which ports the rules of a policy match, by one condition and by several."""

import pytest

from tests.topology.networks import (
    GBIT,
    dark,
    infiniband,
    linked,
    near,
    planes_of_ports,
    rdma,
    split_of,
)
from topology.model.facts import GpuDistance, Medium, Port
from topology.planes.policy import COMPUTE, PlanePolicy, PlaneReason, PortRule

PORTS = [
    near(infiniband(linked("mlx5_0/1", "ib-leaf-1", 400), "fe80000000000001")),
    near(infiniband(linked("mlx5_4/1", "ib-Stor-1", 200)), GpuDistance.NUMA),
    near(rdma(linked("ens1", "eth-leaf-1", 100)), GpuDistance.OTHER),
    linked("eno1", "sw1", None),
    dark("eno2"),
]


@pytest.mark.parametrize(
    ("rule", "names"),
    [
        pytest.param(PortRule(), ["mlx5_0/1", "mlx5_4/1", "ens1", "eno1", "eno2"], id="all"),
        pytest.param(
            PortRule(media=frozenset({Medium.INFINIBAND})), ["mlx5_0/1", "mlx5_4/1"], id="a medium"
        ),
        pytest.param(
            PortRule(ports=("eno?", "MLX5_4/*")), ["mlx5_4/1", "eno1", "eno2"], id="ports"
        ),
        pytest.param(PortRule(switches=("*-stor-*",)), ["mlx5_4/1"], id="switch names"),
        pytest.param(PortRule(hosts=("h[2-9]",)), [], id="no other host"),
        pytest.param(
            PortRule(min_rate_bps=200 * GBIT),
            ["mlx5_0/1", "mlx5_4/1", "eno1", "eno2"],
            id="a minimum rate and unknown rates",
        ),
        pytest.param(
            PortRule(max_rate_bps=200 * GBIT),
            ["mlx5_4/1", "ens1", "eno1", "eno2"],
            id="a maximum rate and unknown rates",
        ),
        pytest.param(
            PortRule(subnets=frozenset({"fe80000000000001"})), ["mlx5_0/1"], id="a subnet"
        ),
        pytest.param(PortRule(gpu=GpuDistance.SWITCH), ["mlx5_0/1"], id="the nearest to a GPU"),
        pytest.param(PortRule(gpu=GpuDistance.NUMA), ["mlx5_0/1", "mlx5_4/1"], id="near a GPU"),
        pytest.param(
            PortRule(media=frozenset({Medium.INFINIBAND}), max_rate_bps=200 * GBIT),
            ["mlx5_4/1"],
            id="all conditions of a rule",
        ),
    ],
)
def test_it_matches_by(rule: PortRule, names: list[str]) -> None:
    split = split_of({"h1": PORTS}, (PlanePolicy("x", (rule,)),))
    assigned = planes_of_ports(split, "h1")
    assert sorted(name for name, plane in assigned.items() if plane == "x") == sorted(names)


def test_it_uses_the_first_policy_that_matches() -> None:
    policies = (
        PlanePolicy("first", (PortRule(ports=("eno1",)), PortRule(ports=("ens1",)))),
        PlanePolicy("second", (PortRule(ports=("en*",)),)),
    )
    assigned = planes_of_ports(split_of({"h1": PORTS}, policies), "h1")
    assert {name: assigned[name] for name in ("eno1", "ens1", "eno2")} == {
        "eno1": "first",
        "ens1": "first",
        "eno2": "second",
    }


def test_it_leaves_other_ports_to_the_default() -> None:
    policies = (PlanePolicy("storage", (PortRule(ports=("mlx5_4/*",)),)),)
    split = split_of({"h1": PORTS}, policies)
    assert planes_of_ports(split, "h1") == {
        "mlx5_0/1": "compute",
        "mlx5_4/1": "storage",
        "eno1": "management",
        "eno2": "management",
    }, "but puts nothing into a plane that a policy names, such as ens1 into storage"
    assert split.names == ("compute", "storage", "management")


def test_it_reports_the_policy_as_the_reason() -> None:
    split = split_of({"h1": PORTS}, (PlanePolicy(COMPUTE, (PortRule(),)),))
    assert {share.reason for share in split.port_planes.values()} == {PlaneReason.POLICY}


def test_it_infers_the_subnet_of_a_host_from_others_on_its_network() -> None:
    """A node that only the sweep knows reports no subnet."""
    here, there = "fe80000000000001", "fe80000000000002"
    uplink = [infiniband(Port("up", neighbors=linked("x", "spine").neighbors))]
    devices = {
        "h1": [infiniband(linked("a", "leaf1"), here)],
        "h2": [infiniband(linked("a", "leaf2"))],
        "h3": [infiniband(linked("a", "leaf3"), there)],
        "h4": [infiniband(linked("a", "leaf4"))],
        "leaf1": uplink,
        "leaf2": uplink,
        "leaf3": [],
        "leaf4": [],
        "spine": [],
    }
    rule = PortRule(subnets=frozenset({here}))
    split = split_of(devices, (PlanePolicy("x", (rule,)),))
    planes = {host: planes_of_ports(split, host).get("a") for host in ("h1", "h2", "h3", "h4")}
    assert planes == {"h1": "x", "h2": "x", "h3": COMPUTE, "h4": COMPUTE}


def test_it_assigns_plain_hosts_to_storage_only_without_a_storage_policy() -> None:
    ports = [near(rdma(linked("a", "leaf1"))), rdma(linked("b", "sw7", 200))]
    hosts = {f"h{k}": ports for k in range(3)} | {"h9": [rdma(linked("x", "sw7", 200)), dark("y")]}
    by_policy = PlanePolicy("storage", (PortRule(ports=("b",)),))
    assert planes_of_ports(split_of(hosts), "h9") == {"x": "storage", "y": "management"}
    assert planes_of_ports(split_of(hosts, (by_policy,)), "h9")["x"] == COMPUTE
    elsewhere = PlanePolicy("lab", (PortRule(ports=("x",)),))
    assert planes_of_ports(split_of(hosts, (elsewhere,)), "h9")["x"] == "lab"
