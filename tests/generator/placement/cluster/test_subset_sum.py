"""Nodes are chosen as an exhaustive search chooses them."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.placement.cluster.subset_sum import choose_fewest_nodes, group_equal_bins
from tests.effort import examples

SLOTS = st.lists(st.integers(0, 5), min_size=1, max_size=8).filter(any)


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
    found = choose_fewest_nodes(slots, group_equal_bins(slots, slots), num_pods, is_tight=is_tight)
    assert found == best_choice(slots, num_pods, is_tight=is_tight)


def test_it_returns_none_for_too_many_sums() -> None:
    slots = [1, 2, 3] * 700
    assert choose_fewest_nodes(slots, group_equal_bins(slots, slots), 3_001, is_tight=True) is None
