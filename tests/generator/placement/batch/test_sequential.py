"""Sequential placement answers each gang as on the snapshot that the earlier gangs leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.placement.answer import Placement
from generator.placement.batch.joint import place_sequentially
from generator.placement.batch.members import PlacedGangs, without_victims
from generator.placement.batch.uniform_gangs import MIN_REPEATS, UniformGangs
from generator.placement.cluster.nodes import Exclusion, NodeSpec, RunningGang, RunningPods
from generator.placement.cluster.snapshot import (
    Snapshot,
    build_snapshot,
    with_nominated,
    with_running,
)
from generator.placement.engine import as_running_gang, place
from generator.placement.request import PlacementRequest
from tests.effort import examples
from tests.generator.placement.documents import cluster, racks, request, workers
from topology.model.errors import InvariantError

LAW = settings(max_examples=examples(60), deadline=None)
TREE = racks(4, 3, 4, 1, 5, 2, per_block=2)
NAMES = (*TREE.nodes, "outside")
MANY_SLOTS = 70
"""Slots of a node, more than a histogram counts."""


def place_on_snapshots(
    snapshot: Snapshot, requests: Sequence[PlacementRequest], *, explains: bool = True
) -> tuple[list[Placement], Snapshot]:
    """Place gangs one after the other, each on its own snapshot."""
    placements = []
    for gang_request in requests:
        found = place(snapshot, gang_request, explains=explains)
        placements.append(found)
        if found.is_feasible:
            left = without_victims(snapshot, found.victims, priority=gang_request.priority)
            snapshot = with_running(left, as_running_gang(gang_request, found))
    return placements, snapshot


def in_sequence(
    snapshot: Snapshot, requests: Sequence[PlacementRequest], *, explains: bool = True
) -> PlacedGangs:
    """Place gangs as a batch does before it moves any."""
    placed = PlacedGangs(snapshot)
    place_sequentially(placed, requests, explains=explains)
    return placed


@st.composite
def pods_on_nodes(draw: st.DrawFn, names: Sequence[str]) -> list[RunningGang]:
    """Draw gangs of one or two pods."""
    found = []
    for name in names:
        on = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True))
        rows = tuple(RunningPods(node, {"slots": 1}, group="workers") for node in sorted(on))
        found.append(RunningGang(name, rows, draw(st.sampled_from([0, 5]))))
    return found


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """Draw nodes with two resources, some cordoned or tainted, with running or nominated pods."""
    each = MANY_SLOTS if draw(st.booleans()) else 1
    has_limits = draw(st.booleans())
    nodes = {}
    for name in NAMES:
        free = {"slots": each * draw(st.integers(0, 5)), "memory": draw(st.integers(0, 9))}
        capacity = {"slots": each * 5, "memory": 9}
        if has_limits and draw(st.booleans()):
            free["pods"] = draw(st.integers(0, 3))
            capacity["pods"] = 3
        taints = ("gpu=yes:NoSchedule",) if draw(st.integers(0, 9)) == 0 else ()
        exclusion = None if draw(st.integers(0, 9)) > 0 else Exclusion.UNSCHEDULABLE
        nodes[name] = NodeSpec(
            name,
            capacity,
            free,
            taints=taints,
            exclusion=exclusion,
        )
    running = draw(pods_on_nodes(draw(st.sampled_from([(), ("old",), ("g0", "old")]))))
    nominated = draw(pods_on_nodes(draw(st.sampled_from([(), (), ("other",), ("g1", "other")]))))
    snapshot = build_snapshot(TREE, nodes, running)
    return with_nominated(snapshot, {f"id-{index}": gang for index, gang in enumerate(nominated)})


@st.composite
def request_specs(draw: st.DrawFn) -> dict[str, Any]:
    """Draw requests: plain, sliced, with unknown tiers, with evictions."""
    slots = draw(st.sampled_from([0, 1, 1, 2, MANY_SLOTS]))
    row: dict[str, Any] = {"request": {"slots": slots}}
    if draw(st.booleans()):
        row["request"]["memory"] = draw(st.integers(1, 3))
    if draw(st.integers(0, 9)) == 0:
        row["request"]["nothing-has-it"] = 1
    size = draw(st.integers(1, 3))
    if draw(st.booleans()):
        row["slices"] = [{"size": size, "tier": draw(st.sampled_from(["node", "rack", "block"]))}]
    elif draw(st.booleans()):
        row["required"] = draw(st.sampled_from(["node", "rack", "block", "planet"]))
    if draw(st.booleans()):
        row["tolerations"] = ["gpu"]
    spec: dict[str, Any] = {"groups": workers(size * draw(st.integers(1, 4)), **row)}
    if draw(st.integers(0, 4)) == 0:
        spec |= {"priority": 5, "preemption": draw(st.sampled_from(["never", "fewestVictims"]))}
    if draw(st.integers(0, 9)) == 0:
        spec["groups"] = [*spec["groups"], {"name": "more", "count": 1}]
    return spec


@LAW
@given(snapshot=clusters(), draw=st.data())
def test_it_answers_as_on_a_chain_of_snapshots(snapshot: Snapshot, draw: st.DataObject) -> None:
    specs = draw.draw(st.lists(request_specs(), min_size=1, max_size=3))
    picks = draw.draw(
        st.lists(st.sampled_from(specs), min_size=MIN_REPEATS, max_size=4 * MIN_REPEATS)
    )
    requests = [request(gang=f"g{index}", **spec) for index, spec in enumerate(picks)]
    placements, after = place_on_snapshots(snapshot, requests)
    found = in_sequence(snapshot, requests)
    assert [one.render() for one in found.placements] == [one.render() for one in placements]
    brief = in_sequence(snapshot, requests, explains=False)
    brief_placements, _ = place_on_snapshots(snapshot, requests, explains=False)
    assert list(brief.placements) == brief_placements
    for each in (found, brief):
        assert np.array_equal(each.snapshot.free, after.free)
        assert each.snapshot.running == after.running


def test_a_brief_answer_refers_to_no_snapshot() -> None:
    requests = [request(gang=f"g{index}", preset="kueue", groups=workers(3)) for index in range(3)]
    placements = in_sequence(cluster(racks(4, 4)), requests, explains=False).placements
    assert [one.is_feasible for one in placements] == [True, True, False]
    assert all(not one.objective and not one.domain_verdicts for one in placements[:2])
    assert placements[2].domain_verdicts


def test_it_distinguishes_a_gang_name_with_an_at_sign_from_pods_on_a_node() -> None:
    running = [
        RunningGang("old", (RunningPods("n0"), RunningPods("n1"))),
        RunningGang("old@n0", (RunningPods("n2"),), priority=9),
    ]
    snapshot = build_snapshot(racks(3), {}, running)
    urgent = [
        request(gang=f"g{index}", priority=5, preemption="fewestVictims", groups=workers(1))
        for index in range(2)
    ]
    after = in_sequence(snapshot, urgent).snapshot
    assert after.free.min() >= 0
    assert set(after.running) == {"old@n0", "g0", "g1"}


@pytest.mark.parametrize(
    ("num", "spec", "is_ranked"),
    [
        pytest.param(MIN_REPEATS, {}, True, id="a frequent request"),
        pytest.param(MIN_REPEATS - 1, {}, False, id="a rare request"),
        pytest.param(MIN_REPEATS, {"preset": "volcano"}, False, id="a request that is not plain"),
        pytest.param(MIN_REPEATS, {"required": "planet"}, False, id="an unknown tier"),
        pytest.param(
            MIN_REPEATS,
            {"groups": workers(1, request={"slots": 1}, required="node")},
            True,
            id="pods that need one node",
        ),
    ],
)
def test_it_ranks_leaves_for_frequent_plain_requests(
    num: int, spec: dict[str, Any], *, is_ranked: bool
) -> None:
    requests = [request(gang=f"g{index}", **spec) for index in range(num)]
    plain = UniformGangs(cluster(TREE), requests)
    assert all((plain.place(row) is not None) == is_ranked for row in requests)


def test_it_places_on_a_node_with_more_slots_than_are_counted() -> None:
    snapshot = build_snapshot(TREE, {"n0": NodeSpec("n0", {"slots": (1 << 63) - 1})})
    requests = [request(gang=f"g{index}", groups=workers(1)) for index in range(MIN_REPEATS)]
    found = UniformGangs(snapshot, requests).place(requests[0])
    assert found is not None
    assert found.assignment == place(snapshot, requests[0]).assignment


@pytest.mark.parametrize(
    ("spec", "pods"),
    [
        pytest.param({}, {0: 2}, id="more pods than a node holds"),
        pytest.param({}, {0: 1}, id="too few pods"),
        pytest.param({"required": "rack"}, {0: 1, 2: 1}, id="beyond the required tier"),
    ],
)
def test_a_wrong_answer_never_leaves(spec: dict[str, Any], pods: dict[int, int]) -> None:
    requests = [request(gang=f"g{number}", **spec) for number in range(MIN_REPEATS)]
    with (
        mock.patch.object(UniformGangs, "_best_pods", return_value=pods),
        pytest.raises(InvariantError, match=r"breaks a rule|does not hold"),
    ):
        in_sequence(cluster(racks(2, 2)), requests, explains=False)
