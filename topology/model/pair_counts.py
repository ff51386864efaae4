"""How often numbers are a pair, as arrays: which devices are cabled to each other, and by how many.

Ranks, groups and findings ask many questions about the cables between switches. So these are
counted once, see `plane_cables`, and each question is an operation on all pairs at once.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from topology.model.fabric_columns import Flags, Index

_HALF: Final = 32
"""Bits for one of two numbers."""
_LOWER_HALF: Final = (1 << _HALF) - 1


class PairCounts(NamedTuple):
    """Pairs and how often each is there, one entry per pair; sorted by one, then by the other."""

    left: Index
    right: Index
    counts: Index

    def where(self, chosen: Flags | Index) -> PairCounts:
        """Return some of the pairs, given by a flag for each or by their places."""
        return PairCounts(*(column[chosen] for column in self))

    def count_to(self, is_chosen: Flags) -> Index:
        """Return how often each number is a pair with one of the chosen others.

        Args:
            is_chosen: one entry per number, as is what is returned.
        """
        weights = self.counts * is_chosen[self.right]
        return np.bincount(self.left, weights, len(is_chosen)).astype(np.intp)

    def by_left(self) -> dict[int, dict[int, int]]:
        """Return one to other to count, all ascending. Cost: O(pairs)."""
        starts = np.flatnonzero(np.diff(self.left, prepend=-1))
        stops = np.append(starts, len(self.left))[1:]
        others, counts = self.right.tolist(), self.counts.tolist()
        return {
            one: dict(zip(others[start:stop], counts[start:stop], strict=True))
            for one, start, stop in zip(
                self.left[starts].tolist(), starts.tolist(), stops.tolist(), strict=True
            )
        }


def count_pairs(ones: Index, others: Index, times: Index | None = None) -> PairCounts:
    """Return which numbers are pairs, and how often. Cost: O(n log n).

    Args:
        ones: not negative, and below 2**31; one entry per pair, as the others have.
        others: the other one.
        times: how often each counts; once where not given.
    """
    keys = (ones << _HALF) | others
    if times is None:
        keys.sort(kind="stable")  # quickest where they are nearly in order, as cables are
    else:
        order = np.argsort(keys, kind="stable")
        keys, times = keys[order], times[order]
    places = np.flatnonzero(np.diff(keys, prepend=-1))
    found = keys[places]
    if times is None or not len(places):
        counts = np.diff(places, append=len(keys))
    else:
        counts = np.add.reduceat(times, places)
    return PairCounts(found >> _HALF, found & _LOWER_HALF, counts)
