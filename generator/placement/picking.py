"""Which nodes of a leaf hold so many pods: the fewest, with as little left in them as can be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

MOST_SUMS = 4096
"""Pods up to which sums of slots are bits of an integer."""


def fewest_nodes(slots: Sequence[int], num_pods: int, *, is_tight: bool) -> list[int]:
    """Return the fewest nodes that hold so many pods, which all of them do; in order.

    If `is_tight`, no other ones as few leave less free. Among equals the first ones are taken, so
    that of nodes with equal slots no more than the fewest need a look. Sums of slots are bits.
    """
    count = total = 0
    for many in sorted(slots, reverse=True):
        if total >= num_pods:
            break
        total, count = total + many, count + 1
    met = Counter[int]()
    kept = [at for at, many in enumerate(slots) if many and _nth(met, many) <= count]
    if len(met) == 1:
        return kept[:count]
    sums = [[1] + [0] * count]
    for at in reversed(kept):
        after = sums[-1]
        more = (after[num] | after[num - 1] << slots[at] for num in range(1, count + 1))
        sums.append([1, *more])
    over = sums[-1][count] >> num_pods
    goal = num_pods + (over & -over).bit_length() - 1 if is_tight else num_pods
    chosen: list[int] = []
    for at, rows in zip(kept, sums[-2::-1], strict=True):
        rest = goal - slots[at]
        reached = rows[count - 1] >> max(rest, 0)
        if reached & 1 and rest >= 0 if is_tight else reached:
            chosen.append(at)
            goal, count = rest, count - 1
            if not count:
                break
    return chosen


def _nth(met: Counter[int], value: int) -> int:
    met[value] += 1
    return met[value]
