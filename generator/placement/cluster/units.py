"""Units of a tier as a kind of pods sees them: which of them hold a gang best.

Leaves whose nodes hold the same numbers of pods, in whatever order, hold every gang alike, and so
do units of any other tier whose children do. So a gang's unit is looked for among kinds of units,
of which even a large cluster has few, then among the units of that kind, once for all gangs. Of a
snapshot on which some nodes have changed only the units around them are looked at anew.
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
"""Units times children of the widest one, up to which units are sorted by kind."""
MAX_SLOTS = int(np.iinfo(np.int32).max)
"""Pods per unit up to which they are."""
MAX_CACHED = 1024
"""Kinds of units whose tightest ones are remembered, and numbers of pods; then it begins anew."""
MAX_ADDED_CLASSES = 64
"""Kinds that changes may add before units are sorted by kind anew, beside as many as there were.

A unit that has changed is a kind of its own, which may be there already.
"""


class UnitSlots(NamedTuple):
    """One unit."""

    first_child: int
    """Its first child."""
    child_slots: tuple[int, ...]
    """Per child: pods that fit."""
    equal_children: EqualBins
    """Children that hold as many."""

    @classmethod
    def build(cls, first: int, rooms: Sequence[int]) -> Self:
        """Return a unit of which so many pods fit each child."""
        return cls(first, tuple(rooms), group_equal_bins(rooms, rooms))


def tightest_units(
    levels: TreeLevels, rooms: Sequence[IntArray], tier: int, units: IntArray
) -> IntArray:
    """Return the units of a tier with least room in them, then in those around, nearest first."""
    units = units_with_min(units, rooms[tier][units])
    for outer in range(tier + 1, levels.root):
        if len(units) > 1:
            around = levels.unit_of_node[outer][levels.starts[tier][units]]
            units = units_with_min(units, rooms[outer][around])
    return units


class _UnitClasses(NamedTuple):
    """Units by what their children hold, those with less room in all before those with more."""

    class_of_unit: IntArray
    """Per unit: its kind."""
    slots: IntArray
    """Per kind: pods that fit a unit, ascending."""
    prefix_sums: IntArray
    """Shape (children of the widest unit, kinds): pods in the fullest child, the two fullest, on.

    All 0 where the last unit of a kind has changed.
    """
    num_sorted_classes: int
    """Kinds at the last time that all units were sorted."""


class UnitIndex:
    """All units of a tier at one moment.

    What is remembered needs no lock, as another thread may write the same.
    """

    def __init__(
        self, levels: TreeLevels, rooms: Sequence[IntArray], tier: int, kinds: _UnitClasses
    ) -> None:
        """Look at units that are sorted by kind."""
        self._levels, self._slots_by_tier, self._tier, self._classes = levels, rooms, tier, kinds
        self._tightest_children: dict[int, int] = {}
        self._tightest_by_classes: dict[tuple[int, bytes], tuple[UnitSlots, ...]] = {}

    @classmethod
    def build(cls, levels: TreeLevels, rooms: Sequence[IntArray], tier: int) -> Self | None:
        """Sort them by kind; None where they are too many, or hold too much.

        Args:
            levels: the tree.
            rooms: per tier and unit: pods that fit.
            tier: above the nodes, below the root.

        Cost: O(units × children of the widest one).
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
        """Return them once other numbers of pods fit some nodes; None: sort them anew."""
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
        """Per unit a number: the same where children hold the same, in whatever order."""
        return self._classes.class_of_unit

    @cached_property
    def is_uniform(self) -> bool:
        """Whether all children that hold any pod hold the same number."""
        rooms = np.unique(self._child_slots_by_class())
        return len(rooms[rooms > 0]) <= 1

    def tightest_child(self, num_pods: int) -> int | None:
        """Return the child that holds so many pods and hardly more, in the tightest unit with such.

        None where no child holds so many.
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
        """Return the tightest of the units that hold so many pods in the fewest children.

        The first one of each kind, in tree order; none where no unit holds so many.
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
        """Pods in the fullest child of any unit, in the two fullest, on; ascending."""
        found: list[int] = self._classes.prefix_sums.max(axis=1).tolist()
        return found

    @cached_property
    def _class_ends(self) -> list[int]:
        """Per kind: where those with as much room end."""
        room = self._classes.slots
        found: list[int] = room.searchsorted(room, side="right").tolist()
        return found

    def _child_slots_by_class(self) -> IntArray:
        """Return pods per child, the fullest first, a column per kind."""
        return np.diff(self._classes.prefix_sums, axis=0, prepend=0)

    def _tightest_of_classes(self, kinds: IntArray) -> tuple[UnitSlots, ...]:
        """Return the tightest units of some kinds, the first one of each kind, in tree order."""
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
    """Return a row per unit: pods that fit its children, the fullest first, then 0."""
    at = first[units][:, np.newaxis] + np.arange(width)
    held = rooms.take(at, mode="clip").astype(np.int32)
    held[at >= first[units + 1][:, np.newaxis]] = 0
    held.sort(axis=1)
    return np.ascontiguousarray(held[:, ::-1])


def _prefix_sums(ranked: IntArray) -> IntArray:
    """Return the sums over the fullest children, a column per row."""
    return ranked.T.cumsum(axis=0, dtype=np.int32)


def _insert_columns(rows: IntArray, at: IntArray, more: IntArray) -> IntArray:
    """Return an array with more along its last axis, each before one that was there; in order."""
    begins = [0, *at.tolist()]
    parts = [
        part
        for place, (start, stop) in enumerate(pairwise(begins))
        for part in (rows[..., start:stop], more[..., place : place + 1])
    ]
    return np.concatenate((*parts, rows[..., begins[-1] :]), axis=-1)
