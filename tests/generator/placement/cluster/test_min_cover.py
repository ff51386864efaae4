"""Covers agree with counting the largest nodes first, also after changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.placement.cluster.levels import build_levels
from generator.placement.cluster.min_cover import MAX_COUNTED_SLOTS, MinCover, build_min_cover
from tests.effort import examples
from tests.generator.placement.documents import racks

LEVELS = build_levels(racks(3, 1, 4), 8)
RACKS = ((0, 1, 2), (3,), (4, 5, 6, 7))


def fewest(values: list[int], rack: tuple[int, ...], num_pods: int) -> int:
    left, used = num_pods, 0
    for value in sorted((values[index] for index in rack), reverse=True):
        if left > 0:
            left, used = left - value, used + 1
    return used


def agree(covering: MinCover, values: list[int], num_pods: int) -> None:
    holding = [
        index for index, rack in enumerate(RACKS) if sum(values[n] for n in rack) >= num_pods
    ]
    found = covering.min_units(np.array(holding, dtype=np.int64), num_pods).tolist()
    assert found == [fewest(values, RACKS[index], num_pods) for index in holding]


@pytest.mark.parametrize(
    "scale",
    [
        pytest.param(1, id="few pods per node: a histogram"),
        pytest.param(MAX_COUNTED_SLOTS + 1, id="many pods per node: sorted"),
    ],
)
@settings(max_examples=examples(60), deadline=None)
@given(
    before=st.lists(st.integers(0, 6), min_size=8, max_size=8),
    after=st.lists(st.integers(0, 6), min_size=8, max_size=8),
    num_pods=st.integers(1, 20),
)
def test_it_returns_the_fewest_nodes_of_every_rack(
    scale: int, before: list[int], after: list[int], num_pods: int
) -> None:
    one, other = [value * scale for value in before], [value * scale for value in after]
    covering = build_min_cover(LEVELS, 0, 1, np.array(one, dtype=np.int64))
    agree(covering, one, num_pods * scale)
    changed = [*other[:3], *one[3:]]
    rows = np.array(one, dtype=np.int64), np.array(changed, dtype=np.int64)
    again = covering.with_changes(*rows, np.arange(3))
    assert (again is None) == (max(one) <= MAX_COUNTED_SLOTS and max(other[:3]) > max(one))
    if again is not None:
        agree(again, changed, num_pods * scale)
