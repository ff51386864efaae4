"""Which nodes of a leaf hold so many pods: the fewest, with as little left in them as can be."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from operator import itemgetter

MAX_SUM_BITS = 1 << 26
"""Sums that are looked at: a bit each, 8 MiB in all, some milliseconds."""


EqualBins = Sequence[tuple[int, Sequence[int]]]
"""Pods that fit each of those that are alike, and their indices in order; the fullest first."""


def group_equal_bins(rooms: Sequence[int], kinds: Sequence[Hashable]) -> EqualBins:
    """Return which are alike.

    Args:
        rooms: pods that fit each.
        kinds: equal for those that are alike, which have equal rooms.
    """
    found: dict[Hashable, tuple[int, list[int]]] = {}
    for at, (room, kind) in enumerate(zip(rooms, kinds, strict=True)):
        found.setdefault(kind, (room, []))[1].append(at)
    return sorted(found.values(), key=itemgetter(0), reverse=True)


def choose_fewest_nodes(
    slots: Sequence[int], rows: EqualBins, num_pods: int, *, is_tight: bool
) -> list[int] | None:
    """Return the fewest nodes that hold so many pods, which all of them do; in order.

    If `is_tight`, no other ones as few leave less free. Among equals the first ones are taken, so
    that of nodes with equal slots no more than the fewest need a look. Sums of slots are bits;
    None where they are too many.

    Args:
        slots: per node.
        rows: nodes with equal slots.
        num_pods: that they are to hold.
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


def fill_in_order(rooms: Sequence[int], chosen: Sequence[int], num_pods: int) -> dict[int, int]:
    """Return pods per chosen index, in its order: each room is full before the next is used."""
    found: dict[int, int] = {}
    for at in chosen:
        found[at] = min(rooms[at], num_pods)
        num_pods -= found[at]
    return found


def fewest_bins_candidates(rows: EqualBins, num_pods: int) -> tuple[list[int], int]:
    """Return which may be among the fewest that hold so many pods, and how few these are.

    All of them do. Of those that are alike the first ones are returned, as many as may be needed.
    The fullest hold some pods too many: each that holds less than the least of them costs the
    difference.
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
    """Return per number of last nodes, from none on, what some of them hold.

    Bit `num * width + total` tells whether `num` of them, up to `most`, hold so many pods.
    """
    mask = (1 << (most + 1) * width) - 1
    sums = [1]
    for many in reversed(slots):
        sums.append((sums[-1] | sums[-1] << width + many) & mask)
    return sums
