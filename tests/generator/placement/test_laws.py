"""Laws of snapshots and placements that hold on any cluster."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.placement.answer import Placement
from generator.placement.cluster.nodes import RunningGang, RunningPods
from generator.placement.cluster.snapshot import (
    Snapshot,
    build_snapshot,
    with_running,
    without_running,
)
from generator.placement.engine import as_running_gang, place
from generator.placement.presets import Preset
from generator.placement.request import parse_request
from tests.effort import examples
from tests.generator.placement.referee import Scene
from tests.generator.placement.scenes import TIERS, document_of, scenes, snapshot_of, tree_of

LAW = settings(max_examples=examples(60), deadline=None)


def placed(scene: Scene, snapshot: Snapshot | None = None) -> Placement:
    request = parse_request(document_of(scene, Preset.OPTIMAL))
    return place(snapshot or snapshot_of(scene), request)


def same(one: Snapshot, other: Snapshot) -> bool:
    return (
        one.specs == other.specs
        and one.resources == other.resources
        and bool(np.array_equal(one.free, other.free))
        and one.running == other.running
    )


@LAW
@given(scene=scenes(), draw=st.data())
def test_it_answers_the_same_for_any_order_of_nodes_and_pods(
    scene: Scene, draw: st.DataObject
) -> None:
    snapshot = snapshot_of(scene)
    specs = draw.draw(st.permutations(snapshot.specs))
    paths = draw.draw(st.permutations(list(scene.paths.items())))
    running = [
        replace(gang, pods=tuple(draw.draw(st.permutations(gang.pods))))
        for gang in snapshot.running.values()
    ]
    tree = tree_of(dict(paths), TIERS[: scene.root - 1])
    shuffled = build_snapshot(tree, {spec.name: spec for spec in specs}, running)
    assert same(snapshot, shuffled)
    assert placed(scene, shuffled).render() == placed(scene).render()


@LAW
@given(scene=scenes(), position=st.integers(0, 7))
def test_it_never_gets_worse_with_more_capacity(scene: Scene, position: int) -> None:
    before = placed(scene)
    node = scene.nodes[position % len(scene.nodes)]
    after = placed(replace(scene, slots={**scene.slots, node: scene.slots[node] + 1}))
    if not before.is_feasible:
        return
    assert after.is_feasible
    reached = [(-_number(row, "placed"), _number(row, "strategy")) for row in (after, before)]
    assert reached[0] <= reached[1]
    if reached[0] == reached[1] and not scene.own:
        tiers = ("node", *TIERS[: scene.root - 1], "cluster")
        assert tiers.index(after.tier or "") <= tiers.index(before.tier or "")


def _number(placement: Placement, key: str) -> int:
    value = placement.objective[key]
    assert isinstance(value, int)
    return value


@LAW
@given(scene=scenes())
def test_it_restores_the_snapshot_when_a_placed_gang_ends(scene: Scene) -> None:
    scene = replace(scene, own=())
    before = snapshot_of(scene)
    found = placed(scene, before)
    request = parse_request(document_of(scene, Preset.OPTIMAL))
    gang = as_running_gang(request, found)
    taken = with_running(before, gang)
    assert same(without_running(taken, "job"), before)
    fresh = build_snapshot(before.tree, {spec.name: spec for spec in before.specs}, [gang])
    assert same(taken, fresh)
    assert int(before.free.sum() - taken.free.sum()) == sum(
        pods.count * sum(pods.request.values()) for pods in gang.pods
    )


def test_it_merges_further_pods_into_a_running_gang() -> None:
    tree = tree_of({"n0": (0,), "n1": (0,)}, ("leaf",))
    one = RunningGang("job", (RunningPods("n1"),))
    more = RunningGang("job", (RunningPods("n0"),))
    both = RunningGang("job", (RunningPods("n0"), RunningPods("n1")))
    grown = with_running(build_snapshot(tree, {}, [one]), more)
    assert same(grown, build_snapshot(tree, {}, [both]))
    assert without_running(grown, "nobody") is grown
