"""A deadline is kept, also while a request is prepared and explained: counted, not timed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Any, Self

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.placement import engine
from generator.placement.budget import MAX_DELAY_S, MAX_DELAY_SHARE
from generator.placement.cluster.nodes import NodeSpec, RunningGang, RunningPods
from generator.placement.cluster.snapshot import Snapshot, build_snapshot
from generator.placement.engine import place
from generator.placement.presets import Preset
from generator.placement.request import parse_request
from generator.simulation.replay.replay import build_tree_of_shape
from tests.effort import examples
from tests.generator.placement.documents import cluster, document, racks, request
from tests.random_cases.draw import draw_case
from tests.vectors import scenes as random_cases

SHAPES = {1_000: "5x10x20", 10_000: "10x40x25"}
"""Trees by number of nodes."""
S_PER_CALL = 2e-7
"""Time of one call, of Python or of C; those that read arrays take longer, and few are needed."""


class CallClock:
    """A clock that advances with the calls that are made: the same on every machine."""

    def __init__(self) -> None:
        self._calls = 0

    def __enter__(self) -> Self:
        self._before = sys.getprofile()
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)

    def _count(self, _frame: FrameType, event: str, _arg: object) -> None:
        self._calls += event in {"call", "c_call"}

    def __call__(self) -> float:
        return self._calls * S_PER_CALL


@cache
def used_cluster(nodes: int) -> Snapshot:
    """Return a cluster of which no two nodes have the same free, with gangs on a quarter of it."""
    tree = build_tree_of_shape(SHAPES[nodes])
    specs = {
        name: NodeSpec(
            name,
            {"gpu": 8, "cpu": 96_000, "memory": 2000},
            {
                "gpu": (0, 1, 2, 4, 8)[at * 7919 % 5],
                "cpu": (1 + at * 6101 % 96) * 1000,
                "memory": 50 + at * 7907 % 1950,
            },
            labels={"zone": "ab"[at % 2]},
        )
        for at, name in enumerate(tree.nodes)
    }
    gangs = [
        RunningGang(f"run-{at}", (RunningPods(name, {"gpu": 1 + at % 2}),), at % 3)
        for at, name in enumerate(tree.nodes[::4])
    ]
    return build_snapshot(tree, specs, gangs)


@st.composite
def groups(draw: st.DrawFn, name: str, most: int) -> dict[str, Any]:
    """Draw a group of pods."""
    needs = {"gpu": (0, 1, 4, 8), "cpu": (1, 7, 20), "memory": (0, 333)}
    need = {kind: draw(st.sampled_from(amounts)) for kind, amounts in needs.items()}
    count = draw(st.integers(1, most))
    row: dict[str, Any] = {"name": name, "count": count, "request": need}
    kind = draw(st.sampled_from(["plain", "plain", "min", "slices", "required", "zone"]))
    tier = draw(st.sampled_from(["leaf", "spine"]))
    bounds: dict[str, dict[str, Any]] = {
        "plain": {},
        "min": {"min": draw(st.integers(1, count))},
        "slices": {"count": 2 * count, "slices": [{"size": 2, "tier": tier}]},
        "required": {"required": tier},
        "zone": {"node_selector": {"zone": "a"}},
    }
    return row | bounds[kind]


@st.composite
def hard_requests(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the fields of a request that may take long."""
    shape = draw(st.sampled_from(["one", "few", "few", "parent", "many"]))
    most, sizes = {"one": (4000, (1, 1)), "few": (300, (2, 6)), "parent": (6, (2, 40))}.get(
        shape, (20, (20, 100))
    )
    rows = [draw(groups(f"g{index}", most)) for index in range(draw(st.integers(*sizes)))]
    if shape == "parent":
        rows = [{"name": "p", "children": rows, "min": draw(st.integers(1, len(rows)))}]
    spec: dict[str, Any] = {
        "groups": rows,
        "preset": draw(st.just("optimal") | st.sampled_from([preset.value for preset in Preset])),
        "deadline_s": draw(st.sampled_from([0.02, 0.05, 0.2])),
    }
    if draw(st.booleans()):
        spec |= {"priority": 5, "preemption": draw(st.sampled_from(["fewestVictims", "perDomain"]))}
    if draw(st.booleans()):
        spec["max_domains"] = {"leaf": draw(st.integers(1, 30))}
    return spec


def delay_of(nodes: int, spec: dict[str, Any]) -> float:
    """Return how much later than its deadline a request is answered, as a share of the allowed."""
    snapshot, parsed = used_cluster(nodes), request(**spec)
    snapshot.answers.clear()
    with CallClock() as clock:
        started_s = clock()
        place(snapshot, parsed, clock=clock)
        taken_s = clock() - started_s
    deadline_s: float = spec["deadline_s"]
    return (taken_s - deadline_s) / max(MAX_DELAY_S, MAX_DELAY_SHARE * deadline_s)


@settings(max_examples=examples(30), deadline=None)
@given(spec=hard_requests())
def test_it_keeps_deadlines_on_a_thousand_nodes(spec: dict[str, Any]) -> None:
    assert delay_of(1_000, spec) <= 1


@pytest.mark.long
@settings(max_examples=examples(30), deadline=None)
@given(spec=hard_requests())
def test_it_keeps_deadlines_on_ten_thousand_nodes(spec: dict[str, Any]) -> None:
    assert delay_of(10_000, spec) <= 1


class JumpClock:
    """A clock that stands still for some reads, and then jumps past every deadline."""

    def __init__(self, num_reads: int) -> None:
        self._num_reads = num_reads

    def __call__(self) -> float:
        self._num_reads -= 1
        return 0.0 if self._num_reads >= 0 else 3600.0


NUM_READS, NUM_STEPS = st.integers(1, 60), st.integers(1, 600)


def check_the_proof(
    snapshot: Callable[[], Snapshot], document: dict[str, Any], num_reads: int, num_steps: int
) -> None:
    """Check that an answer which is proved with little time or work is the answer with more."""
    limited = parse_request({**document, "spec": {**document["spec"], "deadline_s": 0.05}})
    best = place(snapshot(), limited)
    answers = [place(snapshot(), limited, clock=JumpClock(num_reads))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "SEARCH_STEPS", num_steps)
        patch.setattr(engine, "GREEDY_STEPS", num_steps)
        answers.append(place(snapshot(), limited))
    for found in answers:
        if found.is_proved:
            assert found.assignment == best.assignment
            assert found.victims == best.victims
            assert found.objective == best.objective


@settings(max_examples=examples(500), deadline=None)
@given(
    seed=st.integers(0, 100_000),
    preset=st.sampled_from(sorted(Preset)),
    least=st.integers(0, 3),
    num_reads=NUM_READS,
    num_steps=NUM_STEPS,
)
def test_an_answer_that_is_proved_with_little_work_is_the_best(
    seed: int, preset: Preset, least: int, num_reads: int, num_steps: int
) -> None:
    case = draw_case(seed)
    asked = random_cases.document_of(case, preset)
    asked["spec"]["min"] = min(least, len(asked["spec"]["groups"]))
    check_the_proof(lambda: random_cases.snapshot_of(case), asked, num_reads, num_steps)


@pytest.mark.parametrize("preset", sorted(Preset))
def test_a_walk_that_places_fewer_pods_is_not_proved_unless_the_search_ends(preset: Preset) -> None:
    groups = [
        {"name": "first", "count": 1, "request": {"slots": 2}},
        {"name": "second", "count": 2, "min": 1, "required": "node"},
    ]
    nodes = {"n0": NodeSpec("n0", {"slots": 3}), "n1": NodeSpec("n1", {"slots": 2})}
    spec = document(groups=groups, preset=preset)
    for num_reads in range(0, 60, 4):
        check_the_proof(
            lambda: cluster(racks(2), nodes), spec, num_reads=num_reads + 1, num_steps=5 * num_reads
        )
