"""The shares of pods per leaf and node do not depend on the block sizes of the computation."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.placement.cluster import min_cover
from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import Snapshot, build_snapshot
from generator.placement.engine import place
from generator.placement.solve import domain_dp
from tests.effort import examples
from tests.generator.placement.documents import racks, request, workers

TREE = racks(4, 3, 4, 2, 5, per_block=3)
MANY_NODES = 2_000
"""Nodes of a rack that is too large for sums of slots as bits."""


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    slots = draw(st.lists(st.integers(0, 4), min_size=18, max_size=18))
    rows = zip(TREE.nodes, slots, strict=True)
    return build_snapshot(TREE, {name: NodeSpec(name, {"slots": many}) for name, many in rows})


@pytest.mark.parametrize(
    ("module", "bound"),
    [
        pytest.param(domain_dp, "MAX_CELLS", id="sums of costs, one row per block"),
        pytest.param(min_cover, "MAX_SUM_BITS", id="sums of slots, not as bits"),
    ],
)
@settings(max_examples=examples(100), deadline=None)
@given(snapshot=clusters(), count=st.integers(1, 30), sizes=st.sampled_from([1, 2, 3]))
def test_it_finds_the_same_shares_with_every_block_size(
    module: object, bound: str, snapshot: Snapshot, count: int, sizes: int
) -> None:
    slices = [{"size": sizes, "tier": "rack"}] if sizes > 1 else []
    parsed = request(groups=workers(count * sizes, slices=slices))
    before = place(snapshot, parsed).render()
    snapshot.answers.clear()
    with mock.patch.object(module, bound, 1):
        assert place(snapshot, parsed).render() == before


def test_it_places_a_gang_that_nearly_fills_a_large_rack() -> None:
    tree = racks(MANY_NODES, 1)
    specs = {
        name: NodeSpec(name, {"slots": 1 + index % 3}) for index, name in enumerate(tree.nodes)
    }
    found = place(build_snapshot(tree, specs), request(groups=workers(2 * MANY_NODES - 90)))
    assert found.is_proved
    assert found.tier == "rack"
    assert len(set(found.assignment["workers"])) < MANY_NODES - 80
