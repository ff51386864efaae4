"""The pods of one shape that fit each node and each unit of every tier, and a cache of them.

A snapshot counts a cached shape again only on nodes whose free quantities differ. The cache holds
no state of its own: a lost row is counted again. It is written without a lock; whichever of two
threads writes last, the row is right.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
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


class CountedShape(NamedTuple):
    """A shape, and the free quantities with which it was counted."""

    shape: PodShape
    free: IntArray


ShapeCache = dict[Hashable, CountedShape]
"""Shapes by what decides them but the free quantities; shared by snapshots of the same nodes."""
