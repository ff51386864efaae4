"""The units of a tier and the pods that fit their children; the tightest of several units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

from generator.placement.cluster.levels import IntArray, TreeLevels, units_with_min
from generator.placement.cluster.subset_sum import EqualBins, group_equal_bins

LEAF_TIER = 1
"""Height of the lowest tier of domains."""


class UnitSlots(NamedTuple):
    """One unit and the pods that fit its children."""

    first_child: int
    """Index of its first child."""
    child_slots: tuple[int, ...]
    """Per child: pods that fit."""
    equal_children: EqualBins
    """Classes of children that hold equal pods."""

    @classmethod
    def build(cls, first: int, child_slots: Sequence[int]) -> Self:
        """Return a unit with these slots per child."""
        return cls(first, tuple(child_slots), group_equal_bins(child_slots, child_slots))


def tightest_units(
    levels: TreeLevels, slots_by_tier: Sequence[IntArray], tier: int, units: IntArray
) -> IntArray:
    """Return the units with the fewest slots, then with the fewest around, nearest tier first."""
    units = units_with_min(units, slots_by_tier[tier][units])
    for outer in range(tier + 1, levels.root):
        if len(units) > 1:
            around = levels.unit_of_node[outer][levels.starts[tier][units]]
            units = units_with_min(units, slots_by_tier[outer][around])
    return units


def content_key(levels: TreeLevels, slots: IntArray, tier: int, unit: int) -> bytes:
    """Return all of a unit that decides the best shares inside: its inner units and their slots."""
    start, stop = levels.starts[tier][unit], levels.stops[tier][unit]
    rows = [slots[start:stop].tobytes()]
    for inner in range(1, tier):
        starts = levels.starts[inner]
        first, last = levels.unit_of_node[inner][start], levels.unit_of_node[inner][stop - 1] + 1
        rows.append((starts[first:last] - start).tobytes())
    return b"|".join(rows)
