"""The unit index agrees with a look at every child, also after nodes change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.placement.cluster import units as units_module
from generator.placement.cluster.levels import IntArray, build_levels
from generator.placement.cluster.units import (
    LEAF_TIER,
    MAX_ADDED_CLASSES,
    MAX_SLOTS,
    UnitIndex,
    UnitSlots,
)
from tests.effort import examples
from tests.generator.placement.documents import racks

LEVELS = build_levels(racks(3, 1, 4, 3, 2, 3, per_block=4), 18)
"""Four racks in a block, two in another, and two nodes outside the tree."""
NUM_NODES = 18
slots = st.lists(st.integers(0, 4), min_size=NUM_NODES, max_size=NUM_NODES)
move = st.dictionaries(
    st.integers(0, NUM_NODES - 1), st.integers(0, 5), min_size=1, max_size=MAX_ADDED_CLASSES // 8
)
moves = st.lists(move, max_size=8)


def rooms_of(values: list[int]) -> tuple[IntArray, ...]:
    """Return, per tier and unit, the pods that fit."""
    rows = [np.array(values, dtype=np.int64)]
    for tier in range(1, LEVELS.root + 1):
        rows.append(np.bincount(LEVELS.unit_of_node[tier], weights=rows[0]).astype(np.int64))
    return tuple(rows)


def all_units(values: list[int], tier: int) -> list[UnitSlots]:
    inside = rooms_of(values)[tier - 1].tolist()
    spans = [LEVELS.children(tier, index) for index in range(len(LEVELS.starts[tier]))]
    return [UnitSlots.build(span.start, inside[span.start : span.stop]) for span in spans]


def kind(unit: UnitSlots) -> tuple[int, ...]:
    return tuple(sorted(room for room in unit.child_slots if room))


def fewest(unit: UnitSlots, num_pods: int) -> int:
    """Return the fewest children of a unit that hold the pods; the unit must hold them."""
    held = sorted(unit.child_slots, reverse=True)
    return next(num for num in range(1, len(held) + 1) if sum(held[:num]) >= num_pods)


def room_around(unit: UnitSlots, values: list[int], tier: int) -> list[int]:
    start, rooms = LEVELS.starts[tier - 1][unit.first_child], rooms_of(values)
    return [
        int(rooms[outer][LEVELS.unit_of_node[outer][start]]) for outer in range(tier, LEVELS.root)
    ]


def tightest(values: list[int], tier: int, num_pods: int) -> list[UnitSlots]:
    holding = [unit for unit in all_units(values, tier) if sum(unit.child_slots) >= num_pods]
    keys = [(fewest(unit, num_pods), room_around(unit, values, tier)) for unit in holding]
    best = [unit for unit, key in zip(holding, keys, strict=True) if key == min(keys)]
    return list({kind(unit): unit for unit in best[::-1]}.values())


def child(values: list[int], tier: int, num_pods: int) -> int | None:
    rooms = rooms_of(values)[tier - 1].tolist()
    least = min((room for room in rooms if room >= num_pods), default=None)
    if least is None:
        return None
    holding = [unit for unit in all_units(values, tier) if least in unit.child_slots]
    unit = min(holding, key=lambda unit: room_around(unit, values, tier))
    return unit.first_child + unit.child_slots.index(least)


def agree(units: UnitIndex, values: list[int], tier: int) -> None:
    for num_pods in range(1, 30):
        found = units.tightest_units(num_pods)
        # A changed unit gets a class of its own, even if an equal class exists.
        firsts = {kind(unit): unit for unit in found[::-1]}
        assert sorted(firsts.values()) == sorted(tightest(values, tier, num_pods))
        assert units.tightest_child(num_pods) == child(values, tier, num_pods)
    inside = {room for room in rooms_of(values)[tier - 1].tolist() if room}
    assert units.is_uniform == (len(inside) <= 1)


@pytest.mark.parametrize("tier", [pytest.param(1, id="leaves"), pytest.param(2, id="blocks")])
@settings(max_examples=examples(60), deadline=None)
@given(values=slots, changes=moves)
def test_it_finds_the_tightest_units_with_the_fewest_children_after_every_change(
    tier: int, values: list[int], changes: list[dict[int, int]]
) -> None:
    units = UnitIndex.build(LEVELS, rooms_of(values), tier)
    assert units is not None
    agree(units, values, tier)
    for change in changes:
        values = [change.get(index, value) for index, value in enumerate(values)]
        units = units.with_slots(rooms_of(values), np.array(sorted(change)))
        assert units is not None
        agree(units, values, tier)


def test_it_is_rebuilt_after_many_changes() -> None:
    values = [1] * NUM_NODES
    units = UnitIndex.build(LEVELS, rooms_of(values), LEAF_TIER)
    num_changes = 0
    while units is not None:
        values[0] += 1
        num_changes += 1
        units = units.with_slots(rooms_of(values), np.array([0]))
    assert MAX_ADDED_CLASSES < num_changes < 2 * MAX_ADDED_CLASSES


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(MAX_SLOTS + 1, id="at first"),
        pytest.param(1, id="after a change"),
    ],
)
def test_it_indexes_no_units_with_too_many_slots(before: int) -> None:
    units = UnitIndex.build(LEVELS, rooms_of([before] * NUM_NODES), LEAF_TIER)
    if units is not None:
        units = units.with_slots(rooms_of([MAX_SLOTS + 1, *[1] * (NUM_NODES - 1)]), np.array([0]))
    assert units is None


def test_it_indexes_no_more_units_than_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units_module, "MAX_CELLS", NUM_NODES)
    assert UnitIndex.build(LEVELS, rooms_of([1] * NUM_NODES), LEAF_TIER) is None


def test_it_bounds_its_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units_module, "MAX_CACHED", 1)
    values = [1, 2, 3, 4, *range(NUM_NODES - 4)]
    units = UnitIndex.build(LEVELS, rooms_of(values), LEAF_TIER)
    assert units is not None
    agree(units, values, LEAF_TIER)
