"""The compute network of machine types, as tables of ports, and the laws of the choice.

A machine is a list of groups of ports. Each group has a name pattern, and a switch for each half of
the hosts; `rails` gives each port of the group a switch of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.topology.cables import heard_from
from tests.topology.networks import GBIT, planes_of_ports, split_of
from topology.findings.plane_findings import find_plane_problems
from topology.model.facts import (
    Finding,
    FindingKind,
    GpuDistance,
    Medium,
    Port,
    PortState,
    Severity,
)
from topology.planes.plane_split import PlaneSplit
from topology.planes.policy import COMPUTE

IB, ETH = Medium.INFINIBAND, Medium.ETHERNET
SWITCH, NUMA, OTHER = GpuDistance.SWITCH, GpuDistance.NUMA, GpuDistance.OTHER
NUM_HOSTS = 4


@dataclass(frozen=True)
class Group:
    """Ports of one kind on each host."""

    name: str
    """Of the ports, with # for their number."""
    num: int
    rate: int | None = 400
    medium: Medium = ETH
    distance: GpuDistance | None = NUMA
    switch: str | None = "leaf"
    """Its hosts are on two switches, `leaf-0` and `leaf-1`; None: no cable is known."""
    is_rdma: bool = True
    is_down: bool = False
    has_rails: bool = False
    is_shared: bool = False
    """Whether all hosts are on one switch."""
    bond: str | None = None

    def names(self) -> list[str]:
        return [self.name.replace("#", str(number)) for number in range(self.num)]

    def ports(self, host: int) -> list[Port]:
        half = "" if self.is_shared else f"-{host * 2 // NUM_HOSTS % 2}"
        ports = []
        for number, name in enumerate(self.names()):
            rail = f"-r{number}" if self.has_rails else ""
            far = heard_from(f"{self.switch}{rail}{half}", f"to-{name}")
            is_linked = self.switch is not None and not self.is_down
            ports.append(
                Port(
                    name,
                    medium=self.medium,
                    state=PortState.DOWN if self.is_down else PortState.UP,
                    rate_bps=None if self.rate is None or self.is_down else self.rate * GBIT,
                    rdma_device=(self.bond or f"rdma-{name}") if self.is_rdma else None,
                    gpu_distance=self.distance,
                    neighbors=(far,) if is_linked else (),
                )
            )
        return ports


def silent(group: Group) -> Group:
    return replace(group, switch=None)


def down(group: Group) -> Group:
    return replace(group, is_down=True)


IB8 = Group("mlx5_#/1", 8, medium=IB, distance=SWITCH, switch="ib-leaf")
IB4 = Group("mlx5_#/1", 4, medium=IB, switch="ib-leaf")
IB1 = Group("mlx5_9/1", 1, 200, IB, switch="ib-leaf")
ROCE8 = Group("ens#np0", 8, distance=SWITCH)
ROCE4 = Group("ens#np0", 4)
BF3 = Group("ens10f#np#", 2, 200, switch="front", is_shared=True)
FRONT = Group("enP6p3s0f#np#", 4, 200, switch="front", is_shared=True)
MANAGEMENT = Group("eno1", 1, 1, switch="sw9", is_rdma=False, is_shared=True)
BOND = Group("ens5f#np#", 2, 100, switch="tor", bond="mlx5_bond_0", is_shared=True)
IB_STORAGE = Group("mlx5_1#/1", 2, 200, IB, switch="ib-store", is_shared=True)
NO_PORTS: tuple[Group, ...] = ()


def hosts_of(*groups: Group, first: int = 0, num: int = NUM_HOSTS) -> dict[str, list[Port]]:
    return {
        f"h{first + host}": [port for group in groups for port in group.ports(host)]
        for host in range(num)
    }


def compute_of(split: PlaneSplit, host: str = "h0") -> set[str]:
    return {name for name, plane in planes_of_ports(split, host).items() if plane == COMPUTE}


def names(*groups: Group) -> set[str]:
    return {name for group in groups for name in group.names()}


def findings_of(split: PlaneSplit) -> list[Finding]:
    return list(find_plane_problems(split, split.plane(COMPUTE)))


@pytest.mark.parametrize(
    ("groups", "chosen"),
    [
        pytest.param([IB8, BF3, MANAGEMENT], [IB8], id="HGX H100 with 8 CX7 and 2 BF3"),
        pytest.param(
            [ROCE8, replace(BF3, distance=SWITCH), MANAGEMENT],
            [ROCE8],
            id="the same with RoCE, BF3 behind the GPUs' switches",
        ),
        pytest.param(
            [ROCE8, Group("ens9#np0", 2, distance=SWITCH, switch="front", is_shared=True)],
            [ROCE8],
            id="two front ports of the same rate and distance",
        ),
        pytest.param(
            [
                replace(ROCE8, has_rails=True),
                Group("ens9#np0", 2, distance=SWITCH, switch="front", is_shared=True),
            ],
            [ROCE8],
            id="the same beside eight rails",
        ),
        pytest.param(
            [IB8, IB_STORAGE, replace(BOND, rate=25)], [IB8], id="DGX with InfiniBand storage"
        ),
        pytest.param(
            [IB8, replace(IB_STORAGE, rate=400), MANAGEMENT],
            [IB8],
            id="DGX whose storage has the rate of compute",
        ),
        pytest.param(
            [IB8, Group("ens1#f0np0", 2, 200, switch="store", is_shared=True)],
            [IB8],
            id="DGX with Ethernet storage",
        ),
        pytest.param([IB4, FRONT, MANAGEMENT], [IB4], id="GB200 with four HCAs"),
        pytest.param([ROCE4, FRONT, MANAGEMENT], [ROCE4], id="GB200 with RoCE"),
        pytest.param(
            [ROCE4, replace(FRONT, rate=400, num=2), MANAGEMENT],
            [ROCE4],
            id="GB200 with two front ports at the compute rate",
        ),
        pytest.param([IB1, MANAGEMENT], [IB1], id="one HCA"),
        pytest.param(
            [Group("mlx5_0/#", 2, 200, IB, bond="mlx5_0", switch="ib-leaf"), MANAGEMENT],
            [Group("mlx5_0/#", 2)],
            id="one HCA of two ports",
        ),
        pytest.param([IB1, BOND], [IB1], id="one HCA and a bond of the same total rate"),
        pytest.param(
            [
                Group("mlx5_0/1", 1, 200, IB, SWITCH, "ib-leaf"),
                Group("mlx5_3/1", 1, 200, IB, NUMA, "ib-leaf"),
            ],
            [Group("mlx5_0/1", 1), Group("mlx5_3/1", 1)],
            id="two equal HCAs, one nearer to a GPU",
        ),
        pytest.param(
            [
                Group("ens0np0", 1, distance=SWITCH, switch="rail-a"),
                Group("ens1np0", 1, switch="rail-b"),
            ],
            [Group("ens#np0", 2)],
            id="two equal cards on two rails, one nearer to a GPU",
        ),
        pytest.param(
            [replace(ROCE8, has_rails=True), MANAGEMENT],
            [ROCE8],
            id="eight rails without a common switch",
        ),
        pytest.param(
            [
                Group("ens#f0np0", 4, 200, distance=SWITCH, switch="leaf-a"),
                Group("ens#f1np1", 4, 200, distance=SWITCH, switch="leaf-b"),
                Group("ens4f#np#", 2, 200, switch="store", is_shared=True),
            ],
            [Group("ens#f0np0", 4), Group("ens#f1np1", 4)],
            id="cards to two ToRs and a storage card",
        ),
        pytest.param(
            [
                replace(IB4, distance=SWITCH),
                down(Group("mlx5_2#/1", 4, medium=IB, distance=SWITCH)),
                BOND,
            ],
            [IB4, Group("mlx5_2#/1", 4)],
            id="half of the HCAs without a cable",
        ),
        pytest.param(
            [
                Group("ens#d1", 3, 100, distance=SWITCH, is_rdma=False),
                Group("ens2#d1", 21, 100, distance=SWITCH, is_rdma=False, switch=None),
            ],
            [Group("ens#d1", 3), Group("ens2#d1", 21)],
            id="accelerators with ports to each other and to leaves",
        ),
        pytest.param(
            [Group("eth#", 4, None, is_rdma=False, distance=OTHER)],
            [Group("eth#", 4)],
            id="a cloud's interfaces of unknown rate",
        ),
        pytest.param(
            [
                Group("eno#", 2, 25, distance=None, is_rdma=False),
                down(Group("enp3s0f#", 2, distance=None, is_rdma=False)),
            ],
            [Group("eno#", 2), Group("enp3s0f#", 2)],
            id="a plain host with dark ports",
        ),
    ],
)
def test_it_chooses(groups: list[Group], chosen: list[Group]) -> None:
    split = split_of(hosts_of(*groups))
    assert compute_of(split) == names(*chosen)
    assert FindingKind.PLANE_UNKNOWN not in {finding.kind for finding in findings_of(split)}


@pytest.mark.parametrize(
    ("groups", "chosen", "text"),
    [
        pytest.param(
            [silent(IB4), FRONT, MANAGEMENT],
            IB4,
            "No sweep counts",
            id="InfiniBand before the first sweep",
        ),
        pytest.param(
            [
                silent(Group("mlx5_0/1", 1, 200, IB, SWITCH)),
                silent(Group("mlx5_1/1", 1, 200, IB, NUMA)),
            ],
            Group("mlx5_#/1", 2),
            "No sweep counts",
            id="two equal HCAs before the first sweep, one nearer to a GPU",
        ),
        pytest.param(
            [silent(IB1), BOND],
            IB1,
            "No sweep counts",
            id="one HCA before the first sweep, and a bond",
        ),
        pytest.param([silent(ROCE4), FRONT], ROCE4, "No LLDP", id="RoCE without LLDP"),
        pytest.param(
            [silent(ROCE8), replace(BF3, rate=400, distance=SWITCH)],
            ROCE8,
            "No LLDP",
            id="RoCE without LLDP, front ports of the same rate and distance",
        ),
        pytest.param([down(ROCE8), BF3], ROCE8, "are down", id="unplugged modules"),
        pytest.param(
            [down(replace(ROCE8, distance=NUMA)), Group("ens20np0", 1, 100, switch="front")],
            ROCE8,
            "are down",
            id="eight ports without a cable and one at 100G",
        ),
        pytest.param(
            [down(ROCE4), FRONT], ROCE4, "are down", id="as many front ports of another card"
        ),
        pytest.param(
            [silent(IB8), Group("ens1#f0np0", 2, 200, switch="stor-leaf", is_shared=True)],
            IB8,
            "No sweep counts",
            id="a switch with a plane in its name as the only evidence",
        ),
        pytest.param(
            [
                silent(ROCE8),
                Group("ens1#np0", 2, distance=SWITCH, switch="stor-leaf", is_shared=True),
            ],
            ROCE8,
            "No LLDP",
            id="the same with ports of one kind",
        ),
    ],
)
def test_it_waits_for_evidence_of(groups: list[Group], chosen: Group, text: str) -> None:
    split = split_of(hosts_of(*groups))
    assert compute_of(split) == names(chosen)
    assert not split.plane(COMPUTE).host_edges
    [finding] = [row for row in findings_of(split) if row.kind is FindingKind.PLANE_UNKNOWN]
    assert text in finding.message


@pytest.mark.parametrize(
    ("groups", "ports", "severity"),
    [
        pytest.param(
            [IB1, BOND],
            ["mlx5_9/1", "ens5f0np0"],
            Severity.INFO,
            id="InfiniBand and a bond of its total rate",
        ),
        pytest.param(
            [silent(IB1), BOND],
            ["mlx5_9/1", "ens5f0np0"],
            Severity.WARNING,
            id="the same before the first sweep",
        ),
        pytest.param(
            [ROCE4, replace(FRONT, rate=400)],
            ["ens0np0", "enP6p3s0f0np0"],
            Severity.WARNING,
            id="as many front ports of the same kind",
        ),
        pytest.param(
            [ROCE8, replace(IB_STORAGE, distance=NUMA)],
            ["ens0np0", "mlx5_10/1"],
            Severity.INFO,
            id="InfiniBand that loses to nearer Ethernet",
        ),
        pytest.param(
            [replace(ROCE8, distance=NUMA), IB1],
            ["ens0np0", "mlx5_9/1"],
            Severity.WARNING,
            id="InfiniBand that loses to much faster Ethernet",
        ),
    ],
)
def test_it_names_both_candidates_of_a_close_choice(
    groups: list[Group], ports: list[str], severity: Severity
) -> None:
    split = split_of(hosts_of(*groups))
    [finding] = [row for row in findings_of(split) if row.kind is FindingKind.PLANE_DOUBTFUL]
    assert finding.severity is severity
    assert all(f'"{port}"' in finding.message for port in ports), "in the rules of the planes file"


def test_it_never_makes_a_port_compute_on_hosts_that_lack_the_others() -> None:
    """The interfaces of two hosts are in pods, so only the management port is reported there."""
    hidden = hosts_of(replace(MANAGEMENT, rate=25, switch="sw8"), first=9, num=2)
    split = split_of(hosts_of(ROCE4, replace(MANAGEMENT, rate=25)) | hidden)
    assert compute_of(split, "h9") == set()
    [finding] = findings_of(split)
    assert (finding.kind, [end.device for end in finding.ports]) == (
        FindingKind.PLANE_UNKNOWN,
        ["h9", "h10"],
    )


def test_it_chooses_for_each_machine_type_of_a_mixed_fleet() -> None:
    """The storage ports of one type are of the kind that is compute on the other."""
    storage = Group("mlx5_4/1", 1, 200, IB, switch="ib-store", is_shared=True)
    older = Group("mlx5_#/1", 8, 200, IB, switch="ib-leaf")
    split = split_of(hosts_of(IB4, storage) | hosts_of(older, first=4))
    assert compute_of(split, "h0") == names(IB4)
    assert compute_of(split, "h4") == names(older)


def test_it_accepts_a_report_that_lists_one_name_twice() -> None:
    again = Group("ens0np0", 1, 1, distance=None, is_rdma=False)
    assert len(split_of(hosts_of(ROCE4, again)).plane(COMPUTE).ports) == 4 * NUM_HOSTS


def test_it_keeps_a_slow_port_and_a_host_with_half_of_the_cards_in_the_network() -> None:
    hosts = hosts_of(ROCE8, BF3)
    hosts["h0"][3] = hosts["h0"][3]._replace(rate_bps=50 * GBIT)
    hosts["h5"] = Group("ens#np0", 4, distance=SWITCH).ports(0)
    split = split_of(hosts)
    assert compute_of(split) == names(ROCE8)
    assert len(compute_of(split, "h5")) == 4


ONE_KIND = (ROCE8, Group("ens9#np0", 2, distance=SWITCH, switch="front", is_shared=True))
"""Only whole groups of cables say which of them is the front network."""
MACHINES = st.sampled_from(
    [
        (IB8, BF3, MANAGEMENT),
        (IB8, IB_STORAGE, BOND),
        (ROCE8, BF3, MANAGEMENT),
        ONE_KIND,
        (replace(ROCE8, has_rails=True), MANAGEMENT),
        (IB4, FRONT, MANAGEMENT),
        (ROCE4, FRONT, MANAGEMENT),
        (IB1, BOND),
    ]
)
HIDE = {"silent": silent, "down": down}


@settings(max_examples=examples(60))
@given(MACHINES, st.lists(st.sampled_from(sorted(HIDE)) | st.none(), min_size=3, max_size=3))
def test_it_never_moves_to_other_ports_when_cables_vanish(
    groups: tuple[Group, ...], losses: list[str | None]
) -> None:
    chosen = compute_of(split_of(hosts_of(*groups)))
    kept = [
        HIDE[loss](group) if loss else group for group, loss in zip(groups, losses, strict=False)
    ]
    split = split_of(hosts_of(*kept))
    linked = {split.fabric.ports[edge.a_port].name for edge in split.plane(COMPUTE).host_edges}
    assert linked <= chosen


@settings(max_examples=examples(60))
@given(MACHINES.filter(lambda groups: groups != ONE_KIND), st.data())
def test_it_never_moves_to_other_ports_when_any_cable_vanishes(
    groups: tuple[Group, ...], data: st.DataObject
) -> None:
    hosts = hosts_of(*groups)
    chosen = compute_of(split_of(hosts))
    thinned = {
        host: [port if data.draw(st.booleans()) else port._replace(neighbors=()) for port in ports]
        for host, ports in hosts.items()
    }
    split = split_of(thinned)
    linked = {split.fabric.ports[edge.a_port].name for edge in split.plane(COMPUTE).host_edges}
    assert linked <= chosen


def test_ports_whose_few_cables_show_no_larger_network_are_all_compute() -> None:
    hosts = hosts_of(IB4, FRONT, MANAGEMENT)
    linked = {("h0", 1), ("h1", 0), ("h1", 2), ("h2", 3)}
    thinned = {
        host: [
            port if (host, number) in linked else port._replace(neighbors=())
            for number, port in enumerate(ports)
        ]
        for host, ports in hosts.items()
    }
    assert compute_of(split_of(thinned)) == compute_of(split_of(hosts))


@settings(max_examples=examples(30))
@given(MACHINES, st.integers(1, 9), st.permutations(range(NUM_HOSTS)))
def test_it_does_not_depend_on_the_order_or_the_number_of_equal_hosts(
    groups: tuple[Group, ...], num_more: int, order: list[int]
) -> None:
    hosts = hosts_of(*groups)
    chosen = compute_of(split_of(hosts))
    shuffled: Mapping[str, list[Port]] = {f"h{host}": hosts[f"h{host}"] for host in order}
    more = hosts_of(*groups, first=NUM_HOSTS, num=num_more)
    split = split_of({**more, **shuffled})
    assert compute_of(split) == compute_of(split, f"h{NUM_HOSTS}") == chosen


LIES = {
    "faster ports": [Group("fast#", 8, 800, distance=SWITCH, switch="fast")],
    "InfiniBand": [IB8],
    "a faster HCA that is down": [down(Group("mlx5_9/1", 1, 1600, IB, distance=SWITCH))],
}
PLAIN = Group("eth#", 2, distance=None, is_rdma=False)


@pytest.mark.parametrize("own", [PLAIN, ROCE4], ids=["plain", "RoCE"])
@pytest.mark.parametrize("num_liars", [1, 2])
@pytest.mark.parametrize("lies", LIES.values(), ids=LIES)
def test_a_few_hosts_choose_no_network_for_others(
    lies: list[Group], num_liars: int, own: Group
) -> None:
    others = hosts_of(own, MANAGEMENT, num=60)
    liars = hosts_of(own, MANAGEMENT, *lies, first=60, num=num_liars)
    split = split_of(others | liars)
    assert all(compute_of(split, host) == names(own) for host in others)


def test_a_host_with_the_ports_of_two_machine_types_joins_them_not() -> None:
    roce = hosts_of(ROCE8, BF3, MANAGEMENT, num=30)
    infiniband = hosts_of(IB8, BF3, MANAGEMENT, first=30, num=30)
    split = split_of(roce | infiniband | hosts_of(ROCE8, IB8, BF3, MANAGEMENT, first=60, num=1))
    assert all(compute_of(split, host) == names(ROCE8) for host in roce)
    assert all(compute_of(split, host) == names(IB8) for host in infiniband)
