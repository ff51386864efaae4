"""A snapshot that has changed many times answers like one that is built anew."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from generator.placement.cluster.nodes import NodeSpec, RunningGang, RunningPods
from generator.placement.cluster.snapshot import (
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
from tests.generator.placement.documents import cluster, racks, request, workers

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
        assert found.render() == place(fresh(snapshot), question).render()
        name = f"g{number}"
        held = as_running_gang(question, found)
        gang = RunningGang(name, held.pods)
        if change == 0 and snapshot.running:
            snapshot = without_running(snapshot, next(iter(snapshot.running)))
        elif change == 1:
            snapshot = with_nominated(snapshot, {name: gang})
        elif found.is_feasible:
            snapshot = with_running(snapshot, gang)


def test_a_view_and_its_base_count_for_themselves() -> None:
    base = cluster(racks(2, 2))
    kept = RunningGang("kept", (RunningPods("n0"),), 100)
    view = with_nominated(base, {"reservation": kept})
    asked = request(groups=workers(3, required="cluster"))
    for _ in range(2):
        assert place(view, asked).assignment == {"workers": ("n1", "n2", "n3")}
        assert place(base, asked).assignment == {"workers": ("n0", "n1", "n2")}
