"""Covers agree with counting the largest nodes first, and chosen bins with all choices."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.placement.cluster.levels import build_levels
from generator.placement.cluster.min_cover import MAX_BIN_SLOTS, MinCover, choose_fewest_bins
from tests.effort import examples
from tests.generator.placement.documents import racks

LEVELS = build_levels(racks(3, 1, 4), [{}] * 8)
RACKS = ((0, 1, 2), (3,), (4, 5, 6, 7))
SLOTS = st.lists(st.integers(0, 5), min_size=1, max_size=8).filter(any)


def fewest(values: list[int], rack: tuple[int, ...], num_pods: int) -> int:
    left, used = num_pods, 0
    for value in sorted((values[index] for index in rack), reverse=True):
        if left > 0:
            left, used = left - value, used + 1
    return used


@pytest.mark.parametrize("scale", [1, MAX_BIN_SLOTS // 20])
@settings(max_examples=examples(60), deadline=None)
@given(
    values=st.lists(st.integers(0, 6) | st.just(1 << 20), min_size=8, max_size=8),
    num_pods=st.integers(1, 20),
)
def test_it_returns_the_fewest_nodes_of_every_rack(
    scale: int, values: list[int], num_pods: int
) -> None:
    slots, needed = [value * scale for value in values], num_pods * scale
    values_of_nodes = np.array(slots, dtype=np.int64)
    holding = [index for index, rack in enumerate(RACKS) if sum(slots[n] for n in rack) >= needed]
    racks_that_hold = np.array(holding, dtype=np.int64)
    cover = MinCover.build(LEVELS, 0, 1, values_of_nodes)
    found = cover.min_units(racks_that_hold, needed).tolist()
    assert found == [fewest(slots, RACKS[index], needed) for index in holding]


@settings(max_examples=examples(40), deadline=None)
@given(
    slots=st.lists(st.integers(0, 6), min_size=8, max_size=8),
    num_nodes=st.lists(st.integers(0, 5), min_size=3, max_size=3),
)
def test_it_returns_the_least_slots_of_so_many_usable_nodes(
    slots: list[int], num_nodes: list[int]
) -> None:
    cover = MinCover.build(LEVELS, 0, 1, np.array(slots, dtype=np.int64))
    usable = [sorted(slots[node] for node in rack if slots[node]) for rack in RACKS]
    racks_with_any = np.array([at for at, row in enumerate(usable) if row], dtype=np.int64)
    found = cover.least_slots(racks_with_any, np.array(num_nodes)[racks_with_any]).tolist()
    assert found == [sum(usable[at][: num_nodes[at]]) for at in racks_with_any.tolist()]


def best_choice(slots: list[int], num_pods: int, *, is_tight: bool) -> list[int]:
    """Return the first, in order, of the best choices."""
    choices: list[tuple[int, ...]] = [
        chosen
        for many in range(1, len(slots) + 1)
        for chosen in combinations(range(len(slots)), many)
        if sum(slots[index] for index in chosen) >= num_pods
    ]

    def cost(chosen: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
        return len(chosen), sum(slots[index] for index in chosen) if is_tight else 0, chosen

    best = min(choices, key=cost)
    return list(best)


@pytest.mark.parametrize("is_tight", [False, True])
@settings(max_examples=examples(100), deadline=None)
@given(slots=SLOTS, draw=st.data())
def test_it_chooses_the_first_of_the_fewest_nodes(
    is_tight: bool,  # noqa: FBT001 - a parameter of the test
    slots: list[int],
    draw: st.DataObject,
) -> None:
    num_pods = draw.draw(st.integers(1, sum(slots)))
    found = choose_fewest_bins(slots, num_pods, is_tight=is_tight)
    assert found == best_choice(slots, num_pods, is_tight=is_tight)


def test_it_returns_none_for_too_many_sums() -> None:
    slots = [1, 2, 3] * 700
    assert choose_fewest_bins(slots, 3_001, is_tight=True) is None
