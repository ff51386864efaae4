"""Leaves with equal nodes: the direct choice equals the choice by the tables of counts."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.placement.answer import render_placement
from generator.placement.cluster.snapshot import NodeSpec, Snapshot, build_snapshot
from generator.placement.engine import place
from generator.placement.solve import domain_fill
from tests.effort import examples
from tests.generator.placement.documents import cluster, racks, request, workers

TREE = racks(4, 3, 4, 1, 5, 2, per_block=3)


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """Draw nodes that hold equally many pods, or none."""
    each = draw(st.integers(1, 4))
    slots = {name: each * draw(st.integers(0, 1)) for name in TREE.nodes}
    return build_snapshot(TREE, {n: NodeSpec(n, {"slots": many}) for n, many in slots.items()})


@settings(max_examples=examples(150), deadline=None)
@given(snapshot=clusters(), count=st.integers(1, 40), preset=st.sampled_from(["optimal", "kai"]))
def test_it_answers_as_the_tables_do(snapshot: Snapshot, count: int, preset: str) -> None:
    spec = {"groups": workers(count, min=min(count, 3)), "preset": preset}
    found = render_placement(place(snapshot, request(**spec)))
    with mock.patch.object(domain_fill, "_fill_even_leaves", return_value=None):
        by_tables = place(
            build_snapshot(TREE, {s.name: s for s in snapshot.specs}), request(**spec)
        )
    assert found == render_placement(by_tables)


@pytest.mark.parametrize(
    ("row", "nodes"),
    [
        pytest.param({"count": 1}, [11], id="it places a pod in the tightest rack"),
        pytest.param({"count": 4}, [0, 1, 2, 3], id="it places pods in the tightest rack"),
        pytest.param(
            {"count": 4, "slices": [{"size": 2, "tier": "rack"}]},
            [0, 1, 2, 3],
            id="it places slices that share a rack",
        ),
        pytest.param(
            {"count": 6},
            [11, 12, 13, 14, 15, 16],
            id="it places pods in the block with the fewest slots left on used racks",
        ),
    ],
)
def test_it_places_plain_gangs(row: dict[str, object], nodes: list[int]) -> None:
    found = place(cluster(TREE), request(groups=[{"name": "workers", **row}]))
    assert found.assignment["workers"] == tuple(f"n{node}" for node in nodes)


def test_it_prefers_the_rack_with_the_fewest_slots_left_on_used_nodes() -> None:
    slots = {"n0": 3, "n1": 1, "n2": 2, "n3": 0, "n4": 2, "n5": 2, "n6": 2}
    nodes = {name: NodeSpec(name, {"slots": many}) for name, many in slots.items()}
    found = place(build_snapshot(racks(4, 3), nodes), request(groups=workers(4)))
    assert found.assignment["workers"] == ("n0", "n0", "n0", "n1")
    assert found.objective["fragmentation"] == {"node": 0, "rack": 2, "block": 8}
