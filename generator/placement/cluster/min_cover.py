"""The fewest units of a tier, inside each unit of a wider tier, that hold a number of pods.

Built once per pod shape and tier, then answered for any number of pods without reading nodes. After
some nodes of a snapshot change, only the units around them are updated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from generator.placement.cluster.levels import IntArray, TreeLevels

_RUN_START = np.ones(1, dtype=np.bool_)
MAX_COUNTED_SLOTS = 64
"""Pods per unit up to which units are kept as a histogram; with more they are sorted."""


class MinCover(Protocol):
    """The units of one tier inside those of a wider tier."""

    def min_units(self, units: IntArray, num_pods: int) -> IntArray:
        """Return per wider unit the fewest inner units that hold the pods; it must hold them."""

    def with_changes(self, before: IntArray, after: IntArray, units: IntArray) -> MinCover | None:
        """Return it after the slots of some units, given in order, change; None: rebuild it."""


def build_min_cover(levels: TreeLevels, inner: int, tier: int, values: IntArray) -> MinCover:
    """Group the units of a tier by the unit of a wider tier.

    Args:
        levels: the tree.
        inner: the tier.
        tier: the wider tier.
        values: pods that each unit of the inner tier holds.

    Cost: O(units), times their logarithm if a unit holds many pods.
    """
    first = np.append(np.searchsorted(levels.starts[inner], levels.starts[tier]), len(values))
    around = levels.unit_of_node[tier]
    wider_unit_of = around if inner == 0 else around[levels.starts[inner]]
    max_slots = int(values.max(initial=0))
    return (
        _HistogramCover.build(first, wider_unit_of, values, max_slots)
        if max_slots <= MAX_COUNTED_SLOTS
        else _SortedCover.build(first, wider_unit_of, values)
    )


@dataclass(frozen=True, eq=False)
class _HistogramCover:
    """Units by the number of pods that they hold.

    The pods in the largest k units are a concave function of k. It is the minimum over all r of
    `lines[r] + k * (top - r)`, where `top` is `max_slots`. So k units hold a number of pods if no
    line is below it.
    """

    first: IntArray
    """Where the inner units of each wider unit start, then the end of the last."""
    max_slots: int
    """Most pods that one unit may hold."""
    lines: IntArray
    """Shape (top + 1, wider units); row r minus row r - 1: units that hold more than `top - r`.

    The last row: pods in all units.
    """

    @classmethod
    def build(
        cls, first: IntArray, wider_unit_of: IntArray, values: IntArray, max_slots: int
    ) -> _HistogramCover:
        counts = np.bincount(
            wider_unit_of * (max_slots + 1) + values, minlength=(len(first) - 1) * (max_slots + 1)
        )
        return cls(first, max_slots, _histogram_lines(counts.reshape(-1, max_slots + 1).T))

    def min_units(self, units: IntArray, num_pods: int) -> IntArray:
        if self.max_slots <= 1:
            return np.full(len(units), num_pods)
        slopes = np.arange(self.max_slots, 0, -1)[:, np.newaxis]
        return np.asarray(-((self.lines[:-1, units] - num_pods) // slopes).min(axis=0))

    def with_changes(self, before: IntArray, after: IntArray, units: IntArray) -> MinCover | None:
        slots = after[units]
        if slots.max() > self.max_slots:
            return None
        wider_units = self.first.searchsorted(units, side="right") - 1
        offsets = np.arange(-self.max_slots, 1)[:, np.newaxis]
        change = np.maximum(offsets + slots, 0) - np.maximum(offsets + before[units], 0)
        run_starts = np.flatnonzero(
            np.concatenate((_RUN_START, wider_units[1:] > wider_units[:-1]))
        )
        lines = self.lines.copy()
        lines[:, wider_units[run_starts]] += np.add.reduceat(change, run_starts, axis=1)
        return _HistogramCover(self.first, self.max_slots, lines)


def _histogram_lines(counts: IntArray) -> IntArray:
    """Return the lines of units that are counted by their slots, from 0 slots on.

    One unit with `slots` adds `r - (top - slots)` to line r, if that is above 0.
    """
    lines = np.zeros(counts.shape, dtype=np.int64)  # contiguous rows: min_units compares rows
    counts[:0:-1].cumsum(axis=0).cumsum(axis=0, out=lines[1:])
    return lines


@dataclass(frozen=True, eq=False)
class _SortedCover:
    """Units sorted by the number of pods that they hold, the largest of each wider unit first."""

    first: IntArray
    """Where the inner units of each wider unit start, then the end of the last."""
    sorted_slots: IntArray
    prefix_sums: IntArray
    """Pods in all units up to and including each."""

    @classmethod
    def build(cls, first: IntArray, wider_unit_of: IntArray, values: IntArray) -> _SortedCover:
        sorted_slots = values[np.lexsort((-values, wider_unit_of))]
        return cls(first, sorted_slots, sorted_slots.cumsum())

    def min_units(self, units: IntArray, num_pods: int) -> IntArray:
        start = self.first[units]
        before = self.prefix_sums[start] - self.sorted_slots[start]
        return np.searchsorted(self.prefix_sums, before + num_pods) - start + 1

    def with_changes(self, before: IntArray, after: IntArray, units: IntArray) -> MinCover | None:
        del before
        sorted_slots = self.sorted_slots.copy()
        for wider_unit in set((np.searchsorted(self.first, units, side="right") - 1).tolist()):
            span = slice(self.first[wider_unit], self.first[wider_unit + 1])
            sorted_slots[span] = np.sort(after[span])[::-1]
        return _SortedCover(self.first, sorted_slots, sorted_slots.cumsum())
