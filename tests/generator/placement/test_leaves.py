"""Leaves by kind tell the same as a look at every node, and go on telling it when nodes change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.placement import leaves as leaves_module
from generator.placement.capacity import Ints
from generator.placement.leaves import MOST_ADDED, MOST_PODS, Leaf, Leaves
from generator.placement.levels import build_levels
from tests.generator.placement.documents import racks

LEVELS = build_levels(racks(3, 1, 4, 3, 2, 3), 18)
"""Six racks in three blocks, and two nodes outside the tree."""
NUM_NODES = 18
slots = st.lists(st.integers(0, 4), min_size=NUM_NODES, max_size=NUM_NODES)
moves = st.lists(st.dictionaries(st.integers(0, NUM_NODES - 1), st.integers(0, 5), min_size=1))


def rooms_of(values: list[int]) -> tuple[Ints, ...]:
    """Return per tier and unit the pods that fit."""
    rows = [np.array(values, dtype=np.int64)]
    for tier in range(1, LEVELS.root + 1):
        rows.append(np.bincount(LEVELS.unit[tier], weights=rows[0]).astype(np.int64))
    return tuple(rows)


def in_leaves(values: list[int]) -> list[Leaf]:
    spans = zip(LEVELS.starts[1].tolist(), LEVELS.stops[1].tolist(), strict=True)
    return [Leaf(start, tuple(values[start:stop])) for start, stop in spans]


def fewest(leaf: Leaf, num_pods: int) -> int:
    """Return how few nodes of a leaf, which it has, hold so many pods."""
    held = sorted(leaf.slots, reverse=True)
    return next(num for num in range(1, len(held) + 1) if sum(held[:num]) >= num_pods)


def room_around(leaf: Leaf, values: list[int]) -> list[int]:
    rooms = rooms_of(values)
    return [int(rooms[tier][LEVELS.unit[tier][leaf.start]]) for tier in range(1, LEVELS.root)]


def tightest(values: list[int], num_pods: int) -> tuple[Leaf, ...]:
    holding = [leaf for leaf in in_leaves(values) if sum(leaf.slots) >= num_pods]
    keys = [(fewest(leaf, num_pods), room_around(leaf, values)) for leaf in holding]
    best = [leaf for leaf, key in zip(holding, keys, strict=True) if key == min(keys)]
    firsts: dict[tuple[int, ...], Leaf] = {}
    for leaf in best:
        firsts.setdefault(tuple(sorted(slot for slot in leaf.slots if slot)), leaf)
    return tuple(firsts.values())


def node(values: list[int], num_pods: int) -> int | None:
    least = min((value for value in values if value >= num_pods), default=None)
    if least is None:
        return None
    holding = [leaf for leaf in in_leaves(values) if least in leaf.slots]
    leaf = min(holding, key=lambda leaf: room_around(leaf, values))
    return leaf.start + leaf.slots.index(least)


def agree(leaves: Leaves, values: list[int]) -> None:
    for num_pods in range(1, 18):
        found = leaves.tightest(num_pods)
        # A leaf that has changed is a kind of its own, even where there was one like it.
        kinds = {tuple(sorted(slot for slot in leaf.slots if slot)): leaf for leaf in found[::-1]}
        assert sorted(kinds.values()) == sorted(tightest(values, num_pods))
        assert leaves.node(num_pods) == node(values, num_pods)


@settings(max_examples=60, deadline=None)
@given(values=slots, changes=moves)
def test_the_tightest_leaves_with_fewest_nodes_are_found_after_every_change(
    values: list[int], changes: list[dict[int, int]]
) -> None:
    leaves = Leaves.of(LEVELS, rooms_of(values))
    assert leaves is not None
    agree(leaves, values)
    for change in changes:
        values = [change.get(at, value) for at, value in enumerate(values)]
        leaves = leaves.changed(rooms_of(values), np.array(sorted(change)))
        assert leaves is not None
        agree(leaves, values)


def test_leaves_are_sorted_anew_after_many_changes() -> None:
    values = [1] * NUM_NODES
    leaves = Leaves.of(LEVELS, rooms_of(values))
    num_changes = 0
    while leaves is not None:
        values[0] += 1
        num_changes += 1
        leaves = leaves.changed(rooms_of(values), np.array([0]))
    assert MOST_ADDED < num_changes < 2 * MOST_ADDED


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(MOST_PODS + 1, id="from the beginning"),
        pytest.param(1, id="after a change"),
    ],
)
def test_leaves_that_hold_too_much_are_left_to_others(before: int) -> None:
    leaves = Leaves.of(LEVELS, rooms_of([before] * NUM_NODES))
    if leaves is not None:
        leaves = leaves.changed(rooms_of([MOST_PODS + 1, *[1] * (NUM_NODES - 1)]), np.array([0]))
    assert leaves is None


def test_leaves_that_are_too_many_are_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaves_module, "MOST_CELLS", NUM_NODES)
    assert Leaves.of(LEVELS, rooms_of([1] * NUM_NODES)) is None


def test_what_is_remembered_of_leaves_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaves_module, "MOST_REMEMBERED", 1)
    values = [1, 2, 3, 4, *range(NUM_NODES - 4)]
    leaves = Leaves.of(LEVELS, rooms_of(values))
    assert leaves is not None
    agree(leaves, values)
