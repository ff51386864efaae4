"""Under every preset the engine places a feasible request, and satisfies every rule of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from generator.placement.answer import Placement
from generator.placement.cluster.nodes import NodeSpec
from generator.placement.engine import place
from generator.placement.presets import PRESETS, Preset
from generator.placement.request import parse_request
from tests.effort import examples
from tests.generator.placement import referee
from tests.generator.placement.documents import cluster, racks, request, workers
from tests.generator.placement.referee import Scene
from tests.generator.placement.scenes import document_of, scenes, snapshot_of

OTHERS = sorted(set(PRESETS) - {Preset.OPTIMAL})


def answered(scene: Scene, preset: Preset) -> Placement:
    return place(snapshot_of(scene), parse_request(document_of(scene, preset)))


def parts_of(scene: Scene, placement: Placement) -> referee.Pods:
    """Return the nodes of each part, cut as the referee cuts them."""
    found: referee.Pods = []
    for group in scene.groups:
        nodes = [node for node in placement.assignment[group.name] if node is not None]
        parts: list[tuple[str, ...]] = []
        for size in referee.part_sizes(scene, group, len(nodes)):
            parts.append(tuple(nodes[:size]))
            nodes = nodes[size:]
        found.append(parts)
    return found


@pytest.mark.parametrize("preset", OTHERS)
@settings(max_examples=examples(20), deadline=None)
@given(scene=scenes(most_nodes=4))
def test_it_places_a_feasible_request_and_satisfies_every_rule(
    preset: Preset, scene: Scene
) -> None:
    found, best = answered(scene, preset), answered(scene, Preset.OPTIMAL)
    assert found.is_feasible == best.is_feasible
    if not found.is_feasible:
        return
    pods = parts_of(scene, found)
    assert len(referee.holding(scene, pods)) == 1
    left = dict(scene.slots)
    for group, parts in zip(scene.groups, pods, strict=True):
        placed = [node for part in parts for node in part]
        assert len(placed) >= group.least
        for node in placed:
            left[node] -= 1
    assert min(left.values()) >= 0


@pytest.mark.parametrize("preset", [Preset.KAI, Preset.GODEL, Preset.OPTIMAL])
def test_it_places_whole_slices_only(preset: Preset) -> None:
    rows = workers(4, min=1, slices=[{"size": 2}])
    found = place(cluster(racks(3)), request(groups=rows, preset=preset.value))
    assert sum(node is not None for node in found.assignment["workers"]) == 2


@pytest.mark.parametrize(
    ("preset", "tried"),
    [
        pytest.param(Preset.GODEL, ["b0"], id="Gödel, by total capacity"),
        pytest.param(Preset.KUEUE, [], id="Kueue, by slots"),
        pytest.param(Preset.OPTIMAL, None, id="optimal, which has no walk"),
    ],
)
def test_it_reports_the_domains_that_were_tried(preset: Preset, tried: list[str] | None) -> None:
    nodes = {f"n{index}": NodeSpec(f"n{index}", {"cpu": 3000}) for index in range(4)}
    rows = workers(1, request={"cpu": 10})
    found = place(cluster(racks(2, 2), nodes), request(groups=rows, preset=preset.value))
    assert not found.is_feasible
    assert found.preset_details.get("candidates") == tried


@pytest.mark.parametrize("preset", [preset.value for preset in PRESETS])
def test_a_resource_that_no_node_has_leaves_no_slots(preset: str) -> None:
    groups = [{"name": "a", "count": 1}, {"name": "b", "count": 1, "request": {"gpu": 1}}]
    assert not place(cluster(racks(2)), request(groups=groups, preset=preset)).is_feasible


def test_groups_that_grow_fill_the_cluster() -> None:
    groups = [{"name": f"g{index}", "count": 300, "min": 1} for index in range(2)]
    nodes = {f"n{index}": NodeSpec(f"n{index}", {"slots": 8}) for index in range(64)}
    placement = place(cluster(racks(*[16] * 4, per_block=4), nodes), request(groups=groups))
    assert placement.objective["placed"] == 512


def test_slots_beyond_64_bits_are_counted() -> None:
    nodes = {f"n{index}": NodeSpec(f"n{index}", {"memory": 1 << 53}) for index in range(2400)}
    groups = [
        {"name": "a", "count": 4, "request": {"memory": 1}},
        {"name": "b", "count": 2, "request": {"memory": 2}},
    ]
    placement = place(cluster(racks(*[300] * 8, per_block=8), nodes), request(groups=groups))
    assert (placement.tier, placement.objective["placed"]) == ("node", 6)


@pytest.mark.parametrize("preset", [Preset.KAI, Preset.GODEL])
def test_several_groups_are_all_placed_though_the_steps_of_a_scheduler_leave_pods_out(
    preset: Preset,
) -> None:
    slots = {"n0": 2, "n1": 3, "n2": 1}
    nodes = {name: NodeSpec(name, {"slots": count}) for name, count in slots.items()}
    small = {"name": "small", "count": 2}
    large = {"name": "large", "count": 2, "min": 0, "request": {"slots": 2}}
    found = place(cluster(racks(3), nodes), request(preset=preset.value, groups=[small, large]))
    assert set(found.assignment["large"]) == {"n0", "n1"}
    assert set(found.assignment["small"]) == {"n1", "n2"}


@pytest.mark.parametrize("preset", [Preset.KAI, Preset.GODEL])
def test_pods_beyond_the_minimum_do_not_move_a_single_group(preset: Preset) -> None:
    slots = {"n0": 2, "n1": 5}
    nodes = {
        name: NodeSpec(name, {"slots": count, "cpu": count * 1000}) for name, count in slots.items()
    }
    group = workers(5, min=2, required="rack")
    found = place(cluster(racks(1, 1), nodes), request(preset=preset.value, groups=group))
    assert found.assignment["workers"] == ("n0", "n0", None, None, None)
