"""Answers as JSON documents, islands, and tiers by number."""

from __future__ import annotations

import json

import pytest

from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import build_snapshot
from generator.placement.engine import place
from generator.placement.presets import PRESETS, Preset
from tests.generator.placement.documents import cluster, racks, request, workers
from topology.model.tree import build_tree


def test_it_prints_the_document_of_an_answer() -> None:
    found = place(cluster(racks(2, 3, 2, 2)), request(groups=workers(3, min=2))).render()
    assert json.loads(json.dumps(found)) == {
        "feasible": True,
        "assignment": {"workers": ["n2", "n3", "n4"]},
        "tier": "rack",
        "objective": {
            "placed": 3,
            "strategy": 0,
            "existing": {"block": 0, "rack": 0, "node": 0},
            "job_tier": "rack",
            "group_tier": "rack",
            "histogram": {"rack": 1},
            "preferred_misses": 0,
            "domains": {"block": 1, "rack": 1, "node": 3},
            "surplus": 0,
            "surplus_parents": [2],
            "fragmentation": {"node": 0, "rack": 0, "block": 2},
            "names": 2,
        },
        "proved": True,
        "victims": [],
        "reason": None,
        "alternatives": [],
        "domains": [
            {"name": "r1", "verdict": "chosen", "needs": "3 of 3 slots"},
            {"name": "r0", "verdict": "infeasible", "needs": "r0: 2 of 3 slots; needs 1 more"},
            {"name": "r2", "verdict": "infeasible", "needs": "r2: 2 of 3 slots; needs 1 more"},
            {"name": "r3", "verdict": "infeasible", "needs": "r3: 2 of 3 slots; needs 1 more"},
        ],
    }


@pytest.mark.parametrize(
    ("spec", "is_feasible"),
    [
        pytest.param({}, False, id="not by default"),
        pytest.param({"across_islands": True}, True, id="if the request allows it"),
        pytest.param({"required": "cluster"}, True, id="if the cluster is the required tier"),
        pytest.param(
            {"strategies": [["block", "rack"], ["cluster", "cluster"]]},
            True,
            id="if a strategy names the cluster",
        ),
        pytest.param({"preferred": ["cluster"]}, False, id="not for a preferred tier"),
    ],
)
def test_it_crosses_islands_only_when_asked(spec: dict[str, object], *, is_feasible: bool) -> None:
    snapshot = cluster(racks(2, 2, per_block=1))
    assert place(snapshot, request(groups=workers(4), **spec)).is_feasible is is_feasible


@pytest.mark.parametrize("tier", [1, "1", "rack"])
def test_it_takes_tiers_by_name_and_by_number(tier: int | str) -> None:
    found = place(cluster(racks(1, 3)), request(groups=workers(3), required=tier))
    assert found.assignment == {"workers": ("n1", "n2", "n3")}


def test_it_uses_nodes_outside_the_tree_only_without_any_tier() -> None:
    snapshot = cluster(racks(1), {"out": NodeSpec("out", {"slots": 2})})
    assert place(snapshot, request()).assignment == {"workers": ("out", "out")}
    assert not place(snapshot, request(preferred=["rack"])).is_feasible


@pytest.mark.parametrize("preset", [row for row in Preset if PRESETS[row].takes_unplaced_last])
def test_it_takes_a_node_without_a_place_last_among_equals(preset: str) -> None:
    out = {"a0": NodeSpec("a0", {"slots": 1}), "a1": NodeSpec("a1", {"slots": 4})}
    snapshot = cluster(racks(2, 2), out)

    def assign(count: int) -> set[str | None]:
        found = place(snapshot, request(groups=workers(count), preset=preset))
        assert {row.node for row in found.unplaced} == out.keys() & found.assignment["workers"]
        return set(found.assignment["workers"])

    assert assign(1) < set(snapshot.tree.nodes)
    assert assign(4) in ({"a1"}, set(snapshot.tree.nodes))  # one node is closer than two racks


def test_it_answers_on_a_cluster_without_nodes() -> None:
    empty = build_snapshot(build_tree([], tiers=("rack",)), {})
    reasons = [place(empty, request(**spec)).reason for spec in ({}, {"required": "rack"})]
    assert [reason.kind for reason in reasons if reason] == ["no-fit", "no-domain"]
