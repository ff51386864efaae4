"""`plan_repairs`: no list of steps is shorter, and each can be done when its turn comes."""

from collections.abc import Iterable, Sequence
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from tests.effort import examples
from topology.cabling.repair import AddStep, MoveStep, Pair, RemoveStep, Repair, Step, plan_repairs

PORTS = 10


def both_ways(pairs: Iterable[Pair]) -> dict[int, int]:
    return {port: peer for a, b in pairs for port, peer in ((a, b), (b, a))}


def repair_cables(want: Iterable[Pair], have: Iterable[Pair], per_device: int = 1) -> list[Repair]:
    device = {port: port // per_device for port in range(PORTS)}
    return plan_repairs(both_ways(want), both_ways(have), device=device)


def steps_of(repairs: Iterable[Repair]) -> list[Step]:
    return list(chain.from_iterable(repair.steps for repair in repairs))


def replay(want: Sequence[Pair], have: Sequence[Pair], steps: Iterable[Step]) -> dict[int, int]:
    """Carry out the steps with plugs; return port to the number of the cable in it."""
    plugs = {port: cable for cable, pair in enumerate(have) for port in pair}
    hand: set[int] = set()
    for number, step in enumerate(steps, len(have)):
        match step:
            case MoveStep(_, (stays, goes), target, is_target_full):
                cable = plugs[stays]
                if cable in hand:
                    hand.remove(cable)
                else:
                    assert plugs.pop(goes) == cable
                if is_target_full:
                    hand.add(plugs.pop(target))
                assert target not in plugs, "a plug goes into a port that is not free"
                plugs[target] = cable
            case AddStep((a, b)):
                assert a not in plugs
                assert b not in plugs
                plugs |= {a: number, b: number}
            case RemoveStep((a, b)):
                assert plugs.pop(a) == plugs.pop(b)
    assert not hand
    assert all(plugs[a] == plugs[b] for a, b in want)
    return plugs


def fewest_steps(want: Sequence[Pair], have: Sequence[Pair]) -> int:
    """Return the minimum over all ways to make each planned cable from an observed or a new one."""
    planned_ports = {port for pair in want for port in pair}
    left = [pair for pair in have if planned_ports & set(pair)]

    def cost(want: Sequence[Pair], left: Sequence[Pair]) -> int:
        if not want:
            return len(left)
        others = [
            (2 - len(set(want[0]) & set(pair))) + cost(want[1:], [*left[:at], *left[at + 1 :]])
            for at, pair in enumerate(left)
        ]
        return min([1 + cost(want[1:], left), *others])

    return cost(want, left)


@st.composite
def cables(draw: st.DrawFn) -> list[Pair]:
    ports = draw(st.permutations(range(PORTS)))
    count = draw(st.integers(0, PORTS // 2))
    return [(ports[2 * at], ports[2 * at + 1]) for at in range(count)]


@limits(max_examples=examples(300))
@given(cables(), cables())
def test_it_finds_the_shortest_list(want: list[Pair], have: list[Pair]) -> None:
    assert len(steps_of(repair_cables(want, have))) == fewest_steps(want, have)


@limits(max_examples=examples(300))
@given(cables(), cables(), st.integers(1, 5))
def test_it_orders_steps_so_that_each_can_be_done(
    want: list[Pair], have: list[Pair], per_device: int
) -> None:
    steps = steps_of(repair_cables(want, have, per_device))
    plugs = replay(want, have, steps)
    planned_ports = {port for pair in want for port in pair}
    stay = [pair for pair in have if not planned_ports & set(pair)]
    assert all(plugs[a] == plugs[b] for a, b in stay)


@limits(max_examples=examples(50))
@given(cables(), cables())
def test_it_returns_the_same_in_any_order(want: list[Pair], have: list[Pair]) -> None:
    assert repair_cables(want, have) == repair_cables(
        want[::-1], [(b, a) for a, b in reversed(have)]
    )


@pytest.mark.parametrize(
    ("want", "have", "steps"),
    [
        pytest.param([(0, 1)], [(0, 1)], [], id="no step where all is as planned"),
        pytest.param([], [(0, 1)], [], id="no step where nothing is planned"),
        pytest.param([(0, 1)], [], [AddStep((0, 1))], id="a missing cable"),
        pytest.param(
            [(0, 1)], [(0, 2)], [MoveStep((1, 0), (0, 2), 1)], id="one plug, one port off"
        ),
        pytest.param(
            [(0, 1)],
            [(0, 2), (1, 3)],
            [RemoveStep((0, 2)), MoveStep((0, 1), (1, 3), 0)],
            id="an extra cable that has to go first",
        ),
        pytest.param(
            [(0, 2), (1, 3)],
            [(0, 3), (1, 2)],
            [MoveStep((1, 3), (1, 2), 3, is_target_full=True), MoveStep((0, 2), (0, 3), 2)],
            id="two plugs in each other's ports",
        ),
    ],
)
def test_it_lists(want: list[Pair], have: list[Pair], steps: list[Step]) -> None:
    found = steps_of(repair_cables(want, have))
    assert [_normal(step) for step in found] == [_normal(step) for step in steps]


def _normal(step: Step) -> Step:
    """Return a step with the lower port first where the direction has no meaning."""
    if isinstance(step, RemoveStep):
        return RemoveStep(_sorted(step.cable))
    return step._replace(goal=_sorted(step.goal))


def _sorted(pair: Pair) -> Pair:
    return min(pair), max(pair)


@pytest.mark.parametrize("num", [2, 3, 5])
def test_it_repairs_a_ring_with_one_move_per_cable(num: int) -> None:
    want = [(at, num + at) for at in range(num)]
    have = [(at, num + (at + 1) % num) for at in range(num)]
    (ring,) = repair_cables(want, have)
    assert ring.is_ring
    assert len(ring.steps) == num
    assert [step.is_target_full for step in ring.steps if isinstance(step, MoveStep)] == [
        True,
        *[False] * (num - 1),
    ]


def test_it_keeps_plugs_on_their_device_where_either_end_could_move() -> None:
    device = {0: 10, 1: 11, 2: 20, 3: 20}
    for want, have in (([(0, 2), (1, 3)], [(0, 3), (1, 2)]), ([(2, 0), (3, 1)], [(3, 0), (2, 1)])):
        (ring,) = plan_repairs(both_ways(want), both_ways(have), device=device)
        moved = [(step.cable[1], step.target) for step in ring.steps if isinstance(step, MoveStep)]
        assert sorted(moved) == [(2, 3), (3, 2)]


def test_it_repairs_a_chain_of_ten_thousand_without_recursion() -> None:
    num = 10_000
    want = [(2 * at, 2 * at + 1) for at in range(num)]
    have = [(2 * at + 1, 2 * at + 2) for at in range(num)]
    device = dict.fromkeys(range(2 * num + 1), 0)
    (chain_of,) = plan_repairs(both_ways(want), both_ways(have), device=device)
    assert len(chain_of.steps) == num
