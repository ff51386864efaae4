"""Slices of a gang that runs in part: by domain, by index, with a short one, in several layers.

Each row is a cluster, where pods run, and what new ones are given:

- `at`: running pods, as (node, index) or (node, None);
- `slices`, `count`: of the request;
- `expected`: the nodes of the new pods in order, or the kind of reason and its tier.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from generator.placement.cluster.snapshot import NodeSpec, RunningGang, RunningPods, build_snapshot
from generator.placement.engine import place
from generator.placement.presets import Preset
from tests.effort import examples
from tests.generator.placement.documents import cluster, racks, request, workers
from tests.generator.placement.referee import Scene
from tests.generator.placement.scenes import growing_scenes
from tests.generator.placement.test_optimum import check
from topology.model.tree import DomainSpec, TopologyTree, build_tree

Running = list[tuple[str, int | None]]
PAIRS: list[dict[str, Any]] = [{"size": 2, "tier": "rack", "indexed": True}]
FOURS: list[dict[str, Any]] = [{"size": 4, "tier": "rack", "remainder": "short"}]
LAYERS: list[dict[str, Any]] = [
    {"size": 4, "tier": "block", "indexed": True},
    {"size": 2, "tier": "rack", "indexed": True},
]


def answer(tree: TopologyTree, at: Running, count: int, slices: list[dict[str, Any]]) -> object:
    """Return the nodes of new pods, or (kind of reason, tier)."""
    pods = [RunningPods(node, indices=() if index is None else (index,)) for node, index in at]
    nodes = {name: NodeSpec(name, {"slots": 4}) for name in tree.nodes}
    snapshot = build_snapshot(tree, nodes, [RunningGang("job", tuple(pods))])
    groups = workers(count, slices=slices)
    found = place(snapshot, request(gang="job", groups=groups, across_islands=True))
    if found.reason is not None:
        return found.reason.kind, found.reason.tier
    return found.assignment["workers"]


@pytest.mark.parametrize(
    ("at", "count", "expected"),
    [
        pytest.param(
            [("n0", None)] * 4 + [("n2", None)], 3, ("n2",) * 3, id="they complete the short one"
        ),
        pytest.param(
            [("n0", None)] * 2 + [("n2", None)] * 3,
            1,
            ("n2",),
            id="one that can be whole is made so",
        ),
        pytest.param(
            [("n0", None)] * 3,
            5,
            (*("n1",) * 4, "n0"),
            id="they make two whole ones of three",
        ),
        pytest.param([("n0", None)] * 2, 1, ("n0",), id="it stays short beside its pods"),
        pytest.param(
            [("n0", None), ("n2", None), ("n4", None)],
            1,
            ("stale", "rack"),
            id="no new pod can make one of those that run in three racks",
        ),
    ],
)
def test_it_lets_one_slice_of_old_and_new_pods_be_short(
    at: Running, count: int, expected: object
) -> None:
    assert answer(racks(2, 2, 2), at, count, FOURS) == expected


@pytest.mark.parametrize(
    ("at", "count", "expected"),
    [
        pytest.param(
            [("n0", 0), ("n0", 1), ("n3", 3)], 1, ("n3",), id="the lost pod goes to its slice"
        ),
        pytest.param(
            [("n2", 0), ("n0", 3)], 2, ("n2", "n0"), id="each goes to its own, in order of index"
        ),
        pytest.param(
            [("n0", 0), ("n0", 1), ("n2", 2)],
            3,
            ("n2", "n2", "n2"),
            id="the rest begins a new one beside them",
        ),
        pytest.param(
            [("n0", 0), ("n2", 1)], 2, ("n0", "n0"), id="a torn one that lacks nothing stays torn"
        ),
        pytest.param(
            [("n0", None)], 2, ("n0", "n0"), id="pods that tell no index are in none of them"
        ),
        pytest.param(
            [("n0", 1), ("n0", 1)], 1, ("n0",), id="two pods of one index are both of its slice"
        ),
    ],
)
def test_it_keeps_slices_by_index(at: Running, count: int, expected: object) -> None:
    assert answer(racks(2, 2, 2), at, count, PAIRS) == expected


def test_it_tells_which_tier_running_pods_of_a_slice_break() -> None:
    slices = [{"size": 3, "tier": "rack", "indexed": True}]
    assert answer(racks(2, 2), [("n0", 0), ("n2", 1)], 1, slices) == ("conflict", "rack")


def test_it_tells_where_a_slice_has_no_more_room() -> None:
    full: Running = [("n0", 0), *[("n0", index) for index in (2, 3, 4)], ("n1", 5)]
    full += [("n1", index) for index in (6, 7, 8)]
    assert answer(racks(2, 2), full, 1, PAIRS) == ("stale", "rack")


@pytest.mark.parametrize(
    ("at", "count", "expected"),
    [
        pytest.param([("n0", 0), ("n0", 1)], 2, ("n0", "n0"), id="the inner one in the same block"),
        pytest.param([("n0", 0), ("n2", 2)], 2, ("n0", "n2"), id="each inner one where it runs"),
        pytest.param(
            [("n0", 0), ("n0", 1), ("n1", 2), ("n6", 4)],
            4,
            ("n0", "n6", "n6", "n6"),
            id="each outer one in its block",
        ),
    ],
)
def test_it_keeps_slices_in_slices_by_index(at: Running, count: int, expected: object) -> None:
    assert answer(racks(2, 2, 2, 2), at, count, LAYERS) == expected


def test_it_finds_nothing_where_a_running_pod_is_outside_all_domains_of_a_slice() -> None:
    specs = [DomainSpec("b", 2, None, ("n9",)), DomainSpec("r", 1, "b", ("n0", "n1"))]
    tree = build_tree(specs, tiers=("rack", "block"))
    plain = [{"size": 2, "tier": "rack"}]
    assert answer(tree, [("n9", None)] * 2, 2, plain) == ("conflict", "rack")


@pytest.mark.parametrize("preset", [Preset.OPTIMAL, Preset.KOORDINATOR])
@settings(max_examples=examples(60), deadline=None)
@given(scene=growing_scenes(most_nodes=4))
def test_it_reaches_the_best_vector_beside_running_slices(preset: Preset, scene: Scene) -> None:
    check(scene, preset)


def test_it_keeps_all_slices_of_one_of_several_groups_within_its_tier() -> None:
    nodes = {
        f"n{at}": NodeSpec(f"n{at}", {"slots": slots}) for at, slots in enumerate((2, 1, 2, 1))
    }
    groups = [
        {"name": "a", "count": 4, "required": "rack", "slices": [{"size": 2, "tier": "node"}]},
        {"name": "b", "count": 1},
    ]
    assert not place(cluster(racks(2, 2), nodes), request(groups=groups)).is_feasible
    nodes["n3"] = NodeSpec("n3", {"slots": 3})
    found = place(cluster(racks(2, 2), nodes), request(groups=groups))
    assert found.assignment["a"] == ("n2", "n2", "n3", "n3")


@pytest.mark.parametrize(
    ("slots", "is_feasible"),
    [
        pytest.param((2, 2, 2), False, id="not where every rack holds half a slice"),
        pytest.param((2, 4, 2), True, id="where a rack holds the whole one"),
    ],
)
def test_it_keeps_coarse_slices_whole_but_for_one(
    slots: tuple[int, ...], *, is_feasible: bool
) -> None:
    nodes = {f"n{at}": NodeSpec(f"n{at}", {"slots": free}) for at, free in enumerate(slots)}
    slices = [{"size": 4, "tier": "rack", "remainder": "short"}, {"size": 2, "tier": "node"}]
    asked = request(groups=workers(6, slices=slices), across_islands=True)
    assert place(cluster(racks(1, 1, 1), nodes), asked).is_feasible is is_feasible
