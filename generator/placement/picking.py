"""Which nodes of a leaf hold so many pods: the fewest, with as little left in them as can be."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

MOST_BITS = 1 << 26
"""Sums that are looked at: a bit each, 8 MiB in all, some milliseconds."""


def fewest_nodes(slots: Sequence[int], num_pods: int, *, is_tight: bool) -> list[int] | None:
    """Return the fewest nodes that hold so many pods, which all of them do; in order.

    If `is_tight`, no other ones as few leave less free. Among equals the first ones are taken, so
    that of nodes with equal slots no more than the fewest need a look. Sums of slots are bits;
    None where they are too many.
    """
    kept, count = among_fewest(slots, num_pods, slots)
    top = slots[kept[0]]
    if all(slots[at] == top for at in kept):
        return kept[:count]
    width = count * max(slots) + 1
    if len(kept) * (count + 1) * width > MOST_BITS:
        return None
    sums = _sums([slots[at] for at in kept], count, width)
    over = sums[-1] >> count * width + num_pods
    goal = num_pods + (over & -over).bit_length() - 1 if is_tight else num_pods
    chosen: list[int] = []
    for at, rows in zip(kept, sums[-2::-1], strict=True):
        rest = goal - slots[at]
        reached = (rows >> (count - 1) * width & (1 << width) - 1) >> max(rest, 0)
        if reached & 1 and rest >= 0 if is_tight else reached:
            chosen.append(at)
            goal, count = rest, count - 1
            if not count:
                break
    return chosen


def poured(rooms: Sequence[int], chosen: Sequence[int], num_pods: int) -> dict[int, int]:
    """Return pods per chosen index, in its order: each room is full before the next is used."""
    found: dict[int, int] = {}
    for at in chosen:
        found[at] = min(rooms[at], num_pods)
        num_pods -= found[at]
    return found


def among_fewest(
    rooms: Sequence[int], num_pods: int, kinds: Sequence[Hashable]
) -> tuple[list[int], int]:
    """Return which may be among the fewest that hold so many pods, and how few these are.

    Args:
        rooms: pods that fit each; all of them hold so many.
        num_pods: of them.
        kinds: equal for those that are alike, which have equal rooms; of these the first ones are
            kept, as many as may be needed.

    The fullest hold some pods too many: each that holds less than the least of them costs the
    difference.
    """
    count = total = last = 0
    for last in sorted(rooms, reverse=True):
        total, count = total + last, count + 1
        if total >= num_pods:
            break
    spare = total - num_pods
    left = {
        kind: count if many >= last else min(spare // (last - many), count)
        for kind, many in dict(zip(kinds, rooms, strict=True)).items()
    }
    kept = []
    for at, kind in enumerate(kinds):
        if left[kind]:
            left[kind] -= 1
            kept.append(at)
    return kept, count


def _sums(slots: Sequence[int], most: int, width: int) -> list[int]:
    """Return per number of last nodes, from none on, what some of them hold.

    Bit `num * width + total` tells whether `num` of them, up to `most`, hold so many pods.
    """
    mask = (1 << (most + 1) * width) - 1
    sums = [1]
    for many in reversed(slots):
        sums.append((sums[-1] | sums[-1] << width + many) & mask)
    return sums
