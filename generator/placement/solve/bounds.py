"""The fewest and most pods that each unit inside a domain may hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from generator.placement.cluster.levels import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds per unit, one array for every tier below that of the domain."""

    low: tuple[IntArray | None, ...]
    """Fewest pods; None: no unit of the tier must hold any."""
    high: tuple[IntArray, ...]
    slots: tuple[IntArray, ...]
    worst_tier: int
    """Units of this tier and above hold a multiple of `part_size` pods."""
    part_size: int

    def lower_bounds(self, tier: int, span: range) -> IntArray:
        """Return the fewest pods of each unit in a range."""
        low = self.low[tier]
        if low is None:
            return np.zeros(len(span), dtype=np.int64)
        return low[span.start : span.stop]


@dataclass(frozen=True, eq=False)
class NodeBounds:
    """The nodes of a tier-1 unit that may hold pods."""

    positions: IntArray
    low: IntArray
    high: IntArray
    slots: IntArray
    is_forced: BoolArray
    """Whether the bounds require that a node holds pods."""

    @classmethod
    def build(cls, span: range, bounds: Bounds) -> NodeBounds:
        """Return the nodes of a range that may hold pods."""
        kept = np.flatnonzero(bounds.high[0][span.start : span.stop]) + span.start
        low = bounds.lower_bounds(0, span)[kept - span.start]
        return cls(kept, low, bounds.high[0][kept], bounds.slots[0][kept], low > 0)

    @property
    def forced_pods(self) -> int:
        """Pods that the bounds require on nodes."""
        return int(self.low.sum())

    @property
    def spare_slots(self) -> int:
        """Further pods that the same nodes hold."""
        return int((self.high - self.low)[self.is_forced].sum())
