"""No answer that breaks a rule leaves the engine, whichever way found it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from generator.placement import engine
from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import build_snapshot
from generator.placement.engine import place
from generator.placement.problem.constraints import is_allowed, require_allowed
from generator.placement.problem.objective import Objective, PlacementCandidate
from generator.placement.problem.problem import Problem, build_problem
from tests.generator.placement.documents import cluster, racks, request, workers
from topology.model.errors import InvariantError

TREE = racks(2, 2, 2, per_block=2)
"""Nodes n0 to n5: two racks of two in block b0, one in b1."""
PAIR = {"groups": [{"name": "a", "count": 2}, {"name": "b", "count": 2}]}


@pytest.mark.parametrize(
    ("spec", "good", "bad"),
    [
        pytest.param({}, [[0, 1]], [[0]], id="too few pods"),
        pytest.param({}, [[0, 1]], [[0, 0]], id="more pods than a node holds"),
        pytest.param(PAIR, [[0, 1], [2, 3]], [[0, 1], [1, 2]], id="two groups on a full node"),
        pytest.param(
            {"groups": workers(2, slices=[{"size": 2, "tier": "rack"}])},
            [[0, 1]],
            [[1, 2]],
            id="a slice across racks",
        ),
        pytest.param({"required": "rack"}, [[2, 3]], [[1, 2]], id="beyond the required tier"),
        pytest.param({}, [[1, 2]], [[1, 4]], id="across islands"),
        pytest.param({"max_domains": {"rack": 1}}, [[0, 1]], [[1, 2]], id="beyond a limit"),
        pytest.param(
            {"groups": workers(2, multiple_of={"rack": 2})}, [[0, 1]], [[0, 2]], id="no multiple"
        ),
        pytest.param(
            {"groups": workers(3, min=1, slices=[{"size": 3}])},
            [[0, 1, 2]],
            [[0, 1]],
            id="a part of a slice",
        ),
        pytest.param(
            {
                "groups": [
                    {"name": "p", "min": 1, "children": [*PAIR["groups"]]},
                    {"name": "c", "count": 1},
                ]
            },
            [[0, 1], [], [2]],
            [[], [], [2]],
            id="too few members of a set",
        ),
        pytest.param(
            {"groups": workers(2, request={"slots": 1, "gpu": 1})},
            [[0, 1]],
            [[0, 2]],
            id="a resource that a node lacks",
        ),
        pytest.param(
            {"groups": workers(2, node_selector={"zone": "a"})},
            [[0, 1]],
            [[0, 2]],
            id="a node that the selector excludes",
        ),
    ],
)
def test_it_knows_what_breaks_a_rule(
    spec: dict[str, Any], good: list[list[int]], bad: list[list[int]]
) -> None:
    parsed = request(**spec)
    nodes = {
        f"n{index}": NodeSpec(
            f"n{index}",
            {"slots": 1, "gpu": int(index < 2)},
            labels={"zone": "a" if index < 2 else "b"},
        )
        for index in range(6)
    }
    problem = build_problem(build_snapshot(TREE, nodes), parsed)
    assert is_allowed(problem, good)
    assert not is_allowed(problem, bad)
    with pytest.raises(InvariantError, match="breaks a rule"):
        require_allowed(problem, bad)


def test_pods_that_request_nothing_fit_anywhere() -> None:
    parsed = request(groups=workers(3, request={}))
    assert is_allowed(build_problem(cluster(TREE), parsed), [[0, 0, 0]])


def moved(found: PlacementCandidate) -> PlacementCandidate:
    """Return a placement with all pods on one node, which holds one."""
    return replace(found, positions=tuple((0,) * len(row) for row in found.positions))


@pytest.mark.parametrize(
    ("finder", "spec"),
    [
        pytest.param("solve_with_eviction", {"preset": "optimal"}, id="the search"),
        pytest.param("solve_with_eviction", PAIR, id="the search of several groups"),
        pytest.param("_search", {"preset": "slurm-tree"}, id="the greedy finder"),
    ],
)
def test_a_wrong_answer_never_leaves(finder: str, spec: dict[str, Any]) -> None:
    find = getattr(engine, finder)

    def find_wrong(*args: object) -> object:
        found = find(*args)
        return moved(found) if finder == "solve_with_eviction" else (moved(found[0]), found[1])

    with (
        mock.patch.object(engine, finder, find_wrong),
        mock.patch.object(engine, "_emulate", return_value=(None, True)),
        pytest.raises(InvariantError, match="breaks a rule"),
    ):
        place(cluster(TREE), request(**spec))


def test_a_wrong_walk_is_no_answer() -> None:
    parsed = request(preset="volcano")

    def walk(problem: Problem, *_: object) -> PlacementCandidate:
        pods = ((0, 0),)
        return PlacementCandidate(pods, Objective(problem, ((0, 1),), 0), is_proved=False)

    with mock.patch.object(engine, "place_by_walk", walk):
        found = place(cluster(TREE), parsed)
    assert found.is_feasible
    assert set(found.assignment["workers"]) == {"n0", "n1"}
