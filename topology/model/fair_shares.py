"""Which rows of a bounded table make room: those of the owner that has the most, oldest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TypeVar

RowT = TypeVar("RowT")


def find_surplus(
    rows: Sequence[RowT], owners: Sequence[Sequence[Hashable]], limit: int
) -> list[RowT]:
    """Return the rows above the limit, the first to make room first.

    Owners share the table equally; what one does not need is free for the others. So no owner can
    push out more than what others have above an equal share.

    Args:
        rows: newest first.
        owners: of each row, outermost first: the owner within all rows, then within the rows of
            that owner, and so on.
        limit: number of rows to keep.
    """
    if len(rows) <= limit:
        return []
    order = list(range(len(rows)))
    for depth in range(max(map(len, owners)), 0, -1):
        rank_of: list[int] = [0] * len(rows)
        counts = Counter[tuple[Hashable, ...]]()
        for row in order:
            owner = tuple(owners[row][:depth])
            rank_of[row] = counts[owner]
            counts[owner] += 1
        order.sort(key=rank_of.__getitem__)
    return [rows[row] for row in reversed(order[limit:])]
