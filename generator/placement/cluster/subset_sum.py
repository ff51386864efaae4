"""Choose the fewest nodes of a leaf that hold a number of pods, with the least capacity left."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from operator import itemgetter

MAX_SUM_BITS = 1 << 26
"""Most sums that are compared: one bit each, 8 MiB in all, some milliseconds."""


EqualBins = Sequence[tuple[int, Sequence[int]]]
"""(pods that fit each bin, indices in order) per class of equal bins; the largest first."""


def group_equal_bins(rooms: Sequence[int], kinds: Sequence[Hashable]) -> EqualBins:
    """Return the classes of equal bins.

    Args:
        rooms: pods that fit each bin.
        kinds: class of each bin; bins of a class hold equal pods.
    """
    found: dict[Hashable, tuple[int, list[int]]] = {}
    for at, (room, kind) in enumerate(zip(rooms, kinds, strict=True)):
        found.setdefault(kind, (room, []))[1].append(at)
    return sorted(found.values(), key=itemgetter(0), reverse=True)


def choose_fewest_nodes(
    slots: Sequence[int], rows: EqualBins, num_pods: int, *, is_tight: bool
) -> list[int] | None:
    """Return the fewest nodes that hold the pods, in order; all nodes together must hold them.

    If `is_tight`, no other set of as few nodes leaves fewer slots free. Among equal sets the first
    nodes are chosen, so that of nodes with equal slots only as many as needed are compared. Sums of
    slots are bits of an integer; None if there are too many.

    Args:
        slots: per node.
        rows: classes of nodes with equal slots.
        num_pods: the pods to hold.
        is_tight: see above.
    """
    kept, count = fewest_bins_candidates(rows, num_pods)
    top = slots[kept[0]]
    if all(slots[at] == top for at in kept):
        return kept[:count]
    width = count * rows[0][0] + 1
    if len(kept) * (count + 1) * width > MAX_SUM_BITS:
        return None
    sums = _reachable_sums([slots[at] for at in kept], count, width)
    over = sums[-1] >> count * width + num_pods
    goal = num_pods + (over & -over).bit_length() - 1 if is_tight else num_pods
    chosen: list[int] = []
    for at, others in zip(kept, sums[-2::-1], strict=True):
        rest = goal - slots[at]
        reached = (others >> (count - 1) * width & (1 << width) - 1) >> max(rest, 0)
        if reached & 1 and rest >= 0 if is_tight else reached:
            chosen.append(at)
            goal, count = rest, count - 1
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


def fewest_bins_candidates(rows: EqualBins, num_pods: int) -> tuple[list[int], int]:
    """Return the bins that may be among the fewest that hold the pods, and the fewest number.

    All bins together must hold the pods. Of equal bins the first ones are returned, as many as may
    be needed. The largest bins hold some pods too many; a bin that holds less than the smallest of
    them uses up the difference.
    """
    count = last = 0
    missing = num_pods
    for last, indices in rows:
        needed = min(-(-missing // last), len(indices))
        count, missing = count + needed, missing - needed * last
        if missing <= 0:
            break
    kept: list[int] = []
    for room, indices in rows:
        most = count if room >= last else min(-missing // (last - room), count)
        kept += indices[:most]
    kept.sort()
    return kept, count


def _reachable_sums(slots: Sequence[int], most: int, width: int) -> list[int]:
    """Return per number of trailing nodes, from none on, the sums that subsets of them reach.

    Bit `num * width + total` is set if some `num` of them, up to `most`, hold `total` pods.
    """
    mask = (1 << (most + 1) * width) - 1
    sums = [1]
    for many in reversed(slots):
        sums.append((sums[-1] | sums[-1] << width + many) & mask)
    return sums
