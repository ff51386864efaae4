"""`compare_cabling`: every way in which a small fabric can differ from its plan.

Cables are written `device:port device:port`. Devices named h* are hosts with a report,
devices named m* have no report, and all other devices are switches with a report.
"""

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.topology.cables import claims, listed
from topology.cabling.plan_diff import (
    CablingDiff,
    Difference,
    DifferenceKind,
    Move,
    MoveKind,
    UnplannedReason,
    compare_cabling,
)
from topology.join.fabric_join import build_fabric
from topology.model.cabling_plan import CablingPlan, PlannedCable
from topology.model.claims import Claim, Origin
from topology.model.fabric import Fabric
from topology.model.facts import Device, DeviceKind, Port
from topology.model.ids import Id, IdKind

SWAPPED, WRONG_PORT, MISSING, EXTRA, UNKNOWN, UNKNOWN_PORT, OTHER_NAME, _ = DifferenceKind


def end(text: str) -> tuple[str, str]:
    device, _, port = text.partition(":")
    return device, port


def ends(text: str) -> tuple[tuple[str, str], tuple[str, str]]:
    first, second = text.split()
    return end(first), end(second)


def plan_of(*cables: str) -> CablingPlan:
    return CablingPlan(
        tuple(
            PlannedCable(*end(first), *end(second), line)
            for line, (first, second) in enumerate((cable.split() for cable in cables), 1)
        )
    )


def fabric_of(*cables: str, more: Iterable[Claim] = ()) -> Fabric:
    pairs = [ends(cable) for cable in cables]
    silent = {device for pair in pairs for device, _ in pair if device.startswith("m")}
    return build_fabric([*claims(pairs, silent=silent), *more])


def compare(planned: Iterable[str], observed: Iterable[str]) -> CablingDiff:
    return compare_cabling(plan_of(*planned), fabric_of(*observed))


def kinds(diff: CablingDiff) -> list[DifferenceKind]:
    return [row.kind for row in diff.differences]


def show_move(move: Move) -> str:
    """Return a move as `from > to`, `one <> other`, or `+end end` or `-end end` of a cable."""
    first, second = move.cable
    if move.kind is MoveKind.UNPLUG:
        return f"{second.device}:{second.port} > aside"
    if move.kind is MoveKind.PLUG and move.target:
        return f"aside > {move.target.device}:{move.target.port}"
    if move.kind is MoveKind.EXCHANGE and move.target:
        return f"{second.device}:{second.port} <> {move.target.device}:{move.target.port}"
    if move.target:
        return f"{second.device}:{second.port} > {move.target.device}:{move.target.port}"
    sign = "+" if move.kind is MoveKind.ADD else "-"
    return sign + " ".join(sorted(f"{port.device}:{port.port}" for port in (first, second)))


PLAN = ("h1:e0 leaf:1", "h2:e0 leaf:2", "h3:e0 leaf:3")


def test_it_finds_no_difference_where_all_is_as_planned() -> None:
    diff = compare(PLAN, PLAN)
    assert diff == CablingDiff(num_as_planned=3)


@pytest.mark.parametrize(
    ("observed", "rows", "moves"),
    [
        pytest.param(
            ["h1:e0 leaf:1", "h2:e0 leaf:2", "h3:e9 other:9"],
            [MISSING],
            ["+h3:e0 leaf:3"],
            id="a missing cable",
        ),
        pytest.param(
            ["h1:e0 leaf:1", "h2:e0 leaf:2", "h3:e0 leaf:9"],
            [WRONG_PORT],
            ["leaf:9 > leaf:3"],
            id="a plug in a free port",
        ),
        pytest.param(
            ["h1:e0 leaf:1", "h2:e0 leaf:2", "h3:e1 leaf:3"],
            [WRONG_PORT],
            ["h3:e1 > h3:e0"],
            id="a plug in the host's other port",
        ),
        pytest.param(
            ["h1:e0 leaf:2", "h2:e0 leaf:1", "h3:e0 leaf:3"],
            [SWAPPED],
            ["leaf:1 <> leaf:2"],
            id="two swapped plugs",
        ),
        pytest.param(
            ["h1:e0 leaf:2", "h2:e0 leaf:3", "h3:e0 leaf:1"],
            [SWAPPED],
            ["leaf:2 > aside", "leaf:3 > leaf:2", "leaf:1 > leaf:3", "aside > leaf:1"],
            id="three plugs in a ring",
        ),
        pytest.param(
            ["h1:e0 leaf:2", "h2:e0 leaf:3", "h3:e0 leaf:9"],
            [WRONG_PORT, WRONG_PORT, WRONG_PORT],
            ["leaf:2 > leaf:1", "leaf:3 > leaf:2", "leaf:9 > leaf:3"],
            id="plugs that are all one port off, in the order in which ports get free",
        ),
        pytest.param(
            ["h1:e0 leaf:1", "h2:e0 other:2", "h3:e0 leaf:3", "h9:e0 leaf:2"],
            [WRONG_PORT, EXTRA],
            ["-h9:e0 leaf:2", "other:2 > leaf:2"],
            id="a cable that takes a planned port",
        ),
        pytest.param(
            ["h1:e0 h2:e0", "h3:e0 leaf:3"],
            [WRONG_PORT, MISSING],
            ["h2:e0 > leaf:1", "+h2:e0 leaf:2"],
            id="two hosts joined to each other",
        ),
    ],
)
def test_it_finds(observed: list[str], rows: list[DifferenceKind], moves: list[str]) -> None:
    diff = compare(PLAN, observed)
    assert kinds(diff) == rows
    assert [show_move(move) for move in diff.moves] == moves
    assert diff.num_as_planned == 3 - len([row for row in diff.differences for _ in row.planned])


def test_it_makes_one_row_of_a_swap_with_all_its_cables() -> None:
    (row,) = compare(PLAN, ["h1:e0 leaf:2", "h2:e0 leaf:1", "h3:e0 leaf:3"]).differences
    assert {cable.line for cable in row.planned} == {1, 2}
    assert len(row.observed) == 2
    assert "leaf port 2" in row.message


def test_two_swaps_are_two_exchanges_of_a_group_each() -> None:
    plan = (*PLAN, "h4:e0 leaf:4", "h5:e0 leaf:5")
    observed = ["h1:e0 leaf:5", "h5:e0 leaf:1", "h2:e0 leaf:4", "h4:e0 leaf:2", "h3:e0 leaf:3"]
    diff = compare(plan, observed)
    groups = [move.group for move in diff.moves]
    assert groups == [0, 1]
    assert {move.kind for move in diff.moves} == {MoveKind.EXCHANGE}
    assert sorted(row.group for row in diff.differences if row.group is not None) == [0, 1]


@pytest.mark.parametrize(
    ("planned", "observed", "rows", "moves"),
    [
        pytest.param(
            ["h1:e0 sw:HundredGigE1/0/1"], ["h1:e0 sw:Hu1/0/1"], [], [], id="its abbreviation"
        ),
        pytest.param(
            ["h1:e0 sw:Hu1/0/1", "h2:e0 sw:Hu1/0/2"],
            ["h1:e0 sw:HundredGigE1/0/2", "h2:e0 sw:HundredGigE1/0/1"],
            [SWAPPED],
            [
                "sw:HundredGigE1/0/1 <> sw:HundredGigE1/0/2",
            ],
            id="swapped plugs under full names",
        ),
        pytest.param(
            ["h1:e0 sw:et-0/0/1"],
            ["h1:e0 sw:xe-0/0/1"],
            [UNKNOWN_PORT],
            [],
            id="a port of another rate",
        ),
        pytest.param(
            ["h1:e0 sw:Te1/0/1", "h2:e0 sw:Hu1/0/1", "h2:e9 other:1"],
            ["h1:e0 sw:Hu1/0/1", "h2:e9 other:1"],
            [WRONG_PORT, MISSING],
            ["sw:Hu1/0/1 > sw:Te1/0/1", "+h2:e0 sw:Hu1/0/1"],
            id="two ports of one number by the plan",
        ),
        pytest.param(
            ["h1:e0 sw:Te1/0/1"],
            ["h1:e0 sw:Hu1/0/1", "h2:e0 sw:Te1/0/1"],
            [WRONG_PORT, EXTRA],
            ["-h2:e0 sw:Te1/0/1", "sw:Hu1/0/1 > sw:Te1/0/1"],
            id="two ports of one number by the fabric",
        ),
        pytest.param(
            ["h1:eth0 sw:swp1"], ["h1:ens0 sw:swp1"], [UNKNOWN_PORT], [], id="another host port"
        ),
        pytest.param(
            ["h1:e0 sw:Ethernet0", "h2:e0 sw:Ethernet8"],
            ["h1:e0 sw:etp1", "h2:e0 sw:etp2"],
            [UNKNOWN_PORT, UNKNOWN_PORT],
            [],
            id="ports of another scheme of names",
        ),
        pytest.param(
            ["h1:eth0 sw:swp1"],
            ["h1:enp1s0f0np0 sw:swp1"],
            [UNKNOWN_PORT],
            [],
            id="an interface with a predictable name",
        ),
        pytest.param(
            ["h1:eth0 sw:swp1", "h1:eth1 sw:swp2"],
            ["h1:ens5 sw:swp1", "h1:eth1 sw:swp2"],
            [WRONG_PORT],
            ["h1:ens5 > h1:eth0"],
            id="a port beside others of the planned scheme",
        ),
        pytest.param(
            ["h1:e0 sw:Te0/1", "h2:e0 sw:Te0/2"],
            ["h1:e0 sw:2", "h2:e0 sw:1"],
            [UNKNOWN_PORT, UNKNOWN_PORT],
            [],
            id="ports of unknown name",
        ),
    ],
)
def test_it_compares_a_port_of_the_planned_number_with(
    planned: list[str], observed: list[str], rows: list[DifferenceKind], moves: list[str]
) -> None:
    diff = compare(planned, observed)
    assert kinds(diff) == rows
    assert sorted(map(show_move, diff.moves)) == sorted(moves)


LETTERS = ("Te", "Hu", "xe-", "swp", "")  # none abbreviates another
PORTS = st.tuples(st.sampled_from(LETTERS), st.integers(1, 4)).map(
    lambda port: f"{port[0]}{port[1]}"
)
CABLES = st.lists(st.tuples(PORTS, PORTS), min_size=1, max_size=4, unique_by=(lambda row: row[0],))


@settings(max_examples=examples(2000), deadline=None)
@given(CABLES, st.permutations(range(4)))
def test_it_moves_no_plug_to_a_port_of_the_same_number_unless_both_are_known(
    cables: list[tuple[str, str]], order: list[int]
) -> None:
    """The ports of a switch under two names each, its cables in any of them."""
    seen = dict(zip((name for name, _ in cables), order, strict=False))
    planned = [f"h{at}:e0 sw:{name}" for at, (_, name) in enumerate(cables)]
    diff = compare(planned, [f"h{at}:e0 sw:{name}" for name, at in seen.items()])
    in_plan = {name for _, name in cables}
    for move in diff.moves:
        if move.target and move.target.device == move.cable.b.device == "sw":
            pair = {move.cable.b.port, move.target.port}
            assert (
                len({name[-1] for name in pair}) == len(pair) or pair <= {*seen} or pair <= in_plan
            )


@pytest.mark.parametrize(
    ("cable", "observed", "reason"),
    [
        pytest.param(
            "h9:e0 leaf:9", PLAN, "no report shows a device", id="a host without a report"
        ),
        pytest.param(
            "m1:7 m2:7",
            (*PLAN, "m1:1 leaf:7", "m2:1 leaf:8"),
            "nor the other end reports",
            id="switches that only their neighbors report",
        ),
    ],
)
def test_it_marks_a_cable_without_a_reporting_end_as_unknown(
    cable: str, observed: Iterable[str], reason: str
) -> None:
    diff = compare([*PLAN, cable], observed)
    assert kinds(diff) == [UNKNOWN]
    assert reason in diff.differences[0].message
    assert diff.moves == ()


def test_it_marks_a_listed_node_without_a_report_as_unknown() -> None:
    fabric = fabric_of(*PLAN, more=[listed("h9")])
    diff = compare_cabling(plan_of(*PLAN, "h9:e0 leaf:9"), fabric)
    assert kinds(diff) == [UNKNOWN]
    assert "no report shows its ports" in diff.differences[0].message


def test_it_marks_a_cable_with_one_reporting_end_as_missing() -> None:
    diff = compare([*PLAN, "m1:7 leaf:9"], [*PLAN, "m1:1 leaf:7"])
    assert kinds(diff) == [MISSING]
    (row,) = diff.differences
    assert "No report shows m1 port 7 or leaf port 9: check the name too." in row.message


def test_it_shows_the_cable_in_the_port_of_an_unknown_device() -> None:
    diff = compare(["h1:e0 leaf:1", "gone:e0 leaf:2"], PLAN)
    (row,) = diff.differences
    assert row.kind is UNKNOWN
    assert [sorted(cable) for cable in row.observed] == [[("h2", "e0"), ("leaf", "2")]]
    assert "Observed instead" in row.message
    assert [found.reason for found in diff.unplanned] == [UnplannedReason.DEVICE]


def test_it_lists_unplanned_cables_separately() -> None:
    diff = compare(PLAN[:2], [*PLAN, "h1:e1 leaf:8"])
    assert diff.differences == ()
    assert {(found.cable.a.device, found.reason) for found in diff.unplanned} == {
        ("h1", UnplannedReason.PORT),
        ("h3", UnplannedReason.DEVICE),
    }


def test_it_lists_a_second_cable_of_a_port_separately() -> None:
    diff = compare(PLAN, [*PLAN, "m9:e0 leaf:3"])
    assert diff.differences == ()
    assert [found.cable.b for found in diff.unplanned] == [("m9", "e0")]
    diff = compare([*PLAN, "m9:e1 leaf:9"], [*PLAN, "m9:e0 leaf:3", "m9:e1 leaf:9"])
    assert [found.reason for found in diff.unplanned] == [UnplannedReason.CONTESTED]


def test_it_refuses_a_port_that_a_plan_spells_in_two_ways() -> None:
    fabric = build_fabric([switch("sw", "Ethernet1"), switch("up", "Ethernet9")])
    diff = compare_cabling(plan_of("sw:Ethernet1 up:Ethernet9", "sw:Eth1 up:Ethernet8"), fabric)
    (error,) = diff.errors
    assert error.line == 2
    assert "another spelling in sw port Ethernet1 and up port Ethernet9" in error.problem
    assert kinds(diff) == [MISSING]


def switch(name: str, port: str) -> Claim:
    ids = (Id(IdKind.CHASSIS_ID, f"id of {name}", "local"),)
    return Claim(Device(DeviceKind.SWITCH, name, ids, (Port(port),)), Origin.REPORT)


def test_it_returns_the_same_in_any_order_of_claims() -> None:
    observed = ["h1:e0 leaf:2", "h2:e0 leaf:1", "h3:e0 leaf:9"]
    assert compare(PLAN, observed) == compare(PLAN, observed[::-1])


def test_it_shows_hostile_names_escaped() -> None:
    diff = compare([*PLAN, "h\x1b[31m:e0 leaf:9"], PLAN)
    (row,) = diff.differences
    assert row.message.isprintable()


def test_it_names_every_port_of_a_row_for_silencing() -> None:
    (row,) = compare(PLAN, ["h1:e0 leaf:1", "h2:e0 leaf:2", "h3:e0 leaf:9"]).differences
    assert isinstance(row, Difference)
    assert {("leaf", "3"), ("leaf", "9"), ("h3", "e0")} == set(row.ends)
