"""The leaves as a kind of pods sees them: which of them hold a gang best.

Leaves whose nodes hold the same numbers of pods, in whatever order, hold every gang alike. So a
gang's leaf is looked for among kinds of leaves, of which even a large cluster has few, then among
the leaves of that kind, once for all gangs. Of a snapshot on which some nodes have changed only the
leaves around them are looked at anew.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from generator.placement.capacity import Ints
from generator.placement.levels import Levels, least

LEAF = 1
"""Height of the lowest tier of domains."""
MOST_CELLS = 1 << 22
"""Leaves times nodes of the widest one, up to which leaves are sorted by kind."""
MOST_PODS = int(np.iinfo(np.int32).max)
"""Pods per leaf up to which they are."""
MOST_REMEMBERED = 1024
"""Kinds of leaves whose tightest ones are remembered; then it begins anew."""
MOST_ADDED = 64
"""Kinds that changes may add before leaves are sorted by kind anew, beside as many as there were.

A leaf that has changed is a kind of its own, which may be there already.
"""


class Leaf(NamedTuple):
    """One leaf."""

    start: int
    """Its first node."""
    slots: tuple[int, ...]
    """Per node: pods that fit."""


def tightest(levels: Levels, rooms: Sequence[Ints], leaves: Ints) -> Ints:
    """Return the leaves with least room in them, then in the domains around, nearest first."""
    leaves = least(leaves, rooms[LEAF][leaves])
    for outer in range(LEAF + 1, levels.root):
        if len(leaves) > 1:
            around = levels.unit[outer][levels.starts[LEAF][leaves]]
            leaves = least(leaves, rooms[outer][around])
    return leaves


class _Kinds(NamedTuple):
    """Leaves by what their nodes hold, those with less room in all before those with more."""

    of_leaf: Ints
    """Per leaf: its kind."""
    room: Ints
    """Per kind: pods that fit a leaf, ascending."""
    sums: Ints
    """Shape (nodes of the widest leaf, kinds): pods in the fullest node, in the two fullest, on.

    All 0 where the last leaf of a kind has changed.
    """
    num_sorted: int
    """Kinds at the last time that all leaves were sorted."""


class Leaves:
    """All leaves at one moment; what is remembered needs no lock, as another may write the same."""

    def __init__(self, levels: Levels, rooms: Sequence[Ints], kinds: _Kinds) -> None:
        """Look at leaves that are sorted by kind."""
        self._levels, self._rooms, self._kinds = levels, rooms, kinds
        self._nodes: dict[int, int] = {}
        self._tightest: dict[tuple[int, bytes], tuple[Leaf, ...]] = {}

    @classmethod
    def of(cls, levels: Levels, rooms: Sequence[Ints]) -> Self | None:
        """Sort them by kind; None where they are too many, or hold too much.

        Args:
            levels: the tree, of which leaves are no root.
            rooms: per tier and unit: pods that fit.

        Cost: O(leaves × nodes of the widest one).
        """
        num_leaves = len(levels.starts[LEAF])
        width = int((levels.stops[LEAF] - levels.starts[LEAF]).max(initial=0))
        if num_leaves * width > MOST_CELLS or int(rooms[LEAF].max(initial=0)) > MOST_PODS:
            return None
        ranked = _ranked(levels, rooms[0], np.arange(num_leaves), width)
        raw, size = ranked.tobytes(), ranked.itemsize * width
        firsts = {raw[at * size : at * size + size]: at for at in reversed(range(num_leaves))}
        at = np.fromiter(firsts.values(), dtype=np.int64)
        at = at[rooms[LEAF][at].argsort(kind="stable")]
        numbers = {
            raw[one * size : one * size + size]: kind for kind, one in enumerate(at.tolist())
        }
        of_leaf = [numbers[raw[start : start + size]] for start in range(0, len(raw), size)]
        kinds = _Kinds(np.array(of_leaf), rooms[LEAF][at], _sums(ranked[at]), len(at))
        return cls(levels, rooms, kinds)

    def changed(self, rooms: Sequence[Ints], at: Ints) -> Leaves | None:
        """Return them once other numbers of pods fit some nodes; None: sort them anew."""
        before, levels = self._kinds, self._levels
        leaves = np.array(sorted(set(levels.unit[LEAF][at].tolist())))
        leaves = leaves[rooms[LEAF][leaves].argsort(kind="stable")]
        room, num_kinds = rooms[LEAF][leaves], len(before.room) + len(leaves)
        is_full = num_kinds > 2 * before.num_sorted + MOST_ADDED
        if is_full or room[-1] > MOST_PODS:
            return None
        at = before.room.searchsorted(room)
        sums = _sums(_ranked(levels, rooms[0], leaves, len(before.sums)))
        sums = _inserted(before.sums, at, sums)
        own = np.arange(len(before.room))
        of_leaf = (own + at.searchsorted(own, side="right"))[before.of_leaf]
        left = set(of_leaf[leaves].tolist())
        of_leaf[leaves] = at + np.arange(len(leaves))
        for kind in left:
            if not (of_leaf == kind).any():
                sums[:, kind] = 0
        room = _inserted(before.room, at, room)
        return Leaves(levels, rooms, _Kinds(of_leaf, room, sums, before.num_sorted))

    def node(self, num_pods: int) -> int | None:
        """Return the node that holds so many pods and hardly more, in the tightest leaf with such.

        None where no node holds so many.
        """
        if self._most[0] < num_pods:
            return None
        known = self._nodes.get(num_pods)
        if known is None:
            slots = np.diff(self._kinds.sums, axis=0, prepend=0)
            value = int(slots[slots >= num_pods].min())
            leaf, *_ = self._leaves_of((slots == value).any(axis=0).nonzero()[0])
            known = self._nodes[num_pods] = leaf.start + leaf.slots.index(value)
        return known

    def tightest(self, num_pods: int) -> tuple[Leaf, ...]:
        """Return the tightest of the leaves that hold so many pods on the fewest nodes.

        The first one of each kind, in tree order; none where no leaf holds so many.
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
            known = self._tightest[first, kinds] = self._leaves_of(found)
        return known

    @cached_property
    def _ends(self) -> list[int]:
        """Per kind: where those with as much room end."""
        room = self._kinds.room
        found: list[int] = room.searchsorted(room, side="right").tolist()
        return found

    @cached_property
    def _most(self) -> list[int]:
        """Pods in the fullest node of any leaf, in the two fullest, on; ascending."""
        found: list[int] = self._kinds.sums.max(axis=1).tolist()
        return found

    def _leaves_of(self, kinds: Ints) -> tuple[Leaf, ...]:
        """Return the tightest leaves of some kinds, the first one of each kind, in tree order."""
        of_leaf = self._kinds.of_leaf
        leaves = (of_leaf == kinds[0]) if len(kinds) == 1 else np.isin(of_leaf, kinds)
        leaves = tightest(self._levels, self._rooms, leaves.nonzero()[0])
        firsts: dict[int, int] = {}
        for leaf in leaves.tolist():
            firsts.setdefault(of_leaf.item(leaf), leaf)
        return tuple(map(self._leaf, firsts.values()))

    def _leaf(self, at: int) -> Leaf:
        start, stop = self._levels.starts[LEAF][at], self._levels.stops[LEAF][at]
        return Leaf(int(start), tuple(self._rooms[0][start:stop].tolist()))


def _ranked(levels: Levels, slots: Ints, leaves: Ints, width: int) -> Ints:
    """Return a row per leaf: pods that fit its nodes, the fullest first, then 0."""
    starts, stops = levels.starts[LEAF][leaves], levels.stops[LEAF][leaves]
    at = starts[:, np.newaxis] + np.arange(width)
    held = slots.take(at, mode="clip").astype(np.int32)
    held[at >= stops[:, np.newaxis]] = 0
    held.sort(axis=1)
    return np.ascontiguousarray(held[:, ::-1])


def _sums(ranked: Ints) -> Ints:
    """Return the sums over the fullest nodes, a column per row."""
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
