"""The fewest bins that hold a number of pods: their number for many units, or the bins of one.

Bins are the nodes or units inside a wider unit. This module is in `cluster` because a shape caches
its covers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from generator.placement.cluster.levels import IntArray, TreeLevels

MAX_SUM_BITS = 1 << 26
"""Most sums that are compared: one bit each, 8 MiB in all, some milliseconds."""
MAX_BIN_SLOTS = 1 << 32
"""Slots are counted up to this number, above the pods of any gang, so that keys fit 64 bits."""


@dataclass(frozen=True, eq=False)
class MinCover:
    """The units of one tier inside those of a wider tier, sorted by the pods that they hold."""

    first: IntArray
    """Where the inner units of each wider unit start, then the end of the last."""
    sorted_slots: IntArray
    """The largest of each wider unit first."""
    prefix_sums: IntArray
    """Pods in all units up to and including each."""

    @classmethod
    def build(
        cls, levels: TreeLevels, inner_tier: int, outer_tier: int, slots: IntArray
    ) -> MinCover:
        """Sort the units of a tier inside each unit of a wider tier; O(units × log units).

        Args:
            levels: the tree.
            inner_tier: the tier whose units are sorted.
            outer_tier: the wider tier.
            slots: pods that each unit of the inner tier holds.
        """
        counted = np.minimum(slots, MAX_BIN_SLOTS)
        inner_starts, outer_starts = levels.starts[inner_tier], levels.starts[outer_tier]
        first = np.append(np.searchsorted(inner_starts, outer_starts), len(counted))
        most = int(counted.max(initial=0))
        offset = levels.unit_of_node[outer_tier][inner_starts] * (most + 1)
        sorted_slots = offset - np.sort(offset - counted, kind="stable")
        return cls(first, sorted_slots, sorted_slots.cumsum())

    def min_units(self, units: IntArray, num_pods: int) -> IntArray:
        """Return per wider unit the fewest inner units that hold the pods; it must hold them."""
        start = self.first[units]
        before = self.prefix_sums[start] - self.sorted_slots[start]
        return np.searchsorted(self.prefix_sums, before + num_pods) - start + 1

    def least_slots(self, units: IntArray, num_inner: IntArray) -> IntArray:
        """Return per wider unit the fewest slots of `num_inner` inner units that hold any pods."""
        start = self.first[units]
        is_used = self.sorted_slots > 0
        stop = start + np.add.reduceat(is_used, self.first[:-1], dtype=np.int64)[units]
        before = np.maximum(stop - num_inner, start)
        sums = self.prefix_sums
        return sums[stop - 1] - np.where(before > 0, sums[before - 1], 0)


def choose_fewest_bins(slots: Sequence[int], num_pods: int, *, is_tight: bool) -> list[int] | None:
    """Return the fewest bins that hold the pods, in order; all bins together must hold them.

    If `is_tight`, no other set of as few bins leaves fewer slots free. Among equal sets the first
    bins are chosen, so that of bins with equal slots only as many as needed are compared. Sums of
    slots are bits of an integer; None if there are too many.
    """
    candidates, count = fewest_bins_candidates(slots, num_pods)
    most_slots = slots[candidates[0]]
    if all(slots[index] == most_slots for index in candidates):
        return candidates[:count]
    width = count * max(slots) + 1
    if len(candidates) * (count + 1) * width > MAX_SUM_BITS:
        return None
    sums = _reachable_sums_by_suffix([slots[index] for index in candidates], count, width)
    sums_above = sums[-1] >> (count * width + num_pods)
    target_slots = num_pods + (sums_above & -sums_above).bit_length() - 1 if is_tight else num_pods
    chosen: list[int] = []
    for index, suffix_sums in zip(candidates, sums[-2::-1], strict=True):
        remaining = target_slots - slots[index]
        sums_of_rest = (suffix_sums >> ((count - 1) * width)) & ((1 << width) - 1)
        reachable = sums_of_rest >> max(remaining, 0)
        if (reachable & 1 and remaining >= 0) if is_tight else reachable:
            chosen.append(index)
            target_slots, count = remaining, count - 1
            if not count:
                break
    return chosen


def fewest_bins_candidates(
    slots: Sequence[int], num_pods: int, classes: Sequence[Hashable] | None = None
) -> tuple[list[int], int]:
    """Return the bins that may be among the fewest that hold the pods, and the fewest number.

    All bins together must hold the pods. Of equal bins the first ones are returned, as many as may
    be needed. The largest bins have a few slots too many. A smaller bin in place of one of them
    uses up the difference.

    Args:
        slots: pods that fit each bin.
        num_pods: the pods to hold.
        classes: class of each bin; bins of one class are equal. None: bins with equal slots are
            equal.
    """
    bins_by_class: dict[Hashable, tuple[int, list[int]]] = {}
    for index, (bin_slots, bin_class) in enumerate(zip(slots, classes or slots, strict=True)):
        bins_by_class.setdefault(bin_class, (bin_slots, []))[1].append(index)
    largest_first = sorted(bins_by_class.values(), key=itemgetter(0), reverse=True)
    count = smallest = 0
    missing = num_pods
    for smallest, indices in largest_first:
        needed = min(-(-missing // smallest), len(indices))
        count, missing = count + needed, missing - needed * smallest
        if missing <= 0:
            break
    candidates: list[int] = []
    for bin_slots, indices in largest_first:
        is_large = bin_slots >= smallest
        max_bins = count if is_large else min(-missing // (smallest - bin_slots), count)
        candidates += indices[:max_bins]
    return sorted(candidates), count


def fill_in_order(
    slots: Sequence[int] | IntArray, chosen: Sequence[int], num_pods: int
) -> dict[int, int]:
    """Return pods per chosen bin, in order: each bin is filled before the next is used."""
    pods_per_bin: dict[int, int] = {}
    for index in chosen:
        pods_per_bin[index] = min(int(slots[index]), num_pods)
        num_pods -= pods_per_bin[index]
    return pods_per_bin


def _reachable_sums_by_suffix(slots: Sequence[int], max_bins: int, width: int) -> list[int]:
    """Return the sums of slots that subsets of the last bins reach; entry n is for the last n bins.

    A set of sums is an integer: bit `num * width + total` is set if `num` of these bins, at most
    `max_bins`, have `total` slots together.
    """
    mask = (1 << ((max_bins + 1) * width)) - 1
    no_bins = 1
    sums = [no_bins]
    for bin_slots in reversed(slots):
        # One bin more, and its slots more: a single shift of all sums.
        with_this_bin = sums[-1] << (width + bin_slots)
        sums.append((sums[-1] | with_this_bin) & mask)
    return sums
