"""The preset `kubernetes`: which domain kube-scheduler takes, and which it takes from a sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.placement.answer import Placement
from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.engine import place
from tests.effort import examples
from tests.generator.placement.documents import cluster, racks, request

CORES = 8_000
"""Millicores of every node."""
RACK = {"preset": "kubernetes", "required": "rack"}


def snapshot_of(sizes: Sequence[int], used: Sequence[int], per_block: int = 8) -> Snapshot:
    """Return racks of nodes, of which some millicores are in use."""
    nodes = {
        f"n{index}": NodeSpec(f"n{index}", {"cpu": CORES}, {"cpu": CORES - millicores})
        for index, millicores in enumerate(used)
    }
    return cluster(racks(*sizes, per_block=per_block), nodes)


def gang(count: int, cores: int, **fields: object) -> list[dict[str, Any]]:
    return [{"name": "pods", "count": count, "request": {"cpu": cores}, **fields}]


def nodes_of(placement: Placement) -> Mapping[str, int]:
    """Return the number of pods on each node."""
    rows = placement.assignment.values()
    return dict(sorted(Counter(node for row in rows for node in row if node).items()))


def test_it_spreads_pods_inside_the_rack() -> None:
    found = place(snapshot_of([3], [0, 0, 0]), request(groups=gang(3, 2), **RACK))
    assert nodes_of(found) == {"n0": 1, "n1": 1, "n2": 1}


@pytest.mark.parametrize(("sample", "node"), [(0, "n5"), (1, "n0"), (2, "n5")])
def test_a_sample_compares_the_first_racks_with_room(sample: int, node: str) -> None:
    snapshot = snapshot_of([2, 2, 2], [0, 0, 1_000, 1_000, 5_000, 0])  # n2 and n3 have no room
    found = place(snapshot, request(groups=gang(1, 8), options={"sample": sample}, **RACK))
    assert nodes_of(found) == {node: 1}
    assert found.is_proved is (sample == 0), "racks after the sample may score better"


def test_inner_groups_take_racks_of_the_block() -> None:
    groups = [
        {"name": name, "count": 2, "request": {"cpu": 8}, "required": "rack"} for name in "ab"
    ]
    snapshot = snapshot_of([2, 2, 2, 2], [0, 0, 0, 0, 8_000, 0, 0, 0], per_block=2)
    found = place(snapshot, request(groups=groups, preset="kubernetes", required="block"))
    assert found.assignment == {"a": ("n0", "n1"), "b": ("n2", "n3")}
    assert not found.is_proved, "groups are placed one after the other"


def test_the_exact_search_answers_what_the_scheduler_cannot_place() -> None:
    groups = [
        {"name": "small", "count": 4, "request": {"cpu": 2}},
        {"name": "large", "count": 1, "request": {"cpu": 8}},
    ]
    found = place(snapshot_of([2], [0, 0]), request(groups=groups, **RACK))
    assert found.is_feasible
    assert len(set(found.assignment["small"])) == 1, "spread pods leave no room for the large one"


@settings(max_examples=examples(300), deadline=None)
@given(
    used=st.lists(st.integers(0, 8).map(lambda cores: cores * 1_000), min_size=9, max_size=9),
    count=st.integers(1, 12),
    least=st.integers(1, 12),
    cores=st.integers(1, 8),
)
def test_no_rack_has_a_better_score(used: list[int], count: int, least: int, cores: int) -> None:
    least = min(least, count)
    sizes = (3, 3, 3)
    found = place(snapshot_of(sizes, used), request(groups=gang(count, cores, min=least), **RACK))
    racks_of = [used[start : start + 3] for start in (0, 3, 6)]
    placed = [
        min(count, sum((CORES - node) // (cores * 1_000) for node in rack)) for rack in racks_of
    ]
    fitting = {rack: num for rack, num in enumerate(placed) if num >= least}
    assert found.is_feasible == bool(fitting)
    if not fitting:
        return
    most = max(fitting.values())
    scores = {
        rack: (sum(racks_of[rack]) + num * cores * 1_000) * 100 // (3 * CORES) + num * 100 // most
        for rack, num in fitting.items()
    }
    best = min(rack for rack, score in scores.items() if score == max(scores.values()))
    assert found.is_proved
    assert {int(node[1:]) // 3 for node in nodes_of(found)} == {best}
    assert sum(nodes_of(found).values()) == fitting[best]
