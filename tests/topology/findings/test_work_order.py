"""A work order has each plug to handle once, rack by rack, and the carried-out moves mend it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from topology.findings.finding_causes import list_absent_cables, list_causes
from topology.findings.work_order import Place, WorkOrder, build_work_order
from topology.model.facts import Finding, FindingKind, Impact, PortName, Severity
from topology.model.tree import DomainSpec, build_tree

TREE = build_tree(
    [
        DomainSpec("top", 2, None, switches=("spine-1",)),
        DomainSpec("left", 1, "top", ("a1", "a2"), switches=("leaf-1",)),
        DomainSpec("right", 1, "top", ("b1", "b2"), switches=("leaf-2",)),
    ],
    tiers=("leaf", "spine"),
)
NIC, LEAF = PortName("a1", "eth0"), PortName("leaf-1", "1")
AGAIN = (
    "the same ports again, here and at {}; "
    "if that does not help, a new cable, then new transceivers"
)
OTHER_NIC, OTHER_LEAF = PortName("b2", "eth0"), PortName("leaf-2", "7")


def find(
    kind: FindingKind, *ports: PortName, swap: tuple[tuple[PortName, PortName], ...] = ()
) -> Finding:
    own = ports[0]
    return Finding(
        kind, own.device, own.port or None, Severity.WARNING, "read me", ports, swap=swap
    )


def build(*findings: Finding, places: Mapping[str, Place] | None = None) -> WorkOrder:
    return build_work_order(list_causes(findings, TREE.nodes), TREE, places or {})


def test_an_exchange_is_one_step_that_says_where_each_cable_goes() -> None:
    plugs = ((LEAF, OTHER_LEAF),)
    order = build(find(FindingKind.SWAPPED_CABLE, NIC, LEAF, OTHER_NIC, OTHER_LEAF, swap=plugs))
    (step,) = order.steps
    assert (step.device, step.port) == LEAF
    assert step.unplug == "the plugs in leaf-1 port 1 and leaf-2 port 7"
    assert step.plug == (
        "exchanged: the cable from a1 port eth0 into leaf-2 port 7, "
        "the cable from b2 port eth0 into leaf-1 port 1"
    )
    assert step.shows == "a1 port eth0 <> leaf-2 port 7 and b2 port eth0 <> leaf-1 port 1"


def test_each_dead_port_of_a_host_is_a_step() -> None:
    second = PortName("a1", "eth1")
    order = build(
        find(FindingKind.DOWN_PORT, NIC),
        find(FindingKind.DOWN_PORT, second),
        find(FindingKind.MISSING_LINK, NIC, LEAF, second, OTHER_LEAF),
    )
    assert [(step.device, step.port, step.plug) for step in order.steps] == [
        ("a1", "eth0", AGAIN.format("leaf-1 port 1")),
        ("a1", "eth1", AGAIN.format("leaf-2 port 7")),
    ]
    assert order.others == ()


@pytest.mark.parametrize(
    ("finding", "step"),
    [
        pytest.param(
            find(FindingKind.MISSING_LINK, NIC, LEAF),
            (
                *("a1", "eth0", "the cable to leaf-1 port 1 (expected from its peers)"),
                AGAIN.format("leaf-1 port 1"),
            ),
            id="an absent cable is plugged between both ends",
        ),
        pytest.param(
            find(FindingKind.MISSING_LINK, PortName("leaf-1", "9"), PortName("spine-1", "")),
            ("leaf-1", "9", "read me", ""),
            id="the message where the far port is unknown",
        ),
        pytest.param(
            find(FindingKind.MISSING_LINK, PortName("leaf-1", ""), PortName("spine-1", "3")),
            ("spine-1", "3", "read me", ""),
            id="at the end whose port is known",
        ),
        pytest.param(
            find(FindingKind.WRONG_RAIL, NIC, LEAF),
            ("leaf-1", "1", "the cable from a1 port eth0", "the port where its peers are"),
            id="a cable whose other half is not visible",
        ),
        pytest.param(
            find(FindingKind.MISSING_LINK, PortName("leaf-1", ""), PortName("spine-1", "")),
            ("leaf-1", "", "read me", ""),
            id="the message where no port is known",
        ),
    ],
)
def test_a_step_names_the_port_and_the_plug(
    finding: Finding, step: tuple[str, str, str, str]
) -> None:
    (found,) = build(finding).steps
    assert (found.device, found.port, found.unplug, found.plug) == step


def test_a_lost_switch_says_which_ports_wait_for_its_cables() -> None:
    hosts = [PortName(f"a{number}", "eth4") for number in range(1, 9)]
    spines = [PortName(f"spine-{number}", port) for number in (1, 2) for port in ("5", "6")]
    unnamed = find(FindingKind.LOST_SWITCH, *hosts, *spines)
    guessed = replace(unnamed, lost_name="leaf-3")
    known = replace(unnamed, device="leaf-3", port=None)
    check = "nothing: check the power of"
    for finding, device, unplug in (
        (unnamed, "a1", f"{check} the switch at the other end of this port"),
        (guessed, "leaf-3", f"{check} this switch; its name follows from those of its peers"),
        (known, "leaf-3", f"{check} this switch"),
    ):
        (step,) = build(finding, places={"leaf-3": Place("r7")}).steps
        assert (step.device, step.unplug) == (device, unplug)
        assert step.place.rack == ("r7" if device == "leaf-3" else "")
        assert step.plug == (
            "power; then, if links stay down, each of its cables into the port that waits for it: "
            "port eth4 of a[1-8], ports [5-6] of spine-[1-2]"
        )
        assert step.shows == "a link at each of these 12 ports"


def test_a_lost_switch_comes_before_the_walk_past_the_racks() -> None:
    lost = find(FindingKind.LOST_SWITCH, PortName("spine-1", "3"), PortName("spine-2", "3"))
    places = {"spine-1": Place("r9"), "a1": Place("r1")}
    error = replace(lost, severity=Severity.ERROR)
    first, second = build(find(FindingKind.DOWN_PORT, NIC), error, places=places).steps
    assert (first.device, first.is_first, first.is_error) == ("spine-1", True, True)
    assert (second.device, second.is_first, second.is_error) == ("a1", False, False)


def test_a_reseated_cable_says_when_it_is_done() -> None:
    (slow,) = build(find(FindingKind.SLOW_LINK, NIC, LEAF)).steps
    assert slow.shows == "a1 port eth0 <> leaf-1 port 1, at the rate of its peers"
    (down,) = build(find(FindingKind.DOWN_PORT, NIC)).steps
    assert (down.unplug, down.shows) == ("the plug in this port", "a1 port eth0 is up")


def test_two_absent_cables_between_two_switches_are_two_steps() -> None:
    ends = [PortName("leaf-1", "9"), PortName("spine-1", "1")]
    ends += [PortName("leaf-1", "10"), PortName("spine-1", "2")]
    order = build(find(FindingKind.MISSING_LINK, *ends))
    assert [(step.device, step.port, step.shows) for step in order.steps] == [
        ("leaf-1", "9", "leaf-1 port 9 <> spine-1 port 1"),
        ("leaf-1", "10", "leaf-1 port 10 <> spine-1 port 2"),
    ]


def test_steps_about_one_device_are_done_when_different_things_show() -> None:
    own = PortName("leaf-1", "")
    order = build(
        find(FindingKind.MISSING_LINK, own, PortName("spine-1", "")),
        find(FindingKind.MISSING_LINK, own, PortName("spine-2", "")),
        find(FindingKind.WRONG_RAIL, NIC, LEAF),
        find(FindingKind.HOST_ON_SPINE, OTHER_NIC, PortName("spine-1", "")),
        find(FindingKind.LOST_SWITCH, PortName("spine-1", "3"), PortName("spine-2", "3")),
    )
    assert {step.shows for step in order.steps} == {
        "no missing-link of leaf-1 <> spine-1",
        "no missing-link of leaf-1 <> spine-2",
        "no wrong-rail of a1 port eth0 <> leaf-1 port 1",
        "no host-on-spine of b2 port eth0 <> spine-1",
        "a link at each of these 2 ports",
    }


def test_what_needs_nobody_at_a_rack_is_no_step() -> None:
    order = build(replace(find(FindingKind.SILENT_NODE, PortName("a1", "")), ports=()))
    assert order.steps == ()
    assert order.others == ("silent-node",)


def test_a_silent_node_without_any_link_is_looked_at() -> None:
    (step,) = build(find(FindingKind.SILENT_NODE, PortName("a1", ""))).steps
    assert (step.device, step.unplug, step.plug) == ("a1", "read me", "")


@pytest.mark.parametrize(
    ("cause", "num_steps"),
    [
        pytest.param(FindingKind.SILENT_NODE, 1, id="of a silent host, which its switch reports"),
        pytest.param(FindingKind.UNUSABLE_REPORT, 1, id="of a host whose report is unusable"),
        pytest.param(FindingKind.UNDECIDABLE, 1, id="of a host without a place"),
        pytest.param(FindingKind.NO_LLDP, 0, id="but not of a host that receives no LLDP"),
        pytest.param(FindingKind.DUPLICATE_NAME, 0, id="but not of two hosts with one name"),
    ],
)
def test_an_absent_cable_is_a_step_whatever_the_cause(cause: FindingKind, num_steps: int) -> None:
    first = replace(find(cause, PortName("a1", "")), severity=Severity.ERROR, ports=())
    order = build(first, find(FindingKind.MISSING_LINK, NIC, LEAF))
    assert [(step.device, step.port) for step in order.steps] == [tuple(NIC)] * num_steps
    assert order.others == (() if num_steps else (cause.value,))


def test_the_steps_follow_the_racks_and_the_units_and_then_the_tree() -> None:
    places = {"b2": Place("r10"), "a2": Place("r9", "10"), "b1": Place("r9", "9")}
    places["spine-1"] = Place("r9")
    names = ["b2", "b1", "spine-1", "a2", "a1", "leaf-2"]
    findings = [find(FindingKind.DOWN_PORT, PortName(name, "eth1")) for name in names]
    order = build(*findings, places=places)
    assert [step.device for step in order.steps] == ["b1", "a2", "spine-1", "b2", "a1", "leaf-2"]
    assert order.steps[1].place == Place("r9", "10")


def test_the_other_end_says_where_it_is() -> None:
    places = {"leaf-1": Place("r1", "40"), "leaf-2": Place("r2")}
    plugs = ((LEAF, OTHER_LEAF),)
    order = build(
        find(FindingKind.SWAPPED_CABLE, NIC, LEAF, OTHER_NIC, OTHER_LEAF, swap=plugs), places=places
    )
    (step,) = order.steps
    assert step.unplug == (
        "the plugs in leaf-1 port 1 (rack r1, unit 40) and leaf-2 port 7 (rack r2)"
    )


def test_the_same_dead_port_of_many_hosts_is_one_cause_and_a_step_each() -> None:
    ports = [PortName(host, "eth0") for host in ("a1", "a2", "b1")]
    order = build(*(find(FindingKind.DOWN_PORT, port) for port in ports))
    assert [(step.device, step.port) for step in order.steps] == ports
    assert (order.num_mended, order.others) == (1, ())
    absent = list_absent_cables(
        [
            replace(find(FindingKind.DOWN_PORT, port), impact=Impact(cables=1, num_nodes=1))
            for port in ports
        ],
        TREE.nodes,
    )
    assert [cable.near for _, cable in absent] == ports
