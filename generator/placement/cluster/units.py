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

from generator.placement.cluster.levels import Ints, Levels, least
from generator.placement.cluster.subset_sum import Alike, alike

LEAF = 1
"""Height of the lowest tier of domains."""
MOST_CELLS = 1 << 22
"""Units times children of the widest one, up to which units are sorted by kind."""
MOST_PODS = int(np.iinfo(np.int32).max)
"""Pods per unit up to which they are."""
MOST_REMEMBERED = 1024
"""Kinds of units whose tightest ones are remembered, and numbers of pods; then it begins anew."""
MOST_ADDED = 64
"""Kinds that changes may add before units are sorted by kind anew, beside as many as there were.

A unit that has changed is a kind of its own, which may be there already.
"""


class Unit(NamedTuple):
    """One unit."""

    first: int
    """Its first child."""
    rooms: tuple[int, ...]
    """Per child: pods that fit."""
    rows: Alike
    """Children that hold as many."""

    @classmethod
    def of(cls, first: int, rooms: Sequence[int]) -> Self:
        """Return a unit of which so many pods fit each child."""
        return cls(first, tuple(rooms), alike(rooms, rooms))


def tightest(levels: Levels, rooms: Sequence[Ints], tier: int, units: Ints) -> Ints:
    """Return the units of a tier with least room in them, then in those around, nearest first."""
    units = least(units, rooms[tier][units])
    for outer in range(tier + 1, levels.root):
        if len(units) > 1:
            around = levels.unit[outer][levels.starts[tier][units]]
            units = least(units, rooms[outer][around])
    return units


class _Kinds(NamedTuple):
    """Units by what their children hold, those with less room in all before those with more."""

    of_unit: Ints
    """Per unit: its kind."""
    room: Ints
    """Per kind: pods that fit a unit, ascending."""
    sums: Ints
    """Shape (children of the widest unit, kinds): pods in the fullest child, the two fullest, on.

    All 0 where the last unit of a kind has changed.
    """
    num_sorted: int
    """Kinds at the last time that all units were sorted."""


class Units:
    """All units of a tier at one moment.

    What is remembered needs no lock, as another thread may write the same.
    """

    def __init__(self, levels: Levels, rooms: Sequence[Ints], tier: int, kinds: _Kinds) -> None:
        """Look at units that are sorted by kind."""
        self._levels, self._rooms, self._tier, self._kinds = levels, rooms, tier, kinds
        self._children: dict[int, int] = {}
        self._tightest: dict[tuple[int, bytes], tuple[Unit, ...]] = {}

    @classmethod
    def of(cls, levels: Levels, rooms: Sequence[Ints], tier: int) -> Self | None:
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
        if num_units * width > MOST_CELLS or int(rooms[tier].max(initial=0)) > MOST_PODS:
            return None
        ranked = _ranked(first, rooms[tier - 1], np.arange(num_units), width)
        raw, size = ranked.tobytes(), ranked.itemsize * width
        keys = [raw[start : start + size] for start in range(0, len(raw), size)]
        firsts = {key: unit for unit, key in reversed(list(enumerate(keys)))}
        at = np.fromiter(firsts.values(), dtype=np.int64)
        at = at[rooms[tier][at].argsort(kind="stable")]
        numbers = {keys[unit]: kind for kind, unit in enumerate(at.tolist())}
        of_unit = np.array([numbers[key] for key in keys])
        kinds = _Kinds(of_unit, rooms[tier][at], _sums(ranked[at]), len(at))
        return cls(levels, rooms, tier, kinds)

    def changed(self, rooms: Sequence[Ints], at: Ints) -> Units | None:
        """Return them once other numbers of pods fit some nodes; None: sort them anew."""
        before, levels, tier = self._kinds, self._levels, self._tier
        units = np.array(sorted(set(levels.unit[tier][at].tolist())))
        units = units[rooms[tier][units].argsort(kind="stable")]
        room, num_kinds = rooms[tier][units], len(before.room) + len(units)
        is_full = num_kinds > 2 * before.num_sorted + MOST_ADDED
        if is_full or room[-1] > MOST_PODS:
            return None
        at = before.room.searchsorted(room)
        ranked = _ranked(levels.first_child[tier], rooms[tier - 1], units, len(before.sums))
        sums = _inserted(before.sums, at, _sums(ranked))
        own = np.arange(len(before.room))
        of_unit = (own + at.searchsorted(own, side="right"))[before.of_unit]
        left = set(of_unit[units].tolist())
        of_unit[units] = at + np.arange(len(units))
        for kind in left:
            if not (of_unit == kind).any():
                sums[:, kind] = 0
        kinds = _Kinds(of_unit, _inserted(before.room, at, room), sums, before.num_sorted)
        return Units(levels, rooms, tier, kinds)

    @property
    def kind_of(self) -> Ints:
        """Per unit a number: the same where children hold the same, in whatever order."""
        return self._kinds.of_unit

    @cached_property
    def is_even(self) -> bool:
        """Whether all children that hold any pod hold the same number."""
        rooms = np.unique(self._rooms_inside())
        return len(rooms[rooms > 0]) <= 1

    def child(self, num_pods: int) -> int | None:
        """Return the child that holds so many pods and hardly more, in the tightest unit with such.

        None where no child holds so many.
        """
        if self._most[0] < num_pods:
            return None
        known = self._children.get(num_pods)
        if known is None:
            rooms = self._rooms_inside()
            room = int(rooms[rooms >= num_pods].min())
            unit, *_ = self._units_of((rooms == room).any(axis=0).nonzero()[0])
            if len(self._children) >= MOST_REMEMBERED:
                self._children.clear()
            known = self._children[num_pods] = unit.first + unit.rooms.index(room)
        return known

    def tightest(self, num_pods: int) -> tuple[Unit, ...]:
        """Return the tightest of the units that hold so many pods in the fewest children.

        The first one of each kind, in tree order; none where no unit holds so many.
        """
        row = bisect_left(self._most, num_pods)
        if row == len(self._most):
            return ()
        is_enough = self._kinds.sums[row] >= num_pods
        first = int(is_enough.argmax())
        kinds = is_enough[first : self._ends[first]].tobytes()
        known = self._tightest.get((first, kinds))
        if known is None:
            if len(self._tightest) >= MOST_REMEMBERED:
                self._tightest.clear()
            found = first + np.frombuffer(kinds, dtype=np.bool_).nonzero()[0]
            known = self._tightest[first, kinds] = self._units_of(found)
        return known

    @cached_property
    def _most(self) -> list[int]:
        """Pods in the fullest child of any unit, in the two fullest, on; ascending."""
        found: list[int] = self._kinds.sums.max(axis=1).tolist()
        return found

    @cached_property
    def _ends(self) -> list[int]:
        """Per kind: where those with as much room end."""
        room = self._kinds.room
        found: list[int] = room.searchsorted(room, side="right").tolist()
        return found

    def _rooms_inside(self) -> Ints:
        """Return pods per child, the fullest first, a column per kind."""
        return np.diff(self._kinds.sums, axis=0, prepend=0)

    def _units_of(self, kinds: Ints) -> tuple[Unit, ...]:
        """Return the tightest units of some kinds, the first one of each kind, in tree order."""
        of_unit = self._kinds.of_unit
        units = (of_unit == kinds[0]) if len(kinds) == 1 else np.isin(of_unit, kinds)
        units = tightest(self._levels, self._rooms, self._tier, units.nonzero()[0])
        firsts: dict[int, int] = {}
        for unit in units.tolist():
            firsts.setdefault(of_unit.item(unit), unit)
        return tuple(map(self._unit, firsts.values()))

    def _unit(self, at: int) -> Unit:
        children = self._levels.children(self._tier, at)
        rooms = self._rooms[self._tier - 1][children.start : children.stop]
        return Unit.of(children.start, rooms.tolist())


def _ranked(first: Ints, rooms: Ints, units: Ints, width: int) -> Ints:
    """Return a row per unit: pods that fit its children, the fullest first, then 0."""
    at = first[units][:, np.newaxis] + np.arange(width)
    held = rooms.take(at, mode="clip").astype(np.int32)
    held[at >= first[units + 1][:, np.newaxis]] = 0
    held.sort(axis=1)
    return np.ascontiguousarray(held[:, ::-1])


def _sums(ranked: Ints) -> Ints:
    """Return the sums over the fullest children, a column per row."""
    return ranked.T.cumsum(axis=0, dtype=np.int32)


def _inserted(rows: Ints, at: Ints, more: Ints) -> Ints:
    """Return an array with more along its last axis, each before one that was there; in order."""
    begins = [0, *at.tolist()]
    parts = [
        part
        for place, (start, stop) in enumerate(pairwise(begins))
        for part in (rows[..., start:stop], more[..., place : place + 1])
    ]
    return np.concatenate((*parts, rows[..., begins[-1] :]), axis=-1)
