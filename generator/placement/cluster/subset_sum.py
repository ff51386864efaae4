"""Choose the fewest nodes of a leaf that hold a number of pods, with the least capacity left."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from operator import itemgetter

MAX_SUM_BITS = 1 << 26
"""Most sums that are compared: one bit each, 8 MiB in all, some milliseconds."""


EqualBins = Sequence[tuple[int, Sequence[int]]]
"""(pods that fit each bin, indices in order) per class of equal bins; the largest first."""


def group_equal_bins(bin_slots: Sequence[int], classes: Sequence[Hashable]) -> EqualBins:
    """Return the classes of equal bins.

    Args:
        bin_slots: pods that fit each bin.
        classes: class of each bin; bins of a class hold equal pods.
    """
    bins_by_class: dict[Hashable, tuple[int, list[int]]] = {}
    for index, (slots, bin_class) in enumerate(zip(bin_slots, classes, strict=True)):
        bins_by_class.setdefault(bin_class, (slots, []))[1].append(index)
    return sorted(bins_by_class.values(), key=itemgetter(0), reverse=True)


def choose_fewest_nodes(
    slots: Sequence[int], bins: EqualBins, num_pods: int, *, is_tight: bool
) -> list[int] | None:
    """Return the fewest nodes that hold the pods, in order; all nodes together must hold them.

    If `is_tight`, no other set of as few nodes leaves fewer slots free. Among equal sets the first
    nodes are chosen, so that of nodes with equal slots only as many as needed are compared. Sums of
    slots are bits of an integer; None if there are too many.

    Args:
        slots: per node.
        bins: classes of nodes with equal slots.
        num_pods: the pods to hold.
        is_tight: see above.
    """
    candidates, count = fewest_bins_candidates(bins, num_pods)
    most_slots = slots[candidates[0]]
    if all(slots[index] == most_slots for index in candidates):
        return candidates[:count]
    width = count * bins[0][0] + 1
    if len(candidates) * (count + 1) * width > MAX_SUM_BITS:
        return None
    sums = _reachable_sums([slots[index] for index in candidates], count, width)
    sums_above = sums[-1] >> count * width + num_pods
    target_slots = num_pods + (sums_above & -sums_above).bit_length() - 1 if is_tight else num_pods
    chosen: list[int] = []
    for index, suffix_sums in zip(candidates, sums[-2::-1], strict=True):
        remaining = target_slots - slots[index]
        reachable = (suffix_sums >> (count - 1) * width & (1 << width) - 1) >> max(remaining, 0)
        if reachable & 1 and remaining >= 0 if is_tight else reachable:
            chosen.append(index)
            target_slots, count = remaining, count - 1
            if not count:
                break
    return chosen


def fill_in_order(slots: Sequence[int], chosen: Sequence[int], num_pods: int) -> dict[int, int]:
    """Return pods per chosen bin, in order: each bin is filled before the next is used."""
    pods_per_bin: dict[int, int] = {}
    for index in chosen:
        pods_per_bin[index] = min(slots[index], num_pods)
        num_pods -= pods_per_bin[index]
    return pods_per_bin


def fewest_bins_candidates(bins: EqualBins, num_pods: int) -> tuple[list[int], int]:
    """Return the bins that may be among the fewest that hold the pods, and the fewest number.

    All bins together must hold the pods. Of equal bins the first ones are returned, as many as may
    be needed. The largest bins hold some pods too many; a bin that holds less than the smallest of
    them uses up the difference.
    """
    count = smallest = 0
    missing = num_pods
    for smallest, indices in bins:
        needed = min(-(-missing // smallest), len(indices))
        count, missing = count + needed, missing - needed * smallest
        if missing <= 0:
            break
    candidates: list[int] = []
    for slots, indices in bins:
        max_bins = count if slots >= smallest else min(-missing // (smallest - slots), count)
        candidates += indices[:max_bins]
    candidates.sort()
    return candidates, count


def _reachable_sums(slots: Sequence[int], max_nodes: int, width: int) -> list[int]:
    """Return per number of trailing nodes, from none on, the sums that subsets of them reach.

    Bit `num * width + total` is set if some `num` of them, up to `max_nodes`, hold `total` pods.
    """
    mask = (1 << (max_nodes + 1) * width) - 1
    sums = [1]
    for node_slots in reversed(slots):
        sums.append((sums[-1] | sums[-1] << width + node_slots) & mask)
    return sums
