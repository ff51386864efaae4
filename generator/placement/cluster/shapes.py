"""The pods of one shape that fit each node and each unit of every tier, and a cache of them.

A changed snapshot counts only the changed nodes again. The cache holds no state of its own: a lost
row is counted again. It is written without a lock; two threads that count the same shape at once
write equal rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from generator.placement.cluster.levels import BoolArray, IntArray, TreeLevels
from generator.placement.cluster.min_cover import MinCover


@dataclass(frozen=True, eq=False)
class PodShape:
    """Pods of one shape: their resources, and how many fit each node and unit."""

    request: Mapping[str, int]
    allowed: BoolArray
    """Per node: whether selector, taints, cordon and tree allow it."""
    slots_by_tier: tuple[IntArray, ...]
    """Per tier and unit: pods of this shape alone that fit its nodes; 0 if not allowed."""
    missing_labels: IntArray | None
    """Per node: preferred labels that it lacks; None if no label is preferred."""
    _min_covers: dict[tuple[int, int], MinCover] = field(default_factory=dict, repr=False)
    """By inner tier and wider tier; a cache."""

    @property
    def slots(self) -> IntArray:
        """Per node: pods of this shape that fit."""
        return self.slots_by_tier[0]

    @cached_property
    def max_slots(self) -> tuple[int, ...]:
        """Per tier: most pods that fit one unit."""
        return tuple(int(row.max(initial=0)) for row in self.slots_by_tier)

    @property
    def total_slots(self) -> int:
        """Pods that fit the cluster."""
        return int(self.slots_by_tier[-1].sum())

    def min_cover(self, levels: TreeLevels, inner: int, tier: int) -> MinCover:
        """Return the cover of units of a tier inside those of a wider tier; cached."""
        cached = self._min_covers.get((inner, tier))
        if cached is None:
            cached = MinCover.build(levels, inner, tier, self.slots_by_tier[inner])
            self._min_covers[inner, tier] = cached
        return cached

    def with_slots(self, levels: TreeLevels, nodes: IntArray, fits: IntArray) -> PodShape:
        """Return the shape after the slots of some nodes, given in order, change.

        Cost: O(tiers × nodes) to copy.
        """
        change = fits - self.slots[nodes]
        slots = self.slots.copy()
        slots[nodes] = fits
        slots_by_tier = [slots]
        for before, unit_of in zip(self.slots_by_tier[1:], levels.unit_of_node[1:], strict=True):
            changed = before.copy()
            np.add.at(changed, unit_of[nodes], change)
            slots_by_tier.append(changed)
        covers = {
            (inner, tier): cover.with_values(
                slots_by_tier[inner], levels.unit_of_node[inner][nodes]
            )
            for (inner, tier), cover in self._min_covers.copy().items()
        }
        rows = tuple(slots_by_tier)
        return PodShape(self.request, self.allowed, rows, self.missing_labels, covers)


MAX_SHAPES = 64
"""Cached shapes; the cache is then cleared."""
STALE_DIVISOR = 8
"""A row is dropped after 1/8 of the nodes have changed since it was counted.

A node counts once per change.
"""

StaleNodes = frozenset[int]
"""Positions of nodes that have changed since a shape was counted."""


class _CachedShape(NamedTuple):
    """A shape, and the nodes that changed since it was counted."""

    shape: PodShape
    stale: tuple[StaleNodes, ...]
    """One entry per change; they are joined when the shape is read, not at every change."""
    num_stale: int


class SlotCache:
    """Shapes by key, each with the nodes that changed since it was counted."""

    def __init__(
        self, base: SlotCache | None = None, changed_nodes: StaleNodes = frozenset()
    ) -> None:
        """Begin empty, or as a view of another cache that differs at some positions."""
        self._rows: dict[Hashable, _CachedShape] = {}
        self._base, self._changed_nodes = base, changed_nodes

    def get(self, key: Hashable) -> tuple[PodShape, StaleNodes] | None:
        """Return a shape and the positions to count again, or None if it is not cached."""
        row = self._rows.get(key)
        if row is not None:
            return row.shape, frozenset().union(*row.stale)
        base_row = None if self._base is None else self._base.get(key)
        return None if base_row is None else (base_row[0], base_row[1] | self._changed_nodes)

    def keys(self) -> Iterator[Hashable]:
        """Yield the keys of the rows of this cache, not those of its base."""
        yield from self._rows.copy()

    def store(self, key: Hashable, shape: PodShape) -> None:
        """Store a shape here, and in the base as stale at the positions that differ."""
        self._store_row(key, _CachedShape(shape, (), 0))
        if self._base is not None:
            differing = (self._changed_nodes,) if self._changed_nodes else ()
            self._base._store_row(key, _CachedShape(shape, differing, len(self._changed_nodes)))  # noqa: SLF001 - of the same class

    def _store_row(self, key: Hashable, row: _CachedShape) -> None:
        if len(self._rows) >= MAX_SHAPES and key not in self._rows:
            self._rows.clear()
        self._rows[key] = row

    def after_change(self, touched: StaleNodes, num_nodes: int) -> SlotCache:
        """Return the cache after some nodes changed, without rows that are too stale; O(shapes)."""
        cache, num_touched = SlotCache(self._base, self._changed_nodes | touched), len(touched)
        max_stale = num_nodes // STALE_DIVISOR - num_touched
        cache._rows = {
            key: _CachedShape(shape, (*stale, touched), num_stale + num_touched)
            for key, (shape, stale, num_stale) in self._rows.copy().items()
            if num_stale <= max_stale
        }
        return cache
