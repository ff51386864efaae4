"""Counts of slots while pods come and go equal those of the snapshot with the pods running."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.placement.cluster.free_capacity import FreeCapacity
from generator.placement.cluster.nodes import Exclusion, NodeSpec, RunningGang, RunningPods
from generator.placement.cluster.shapes import build_shapes
from generator.placement.cluster.snapshot import Snapshot, build_snapshot, with_running
from generator.placement.request import PlacementRequest
from tests.effort import examples
from tests.generator.placement.documents import racks, request, workers
from topology.model.errors import InvariantError

LAW = settings(max_examples=examples(60), deadline=None)
TREE = racks(3, 2, 4, per_block=2)
NEEDS = ({"slots": 1}, {"slots": 2, "memory": 3}, {"memory": 1})


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    nodes = {}
    for name in TREE.nodes:
        free = {"slots": draw(st.integers(-1, 6)), "memory": draw(st.integers(0, 9))}
        exclusion = None if draw(st.integers(0, 5)) > 0 else Exclusion.UNSCHEDULABLE
        nodes[name] = NodeSpec(
            name,
            {"slots": 8, "memory": 9},
            free,
            exclusion=exclusion,
        )
    return build_snapshot(TREE, nodes)


def request_of_kinds() -> PlacementRequest:
    rows = [{"name": f"g{index}", "count": 1, "request": need} for index, need in enumerate(NEEDS)]
    return request(groups=rows)


@LAW
@given(snapshot=snapshots(), draw=st.data())
def test_it_counts_as_a_snapshot_with_the_pods_running(
    snapshot: Snapshot, draw: st.DataObject
) -> None:
    shapes, shape_of = build_shapes(snapshot, request_of_kinds())
    free, placed = FreeCapacity(snapshot, shapes), list[RunningPods]()
    for _ in range(draw.draw(st.integers(0, 6))):
        kind = draw.draw(st.sampled_from(range(len(NEEDS))))
        open_nodes = np.flatnonzero(free.slots_by_tier(shape_of[kind])[0])
        if not len(open_nodes):
            continue
        node = int(draw.draw(st.sampled_from(open_nodes.tolist())))
        most = int(free.slots_by_tier(shape_of[kind])[0][node])
        count = draw.draw(st.integers(1, most))
        mark = len(free.changes)
        free.take(shape_of[kind], node, count)
        if draw.draw(st.booleans()):
            free.undo(mark)
            continue
        placed.append(RunningPods(snapshot.specs[node].name, NEEDS[kind], count, f"g{kind}"))
    after = with_running(snapshot, RunningGang("gang", tuple(placed)))
    expected, _ = build_shapes(after, request_of_kinds())
    for index, shape in enumerate(expected):
        for counted, tier_slots in zip(free.slots_by_tier(index), shape.slots_by_tier, strict=True):
            assert counted.tolist() == tier_slots.tolist()
    assert np.array_equal(free.free_array(), after.free)
    assert free.free_of("memory").tolist() == after.quantities("memory", counts_free=True).tolist()
    assert not free.free_of("nothing-has-it").any()


def test_it_refuses_pods_that_a_node_does_not_hold() -> None:
    snapshot = build_snapshot(racks(2), {})
    shapes, _ = build_shapes(snapshot, request(groups=workers(1)))
    free = FreeCapacity(snapshot, shapes)
    free.take(0, 1, 1)
    with pytest.raises(InvariantError, match="node 1 does not hold 1 more"):
        free.take(0, 1, 1)
