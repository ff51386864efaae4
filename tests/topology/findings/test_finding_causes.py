"""A cause is one thing to mend, with both ends of its cables."""

from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from topology.findings.finding_causes import list_causes
from topology.model.facts import (
    Finding,
    FindingKind,
    Impact,
    PortName,
    Severity,
    describe_impact,
)

DOWN, MISSING, SWAPPED = (
    FindingKind.DOWN_PORT,
    FindingKind.MISSING_LINK,
    FindingKind.SWAPPED_CABLE,
)
NIC, LEAF = PortName("node-1", "eth0"), PortName("leaf-1", "swp1")
OTHER_NIC, OTHER_LEAF = PortName("node-2", "eth0"), PortName("leaf-2", "swp9")


def find(kind: FindingKind, *ports: PortName) -> Finding:
    own = ports[0]
    return Finding(kind, own.device, own.port or None, Severity.WARNING, "m", ports)


def test_a_consequence_knows_the_far_end_of_a_port_that_is_down() -> None:
    (cause,) = list_causes([find(MISSING, NIC, LEAF), find(DOWN, NIC)], ["node-1"])
    assert cause.finding.kind is DOWN
    assert cause.cables == [(NIC, LEAF)]
    (alone,) = list_causes([find(DOWN, NIC)], ["node-1"])
    assert alone.cables == [(NIC, None)]


def test_a_host_with_several_dead_ports_has_the_far_end_of_each() -> None:
    ports = [PortName("node-1", f"eth{number}") for number in range(3)]
    leaves = [PortName("leaf-1", str(number)) for number in range(3)]
    pairs = chain.from_iterable(zip(ports, leaves, strict=True))
    (cause,) = list_causes(
        [*(find(DOWN, port) for port in ports), find(MISSING, *pairs)], ["node-1"]
    )
    assert cause.cables == [(ports[0], leaves[0])]
    assert cause.describe() == (
        "m Also: down-port port eth1 <> leaf-1 port 1, down-port port eth2 <> leaf-1 port 2. "
        "All of these cables lead to leaf-1: check that switch first."
    )


def test_a_far_end_is_known_also_where_a_lost_switch_explains_the_gap() -> None:
    lost, other = PortName("node-1", "eth0"), PortName("node-1", "eth1")
    causes = list_causes(
        [
            find(FindingKind.LOST_SWITCH, lost, PortName("node-2", "eth0")),
            find(MISSING, lost, other, OTHER_LEAF),
            *(find(DOWN, lost), find(DOWN, other)),
        ],
        ["node-1", "node-2"],
    )
    assert [cause.cables for cause in causes if cause.finding.kind is DOWN] == [
        [(other, OTHER_LEAF)]
    ]


@pytest.mark.parametrize(
    ("leaves", "advice"),
    [
        pytest.param(
            ("leaf-1", "leaf-1", "leaf-1"),
            [" All of these cables lead to leaf-1: check that switch first."],
            id="ports of one switch",
        ),
        pytest.param(
            ("", "", ""),
            [" If these hosts share a switch, check the switch first."],
            id="ports of which none shows where it leads",
        ),
        pytest.param(("leaf-1", "leaf-2", "leaf-1"), ["", "", ""], id="cables of two switches"),
        pytest.param(("leaf-1", "leaf-2", "leaf-3"), ["", "", ""], id="cables of three switches"),
        pytest.param(("leaf-1", "leaf-2", ""), ["", "", ""], id="two known switches, one unknown"),
    ],
)
def test_dead_ports_of_several_hosts_are_one_cause_if_they_share_a_switch(
    leaves: tuple[str, ...], advice: list[str]
) -> None:
    hosts = [f"node-{number}" for number in range(3)]
    rows = [find(DOWN, PortName(host, "eth0")) for host in hosts]
    rows += [
        find(MISSING, PortName(host, "eth0"), PortName(leaf, str(number)))
        for number, (host, leaf) in enumerate(zip(hosts, leaves, strict=True))
        if leaf
    ]
    assert [cause.advise_switch() for cause in list_causes(rows, hosts)] == advice


def test_most_dead_ports_of_a_host_must_lead_to_a_switch_that_is_advised() -> None:
    ports = [PortName("node-1", f"eth{number}") for number in range(5)]
    rows = [find(DOWN, port) for port in ports]
    leaves = ("leaf-1", "leaf-1", "leaf-2", "leaf-3", "leaf-4")
    rows += [
        find(MISSING, port, PortName(leaf, "1")) for port, leaf in zip(ports, leaves, strict=True)
    ]
    (cause,) = list_causes(rows, ["node-1"])
    assert cause.advise_switch() == ""


@pytest.mark.parametrize(
    ("kind", "ports", "cables"),
    [
        pytest.param(
            SWAPPED,
            (NIC, LEAF, OTHER_NIC, OTHER_LEAF),
            [(NIC, LEAF), (OTHER_NIC, OTHER_LEAF)],
            id="two cables that cross",
        ),
        pytest.param(
            MISSING,
            (NIC, PortName("node-1", "eth1"), LEAF),
            [(NIC, None), (PortName("node-1", "eth1"), LEAF)],
            id="a port whose far end is unknown, beside one",
        ),
        pytest.param(MISSING, (PortName("leaf-1", ""),), [], id="a device whose ports are unknown"),
        pytest.param(
            FindingKind.LOST_SWITCH, (LEAF, OTHER_LEAF), [], id="the neighbors of a lost switch"
        ),
    ],
)
def test_the_ends_of_a_cable_follow_one_another(
    kind: FindingKind, ports: tuple[PortName, ...], cables: list[tuple[PortName, PortName | None]]
) -> None:
    (cause,) = list_causes([find(kind, *ports)], [])
    assert cause.cables == cables


def silent(number: int, share: float | None = None) -> Finding:
    name = f"node-{number}"
    cost = Impact(share=share, gone_share=share, places=(name,), num_nodes=1, hides=True)
    return replace(
        find(FindingKind.SILENT_NODE, PortName(name, "")), message=f"Look at {name}.", impact=cost
    )


def test_the_same_trouble_of_many_devices_is_one_cause_with_all_that_it_costs() -> None:
    (cause,) = list_causes([silent(number) for number in range(1, 5)], [])
    assert [row.finding.device for row in cause.members] == ["node-1", "node-2", "node-3", "node-4"]
    assert describe_impact(cause.impact) == "4 nodes not seen"
    assert cause.describe() == "4 findings like this: Look at node-1."
    assert len(list_causes([silent(1), silent(2)], [])) == 2


def test_what_many_share_is_counted_once_and_its_loss_added_up() -> None:
    cost = Impact(cables=1, share=0.1, gone_share=0.4, places=("pod",), num_nodes=8)
    rows = [
        replace(find(MISSING, PortName(f"spine-{number}", "")), impact=cost)
        for number in range(1, 4)
    ]
    (cause,) = list_causes(rows, [])
    assert describe_impact(cause.impact) == "30% of 8 nodes, 40% in all"
    assert (cause.impact.cables, cause.impact.places) == (3, ("pod",))


def test_a_trouble_of_many_comes_before_the_same_trouble_of_few() -> None:
    alone = replace(silent(0), kind=FindingKind.NO_LLDP)
    first, second = list_causes([alone, *(silent(number) for number in range(1, 4))], [])
    assert (first.finding.kind, second.finding.kind) == (
        FindingKind.SILENT_NODE,
        FindingKind.NO_LLDP,
    )


@settings(max_examples=examples(200))
@given(st.lists(st.sampled_from(range(9)), unique=True, max_size=9), st.sampled_from([0.0, 0.5]))
def test_causes_contain_each_finding_once(numbers: list[int], share: float) -> None:
    rows = [silent(number, share) for number in numbers]
    rows += [find(DOWN, PortName(f"node-{number}", "eth0")) for number in numbers[::2]]
    causes = list_causes(rows, [f"node-{number}" for number in numbers])
    listed = [finding for cause in causes for finding in cause.findings]
    assert sorted(listed, key=str) == sorted(rows, key=str)
    assert sum(cause.impact.num_nodes for cause in causes) == len(numbers)
