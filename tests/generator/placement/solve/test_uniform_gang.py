"""The shortcut for plain gangs answers as the full engine does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.placement.answer import render_placement
from generator.placement.cluster.snapshot import NodeSpec, Snapshot, build_snapshot
from generator.placement.engine import build_answer, place
from generator.placement.problem.problem import build_problem
from generator.placement.solve.budget import Budget
from generator.placement.solve.solver import solve
from generator.placement.solve.uniform_gang import place_uniform_gang
from tests.effort import examples
from tests.generator.placement.documents import cluster, racks, request, workers

TREE = racks(4, 3, 4, 1, 5, 2, per_block=2)
MANY_SLOTS = 70
"""Slots of a node, more than a histogram counts."""
STEPS = 10**6


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """Draw nodes with few or many slots, or all with equally many or none; one outside the tree."""
    each = MANY_SLOTS if draw(st.booleans()) else 1
    names = [*TREE.nodes, "outside"]
    many = draw(st.sampled_from([st.integers(0, 4), st.sampled_from([0, 3, 3])]))
    slots = draw(st.lists(many, min_size=len(names), max_size=len(names)))
    rows = zip(names, slots, strict=True)
    return build_snapshot(TREE, {n: NodeSpec(n, {"slots": each * many}) for n, many in rows})


@st.composite
def groups(draw: st.DrawFn) -> list[dict[str, object]]:
    """Draw a group that a node or a rack may hold, with or without slices and tiers."""
    row: dict[str, object] = {"request": {"slots": draw(st.sampled_from([1, 2, MANY_SLOTS]))}}
    size = draw(st.integers(1, 4))
    count = size * draw(st.integers(1, 5))
    tier = st.sampled_from(["node", "rack", "block"])
    if draw(st.booleans()):
        row["slices"] = [{"size": size, "tier": draw(tier)}]
    elif draw(st.booleans()):
        row["required"] = draw(tier)
    if draw(st.booleans()):
        row["preferred"] = ["rack"]
    return workers(count, **row)


@settings(max_examples=examples(150), deadline=None)
@given(snapshot=clusters(), row=groups())
def test_it_answers_as_the_full_engine_does(
    snapshot: Snapshot, row: list[dict[str, object]]
) -> None:
    parsed = request(groups=row)
    found = place_uniform_gang(snapshot, parsed)
    if found is None:
        return
    problem = build_problem(snapshot, parsed)
    best = solve(problem, Budget(STEPS))
    assert best is not None
    assert (found,) == best.positions
    assert render_placement(place(snapshot, parsed)) == render_placement(
        build_answer(problem, best)
    )


@pytest.mark.parametrize(
    ("row", "pods"),
    [
        pytest.param({"count": 1}, (11,), id="it places a pod on the tightest node"),
        pytest.param({"count": 4}, (7, 8, 9, 10), id="it places pods in the tightest rack"),
        pytest.param(
            {"count": 4, "slices": [{"size": 2, "tier": "rack"}]},
            (7, 8, 9, 10),
            id="it places slices that share a rack",
        ),
        pytest.param(
            {"count": 6}, (0, 1, 2, 3, 4, 5), id="it places pods in the first tight block"
        ),
        pytest.param({"count": 8}, None, id="it leaves gangs beyond a block to the full engine"),
        pytest.param(
            {"count": 6, "slices": [{"size": 2, "tier": "rack"}]},
            None,
            id="it leaves slices beyond a rack to the full engine",
        ),
        pytest.param(
            {"count": 4, "required": "node"}, None, id="it leaves tiers that are too narrow"
        ),
        pytest.param(
            {"count": 4, "slices": [{"size": 2}]}, None, id="it leaves slices without a tier"
        ),
        pytest.param(
            {"count": 4, "slices": [{"size": 2, "tier": "node"}]}, None, id="it leaves small slices"
        ),
    ],
)
def test_it_answers_plain_gangs_only(row: dict[str, object], pods: tuple[int, ...] | None) -> None:
    snapshot = cluster(TREE)
    assert place_uniform_gang(snapshot, request(groups=[{"name": "workers", **row}])) == pods


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"preset": "volcano"}, id="another preset"),
        pytest.param({"gang": "runs"}, id="running pods"),
        pytest.param({"max_domains": {"rack": 1}}, id="a limit"),
        pytest.param({"options": {"spare_islands": True}}, id="islands to spare"),
        pytest.param({"strategies": [["rack", "rack"]]}, id="strategies"),
        pytest.param({"groups": [*workers(1), {"name": "v", "count": 1}]}, id="several groups"),
        pytest.param({"groups": workers(1, multiple_of={"rack": 1})}, id="multiples"),
    ],
)
def test_it_leaves_other_requests_to_the_full_engine(spec: dict[str, object]) -> None:
    snapshot = cluster(TREE, runs=["n0"])
    assert place_uniform_gang(snapshot, request(**spec)) is None


def test_it_prefers_the_rack_with_the_fewest_slots_left_on_used_nodes() -> None:
    slots = {"n0": 3, "n1": 1, "n2": 2, "n3": 0, "n4": 2, "n5": 2, "n6": 2}
    nodes = {name: NodeSpec(name, {"slots": many}) for name, many in slots.items()}
    snapshot = build_snapshot(racks(4, 3), nodes)
    assert place_uniform_gang(snapshot, request(groups=workers(4))) == (0, 0, 0, 1)
    assert place(snapshot, request(groups=workers(4))).objective["fragmentation"] == {
        "node": 0,
        "rack": 2,
        "block": 8,
    }
