"""How many domains a group uses, and whether it shares them, in large clusters.

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


@pytest.mark.parametrize("field", ["spread", "exclusive"])
def test_a_tier_that_the_tree_lacks_is_an_answer(field: str) -> None:
    bound = {"spread": {"island": {"min": 2}}, "exclusive": "island"}[field]
    found = place(cluster(racks(4, 4)), request(groups=workers(2, **{field: bound})))
    assert found.reason is not None
    assert (found.reason.kind, found.reason.tier) == ("no-level", "island")


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
    snapshot = cluster(racks(*[32] * 40, per_block=4))
    wanted = request(required="cluster", groups=groups)
    found = place(snapshot, wanted)
    assert found.is_feasible
    rows = [[snapshot.position_of[str(node)] for node in row] for row in found.assignment.values()]
    assert is_allowed(build_problem(snapshot, wanted), rows)
