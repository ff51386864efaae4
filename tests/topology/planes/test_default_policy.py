"""The plane of a port that no policy matches: by its host, and by the names of switches.

The ports of a host are compared with each other (`assign_host`). Ports nearest to a GPU, and the
InfiniBand and RDMA ports of the medium with the highest total rate, are compute. Other fast ports
are storage, and the rest is management. A plane word in the name of a switch takes precedence.
"""

import pytest

from tests.topology.cables import heard_from
from tests.topology.compute_trees import select_compute_plane
from tests.topology.networks import (
    dark,
    infiniband,
    linked,
    near,
    planes_of_ports,
    rdma,
    split_of,
    switches_of,
)
from topology.model.facts import GpuDistance, Port
from topology.planes.cables import is_management_name
from topology.planes.default_policy import plane_in_name
from topology.planes.policy import COMPUTE, MANAGEMENT, STORAGE, PlaneReason

C, S, M = COMPUTE, STORAGE, MANAGEMENT


@pytest.mark.parametrize(
    ("ports", "planes"),
    [
        pytest.param(
            [
                near(rdma(linked("a", "l1"))),
                near(rdma(linked("b", "s1", 200)), GpuDistance.NUMA),
                linked("eno1", "m1", 1),
            ],
            [C, S, M],
            id="nearest to a GPU, fast but farther, slow",
        ),
        pytest.param(
            [infiniband(linked("a", "l1")), rdma(linked("b", "s1", 200)), linked("c", "m1", 25)],
            [C, S, M],
            id="InfiniBand, RoCE as storage, slow Ethernet",
        ),
        pytest.param(
            [
                *(rdma(linked(f"a{k}", f"l{k}", 200)) for k in range(4)),
                infiniband(linked("b", "s1")),
            ],
            [S, S, S, S, C],
            id="InfiniBand if it has at least a quarter of the rate of RoCE",
        ),
        pytest.param(
            [
                *(rdma(linked(f"a{k}", f"l{k}")) for k in range(5)),
                infiniband(linked("b", "s1")),
            ],
            [C, C, C, C, C, S],
            id="RoCE if InfiniBand has less than a quarter of its rate",
        ),
        pytest.param(
            [infiniband(linked("a", "l1", 200)), rdma(linked("b", "s1", 200))],
            [C, S],
            id="InfiniBand if both are equally fast",
        ),
        pytest.param(
            [infiniband(dark("a")), infiniband(linked("b", "l1")), rdma(linked("c", "s1", 400))],
            [C, C, S],
            id="InfiniBand with dark ports",
        ),
        pytest.param(
            [linked("a", "l1"), linked("b", "l1"), linked("eno1", "m1", 10)],
            [C, C, M],
            id="Ethernet by its rate without RDMA",
        ),
        pytest.param(
            [near(linked("a", "l1", 100)), linked("b", "l2", 400)],
            [C, S],
            id="fast ports far from any GPU",
        ),
        pytest.param(
            [linked("eth0", "l1", None), linked("eth1", "l2", None)],
            [C, C],
            id="all ports if no rate is known, as in captures",
        ),
        pytest.param([dark("a"), dark("b")], [C, C], id="all ports if all are dark"),
    ],
)
def test_it_assigns_planes(ports: list[Port], planes: list[str]) -> None:
    assigned = planes_of_ports(split_of({"h1": ports}), "h1")
    assert [assigned[port.name] for port in ports] == planes


@pytest.mark.parametrize(
    ("name", "plane"),
    [
        ("oob-sw1", M),
        ("rack3_MGMT_a.example.org", M),
        ("mgmt01", M),
        ("BMC-switch", M),
        ("stor-leaf-3", S),
        ("MF0;STORAGE12", S),
        ("lustre2", S),
        ("oob-storage", M),
        ("compute-storage-leaf1", None),
        ("storey-leaf", None),
        ("leaf1", None),
        ("bmcleaf", None),
        ("SLG1-01", None),
        ("", None),
    ],
)
def test_it_finds_the_plane_in_whole_words_of_a_switch_name(name: str, plane: str | None) -> None:
    assert plane_in_name(name) == plane


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        *((name, True) for name in ("eth0", "mgmt0", "Management1", "Management1/1", "fxp0")),
        *((name, True) for name in ("em1", "me0", "vme", "ma1", "MEth0/0/0", "oob0")),
        *((name, False) for name in ("eth1", "eth0/1", "swp1", "Ethernet0", "em1x", "mge-0/0/1")),
    ],
)
def test_it_recognizes_the_management_port_of_a_switch(name: str, *, is_one: bool) -> None:
    assert is_management_name(name) is is_one


def test_it_separates_equal_ports_by_the_names_of_their_switches() -> None:
    ports = [linked("a", "leaf1", None), linked("b", "stor1", None), linked("c", "oob1", None)]
    split = split_of({f"h{k}": ports for k in range(3)})
    assert planes_of_ports(split, "h1") == {"a": C, "b": S, "c": M}
    assert {switches_of(split, plane)[0] for plane in split.names} == {"leaf1", "stor1", "oob1"}


def test_it_takes_an_unknown_port_rate_from_the_switch() -> None:
    """Captures of hosts have no rates; the SNMP walks of their switches do."""
    ports = [linked("eth0", "leaf1", None), linked("eth1", "sw1", None)]
    slow = Port("to-eth1-of-h1", rate_bps=10**9, neighbors=(heard_from("h1", "eth1"),))
    fast = Port("to-eth0-of-h1", rate_bps=100 * 10**9, neighbors=(heard_from("h1", "eth0"),))
    split = split_of({"h1": ports, "leaf1": [fast], "sw1": [slow]})
    assert planes_of_ports(split, "h1") == {"eth0": C, "eth1": M}


def test_it_assigns_a_dark_port_like_the_same_port_of_other_hosts() -> None:
    ports = [linked("a", "leaf1", None), linked("b", "stor1", None)]
    split = split_of({"h1": ports, "h2": ports, "h3": [ports[0], dark("b")]})
    number = next(
        number for number in split.port_planes if split.fabric.port_name(number) == ("h3", "b")
    )
    assert split.port_planes[number] == (S, PlaneReason.SAME_PORT)


def test_it_ignores_switch_names_if_all_switches_would_be_storage() -> None:
    split = split_of({f"h{k}": [linked("a", "stor1")] for k in range(3)})
    assert split.names == (C,)
    assert switches_of(split, C) == ["stor1"]


def test_it_leaves_a_storage_server_out_of_the_compute_plane() -> None:
    split = split_of({"h1": [linked("a", "leaf1")], "h2": [linked("a", "stor1")]})
    assert planes_of_ports(split, "h2") == {"a": S}
    assert len(select_compute_plane(split.fabric).host_edges) == 1


def gpu_host(storage: str) -> list[Port]:
    return [near(rdma(linked("a", "leaf1"))), rdma(linked("b", storage, 200))]


def test_it_assigns_a_server_on_a_storage_switch_to_storage() -> None:
    """By its ports alone the server would be a compute host: both are fast."""
    server = [rdma(linked("a", "sw7", 200)), rdma(linked("b", "sw8", 200))]
    split = split_of(
        {
            **{f"h{k}": gpu_host("sw7") for k in range(3)},
            **{f"h{k}": gpu_host("sw8") for k in range(3, 6)},
            "h9": server,
        }
    )
    assert planes_of_ports(split, "h9") == {"a": S, "b": S}
    assert switches_of(split, C) == ["leaf1"]
    number = next(
        number for number in split.port_planes if split.fabric.port_name(number) == ("h9", "a")
    )
    assert split.port_planes[number].reason is PlaneReason.NEIGHBORS


@pytest.mark.parametrize(
    "others",
    [
        pytest.param([rdma(linked("a", "sw7"))] * 3, id="as many plain hosts as GPU hosts"),
        pytest.param(
            [near(rdma(linked("a", "sw7")))] * 4, id="most ports on the switch are compute"
        ),
    ],
)
def test_it_assigns_a_plain_host_to_compute_if(others: list[Port]) -> None:
    hosts = {f"h{k}": gpu_host("sw7") for k in range(3)}
    more = {f"h1{k}": [port] for k, port in enumerate(others)}
    split = split_of({**hosts, **more, "h9": [rdma(linked("a", "sw7"))]})
    assert planes_of_ports(split, "h9") == {"a": C}


def test_it_keeps_different_planes_of_one_hosts_ports_on_a_shared_switch() -> None:
    ports = [infiniband(linked("a", "leaf1")), rdma(linked("b", "sw7")), rdma(linked("c", "sw7"))]
    split = split_of({f"h{k}": [*ports, linked("d", "leaf1", 1)] for k in range(4)})
    assert planes_of_ports(split, "h1") == {"a": C, "b": S, "c": S, "d": M}
