"""The work order of a plan: its steps, carried out, give the planned cables."""

from __future__ import annotations

import re

import pytest

from generator.outputs.plan_order import build_plan_order
from tests.topology.cabling.test_plan_diff_synthetic import SPECS, compare
from tests.topology.synthetic.fabrics import seeded
from topology.cabling.plan_diff import Difference, DifferenceKind, Move, MoveKind, ObservedCable
from topology.findings.work_order import Place
from topology.model.facts import PortName
from topology.synthetic import FaultSpec, SyntheticSpec, build_wiring, damage_fabric

NIC, LEAF, OTHER = PortName("a1", "eth0"), PortName("leaf-1", "1"), PortName("leaf-2", "7")
SPARE = PortName("leaf-1", "9")
AGAIN = "this end and a1 port eth0 again; else replace the cable, then the transceivers"


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
        frozenset(PortName(*end) for end in re.findall(r"(\S+) port (\S+)", step.shows))
        for step in order.steps
    ]
    assert len(shown) == len(diff.moves)
    assert {*shown} <= planned
    assert len(order.others) + order.num_mended == len(diff.differences)
    assert len(shown) + len(order.others) == len(planned)


@pytest.mark.parametrize(
    ("move", "step"),
    [
        pytest.param(
            Move(MoveKind.MOVE, ObservedCable(NIC, LEAF), OTHER, is_target_full=True, group=0),
            (
                *("leaf-1", "1", "the cable from a1 port eth0"),
                "leaf-2 port 7 (rack r2), once its plug is out",
                "a1 port eth0 <> leaf-2 port 7",
            ),
            id="a plug goes to a port that is in use",
        ),
        pytest.param(
            Move(MoveKind.MOVE, ObservedCable(NIC, LEAF), OTHER, is_target_full=False, group=0),
            (
                *("leaf-1", "1", "the cable from a1 port eth0", "leaf-2 port 7 (rack r2)"),
                "a1 port eth0 <> leaf-2 port 7",
            ),
            id="a plug goes to a free port",
        ),
        pytest.param(
            Move(MoveKind.ADD, ObservedCable(NIC, LEAF), None, is_target_full=False, group=0),
            (
                *("leaf-1", "1", "the cable to a1 port eth0, if there is one", AGAIN),
                "a1 port eth0 <> leaf-1 port 1",
            ),
            id="a cable is added",
        ),
        pytest.param(
            Move(MoveKind.REMOVE, ObservedCable(NIC, LEAF), None, is_target_full=False, group=0),
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
        Move(MoveKind.MOVE, ObservedCable(NIC, OTHER), LEAF, is_target_full=True, group=0),
        Move(MoveKind.MOVE, ObservedCable(NIC, LEAF), OTHER, is_target_full=False, group=0),
        Move(MoveKind.REMOVE, ObservedCable(NIC, SPARE), None, is_target_full=False, group=1),
    ]
    rows = [Difference(DifferenceKind.SWAPPED, (), (), "m", group) for group in (0, 1)]
    steps = build_plan_order(rows, moves, {}).steps
    assert [(step.device, step.port) for step in steps] == [
        ("leaf-1", "9"),
        ("leaf-2", "7"),
        ("leaf-1", "1"),
    ]


def test_what_no_move_repairs_is_no_step() -> None:
    row = Difference(DifferenceKind.UNKNOWN_DEVICE, (), (), "m", None)
    order = build_plan_order([row], [], {})
    assert (order.steps, order.others, order.num_mended) == ((), ("unknown-device",), 0)
