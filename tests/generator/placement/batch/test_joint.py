"""Joint placement: no gang is worse off than in sequence, and all gangs together span less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.placement.answer import Placement
from generator.placement.batch.joint import BatchOptions, place_batch
from generator.placement.batch.members import fewest_bins
from generator.placement.cluster.nodes import RunningGang, RunningPods
from generator.placement.cluster.snapshot import Snapshot, with_running
from generator.placement.cluster.snapshot import without_running as without
from generator.placement.engine import as_running_gang, place
from generator.placement.request import PlacementRequest
from tests.effort import examples
from tests.generator.placement.batches import fits, gang, nodes_of, snapshot_of, span_of
from tests.generator.placement.documents import ReadingClock
from topology.model.errors import InvariantError

LAW = settings(max_examples=examples(60), deadline=None)
SMALL_BUDGET = 60
"""A small budget that keeps these tests fast."""


def place_in_sequence(snapshot: Snapshot, requests: Sequence[PlacementRequest]) -> list[Placement]:
    """Place gangs one after the other, by priority, then in the given order."""
    found: dict[str, Placement] = {}
    for request in sorted(requests, key=lambda request: -request.priority):
        placement = place(snapshot, request)
        found[request.gang] = placement
        if placement.is_feasible:
            snapshot = with_running(snapshot, as_running_gang(request, placement))
    return [found[request.gang] for request in requests]


def cost_by_priority(
    requests: Sequence[PlacementRequest], placements: Sequence[Placement]
) -> list[tuple[int, int]]:
    """Return (gangs without a place, span) per priority, the highest first."""
    found = []
    for priority in sorted({request.priority for request in requests}, reverse=True):
        rows = [
            placement
            for request, placement in zip(requests, placements, strict=True)
            if request.priority == priority
        ]
        found.append((sum(not row.is_feasible for row in rows), span_of(rows)))
    return found


@st.composite
def batches(draw: st.DrawFn) -> tuple[Snapshot, list[PlacementRequest]]:
    """Draw a cluster of two spines, and up to five plain and other gangs."""
    leaf = st.lists(st.integers(0, 2), min_size=2, max_size=3)
    spines = draw(st.lists(st.lists(leaf, min_size=1, max_size=3), min_size=1, max_size=2))
    requests = []
    for index in range(draw(st.integers(1, 5))):
        counts = draw(st.lists(st.integers(1, 5), min_size=1, max_size=2))
        spec: dict[str, object] = {"priority": draw(st.sampled_from([0, 0, 5]))}
        spec |= draw(
            st.sampled_from(
                [
                    {},
                    {},
                    {"required": "leaf"},
                    {"required": "spine"},
                    {"strategies": [["leaf", "leaf"]]},
                ]
            )
        )
        requests.append(
            gang(f"gang-{index}", *counts, slots=draw(st.sampled_from([1, 1, 2])), **spec)
        )
    return snapshot_of(spines, slots=2), requests


@LAW
@given(batch=batches())
def test_it_is_never_worse_than_in_sequence(
    batch: tuple[Snapshot, list[PlacementRequest]],
) -> None:
    snapshot, requests = batch
    single, found = (
        place_in_sequence(snapshot, requests),
        place_batch(snapshot, requests, options=BatchOptions(SMALL_BUDGET)),
    )
    highest = max(request.priority for request in requests)
    for request, alone, jointly in zip(requests, single, found.placements, strict=True):
        if request.priority == highest:
            assert jointly.is_feasible >= alone.is_feasible
            assert len(nodes_of(jointly)) >= len(nodes_of(alone))
    assert cost_by_priority(requests, found.placements) <= cost_by_priority(requests, single)
    assert fits(snapshot, requests, found.placements)


@LAW
@given(batch=batches())
def test_gangs_of_low_priority_take_nothing_from_those_above_them(
    batch: tuple[Snapshot, list[PlacementRequest]],
) -> None:
    snapshot, requests = batch
    options = BatchOptions(SMALL_BUDGET)
    lowest = min(request.priority for request in requests)
    above = [request for request in requests if request.priority > lowest]
    both = place_batch(snapshot, requests, options=options).placements
    of_gang = {request.gang: row for request, row in zip(requests, both, strict=True)}
    alone = place_batch(snapshot, above, options=options).placements
    jointly = [of_gang[request.gang] for request in above]
    for before, after in zip(alone, jointly, strict=True):
        assert len(nodes_of(after)) >= len(nodes_of(before))
        if before.tier is not None and after.tier is not None:
            tiers = snapshot.levels.tiers
            assert tiers.index(after.tier) <= tiers.index(before.tier)
    assert cost_by_priority(above, jointly) <= cost_by_priority(above, alone)


@pytest.mark.parametrize(("priority", "tier_of_urgent"), [(0, "node"), (9, "leaf")])
def test_a_gang_of_low_priority_does_not_take_the_one_node_that_another_shares(
    priority: int, tier_of_urgent: str
) -> None:
    """All places in the leaf have one span, so only the tier says that `urgent` would lose."""
    snapshot = snapshot_of([[[2, 1, 1]]], slots=2)
    urgent, low = gang("urgent", 2, priority=9), gang("low", 2, required="node", priority=priority)
    found = place_batch(snapshot, [urgent, low]).placements
    assert found[0].tier == tier_of_urgent
    assert found[1].is_feasible == (tier_of_urgent == "leaf")


@pytest.mark.parametrize(("priority", "tier_of_pair"), [(0, "node"), (9, "leaf")])
def test_a_gang_of_low_priority_does_not_take_the_node_of_a_group(
    priority: int, tier_of_pair: str
) -> None:
    snapshot = snapshot_of([[[2, 1, 1, 1]]], slots=2)
    urgent = gang("urgent", 2, 1, priority=9)
    low = gang("low", 2, required="node", priority=priority)
    found = place_batch(snapshot, [urgent, low]).placements
    assert found[0].objective["histogram"] == (
        {"node": 2} if tier_of_pair == "node" else {"leaf": 1, "node": 1}
    )


def test_a_gang_of_high_priority_is_placed_before_others_take_what_it_needs() -> None:
    """`first` takes the leaf that `second` needs; `low` would take the room that it can move to."""
    snapshot = snapshot_of([[[1] * 4, [1] * 6, [1]]])
    first, second = gang("first", 5, priority=5), gang("second", 6, priority=5, required="leaf")
    low = gang("low", 2)
    found = place_batch(snapshot, [low, first, second]).placements
    assert [row.is_feasible for row in found] == [False, True, True]


@LAW
@given(batch=batches())
def test_it_restores_the_cluster_after_all_gangs_end(
    batch: tuple[Snapshot, list[PlacementRequest]],
) -> None:
    snapshot, requests = batch
    after = place_batch(snapshot, requests, options=BatchOptions(SMALL_BUDGET)).snapshot
    for request in requests:
        after = without(after, request.gang)
    assert np.array_equal(after.free, snapshot.free)
    assert after.running == snapshot.running


@LAW
@given(batch=batches(), draw=st.data())
def test_it_ignores_the_given_order_between_priorities(
    batch: tuple[Snapshot, list[PlacementRequest]], draw: st.DataObject
) -> None:
    snapshot, requests = batch
    queue = sorted(requests, key=lambda request: -request.priority)
    rest = {
        priority: [request for request in requests if request.priority == priority]
        for priority in {request.priority for request in requests}
    }
    order = draw.draw(st.permutations([request.priority for request in requests]))
    shuffled = [rest[priority].pop(0) for priority in order]
    first = place_batch(snapshot, queue, options=BatchOptions(SMALL_BUDGET))
    second = place_batch(snapshot, shuffled, options=BatchOptions(SMALL_BUDGET))
    by_gang = dict(zip([request.gang for request in shuffled], second.placements, strict=True))
    for request, placement in zip(queue, first.placements, strict=True):
        assert by_gang[request.gang].assignment == placement.assignment


@LAW
@given(
    leaves=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    more=st.integers(1, 3),
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=5),
)
def test_it_places_no_fewer_pods_with_more_capacity(
    leaves: list[int], more: int, sizes: list[int]
) -> None:
    requests = [gang(f"gang-{index}", size) for index, size in enumerate(sizes)]
    placed = []
    for widths in (leaves, [*leaves, more]):
        found = place_batch(
            snapshot_of([[[1] * width for width in widths]]),
            requests,
            options=BatchOptions(SMALL_BUDGET),
        )
        placed.append(sum(len(nodes_of(row)) for row in found.placements))
    assert placed[0] <= placed[1]


def test_it_fills_many_bins_with_the_largest_and_one_tight_fit() -> None:
    rooms = [3] * 70 + [2, 1]
    assert fewest_bins(np.array(rooms), range(len(rooms)), 10) == [0, 1, 2, 71]


def test_it_places_a_gang_that_an_earlier_gang_displaced() -> None:
    snapshot = snapshot_of([[[2, 2], [1] * 5]], slots=2)
    small, large = gang("small", 2, required="leaf"), gang("large", 2, slots=2, required="leaf")
    assert [row.is_feasible for row in place_in_sequence(snapshot, [small, large])] == [True, False]
    found = place_batch(snapshot, [small, large])
    assert [row.is_feasible for row in found.placements] == [True, True]
    assert found.num_moved == 2
    assert not any(row.is_proved for row in found.placements)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"preset": "kueue"}, id="of another preset"),
        pytest.param({"strategies": [["leaf", "leaf"]]}, id="with strategies"),
    ],
)
def test_it_does_not_move_a_gang(spec: dict[str, Any]) -> None:
    snapshot = snapshot_of([[[2, 2], [1] * 5]], slots=2)
    small = gang("small", 2, required="leaf", **spec)
    large = gang("large", 2, slots=2, required="leaf")
    single = place_in_sequence(snapshot, [small, large])
    found = place_batch(snapshot, [small, large])
    assert found.placements[0].assignment == single[0].assignment
    assert found.num_moved == 0


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        pytest.param([2, 1, 1], [True, True], id="moved to an equally close place"),
        pytest.param([1] * 5, [True, False], id="not moved to a higher tier"),
    ],
)
def test_it_moves_a_gang_in_slices(second: list[int], expected: list[bool]) -> None:
    snapshot = snapshot_of([[[2, 2], second]], slots=2)
    slices = {"slices": [{"size": 1, "tier": "leaf"}]}
    row = {"name": "g0", "count": 2, "request": {"slots": 1}, "required": "leaf"} | slices
    requests = [gang("small", groups=[row]), gang("large", 2, slots=2, required="leaf")]
    assert [row.is_feasible for row in place_in_sequence(snapshot, requests)] == [True, False]
    found = place_batch(snapshot, requests)
    assert [row.is_feasible for row in found.placements] == expected


def test_it_evicts_as_in_sequence() -> None:
    victim = RunningGang("victim", (RunningPods("node-0-0-0"), RunningPods("node-0-0-1")))
    snapshot = with_running(snapshot_of([[[1, 1], [1, 0]]]), victim)
    urgent = gang("urgent", 2, priority=9, required="leaf", preemption="topologyFirst")
    found = place_batch(snapshot, [gang("calm", 1), urgent])
    assert found.placements[1].victims == ("victim",)
    assert "victim" not in found.snapshot.running
    assert sorted(found.snapshot.running) == ["calm", "urgent"]


def test_it_evicts_a_gang_from_one_of_its_two_nodes() -> None:
    victim = RunningGang("victim", (RunningPods("node-0-0-0"), RunningPods("node-0-1-0")))
    snapshot = with_running(snapshot_of([[[1, 1], [1, 0]]]), victim)
    urgent = gang("urgent", 2, priority=9, required="leaf", preemption="topologyFirst")
    found = place_batch(snapshot, [urgent])
    assert found.placements[0].victims == ("victim@node-0-0-0",)
    assert [row.node for row in found.snapshot.running["victim"].pods] == ["node-0-1-0"]


def test_it_respects_capacity_reserved_for_other_gangs() -> None:
    kept = RunningGang("kept", (RunningPods("node-0-0-0"), RunningPods("node-0-0-1")), priority=3)
    snapshot = replace(snapshot_of([[[1] * 3, [1] * 3, [1] * 2]]), nominated={"kept": kept})
    found = place_batch(snapshot, [gang("first", 4), gang("second", 2)])
    taken = {node for row in found.placements for node in nodes_of(row)}
    assert len(taken) == 6
    assert not taken & {"node-0-0-0", "node-0-0-1"}


def test_it_gives_the_reason_for_an_infeasible_gang() -> None:
    found = place_batch(snapshot_of([[[1] * 3]]), [gang("huge", 9), gang("small", 2)])
    assert found.placements[0].reason is not None
    assert found.placements[1].is_feasible
    assert not found.is_proved


def test_it_moves_no_gang_after_the_deadline() -> None:
    snapshot = snapshot_of([[[2, 2], [1] * 5]], slots=2)
    small, large = gang("small", 2, required="leaf"), gang("large", 2, slots=2, required="leaf")
    found = place_batch(snapshot, [small, large], clock=ReadingClock(), deadline_s=0.5)
    assert [row.is_feasible for row in found.placements] == [True, False]


def test_it_refuses_two_requests_for_one_gang() -> None:
    with pytest.raises(InvariantError):
        place_batch(snapshot_of([[[1]]]), [gang("same", 1), gang("same", 1)])


def test_it_answers_an_empty_batch() -> None:
    found = place_batch(snapshot_of([[[1]]]), [])
    assert (found.placements, found.span, found.is_proved) == ((), 0, True)
