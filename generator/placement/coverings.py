"""How few units of a tier, inside each unit of a wider one, hold so many pods.

Counted once per kind of pod and tier, then asked for any number of pods without a look at nodes;
of a snapshot on which some nodes changed only the units around them are arranged anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from generator.placement.capacity import Ints
from generator.placement.levels import Levels

SMALL = 64
"""Pods per unit up to which units are counted by what they hold; else they are sorted by it."""


class Covering(Protocol):
    """The units of one tier inside those of a wider one."""

    def fewest(self, units: Ints, num_pods: int) -> Ints:
        """Return per wider unit the fewest that hold so many pods, which all of them must."""

    def changed(self, values: Ints, wider: Iterable[int]) -> Covering | None:
        """Return it once units inside some wider ones hold other numbers; None: make it anew."""


def make_covering(levels: Levels, inner: int, tier: int, values: Ints) -> Covering:
    """Arrange units of a tier inside those of a wider one.

    Args:
        levels: the tree.
        inner: the tier.
        tier: the wider one.
        values: pods that each unit of the tier holds.

    Cost: O(units), times their logarithm where they hold many pods.
    """
    first = np.append(np.searchsorted(levels.starts[inner], levels.starts[tier]), len(values))
    around = levels.unit[tier]
    run = around if inner == 0 else around[levels.starts[inner]]
    top = int(values.max(initial=0))
    return _Counted.of(first, run, values, top) if top <= SMALL else _Sorted.of(first, run, values)


@dataclass(frozen=True, eq=False)
class _Counted:
    """Units by the number of pods that they hold."""

    first: Ints
    """Where the units inside each wider one begin, and where the last ones end."""
    top: int
    """Most pods that one unit may hold."""
    many: Ints
    """Shape (top + 1, wider units); row k: units that hold more than `top - k`."""
    held: Ints
    """Pods in these."""

    @classmethod
    def of(cls, first: Ints, run: Ints, values: Ints, top: int) -> _Counted:
        counts = np.bincount(run * (top + 1) + values, minlength=(len(first) - 1) * (top + 1))
        return cls(first, top, *_summed(counts.reshape(-1, top + 1).T))

    def fewest(self, units: Ints, num_pods: int) -> Ints:
        row = (self.held[:, units] >= num_pods).argmax(axis=0) - 1
        rest = num_pods - self.held[row, units]
        return np.asarray(self.many[row, units] - rest // (row - self.top))

    def changed(self, values: Ints, wider: Iterable[int]) -> Covering | None:
        units = list(wider)
        inside = [values[self.first[unit] : self.first[unit + 1]] for unit in units]
        if max(int(row.max()) for row in inside) > self.top:
            return None
        counts = np.array([np.bincount(row, minlength=self.top + 1) for row in inside])
        many, held = self.many.copy(), self.held.copy()
        many[:, units], held[:, units] = _summed(counts.T)
        return _Counted(self.first, self.top, many, held)


def _summed(counts: Ints) -> tuple[Ints, Ints]:
    """Return `many` and `held` of units counted by what they hold, from nothing on."""
    fullest = counts[:0:-1]
    pods = fullest * np.arange(len(fullest), 0, -1)[:, np.newaxis]
    nothing = np.zeros((1, counts.shape[1]), dtype=np.int64)
    many, held = (np.concatenate([nothing, row.cumsum(axis=0)]) for row in (fullest, pods))
    return many, held


@dataclass(frozen=True, eq=False)
class _Sorted:
    """Units sorted by the number of pods that they hold, the fullest of each wider one first."""

    first: Ints
    """Where the units inside each wider one begin, and where the last ones end."""
    ranked: Ints
    sums: Ints
    """Pods in units up to each."""

    @classmethod
    def of(cls, first: Ints, run: Ints, values: Ints) -> _Sorted:
        ranked = values[np.lexsort((-values, run))]
        return cls(first, ranked, ranked.cumsum())

    def fewest(self, units: Ints, num_pods: int) -> Ints:
        start = self.first[units]
        before = self.sums[start] - self.ranked[start]
        return np.searchsorted(self.sums, before + num_pods) - start + 1

    def changed(self, values: Ints, wider: Iterable[int]) -> Covering | None:
        ranked = self.ranked.copy()
        for unit in wider:
            span = slice(self.first[unit], self.first[unit + 1])
            ranked[span] = np.sort(values[span])[::-1]
        return _Sorted(self.first, ranked, ranked.cumsum())
