"""The pods of one shape that fit each node, and each unit of every tier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from generator.placement.cluster.levels import BoolArray, IntArray, TreeLevels
from generator.placement.cluster.min_cover import MinCover, build_min_cover


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
            cached = build_min_cover(levels, inner, tier, self.slots_by_tier[inner])
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
        min_covers: dict[tuple[int, int], MinCover] = {}
        for (inner, tier), cover in self._min_covers.copy().items():
            touched = np.unique(levels.unit_of_node[inner][nodes]) if inner else nodes
            updated = cover.with_changes(self.slots_by_tier[inner], slots_by_tier[inner], touched)
            if updated is not None:
                min_covers[inner, tier] = updated
        return PodShape(
            self.request,
            self.allowed,
            tuple(slots_by_tier),
            self.missing_labels,
            min_covers,
        )
