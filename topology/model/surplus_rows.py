"""Which rows of a bounded table make room: those of the owner that has the most, oldest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import accumulate
from typing import TypeVar

RowT = TypeVar("RowT")


def find_surplus(
    rows: Sequence[RowT],
    owners: Sequence[Sequence[Hashable]],
    limit: int,
    *,
    sizes: Sequence[int] | None = None,
) -> list[RowT]:
    """Return the rows above the limit, the first to make room first.

    Owners share the table equally, and room that an owner does not need is free for the others. So
    an owner can push out only the rows that others have above an equal share.

    Args:
        rows: newest first.
        owners: the owners of each row. The first owners share the table, the second owners share
            the rows of their first owner, and so on.
        limit: the sum of sizes to keep.
        sizes: the room that each row takes, at least 1; None: 1 each.
    """
    sizes = [1] * len(rows) if sizes is None else sizes
    if sum(sizes) <= limit:
        return []
    order = list(range(len(rows)))
    for depth in range(max(map(len, owners)), 0, -1):
        used_up_to: list[int] = [0] * len(rows)
        used = Counter[tuple[Hashable, ...]]()
        for row in order:
            owner = tuple(owners[row][:depth])
            used[owner] += sizes[row]
            used_up_to[row] = used[owner]
        order.sort(key=used_up_to.__getitem__)
    room = accumulate(sizes[row] for row in order)
    num_kept = sum(used_room <= limit for used_room in room)
    return [rows[row] for row in reversed(order[num_kept:])]
