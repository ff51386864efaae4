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
"""Classes that changes may add, beside as many as there were, before the index is rebuilt.

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
    def build(cls, first: int, rooms: Sequence[int]) -> Self:
        """Return a unit with these slots per child."""
        return cls(first, tuple(rooms), group_equal_bins(rooms, rooms))


def tightest_units(
    levels: TreeLevels, rooms: Sequence[IntArray], tier: int, units: IntArray
) -> IntArray:
    """Return the units with the fewest slots, then with the fewest around, nearest tier first."""
    units = units_with_min(units, rooms[tier][units])
    for outer in range(tier + 1, levels.root):
        if len(units) > 1:
            around = levels.unit_of_node[outer][levels.starts[tier][units]]
            units = units_with_min(units, rooms[outer][around])
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
        self, levels: TreeLevels, rooms: Sequence[IntArray], tier: int, kinds: _UnitClasses
    ) -> None:
        """Build the index from classified units."""
        self._levels, self._slots_by_tier, self._tier, self._classes = levels, rooms, tier, kinds
        self._tightest_children: dict[int, int] = {}
        self._tightest_by_classes: dict[tuple[int, bytes], tuple[UnitSlots, ...]] = {}

    @classmethod
    def build(cls, levels: TreeLevels, rooms: Sequence[IntArray], tier: int) -> Self | None:
        """Classify the units of a tier; None if they are too many, or hold too many pods.

        Args:
            levels: the tree.
            rooms: per tier and unit: pods that fit.
            tier: above the nodes, below the root.

        Cost: O(units × children of the widest unit).
        """
        first = levels.first_child[tier]
        width = int((first[1:] - first[:-1]).max(initial=0))
        num_units = len(first) - 1
        if num_units * width > MAX_CELLS or int(rooms[tier].max(initial=0)) > MAX_SLOTS:
            return None
        ranked = _sorted_child_slots(first, rooms[tier - 1], np.arange(num_units), width)
        raw, size = ranked.tobytes(), ranked.itemsize * width
        keys = [raw[start : start + size] for start in range(0, len(raw), size)]
        firsts = {key: unit for unit, key in reversed(list(enumerate(keys)))}
        at = np.fromiter(firsts.values(), dtype=np.int64)
        at = at[rooms[tier][at].argsort(kind="stable")]
        numbers = {keys[unit]: kind for kind, unit in enumerate(at.tolist())}
        of_unit = np.array([numbers[key] for key in keys])
        kinds = _UnitClasses(of_unit, rooms[tier][at], _prefix_sums(ranked[at]), len(at))
        return cls(levels, rooms, tier, kinds)

    def with_slots(self, rooms: Sequence[IntArray], at: IntArray) -> UnitIndex | None:
        """Return the index after the slots of some nodes change; None: rebuild it."""
        before, levels, tier = self._classes, self._levels, self._tier
        units = np.array(sorted(set(levels.unit_of_node[tier][at].tolist())))
        units = units[rooms[tier][units].argsort(kind="stable")]
        room, num_kinds = rooms[tier][units], len(before.slots) + len(units)
        is_full = num_kinds > 2 * before.num_sorted_classes + MAX_ADDED_CLASSES
        if is_full or room[-1] > MAX_SLOTS:
            return None
        at = before.slots.searchsorted(room)
        ranked = _sorted_child_slots(
            levels.first_child[tier], rooms[tier - 1], units, len(before.prefix_sums)
        )
        sums = _insert_columns(before.prefix_sums, at, _prefix_sums(ranked))
        own = np.arange(len(before.slots))
        of_unit = (own + at.searchsorted(own, side="right"))[before.class_of_unit]
        left = set(of_unit[units].tolist())
        of_unit[units] = at + np.arange(len(units))
        for kind in left:
            if not (of_unit == kind).any():
                sums[:, kind] = 0
        kinds = _UnitClasses(
            of_unit, _insert_columns(before.slots, at, room), sums, before.num_sorted_classes
        )
        return UnitIndex(levels, rooms, tier, kinds)

    @property
    def class_of_unit(self) -> IntArray:
        """Per unit: a class; the children of two units of one class hold the same, in any order."""
        return self._classes.class_of_unit

    @cached_property
    def is_uniform(self) -> bool:
        """Whether all children that hold any pod hold the same number."""
        rooms = np.unique(self._child_slots_by_class())
        return len(rooms[rooms > 0]) <= 1

    def tightest_child(self, num_pods: int) -> int | None:
        """Return the tightest child that holds the pods, in the tightest unit with such a child.

        None if no child holds them.
        """
        if self._max_prefix_sums[0] < num_pods:
            return None
        known = self._tightest_children.get(num_pods)
        if known is None:
            rooms = self._child_slots_by_class()
            room = int(rooms[rooms >= num_pods].min())
            unit, *_ = self._tightest_of_classes((rooms == room).any(axis=0).nonzero()[0])
            if len(self._tightest_children) >= MAX_CACHED:
                self._tightest_children.clear()
            known = self._tightest_children[num_pods] = unit.first_child + unit.child_slots.index(
                room
            )
        return known

    def tightest_units(self, num_pods: int) -> tuple[UnitSlots, ...]:
        """Return the tightest units that hold the pods in the fewest children.

        The first unit of each class, in tree order; empty if no unit holds the pods.
        """
        row = bisect_left(self._max_prefix_sums, num_pods)
        if row == len(self._max_prefix_sums):
            return ()
        is_enough = self._classes.prefix_sums[row] >= num_pods
        first = int(is_enough.argmax())
        kinds = is_enough[first : self._class_ends[first]].tobytes()
        known = self._tightest_by_classes.get((first, kinds))
        if known is None:
            if len(self._tightest_by_classes) >= MAX_CACHED:
                self._tightest_by_classes.clear()
            found = first + np.frombuffer(kinds, dtype=np.bool_).nonzero()[0]
            known = self._tightest_by_classes[first, kinds] = self._tightest_of_classes(found)
        return known

    @cached_property
    def _max_prefix_sums(self) -> list[int]:
        """Most pods of any unit in its largest child, its two largest, and so on; ascending."""
        found: list[int] = self._classes.prefix_sums.max(axis=1).tolist()
        return found

    @cached_property
    def _class_ends(self) -> list[int]:
        """Per class: the end of the classes with equal slots."""
        room = self._classes.slots
        found: list[int] = room.searchsorted(room, side="right").tolist()
        return found

    def _child_slots_by_class(self) -> IntArray:
        """Return pods per child, the largest first, one column per class."""
        return np.diff(self._classes.prefix_sums, axis=0, prepend=0)

    def _tightest_of_classes(self, kinds: IntArray) -> tuple[UnitSlots, ...]:
        """Return the tightest units of some classes, the first of each class, in tree order."""
        of_unit = self._classes.class_of_unit
        units = (of_unit == kinds[0]) if len(kinds) == 1 else np.isin(of_unit, kinds)
        units = tightest_units(self._levels, self._slots_by_tier, self._tier, units.nonzero()[0])
        firsts: dict[int, int] = {}
        for unit in units.tolist():
            firsts.setdefault(of_unit.item(unit), unit)
        return tuple(map(self._unit_slots, firsts.values()))

    def _unit_slots(self, at: int) -> UnitSlots:
        children = self._levels.children(self._tier, at)
        rooms = self._slots_by_tier[self._tier - 1][children.start : children.stop]
        return UnitSlots.build(children.start, rooms.tolist())


def _sorted_child_slots(first: IntArray, rooms: IntArray, units: IntArray, width: int) -> IntArray:
    """Return a row per unit: pods that fit its children, the largest first, padded with 0."""
    at = first[units][:, np.newaxis] + np.arange(width)
    held = rooms.take(at, mode="clip").astype(np.int32)
    held[at >= first[units + 1][:, np.newaxis]] = 0
    held.sort(axis=1)
    return np.ascontiguousarray(held[:, ::-1])


def _prefix_sums(ranked: IntArray) -> IntArray:
    """Return the sums over the largest children, one column per row."""
    return ranked.T.cumsum(axis=0, dtype=np.int32)


def _insert_columns(rows: IntArray, at: IntArray, more: IntArray) -> IntArray:
    """Insert columns along the last axis, each before the column at its position; in order."""
    begins = [0, *at.tolist()]
    parts = [
        part
        for place, (start, stop) in enumerate(pairwise(begins))
        for part in (rows[..., start:stop], more[..., place : place + 1])
    ]
    return np.concatenate((*parts, rows[..., begins[-1] :]), axis=-1)
