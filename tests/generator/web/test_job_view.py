"""The jobs of the page: gangs and their domains, free capacity, and the engine's own reasons."""

from __future__ import annotations

import json
from typing import Any

from generator.objects.pod_ranks import PodRank
from generator.objects.pods import BoundPod
from generator.placement.cluster.nodes import Exclusion, NodeSpec, RunningGang, RunningPods
from generator.placement.cluster.snapshot import build_snapshot
from generator.simulation.replay.replay import build_tree_of_shape
from generator.web.job_view import MAX_GANGS, build_job_view
from topology.model.tree import build_tree

GPU = "nvidia.com/gpu"
TREE = build_tree_of_shape("2x2x2")
"""Nodes node-1-1-1 to node-2-2-2: spines, leaves, nodes."""
SPECS = {node: NodeSpec(node, {GPU: 8, "cpu": 64_000}) for node in TREE.nodes}


def view_of(gangs: dict[str, list[str]] | None, **changes: NodeSpec) -> dict[str, Any]:
    nodes = SPECS | {spec.name: spec for spec in changes.values()}
    running = [
        RunningGang(name, tuple(RunningPods(node, {GPU: 8}, 1) for node in at))
        for name, at in (gangs or {}).items()
    ]
    return build_job_view(build_snapshot(TREE, nodes, running), bind(gangs))


def bind(gangs: dict[str, list[str]] | None) -> list[BoundPod] | None:
    """Return the pods of gangs, in the order of their ranks."""
    if gangs is None:
        return None
    return [
        BoundPod(name, node, None, {}, f"pod-{rank}", PodRank(indices=(rank,)))
        for name, nodes in gangs.items()
        for rank, node in enumerate(nodes)
    ]


def test_a_gang_has_the_tier_around_its_nodes_and_its_domains_per_tier() -> None:
    view = view_of(
        {
            "ml/one-leaf": ["node-1-1-1", "node-1-1-2"],
            "ml/two-leaves": ["node-2-1-1", "node-2-2-1"],
            "ml/two-spines": ["node-1-2-1", "node-2-2-2"],
            "ml/elsewhere": ["gone"],
            "ml/half": ["node-1-1-1", "gone"],
        }
    )
    leaf, spine = TREE.tiers[:2]
    rows = {row["name"]: row for row in view["gangs"]}
    assert rows["ml/one-leaf"]["tier"] == leaf
    above = dict.fromkeys(TREE.tiers, 1)
    assert rows["ml/one-leaf"]["spread"] == {"node": 2, **above}
    assert rows["ml/two-leaves"]["tier"] == spine
    assert rows["ml/two-spines"]["spread"][spine] == 2
    assert (rows["ml/elsewhere"]["pods"], rows["ml/elsewhere"]["nodes"]) == (1, [])
    assert rows["ml/elsewhere"]["numOutside"] == 1
    assert (rows["ml/half"]["tier"], rows["ml/half"]["numOutside"]) == ("cluster", 1)
    assert rows["ml/one-leaf"]["numOutside"] == 0
    assert view["numGangs"] == 5


def test_what_is_free_excludes_what_runs_and_nodes_where_no_pod_may_start() -> None:
    cordoned = NodeSpec("node-2-2-2", {GPU: 8}, exclusion=Exclusion.UNSCHEDULABLE)
    view = view_of({"ml/a": ["node-1-1-1"]}, cordoned=cordoned)
    assert (view["resource"], view["perNode"]) == (GPU, 8)
    assert view["free"] == [0, 8, 8, 8, 8, 8, 8, 0]


def test_it_says_what_each_gang_would_get_and_why_not_better() -> None:
    view = view_of({"ml/a": ["node-1-1-1"]})
    rows = {row["count"]: row for row in view["wanted"]}
    assert sorted(rows) == [1, 2, 4, 8]
    assert (rows[2]["isFeasible"], rows[2]["tier"]) == (True, TREE.tiers[0])
    assert rows[2]["quantity"] == 16
    assert (rows[4]["isFeasible"], rows[4]["tier"]) == (True, TREE.tiers[1])
    assert any(verdict == "infeasible" and needs for _, verdict, needs in rows[4]["verdicts"])
    assert not rows[8]["isFeasible"]
    assert "4 of 8 pods fit" in rows[8]["reason"]


def test_without_a_countable_resource_it_tries_no_gang() -> None:
    nodes = {node: NodeSpec(node, {"cpu": 64_000}) for node in TREE.nodes}
    view = build_job_view(build_snapshot(TREE, nodes), None)
    assert (view["perNode"], view["wanted"], view["isKnown"]) == (0, [], False)
    assert view["free"] == [0] * 8
    empty = build_job_view(build_snapshot(build_tree([], tiers=("leaf",)), {}), [])
    assert (empty["wanted"], empty["free"]) == ([], [])


def test_names_of_gangs_are_escaped_and_their_number_is_bounded() -> None:
    gangs = {f"ml/gang-{number}": ["node-1-1-1"] for number in range(MAX_GANGS + 1)}
    pods = bind({**gangs, "ml/\u202e\x1b[31m": ["node-1-1-1"]})
    view = build_job_view(build_snapshot(TREE, SPECS), pods)
    assert len(view["gangs"]) == MAX_GANGS
    assert view["numGangs"] == MAX_GANGS + 2
    assert "\x1b" not in json.dumps(view, ensure_ascii=False)
    assert "\u202e" not in json.dumps(view, ensure_ascii=False)


def test_a_gang_has_its_ring_by_rank_and_how_often_it_leaves_a_domain() -> None:
    view = view_of({"ml/a": ["node-1-1-1", "node-2-2-1", "node-1-1-2", "gone"]})
    (gang,) = view["gangs"]
    assert gang["ring"] == [0, 6, 1]
    leaf, spine = TREE.tiers[:2]
    assert gang["crossings"][:2] == [[leaf, 4, 3], [spine, 4, 3]]


def test_a_gang_whose_ranks_are_unknown_has_no_ring() -> None:
    pods = [BoundPod("ml/a", node, None, {}) for node in TREE.nodes[:3]]
    (gang,) = build_job_view(build_snapshot(TREE, SPECS), pods)["gangs"]
    assert (gang["ring"], gang["crossings"], gang["pods"]) == ([], [], 3)


def test_the_ring_of_a_gang_is_that_of_its_largest_role_with_known_ranks() -> None:
    roles = {"driver": TREE.nodes[:1], "worker": TREE.nodes[2:5], "data": TREE.nodes[5:7]}
    pods = [
        BoundPod("ml/a", node, None, {}, f"{role}-{rank}", PodRank(role, (rank,)))
        for role, nodes in roles.items()
        for rank, node in enumerate(nodes)
    ]
    (gang,) = build_job_view(build_snapshot(TREE, SPECS), pods)["gangs"]
    assert gang["ring"] == [2, 3, 4]
