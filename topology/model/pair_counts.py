"""How often two numbers form a pair, as arrays: which devices share cables, and how many.

Ranks, groups and findings need many counts of the cables between switches. The cables are counted
once (see `EdgeRows` in `planes.cables`), and each further count is one operation on all pairs.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from topology.model.fabric import Flags, Index

_HALF: Final = 32
"""Bits for one of the two numbers in a key."""
_LOWER_HALF: Final = (1 << _HALF) - 1


class PairCounts(NamedTuple):
    """Pairs and their counts, one entry per pair; sorted by `left`, then by `right`."""

    left: Index
    right: Index
    counts: Index

    def where(self, chosen: Flags | Index) -> PairCounts:
        """Return the chosen pairs.

        Args:
            chosen: one flag per pair, or the indices of pairs.
        """
        return PairCounts(*(column[chosen] for column in self))

    def count_to(self, is_chosen: Flags) -> Index:
        """Return for each number how often it forms a pair with a chosen number.

        Args:
            is_chosen: one flag per number.

        Returns:
            One count per number.
        """
        weights = self.counts * is_chosen[self.right]
        return np.bincount(self.left, weights, len(is_chosen)).astype(np.intp)

    @property
    def by_left(self) -> dict[int, dict[int, int]]:
        """Return left number to right number to count, all ascending. Cost: O(pairs)."""
        starts = np.flatnonzero(np.diff(self.left, prepend=-1))
        stops = np.append(starts, len(self.left))[1:]
        rights, counts = self.right.tolist(), self.counts.tolist()
        return {
            left: dict(zip(rights[start:stop], counts[start:stop], strict=True))
            for left, start, stop in zip(
                self.left[starts].tolist(), starts.tolist(), stops.tolist(), strict=True
            )
        }


def count_pairs(left: Index, right: Index, times: Index | None = None) -> PairCounts:
    """Return the distinct pairs and how often each occurs. Cost: O(n log n).

    Args:
        left: first number of each pair, from 0 to 2**31 - 1; one entry per occurrence.
        right: second number of each pair, in the same order and range.
        times: how often each occurrence counts; once if None.
    """
    keys = (left << _HALF) | right
    if times is None:
        keys.sort(kind="stable")  # fastest for nearly sorted input, and cables are nearly sorted
    else:
        order = np.argsort(keys, kind="stable")
        keys, times = keys[order], times[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    unique_keys = keys[starts]
    if times is None or not len(starts):
        counts = np.diff(starts, append=len(keys))
    else:
        counts = np.add.reduceat(times, starts)
    return PairCounts(unique_keys >> _HALF, unique_keys & _LOWER_HALF, counts)
