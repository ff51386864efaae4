"""The work order of a plan: its steps, carried out as they are printed, give the planned cables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.outputs.plan_order import build_plan_order
from tests.effort import examples
from tests.topology.cabling.test_plan_diff import fabric_of, plan_of
from tests.topology.cabling.test_plan_diff_synthetic import SPECS, compare
from tests.topology.synthetic.fabrics import seeded
from topology.cabling.plan_diff import (
    Difference,
    DifferenceKind,
    Move,
    MoveKind,
    ObservedCable,
    compare_cabling,
)
from topology.findings.work_order import Place, Step
from topology.model.facts import PortName
from topology.synthetic import FaultSpec, SyntheticSpec, build_wiring, damage_fabric

NIC, LEAF, OTHER = PortName("a1", "eth0"), PortName("leaf-1", "1"), PortName("leaf-2", "7")
SPARE, OTHER_NIC = PortName("leaf-1", "9"), PortName("b2", "eth0")
Pair = tuple[PortName, PortName]
AGAIN = (
    "the same ports again, here and at a1 port eth0; "
    "if that does not help, a new cable, then new transceivers"
)


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_each_step_shows_a_planned_cable(spec: SyntheticSpec) -> None:
    wiring = build_wiring(spec)
    damaged = damage_fabric(wiring, FaultSpec(lose_links=0.03, num_swaps=2), rng=seeded(1))
    diff = compare(damaged)
    order = build_plan_order(diff.differences, diff.moves, {})
    planned = {frozenset(cable) for cable in wiring.cables} - {
        frozenset(cable) for cable in damaged.cables
    }
    shown = [
        frozenset(PortName(*end) for end in cable)
        for step in order.steps
        for cable in zip(*[iter(re.findall(r"(\S+) port (\S+)", step.shows))] * 2, strict=True)
    ]
    assert len({*shown}) == len(shown)
    assert {*shown} <= planned
    assert len(order.others) + order.num_mended == len(diff.differences)
    assert len(shown) + len(order.others) == len(planned)


class Technician:
    """Executes the steps of a work order, and knows nothing but what they say."""

    def __init__(self, cables: Iterable[Pair]) -> None:
        self.plugs = {end: number for number, pair in enumerate(cables) for end in pair}
        """The cable whose plug is in each port."""
        self.aside: set[int] = set()
        self.num_cables = len(self.plugs)

    def execute(self, step: Step) -> None:
        here = PortName(step.device, step.port)
        named = [PortName(*end) for end in re.findall(r"(\S+) port (\w+)", step.unplug)]
        goals = [PortName(*end) for end in re.findall(r"(\S+) port (\w+)", step.plug)]
        if step.plug.startswith("exchanged: "):
            self.exchange(named, goals)
        elif step.plug.startswith("nothing yet"):
            self.aside.add(self.pull(here, named[0]))
        elif step.plug.startswith("this port"):
            (cable,) = self.aside
            assert cable == self.plugs[goals[0]]
            self.aside.clear()
            self.push(here, cable)
        elif step.plug == "nothing":
            assert self.pull(here, named[0]) == self.plugs.pop(named[0])
        elif "if there is one" in step.unplug:
            self.num_cables += 1
            self.push(here, self.num_cables)
            self.push(named[0], self.num_cables)
        else:
            self.push(goals[0], self.pull(here, named[0]))

    def exchange(self, ports: Sequence[PortName], moves: Sequence[PortName]) -> None:
        (one, other), (owner, goal, other_owner, other_goal) = ports, moves
        assert (goal, other_goal) == (other, one)
        cables = self.pull(one, owner), self.pull(other, other_owner)
        self.push(other, cables[0])
        self.push(one, cables[1])

    def pull(self, port: PortName, owner: PortName) -> int:
        """Pull the plug of the cable that the step names by its other end."""
        cable = self.plugs.pop(port)
        assert cable == self.plugs[owner]
        return cable

    def push(self, port: PortName, cable: int) -> None:
        assert port not in self.plugs, "a port holds two plugs"
        self.plugs[port] = cable


def execute_plan(planned: Iterable[Pair], observed: Iterable[Pair]) -> list[Step]:
    """Return the steps from observed to planned cables, after a technician executed them."""
    planned, observed = list(planned), list(observed)
    plan, fabric = plan_of(*map(write_cable, planned)), fabric_of(*map(write_cable, observed))
    diff = compare_cabling(plan, fabric)
    order = build_plan_order(diff.differences, diff.moves, {})
    technician = Technician(observed)
    for step in order.steps:
        technician.execute(step)
    assert not technician.aside
    unknown = {row.planned for row in diff.differences if row.group is None}
    for row, (a, b) in zip(plan.cables, planned, strict=True):
        if (row,) not in unknown:
            assert technician.plugs[a] == technician.plugs[b]
    return list(order.steps)


def write_cable(pair: Pair) -> str:
    return " ".join(f"{end.device}:{end.port}" for end in pair)


HOSTS = [PortName(f"h{at}", "e0") for at in range(1, 5)]
LEAF_PORTS = [PortName("leaf", str(at)) for at in range(1, 5)]
ALL_PORTS = [*HOSTS, *LEAF_PORTS, PortName("spine", "1"), PortName("spine", "2")]


@st.composite
def cables(draw: st.DrawFn) -> list[Pair]:
    ports = draw(st.permutations(ALL_PORTS))
    return [*batched(ports)][: draw(st.integers(1, len(ports) // 2))]


def batched(ports: Sequence[PortName]) -> Iterator[Pair]:
    return zip(ports[::2], ports[1::2], strict=True)


@settings(max_examples=examples(1000), deadline=None)
@given(cables(), cables())
def test_a_technician_who_does_what_the_steps_say_reaches_the_plan(
    planned: list[Pair], observed: list[Pair]
) -> None:
    execute_plan(planned, observed)


@pytest.mark.parametrize("order", list(permutations(LEAF_PORTS)))
def test_also_of_plugs_in_each_others_ports(order: Sequence[PortName]) -> None:
    steps = execute_plan(zip(HOSTS, LEAF_PORTS, strict=True), zip(HOSTS, order, strict=True))
    exchanged = [step for step in steps if step.plug.startswith("exchanged")]
    num_moved = sum(end != planned for end, planned in zip(order, LEAF_PORTS, strict=True))
    num_aside = sum(step.plug.startswith("nothing yet") for step in steps)
    assert len(steps) == num_moved - len(exchanged) + num_aside


@pytest.mark.parametrize(
    ("move", "step"),
    [
        pytest.param(
            Move(
                *(MoveKind.EXCHANGE, ObservedCable(NIC, LEAF), OTHER, 0),
                ObservedCable(OTHER_NIC, OTHER),
            ),
            (
                *("leaf-1", "1", "the plugs in leaf-1 port 1 and leaf-2 port 7 (rack r2)"),
                (
                    "exchanged: the cable from a1 port eth0 into leaf-2 port 7, "
                    "the cable from b2 port eth0 into leaf-1 port 1"
                ),
                "a1 port eth0 <> leaf-2 port 7 and b2 port eth0 <> leaf-1 port 1",
            ),
            id="two plugs are exchanged",
        ),
        pytest.param(
            Move(MoveKind.UNPLUG, ObservedCable(NIC, LEAF), None, 0),
            (
                *("leaf-1", "1", "the cable from a1 port eth0"),
                "nothing yet: keep the plug aside",
                "no cable between a1 port eth0 and leaf-1 port 1",
            ),
            id="a plug is kept aside",
        ),
        pytest.param(
            Move(MoveKind.PLUG, ObservedCable(NIC, LEAF), OTHER, 0),
            (
                *("leaf-2", "7", "nothing: this port is free by now"),
                "this port: the plug kept aside, of the cable from a1 port eth0",
                "a1 port eth0 <> leaf-2 port 7",
            ),
            id="the plug that was kept aside",
        ),
        pytest.param(
            Move(MoveKind.MOVE, ObservedCable(NIC, LEAF), OTHER, 0),
            (
                *("leaf-1", "1", "the cable from a1 port eth0", "leaf-2 port 7 (rack r2)"),
                "a1 port eth0 <> leaf-2 port 7",
            ),
            id="a plug goes to a free port",
        ),
        pytest.param(
            Move(MoveKind.ADD, ObservedCable(NIC, LEAF), None, 0),
            (
                *("leaf-1", "1", "the cable to a1 port eth0, if there is one", AGAIN),
                "a1 port eth0 <> leaf-1 port 1",
            ),
            id="a cable is added",
        ),
        pytest.param(
            Move(MoveKind.REMOVE, ObservedCable(NIC, LEAF), None, 0),
            (
                *("leaf-1", "1", "the cable to a1 port eth0, at both ends", "nothing"),
                "no cable between a1 port eth0 and leaf-1 port 1",
            ),
            id="a cable is removed",
        ),
    ],
)
def test_a_move_is_a_step(move: Move, step: tuple[str, ...]) -> None:
    row = Difference(DifferenceKind.WRONG_PORT, (), (), "m", 0)
    (found,) = build_plan_order([row], [move], {"leaf-2": Place("r2")}).steps
    assert (found.device, found.port, found.unplug, found.plug, found.shows) == step
    assert found.kind == "wrong-port"


def test_the_moves_of_a_group_stay_in_their_order() -> None:
    moves = [
        Move(MoveKind.REMOVE, ObservedCable(NIC, OTHER), None, 0),
        Move(MoveKind.MOVE, ObservedCable(NIC, LEAF), OTHER, 0),
        Move(MoveKind.REMOVE, ObservedCable(NIC, SPARE), None, 1),
    ]
    rows = [Difference(DifferenceKind.SWAPPED, (), (), "m", group) for group in (0, 1)]
    steps = build_plan_order(rows, moves, {}).steps
    assert [(step.device, step.port) for step in steps] == [
        ("leaf-1", "9"),
        ("leaf-2", "7"),
        ("leaf-1", "1"),
    ]


def test_a_device_that_is_gone_is_the_first_step_at_its_rack() -> None:
    wiring = build_wiring(SPECS["rails"])
    name = next(switch.name for switch in wiring.switches if switch.rank == 1)
    damaged = damage_fabric(wiring, FaultSpec(lost=(name,), num_swaps=1), rng=seeded(1))
    diff = compare(damaged)
    order = build_plan_order(diff.differences, diff.moves, {name: Place("r9", "7")})
    first, *others = order.steps
    assert (first.device, first.place, first.is_first) == (name, Place("r9", "7"), True)
    assert first.unplug == "nothing: check the power of this device"
    (row,) = (row for row in diff.differences if row.lost)
    assert first.shows == f"a link at each of these {len(row.planned)} ports"
    assert f"of {name}" not in first.plug
    assert not any(step.is_first for step in others)
    assert (order.others, order.num_mended) == ((), len(diff.differences))


def test_what_no_move_repairs_is_no_step() -> None:
    row = Difference(DifferenceKind.UNKNOWN_DEVICE, (), (), "m", None)
    order = build_plan_order([row], [], {})
    assert (order.steps, order.others, order.num_mended) == ((), ("unknown-device",), 0)
