"""What each unit of a domain may hold of a job."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from generator.placement.cluster.levels import Ints, Mask


@dataclass(frozen=True, eq=False)
class Bounds:
    """What each unit may hold; one entry per unit, for every tier below that of the domain."""

    low: tuple[Ints | None, ...]
    """None: nothing has to lie anywhere."""
    high: tuple[Ints, ...]
    slots: tuple[Ints, ...]
    worst: int
    """Units of this tier and above hold a multiple of `size` pods."""
    size: int

    def least(self, tier: int, span: range) -> Ints:
        """Return what each of some units must hold."""
        low = self.low[tier]
        if low is None:
            return np.zeros(len(span), dtype=np.int64)
        return low[span.start : span.stop]


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes of a tier-1 unit that hold anything."""

    at: Ints
    low: Ints
    high: Ints
    slots: Ints
    is_forced: Mask
    """Whether the bounds make a node hold something in any case."""

    @classmethod
    def of(cls, span: range, bounds: Bounds) -> Nodes:
        """Return the nodes of a range."""
        kept = np.flatnonzero(bounds.high[0][span.start : span.stop]) + span.start
        low = bounds.least(0, span)[kept - span.start]
        return cls(kept, low, bounds.high[0][kept], bounds.slots[0][kept], low > 0)

    @property
    def base(self) -> int:
        """Pods that the bounds put on nodes in any case."""
        return int(self.low.sum())

    @property
    def spare(self) -> int:
        """Further pods that the same nodes hold."""
        return int((self.high - self.low)[self.is_forced].sum())
