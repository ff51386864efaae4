"""If the exact search is too expensive, the answer is valid and marked as not proved."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings

from generator.placement.budget import Budget
from generator.placement.cluster.nodes import NodeSpec
from generator.placement.engine import place
from generator.placement.presets import Preset
from generator.placement.problem.problem import build_problem
from generator.placement.request import parse_request
from generator.placement.solve.solver import CHOICE_STEPS, Growth, solve, solve_greedily
from tests.effort import examples
from tests.generator.placement import referee
from tests.generator.placement.documents import (
    ReadingClock,
    cluster,
    racks,
    request,
    workers,
)
from tests.generator.placement.referee import Scene
from tests.generator.placement.scenes import document_of, scenes, snapshot_of

MIXED = [{"name": f"g{size}", "count": size, "required": "rack"} for size in (2, 3, 4, 5, 6)]


@settings(max_examples=examples(100), deadline=None)
@given(scene=scenes())
def test_it_keeps_every_rule_without_proof(scene: Scene) -> None:
    problem = build_problem(snapshot_of(scene), parse_request(document_of(scene, Preset.OPTIMAL)))
    effort = Budget(10_000_000)
    rough, best = solve_greedily(problem, effort), solve(problem, effort)
    if rough is None:
        return
    assert best is not None
    assert not rough.is_proved
    assert best.objective.vector(problem.objective_order) <= rough.objective.vector(
        problem.objective_order
    )
    pods = []
    for group, row in zip(scene.groups, rough.positions, strict=True):
        names = [problem.snapshot.specs[position].name for position in row]
        starts = [0]
        for size in referee.part_sizes(scene, group, len(names)):
            starts.append(starts[-1] + size)
        cuts = pairwise(starts)
        pods.append([tuple(names[start:stop]) for start, stop in cuts])
    assert len(referee.holding(scene, pods)) == 1
    left = dict(scene.slots)
    for parts in pods:
        for node in (node for part in parts for node in part):
            left[node] -= 1
    assert min(left.values()) >= 0


def test_it_places_every_pod_of_a_part_around_full_nodes() -> None:
    full = {"n1": NodeSpec("n1", {"slots": 0}), "n0": NodeSpec("n0", {"slots": 2})}
    snapshot = cluster(racks(2, 1, per_block=2), full)
    problem = build_problem(snapshot, request(groups=workers(3)))
    rough = solve_greedily(problem, Budget(1000))
    assert rough is not None
    assert rough.positions == ((0, 0, 2),)
    tight = build_problem(snapshot, request(groups=workers(3), max_domains={"node": 1}))
    assert solve_greedily(tight, Budget(1000)) is None
    assert solve(tight, Budget(1000)) is None


@pytest.mark.parametrize(
    ("layer", "running", "count", "expected"),
    [
        pytest.param(
            {"size": 4, "tier": "rack", "remainder": "short"},
            ["n0"] * 3 + ["n2"] * 2,
            9,
            [5, 4, 0],
            id="begun slices, a whole one, and the remainder",
        ),
        pytest.param(
            {"size": 4, "tier": "rack"},
            ["n0"] * 3 + ["n2"] * 2,
            3,
            [1, 2, 0],
            id="begun slices, none short",
        ),
        pytest.param(
            {"size": 4, "tier": "rack", "remainder": "short"},
            ["n0"] * 2 + ["n2"] * 3,
            1,
            [0, 1, 0],
            id="the slice with the fewest missing pods first",
        ),
    ],
)
def test_it_completes_begun_slices(
    layer: dict[str, object], running: list[str], count: int, expected: list[int]
) -> None:
    nodes = {f"n{index}": NodeSpec(f"n{index}", {"slots": 4}) for index in range(6)}
    snapshot = cluster(racks(2, 2, 2, per_block=3), nodes, job=running)
    parsed = request(gang="job", groups=workers(count, slices=[layer]))
    found = solve_greedily(build_problem(snapshot, parsed), Budget(1000))
    assert found is not None
    assert [sum(node // 2 == rack for node in found.positions[0]) for rack in range(3)] == expected


def test_it_places_nested_groups_without_proof() -> None:
    replicas = [
        {
            "name": f"r{index}",
            "required": "rack",
            "children": [{"name": f"d{index}", "count": 1}, {"name": f"w{index}", "count": 2}],
        }
        for index in range(2)
    ]
    problem = build_problem(cluster(racks(3, 2, 3, 3)), request(groups=replicas, required="block"))
    rough, best = solve_greedily(problem, Budget(1000)), solve(problem, Budget(100_000))
    assert rough is not None
    assert best is not None
    assert sorted(node for row in rough.positions for node in row) == [5, 6, 7, 8, 9, 10]
    assert best.objective.vector(problem.objective_order) <= rough.objective.vector(
        problem.objective_order
    )
    none = build_problem(cluster(racks(3, 2, 3)), request(groups=replicas, required="block"))
    assert solve_greedily(none, Budget(1000)) is None


PARENT = {
    "name": "p",
    "min": 1,
    "children": [
        {"name": "large", "count": 4, "required": "block"},
        {"name": "small", "count": 1},
    ],
}


@pytest.mark.parametrize(
    ("groups", "least", "num_nodes", "num_pods"),
    [
        pytest.param([PARENT], 4, 5, 5, id="members that were left out count"),
        pytest.param([PARENT], 4, 4, None, id="the large member has no room beside the small"),
        pytest.param([PARENT], 5, 4, None, id="too few nodes"),
        pytest.param(workers(3, min=0, slices=[{"size": 3}]), 0, 2, None, id="no whole slice"),
        pytest.param(workers(3, min=0, slices=[{"size": 3}]), 1, 4, 3, id="one whole slice"),
    ],
)
def test_the_fewest_pods_of_the_whole_gang_are_placed_or_none(
    groups: list[dict[str, Any]], least: int, num_nodes: int, num_pods: int | None
) -> None:
    snapshot, parsed = cluster(racks(num_nodes)), request(groups=groups, min=least)
    growth = Growth(build_problem(snapshot, parsed), Budget(100_000))
    growth.grow()
    placed = None if growth.best is None else sum(map(len, growth.best.positions))
    assert placed == num_pods


def test_it_answers_in_time_when_the_deadline_passes() -> None:
    snapshot = cluster(racks(6, 6, 6, 6, per_block=4))
    spec = request(groups=MIXED, deadline_s=0.5)
    found = place(snapshot, spec, clock=ReadingClock())
    assert found.is_feasible
    assert not found.is_proved
    exact = place(snapshot, request(groups=MIXED))
    assert exact.is_proved


def test_it_does_not_prove_infeasibility_after_the_deadline() -> None:
    spec = request(groups=MIXED, deadline_s=0.5)
    found = place(cluster(racks(6, 6, 4, 4, per_block=4)), spec, clock=ReadingClock())
    assert (found.is_feasible, found.is_proved) == (False, False)


def test_it_ignores_the_deadline_without_a_clock() -> None:
    assert place(
        cluster(racks(6, 6, 6, 6, per_block=4)), request(groups=MIXED, deadline_s=1e-9)
    ).is_proved


def test_it_places_a_hundred_groups_of_two_shapes_on_a_thousand_nodes() -> None:
    groups = [
        {"name": f"g{index}", "count": 5 + index % 3, "request": {"slots": 1}, "required": "rack"}
        for index in range(100)
    ]
    groups[0]["request"] = {"slots": 1, "gpu": 0}
    snapshot, spec = cluster(racks(*[20] * 50, per_block=50)), request(groups=groups, deadline_s=1)
    found = place(snapshot, spec, clock=ReadingClock())
    assert found.is_feasible
    assert sum(len(nodes) for nodes in found.assignment.values()) == 599


def test_it_keeps_the_deadline_if_slices_allow_few_totals() -> None:
    groups = [
        {"name": f"g{index}", "count": 450, "min": 0, "slices": [{"size": size, "tier": "rack"}]}
        for index, size in enumerate((150, 225, 90, 50))
    ]
    snapshot, clock = cluster(racks(*[150] * 4)), ReadingClock(0.01)
    place(snapshot, request(groups=groups, deadline_s=1), clock=clock)
    assert clock.now_s < 2


def test_it_ends_if_no_whole_slices_make_up_a_total() -> None:
    groups = [
        {"name": f"g{index}", "count": 4 * size, "min": 1, "slices": [{"size": size}]}
        for index, size in enumerate((97, 89, 83, 79, 73))
    ]
    found = place(cluster(racks(*[100] * 4)), request(groups=groups))
    assert not found.is_feasible


def test_it_shares_one_deadline_among_all_steps() -> None:
    groups = [
        {"name": f"g{index}", "count": 40, "request": {"slots": 1 + index}} for index in range(8)
    ]
    clock = ReadingClock(0.01)
    place(cluster(racks(5, 5)), request(groups=groups, min=1, deadline_s=1), clock=clock)
    assert clock.now_s < 1.5


def test_it_returns_the_best_found_before_the_budget_ends() -> None:
    groups = [{"name": f"g{index}", "count": 8, "min": 0} for index in range(2)]
    problem = build_problem(cluster(racks(4, 4)), request(groups=groups))
    too_many = sum(range(1, 9))  # choices of 16 to 9 pods, for 8 nodes
    rough = solve_greedily(problem, Budget(too_many * CHOICE_STEPS))
    assert rough is not None
    assert sum(map(len, rough.positions)) == 8
