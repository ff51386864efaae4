"""Exclusive domains: closed for other gangs, and only unused ones for a gang that wants its own."""

from __future__ import annotations

import pytest

from generator.placement.batch.joint import place_batch
from generator.placement.cluster.gang_view import view_for
from generator.placement.cluster.nodes import NodeSpec, RunningGang, RunningPods
from generator.placement.cluster.snapshot import (
    Snapshot,
    build_snapshot,
    with_nominated,
    with_running,
    without_running,
)
from generator.placement.engine import place
from tests.generator.placement.documents import cluster, racks, request, workers

TREE = racks(4, 4, 4, 4, per_block=2)


def alone(gang: str, *nodes: str, tier: str = "rack", priority: int = 0) -> RunningGang:
    pods = tuple(RunningPods(node) for node in nodes)
    return RunningGang(gang, pods, priority, exclusive=tier)


def closed(snapshot: Snapshot, gang: str = "new", **given: str | None) -> list[str]:
    """Return the nodes that a gang may not use."""
    view = view_for(snapshot, gang, 0, **given)
    found = [] if view.closed is None else view.closed.nonzero()[0].tolist()
    return [view.specs[node].name for node in found]


def test_a_domain_of_a_running_gang_is_closed_for_others_only() -> None:
    snapshot = build_snapshot(TREE, {}, [alone("owner", "n1")])
    assert closed(snapshot) == ["n0", "n1", "n2", "n3"]
    assert closed(snapshot, "owner") == []


@pytest.mark.parametrize(
    ("tier", "num_closed"),
    [("node", 1), ("rack", 4), ("block", 8), ("cluster", 16), ("a-tier-of-an-earlier-tree", 1)],
)
def test_the_tier_of_a_running_gang_decides_how_much_is_closed(tier: str, num_closed: int) -> None:
    snapshot = build_snapshot(TREE, {}, [alone("owner", "n1", tier=tier)])
    assert len(closed(snapshot)) == num_closed


def test_a_gang_that_wants_its_own_racks_gets_no_used_one() -> None:
    snapshot = cluster(TREE, plain=["n5"])
    assert closed(snapshot) == []
    assert closed(snapshot, exclusive="rack") == ["n4", "n5", "n6", "n7"]
    assert closed(snapshot, "plain", exclusive="rack") == []


@pytest.mark.parametrize(
    ("resource", "is_used"),
    [
        ("nvidia.com/gpu", True),
        ("slots", True),
        ("cpu", False),
        ("memory", False),
        ("hugepages-2Mi", False),
        ("pods", False),
    ],
)
def test_devices_in_use_make_a_rack_used_and_resources_of_the_host_do_not(
    resource: str, *, is_used: bool
) -> None:
    spec = NodeSpec("n5", {resource: 8}, free={resource: 7})
    snapshot = build_snapshot(TREE, {"n5": spec})
    assert bool(closed(snapshot, exclusive="rack")) is is_used


def test_the_closed_nodes_follow_gangs_that_start_and_end() -> None:
    empty = cluster(TREE)
    started = with_running(empty, alone("owner", "n1"))
    assert closed(started)
    assert closed(without_running(started, "owner")) == closed(empty) == []


@pytest.mark.parametrize(("priority", "is_closed"), [(0, True), (1, True), (-1, False)])
def test_nominated_pods_close_their_rack_unless_their_priority_is_lower(
    priority: int, *, is_closed: bool
) -> None:
    nomination = alone("owner", "n1", priority=priority)
    snapshot = with_nominated(cluster(TREE), {"reservation": nomination})
    assert bool(closed(snapshot)) is is_closed
    assert closed(snapshot, "owner") == []


def test_gangs_of_a_batch_keep_out_of_each_others_exclusive_racks() -> None:
    requests = [request(gang=f"g{index}", exclusive="rack") for index in range(5)]
    requests += [request(gang=f"plain{index}") for index in range(5)]
    batch = place_batch(cluster(TREE), requests)
    racks_of = [
        {int(str(node)[1:]) // 4 for node in found.assignment["workers"]}
        for found in batch.placements
        if found.is_feasible
    ]
    assert sorted(racks_of, key=min) == [{0}, {1}, {2}, {3}]
    assert [found.is_feasible for found in batch.placements] == [True] * 4 + [False] * 6


def test_the_answer_says_that_the_gang_would_fit_if_it_shared_its_racks() -> None:
    snapshot = cluster(TREE, plain=["n1", "n5", "n9", "n13"])
    found = place(snapshot, request(exclusive="rack", groups=workers(2)))
    assert found.reason is not None
    assert (found.reason.kind, found.reason.tier) == ("limit", "rack")
    assert found.alternatives[0].change == "without exclusive"
    needs = found.domain_verdicts[0].needs
    assert needs == "b0: 0 of 2 slots; needs 2 more; 8 nodes are in exclusive domains"
