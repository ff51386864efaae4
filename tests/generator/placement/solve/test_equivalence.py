"""Nodes share a code, and units a class, if they are alike for every pod of a job."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.placement.cluster.levels import build_levels
from generator.placement.cluster.nodes import Exclusion, NodeSpec, RunningGang, RunningPods
from generator.placement.cluster.snapshot import Snapshot, build_snapshot
from generator.placement.engine import place
from generator.placement.problem.objective import slots_after_use
from generator.placement.problem.problem import Problem, build_problem
from generator.placement.solve import equivalence
from generator.placement.solve.equivalence import (
    USELESS_CODE,
    node_codes,
    useful_codes_by_leaf,
)
from tests.effort import examples
from tests.generator.placement.documents import racks, request, workers

TREE = racks(4, 3, per_block=2)
FREE = st.sampled_from([-1, 0, 1, 2, 3, 4, 2**40, 2**40 + 1, 2**61, -(2**61)])
MAX_PODS = 2
"""Pods per shape."""


def problem_of(snapshot: Snapshot, gpus: tuple[int, int], memory: int) -> Problem:
    """Return the problem of two groups that request GPUs; one of them also requests memory."""
    groups = [
        *workers(MAX_PODS, request={"gpu": gpus[0]}),
        {"name": "more", "count": MAX_PODS, "request": {"gpu": gpus[1], "memory": memory}},
    ]
    return build_problem(snapshot, request(groups=groups))


def seen(problem: Problem, node: int) -> tuple[int, ...] | None:
    """Return a node as pods see it: its slots, and the slots left beside other pods."""
    shapes, snapshot = problem.shapes, problem.snapshot
    if not any(shape.slots[node] for shape in shapes):
        return None
    largest = shapes[problem.scarcest_shape]
    rows = [int(largest.slots[node])]
    for counts in product(range(MAX_PODS + 1), repeat=len(shapes)):
        used = {
            name: sum(
                shape.request.get(name, 0) * num for shape, num in zip(shapes, counts, strict=True)
            )
            for name in snapshot.resources
        }
        fits = all(
            shape.slots[node] >= num for shape, num in zip(shapes, counts, strict=True)
        ) and all(
            not used[name] or used[name] <= snapshot.free[row, node]
            for row, name in enumerate(snapshot.resources)
        )
        rows.append(slots_after_use(problem, largest, node, used) if fits else -1)
    return tuple(rows)


@settings(max_examples=examples(150), deadline=None)
@given(
    rows=st.lists(st.tuples(FREE, FREE, FREE, st.booleans()), min_size=7, max_size=7),
    gpus=st.tuples(st.integers(0, 2), st.integers(1, 2)),
    memory=st.integers(0, 2),
)
def test_it_distinguishes_nodes_by_the_pods_that_they_hold(
    rows: list[tuple[int, int, int, bool]], gpus: tuple[int, int], memory: int
) -> None:
    nodes = {
        f"n{index}": NodeSpec(
            f"n{index}",
            free={"gpu": gpu, "memory": memory, "cpu": cpu},
            exclusion=None if is_open else Exclusion.UNSCHEDULABLE,
        )
        for index, (gpu, memory, cpu, is_open) in enumerate(rows)
    }
    problem = problem_of(build_snapshot(TREE, nodes), gpus, memory)
    codes = node_codes(problem, (MAX_PODS,) * len(problem.shapes))
    views = [seen(problem, index) for index in range(7)]
    for one in range(7):
        assert (codes[one] == USELESS_CODE) == (views[one] is None)
        for other in range(one):
            if codes[one] == codes[other]:
                assert views[one] == views[other]


def test_it_equates_nodes_that_hold_and_leave_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = {
        f"n{index}": NodeSpec(f"n{index}", {"gpu": 8, "memory": memory, "cpu": index})
        for index, memory in enumerate((100, 900, 901, 50, 3, 2, 70))
    }
    problem = problem_of(build_snapshot(TREE, nodes), (4, 2), 2)
    codes = node_codes(problem, (2, 2))
    assert [codes[index] == codes[0] for index in range(7)] == [True] * 4 + [False, False, True]
    monkeypatch.setattr(equivalence, "MAX_PACKINGS", 0)
    assert len(set(node_codes(problem, (2, 2)).tolist())) == 7


@given(codes=st.lists(st.integers(-2, 4), min_size=7, max_size=7), most=st.integers(1, 3))
def test_it_keeps_as_many_equal_nodes_as_a_job_can_use(codes: list[int], most: int) -> None:
    rows = useful_codes_by_leaf(build_levels(TREE, [{}] * 7), np.array(codes), most)
    for start, stop, row in zip((0, 4), (4, 7), rows, strict=True):
        inside = [code for code in codes[start:stop] if code != USELESS_CODE]
        kept = sorted(code for one in set(inside) for code in [one] * min(inside.count(one), most))
        assert (np.frombuffer(row, dtype=np.int64) + min(*codes, 0)).tolist() == kept


def test_it_places_pods_of_two_sizes_beside_an_overcommitted_node() -> None:
    nodes = {
        "n0": NodeSpec("n0", {"slots": 4, "memory": 4}),
        "n1": NodeSpec("n1", {"slots": 4, "memory": 4}, free={"slots": 4, "memory": -1}),
    }
    groups = [*workers(2, request={"slots": 3}), {"name": "more", "count": 2}]
    found = place(build_snapshot(racks(2), nodes), request(groups=groups, required="rack"))
    assert found.assignment == {"workers": ("n0", "n1"), "more": ("n0", "n1")}


def test_it_evicts_beside_a_node_that_no_eviction_can_free() -> None:
    nodes = {
        "n0": NodeSpec("n0", {"slots": 1, "memory": 1}, free={"slots": -1, "memory": 1}),
        "n1": NodeSpec("n1", {"slots": 1, "memory": 1}),
    }
    low = RunningGang("low", tuple(RunningPods(node, {"slots": 1}) for node in nodes))
    groups = [*workers(1), {"name": "more", "count": 1, "request": {"memory": 1}}]
    parsed = request(groups=groups, priority=5, preemption="fewestVictims")
    found = place(build_snapshot(racks(2), nodes, [low]), parsed)
    assert found.assignment == {"workers": ("n1",), "more": ("n1",)}
    assert found.victims == ("low@n1",)
