"""An index of the units of a tier by the pods that fit their children; finds the tightest units.

Leaves whose nodes hold the same numbers of pods, in any order, are equivalent for every gang. So
are units of another tier whose children hold the same. The unit for a gang is therefore searched
among classes of units, which are few even in a large cluster, and then among the units of one
class. After some nodes of a snapshot change, only the units around them are updated.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from generator.placement.cluster.levels import IntArray, TreeLevels, units_with_min
from generator.placement.cluster.subset_sum import EqualBins, group_equal_bins

LEAF_TIER = 1
"""Height of the lowest tier of domains."""
MAX_CELLS = 1 << 22
"""Most cells, units times children of the widest unit, of an index."""
MAX_SLOTS = int(np.iinfo(np.int32).max)
"""Most pods per unit in an index."""
MAX_CACHED = 1024
"""Cached results per index; the cache is then cleared."""
MAX_ADDED_CLASSES = 64
"""The index is rebuilt when changes have added this many classes more than it was built with.

A changed unit gets a class of its own, even if an equal class exists.
"""


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


class _UnitClasses(NamedTuple):
    """Classes of units by the slots of their children, those with fewer slots in total first."""

    class_of_unit: IntArray
    """Per unit: its class."""
    slots: IntArray
    """Per class: pods that fit a unit, ascending."""
    prefix_sums: IntArray
    """Shape (children of the widest unit, classes): pods in the largest child, in two, and so on.

    All 0 if the last unit of a class has changed.
    """
    num_sorted_classes: int
    """Number of classes when all units were last sorted."""


class UnitIndex:
    """The index of the units of a tier in one snapshot.

    Its caches need no lock: another thread may only write equal entries.
    """

    def __init__(
        self,
        levels: TreeLevels,
        slots_by_tier: Sequence[IntArray],
        tier: int,
        classes: _UnitClasses,
    ) -> None:
        """Build the index from classified units."""
        self._levels, self._slots_by_tier, self._tier, self._classes = (
            levels,
            slots_by_tier,
            tier,
            classes,
        )
        self._tightest_children: dict[int, int] = {}
        self._tightest_by_classes: dict[tuple[int, bytes], tuple[UnitSlots, ...]] = {}

    @classmethod
    def build(cls, levels: TreeLevels, slots_by_tier: Sequence[IntArray], tier: int) -> Self | None:
        """Classify the units of a tier; None if they are too many, or hold too many pods.

        Args:
            levels: the tree.
            slots_by_tier: per tier and unit: pods that fit.
            tier: above the nodes, below the root.

        Cost: O(units × children of the widest unit).
        """
        first = levels.first_child[tier]
        width = int((first[1:] - first[:-1]).max(initial=0))
        num_units = len(first) - 1
        if num_units * width > MAX_CELLS or int(slots_by_tier[tier].max(initial=0)) > MAX_SLOTS:
            return None
        child_slots = _sorted_child_slots(
            first, slots_by_tier[tier - 1], np.arange(num_units), width
        )
        bytes_of_rows, row_bytes = child_slots.tobytes(), child_slots.itemsize * width
        keys = [
            bytes_of_rows[start : start + row_bytes]
            for start in range(0, len(bytes_of_rows), row_bytes)
        ]
        first_units = {key: unit for unit, key in reversed(list(enumerate(keys)))}
        representatives = np.fromiter(first_units.values(), dtype=np.int64)
        representatives = representatives[
            slots_by_tier[tier][representatives].argsort(kind="stable")
        ]
        numbers = {keys[unit]: number for number, unit in enumerate(representatives.tolist())}
        of_unit = np.array([numbers[key] for key in keys])
        classes = _UnitClasses(
            of_unit,
            slots_by_tier[tier][representatives],
            _prefix_sums(child_slots[representatives]),
            len(representatives),
        )
        return cls(levels, slots_by_tier, tier, classes)

    def with_slots(self, slots_by_tier: Sequence[IntArray], nodes: IntArray) -> UnitIndex | None:
        """Return the index after the slots of some nodes change; None: rebuild it."""
        before, levels, tier = self._classes, self._levels, self._tier
        units = np.array(sorted(set(levels.unit_of_node[tier][nodes].tolist())))
        units = units[slots_by_tier[tier][units].argsort(kind="stable")]
        slots, num_classes = slots_by_tier[tier][units], len(before.slots) + len(units)
        is_full = num_classes > 2 * before.num_sorted_classes + MAX_ADDED_CLASSES
        if is_full or slots[-1] > MAX_SLOTS:
            return None
        positions = before.slots.searchsorted(slots)
        child_slots = _sorted_child_slots(
            levels.first_child[tier], slots_by_tier[tier - 1], units, len(before.prefix_sums)
        )
        sums = _insert_columns(before.prefix_sums, positions, _prefix_sums(child_slots))
        class_numbers = np.arange(len(before.slots))
        shifted = class_numbers + positions.searchsorted(class_numbers, side="right")
        class_of_unit = shifted[before.class_of_unit]
        classes_left = set(class_of_unit[units].tolist())
        class_of_unit[units] = positions + np.arange(len(units))
        for number in classes_left:
            if not (class_of_unit == number).any():
                sums[:, number] = 0
        all_slots = _insert_columns(before.slots, positions, slots)
        classes = _UnitClasses(class_of_unit, all_slots, sums, before.num_sorted_classes)
        return UnitIndex(levels, slots_by_tier, tier, classes)

    @property
    def class_of_unit(self) -> IntArray:
        """Per unit: a class; the children of two units of one class hold the same, in any order."""
        return self._classes.class_of_unit

    @cached_property
    def is_uniform(self) -> bool:
        """Whether all children that hold any pod hold the same number."""
        child_slots = np.unique(self._child_slots_by_class())
        return len(child_slots[child_slots > 0]) <= 1

    def tightest_child(self, num_pods: int) -> int | None:
        """Return the tightest child that holds the pods, in the tightest unit with such a child.

        None if no child holds them.
        """
        if self._max_prefix_sums[0] < num_pods:
            return None
        cached = self._tightest_children.get(num_pods)
        if cached is None:
            child_slots = self._child_slots_by_class()
            smallest = int(child_slots[child_slots >= num_pods].min())
            unit, *_ = self._tightest_of_classes((child_slots == smallest).any(axis=0).nonzero()[0])
            if len(self._tightest_children) >= MAX_CACHED:
                self._tightest_children.clear()
            cached = self._tightest_children[num_pods] = unit.first_child + unit.child_slots.index(
                smallest
            )
        return cached

    def tightest_units(self, num_pods: int) -> tuple[UnitSlots, ...]:
        """Return the tightest units that hold the pods in the fewest children.

        The first unit of each class, in tree order; empty if no unit holds the pods.
        """
        row = bisect_left(self._max_prefix_sums, num_pods)
        if row == len(self._max_prefix_sums):
            return ()
        is_enough = self._classes.prefix_sums[row] >= num_pods
        first = int(is_enough.argmax())
        class_bits = is_enough[first : self._class_ends[first]].tobytes()
        cached = self._tightest_by_classes.get((first, class_bits))
        if cached is None:
            if len(self._tightest_by_classes) >= MAX_CACHED:
                self._tightest_by_classes.clear()
            classes = first + np.frombuffer(class_bits, dtype=np.bool_).nonzero()[0]
            cached = self._tightest_by_classes[first, class_bits] = self._tightest_of_classes(
                classes
            )
        return cached

    @cached_property
    def _max_prefix_sums(self) -> list[int]:
        """Most pods of any unit in its largest child, its two largest, and so on; ascending."""
        sums: list[int] = self._classes.prefix_sums.max(axis=1).tolist()
        return sums

    @cached_property
    def _class_ends(self) -> list[int]:
        """Per class: the end of the classes with equal slots."""
        slots = self._classes.slots
        ends: list[int] = slots.searchsorted(slots, side="right").tolist()
        return ends

    def _child_slots_by_class(self) -> IntArray:
        """Return pods per child, the largest first, one column per class."""
        return np.diff(self._classes.prefix_sums, axis=0, prepend=0)

    def _tightest_of_classes(self, classes: IntArray) -> tuple[UnitSlots, ...]:
        """Return the tightest units of some classes, the first of each class, in tree order."""
        of_unit = self._classes.class_of_unit
        units = (of_unit == classes[0]) if len(classes) == 1 else np.isin(of_unit, classes)
        units = tightest_units(self._levels, self._slots_by_tier, self._tier, units.nonzero()[0])
        firsts: dict[int, int] = {}
        for unit in units.tolist():
            firsts.setdefault(of_unit.item(unit), unit)
        return tuple(map(self._unit_slots, firsts.values()))

    def _unit_slots(self, unit: int) -> UnitSlots:
        children = self._levels.children(self._tier, unit)
        child_slots = self._slots_by_tier[self._tier - 1][children.start : children.stop]
        return UnitSlots.build(children.start, child_slots.tolist())


def _sorted_child_slots(first: IntArray, slots: IntArray, units: IntArray, width: int) -> IntArray:
    """Return a row per unit: pods that fit its children, the largest first, padded with 0."""
    columns = first[units][:, np.newaxis] + np.arange(width)
    child_slots = slots.take(columns, mode="clip").astype(np.int32)
    child_slots[columns >= first[units + 1][:, np.newaxis]] = 0
    child_slots.sort(axis=1)
    return np.ascontiguousarray(child_slots[:, ::-1])


def _prefix_sums(child_slots: IntArray) -> IntArray:
    """Return the sums over the largest children, one column per row."""
    return child_slots.T.cumsum(axis=0, dtype=np.int32)


def _insert_columns(rows: IntArray, positions: IntArray, columns: IntArray) -> IntArray:
    """Insert columns along the last axis, each before the column at its position; in order."""
    starts = [0, *positions.tolist()]
    parts = [
        part
        for place, (start, stop) in enumerate(pairwise(starts))
        for part in (rows[..., start:stop], columns[..., place : place + 1])
    ]
    return np.concatenate((*parts, rows[..., starts[-1] :]), axis=-1)
