"""How many domains a group uses, and whether it shares them: refusals, and large clusters.

`fixtures/vectors/domain_bounds.json` has the cases of both rules, and `tests/random_cases` compares
them with every placement of small clusters.
"""

from __future__ import annotations

from typing import Any

import pytest

from generator.placement.engine import place
from generator.placement.problem.constraints import is_allowed
from generator.placement.problem.problem import build_problem
from tests.generator.placement.documents import cluster, racks, request, workers
from topology.model.errors import PlacementRequestError


@pytest.mark.parametrize(
    ("groups", "field"),
    [
        pytest.param(
            workers(2, spread={"rack": {"min": 3}}), "groups[0].spread.rack.min", id="above count"
        ),
        pytest.param(
            workers(4, spread={"rack": {"min": 3, "max": 2}}),
            "groups[0].spread.rack.max",
            id="a maximum below the minimum",
        ),
        pytest.param(
            workers(4, spread={"rack": {"min": 0}}), "groups[0].spread.rack.min", id="no domain"
        ),
        pytest.param(workers(4, spread={"rack": 2}), "groups[0].spread.rack", id="a number alone"),
        pytest.param(
            [{"name": "p", "spread": {"rack": {}}, "children": workers(2)}],
            "groups[0].spread",
            id="a group with children",
        ),
        pytest.param(workers(4, exclusive=""), "groups[0].exclusive", id="an empty tier"),
    ],
)
def test_it_refuses(groups: list[dict[str, Any]], field: str) -> None:
    with pytest.raises(PlacementRequestError) as caught:
        request(groups=groups)
    assert caught.value.field == field


@pytest.mark.parametrize("field", ["spread", "exclusive"])
def test_a_tier_that_the_tree_lacks_is_an_answer(field: str) -> None:
    bound = {"spread": {"island": {"min": 2}}, "exclusive": "island"}[field]
    found = place(cluster(racks(4, 4)), request(groups=workers(2, **{field: bound})))
    assert found.reason is not None
    assert (found.reason.kind, found.reason.tier) == ("no-level", "island")


def test_a_running_pod_counts_as_a_use_of_its_rack() -> None:
    snapshot = cluster(racks(4, 4, 4, 4), self=["n0"])
    groups = workers(2, spread={"rack": {"min": 2, "max": 2}})
    (nodes,) = place(snapshot, request(groups=groups)).assignment.values()
    assert {int(str(node)[1:]) // 4 for node in nodes} | {0} == {0, 1}


def test_fewer_pods_than_racks_are_refused_although_the_minimum_allows_them() -> None:
    snapshot = cluster(racks(1, 1))
    groups = workers(4, min=1, spread={"rack": {"min": 2}})
    found = place(snapshot, request(groups=groups))
    assert [node is not None for node in found.assignment["workers"]] == [True, True, False, False]


@pytest.mark.parametrize(
    "groups",
    [
        pytest.param(workers(200, spread={"block": {"min": 7}}), id="in seven blocks or more"),
        pytest.param(workers(200, spread={"rack": {"min": 9, "max": 40}}), id="in 9 to 40 racks"),
        pytest.param(
            [
                {"name": f"g{index}", "count": 20, "required": "rack", "exclusive": "rack"}
                for index in range(9)
            ],
            id="nine groups, each alone in its rack",
        ),
    ],
)
def test_it_places_large_gangs_in_large_clusters(groups: list[dict[str, Any]]) -> None:
    snapshot = cluster(racks(*[32] * 160, per_block=16))
    wanted = request(required="cluster", groups=groups)
    found = place(snapshot, wanted)
    assert found.is_feasible
    rows = [[snapshot.position_of[str(node)] for node in row] for row in found.assignment.values()]
    assert is_allowed(build_problem(snapshot, wanted), rows)
