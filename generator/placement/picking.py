"""Which nodes of a leaf hold so many pods: the fewest, with as little left in them as can be."""

from __future__ import annotations

from collections.abc import Sequence

MOST_SUMS = 4096
"""Pods up to which sums of slots are bits of an integer."""


def fewest_nodes(slots: Sequence[int], num_pods: int, *, is_tight: bool) -> list[int]:
    """Return the fewest nodes that hold so many pods, which all of them do; in order.

    If `is_tight`, no other ones as few leave less free. Among equals the first ones are taken, so
    that of nodes with equal slots no more than the fewest need a look. Sums of slots are bits.
    """
    count = total = last = 0
    for last in sorted(slots, reverse=True):
        total, count = total + last, count + 1
        if total >= num_pods:
            break
    kept = _kept(slots, count, last, total - num_pods)
    top = slots[kept[0]]
    if all(slots[at] == top for at in kept):
        return kept[:count]
    width = count * max(slots) + 1
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


def _kept(slots: Sequence[int], count: int, last: int, spare: int) -> list[int]:
    """Return the nodes that may be among the fewest, so many of equal ones, in order.

    The fullest `count` hold `spare` pods too many, the least of them `last`: each node that holds
    less than that costs the difference.
    """
    left = {many: count if many >= last else spare // (last - many) for many in set(slots)}
    kept = []
    for at, many in enumerate(slots):
        if left[many]:
            left[many] -= 1
            kept.append(at)
    return kept


def _sums(slots: Sequence[int], most: int, width: int) -> list[int]:
    """Return per number of last nodes, from none on, what some of them hold.

    Bit `num * width + total` tells whether `num` of them, up to `most`, hold so many pods.
    """
    mask = (1 << (most + 1) * width) - 1
    sums = [1]
    for many in reversed(slots):
        sums.append((sums[-1] | sums[-1] << width + many) & mask)
    return sums
