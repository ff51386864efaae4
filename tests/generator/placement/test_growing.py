"""Slices of a gang that partly runs: why there is no place for its new pods."""

from __future__ import annotations

from typing import Any

from generator.placement.cluster.nodes import NodeSpec, RunningGang, RunningPods
from generator.placement.cluster.snapshot import build_snapshot
from generator.placement.engine import place
from tests.generator.placement.documents import racks, request, workers
from topology.model.tree import DomainSpec, TopologyTree, build_tree

Running = list[tuple[str, int | None]]
"""Running pods, as (node, index) or (node, None)."""
PAIRS: list[dict[str, Any]] = [{"size": 2, "tier": "rack", "indexed": True}]


def answer(
    tree: TopologyTree, running: Running, count: int, slices: list[dict[str, Any]]
) -> object:
    """Return the nodes of new pods, or (kind of reason, tier)."""
    pods = [RunningPods(node, indices=() if index is None else (index,)) for node, index in running]
    nodes = {name: NodeSpec(name, {"slots": 4}) for name in tree.nodes}
    snapshot = build_snapshot(tree, nodes, [RunningGang("job", tuple(pods))])
    groups = workers(count, slices=slices)
    found = place(snapshot, request(gang="job", groups=groups, across_islands=True))
    if found.reason is not None:
        return found.reason.kind, found.reason.tier
    return found.assignment["workers"]


def test_it_reports_that_no_new_pod_can_complete_slices_in_three_racks() -> None:
    fours: list[dict[str, Any]] = [{"size": 4, "tier": "rack", "remainder": "short"}]
    running: Running = [("n0", None), ("n2", None), ("n4", None)]
    assert answer(racks(2, 2, 2), running, 1, fours) == ("stale", "rack")


def test_it_reports_the_tier_that_running_pods_of_a_slice_violate() -> None:
    slices = [{"size": 3, "tier": "rack", "indexed": True}]
    assert answer(racks(2, 2), [("n0", 0), ("n2", 1)], 1, slices) == ("conflict", "rack")


def test_it_reports_a_slice_that_no_longer_fits() -> None:
    full: Running = [("n0", 0), *[("n0", index) for index in (2, 3, 4)], ("n1", 5)]
    full += [("n1", index) for index in (6, 7, 8)]
    assert answer(racks(2, 2), full, 1, PAIRS) == ("stale", "rack")


def test_it_finds_nothing_if_a_running_pod_is_outside_all_domains_of_a_slice() -> None:
    specs = [DomainSpec("b", 2, None, ("n9",)), DomainSpec("r", 1, "b", ("n0", "n1"))]
    tree = build_tree(specs, tiers=("rack", "block"))
    plain = [{"size": 2, "tier": "rack"}]
    assert answer(tree, [("n9", None)] * 2, 2, plain) == ("conflict", "rack")
