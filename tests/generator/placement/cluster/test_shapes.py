"""A snapshot that has changed many times answers like one that is built anew."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.placement.answer import render_placement
from generator.placement.cluster.shapes import MAX_SHAPES, STALE_DIVISOR, SlotCache
from generator.placement.cluster.snapshot import (
    NodeSpec,
    RunningGang,
    RunningPods,
    Snapshot,
    build_snapshot,
    with_nominated,
    with_running,
    without_running,
)
from generator.placement.engine import as_running_gang, place
from generator.placement.presets import Preset
from generator.placement.request import PlacementRequest
from tests.effort import examples
from tests.generator.placement.documents import racks, request, workers

TREE = racks(6, 8, 4, 6, per_block=2)
SPECS = {
    name: NodeSpec(name, {"slots": 2 + at % 3, "cpu": 8000}, labels={"zone": "ab"[at % 2]})
    for at, name in enumerate(TREE.nodes)
}
PRESETS = st.sampled_from([Preset.OPTIMAL, Preset.KUEUE, Preset.KOORDINATOR, Preset.KAI])


@st.composite
def pod_requests(draw: st.DrawFn) -> PlacementRequest:
    """Draw a request for one of few pod shapes, with a random count."""
    row: dict[str, object] = {"request": {"slots": draw(st.integers(1, 2))}}
    if draw(st.booleans()):
        row["node_selector"] = {"zone": ["a"]}
    return request(
        groups=workers(draw(st.integers(1, 9)), **row), preset=draw(PRESETS).value, gang="asks"
    )


def fresh(snapshot: Snapshot) -> Snapshot:
    return build_snapshot(TREE, SPECS, [*snapshot.running.values()], [*snapshot.nominated.values()])


@settings(max_examples=examples(40), deadline=None)
@given(steps=st.lists(st.tuples(pod_requests(), st.integers(0, 3)), min_size=2, max_size=8))
def test_it_answers_as_a_new_snapshot_does(steps: list[tuple[PlacementRequest, int]]) -> None:
    snapshot = build_snapshot(TREE, SPECS)
    for number, (question, change) in enumerate(steps):
        found = place(snapshot, question)
        assert render_placement(found) == render_placement(place(fresh(snapshot), question))
        name = f"g{number}"
        held = as_running_gang(question, found)
        gang = RunningGang(name, held.pods)
        if change == 0 and snapshot.running:
            snapshot = without_running(snapshot, next(iter(snapshot.running)))
        elif change == 1:
            snapshot = with_nominated(snapshot, {name: gang})
        elif found.is_feasible:
            snapshot = with_running(snapshot, gang)


def test_it_counts_only_the_nodes_that_changed() -> None:
    snapshot = build_snapshot(TREE, SPECS)
    place(snapshot, request(groups=workers(3)))
    gang = RunningGang("g", (RunningPods("n0"), RunningPods("n3")))
    changed = with_running(snapshot, gang)
    place(changed, request(groups=workers(2)))
    assert place(changed, request(groups=workers(24))).is_feasible
    kinds = list(snapshot.slot_cache.keys())
    assert len(kinds) == 1
    assert list(changed.slot_cache.keys()) == kinds


@pytest.mark.parametrize(
    ("num_changed", "is_kept"),
    [
        pytest.param(3, True, id="a slightly stale row is kept"),
        pytest.param(4, False, id="a very stale row is dropped"),
    ],
)
def test_it_keeps_rows_until_they_are_too_stale(num_changed: int, *, is_kept: bool) -> None:
    snapshot = build_snapshot(TREE, SPECS)
    place(snapshot, request(groups=workers(3)))
    assert len(TREE.nodes) // STALE_DIVISOR == 3
    touched = frozenset(range(num_changed))
    assert bool(list(snapshot.slot_cache.after_change(touched, len(TREE.nodes)).keys())) == is_kept


def test_it_bounds_the_number_of_cached_shapes() -> None:
    snapshot = build_snapshot(TREE, SPECS)
    for slots in range(MAX_SHAPES + 1):
        place(snapshot, request(groups=workers(1, request={"cpu": 1, "slots": slots})))
    assert len(list(snapshot.slot_cache.keys())) <= MAX_SHAPES


def test_it_distinguishes_a_view_from_its_base() -> None:
    snapshot = build_snapshot(TREE, SPECS)
    place(snapshot, request(groups=workers(3)))
    (kind,) = snapshot.slot_cache.keys()
    view = SlotCache(snapshot.slot_cache, frozenset({1, 2}))
    found, known = view.get(kind), snapshot.slot_cache.get(kind)
    assert found is not None
    assert known is not None
    assert found == (known[0], frozenset({1, 2}))
    view.store(kind, known[0])
    assert view.get(kind) == (known[0], frozenset())
    assert snapshot.slot_cache.get(kind) == (known[0], frozenset({1, 2}))
