"""How many pods of one shape fit each node, and every domain with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from generator.placement.cluster.levels import Ints, Levels, Mask
from generator.placement.cluster.min_cover import Covering, make_covering
from generator.placement.cluster.units import Units


@dataclass(frozen=True, eq=False)
class Shape:
    """What a node sees of a pod, and every domain with it."""

    request: Mapping[str, int]
    allowed: Mask
    """Per node: whether selector, taints, cordon and tree admit it."""
    rooms: tuple[Ints, ...]
    """Per tier and unit: pods of this shape that fit, each alone on its node; 0 if not allowed."""
    misses: Ints | None
    """Per node: wished labels that it lacks; None where nothing is wished."""
    _coverings: dict[tuple[int, int], Covering] = field(default_factory=dict, repr=False)
    """By tier and wider tier; a memo."""
    _units: dict[int, Units] = field(default_factory=dict, repr=False)
    """By tier; a memo."""

    @property
    def slots(self) -> Ints:
        """Per node: pods of this shape that fit."""
        return self.rooms[0]

    @cached_property
    def most(self) -> tuple[int, ...]:
        """Per tier: most pods that fit one unit."""
        return tuple(int(row.max(initial=0)) for row in self.rooms)

    @property
    def total(self) -> int:
        """Pods that fit the cluster."""
        return int(self.rooms[-1].sum())

    def covering(self, levels: Levels, inner: int, tier: int) -> Covering:
        """Return how few units of a tier inside those of a wider one hold so many pods."""
        known = self._coverings.get((inner, tier))
        if known is None:
            known = make_covering(levels, inner, tier, self.rooms[inner])
            self._coverings[inner, tier] = known
        return known

    def units(self, levels: Levels, tier: int) -> Units | None:
        """Return the units of a tier by what they hold; None where they are not looked at so."""
        known = self._units.get(tier) or Units.of(levels, self.rooms, tier)
        if known is not None:
            self._units[tier] = known
        return known

    def changed(self, levels: Levels, at: Ints, fits: Ints) -> Shape:
        """Return the shape once so many pods fit some nodes, named in order.

        Cost: O(tiers × nodes) to copy.
        """
        change = fits - self.slots[at]
        slots = self.slots.copy()
        slots[at] = fits
        rooms = [slots]
        for row, unit_of in zip(self.rooms[1:], levels.unit[1:], strict=True):
            changed = row.copy()
            np.add.at(changed, unit_of[at], change)
            rooms.append(changed)
        coverings: dict[tuple[int, int], Covering] = {}
        for (inner, tier), known in self._coverings.copy().items():
            touched = np.unique(levels.unit[inner][at]) if inner else at
            covering = known.changed(self.rooms[inner], rooms[inner], touched)
            if covering is not None:
                coverings[inner, tier] = covering
        units = {
            tier: again
            for tier, row in self._units.copy().items()
            if (again := row.changed(rooms, at)) is not None
        }
        return Shape(self.request, self.allowed, tuple(rooms), self.misses, coverings, units)
