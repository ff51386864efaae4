"""What was counted on a snapshot per kind of pod, so that a changed one counts only what changed.

Memos, never a state: a row that is lost is counted again. Written without a lock; two threads that
count the same at once write the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from generator.placement.shapes import Shape

MOST_KINDS = 64
"""Kinds of pods; then it begins anew."""
MOST_STALE = 8
"""A row is let go once this part of the nodes, one in so many, has changed since."""

Stale = frozenset[int]
"""Positions of nodes that have changed since something was counted."""


class Counted:
    """Shapes by kind of pod, each with what has changed since."""

    def __init__(self, base: Counted | None = None, apart: Stale = frozenset()) -> None:
        """Begin empty, or as a view of another that differs from it at some positions."""
        self._rows: dict[Hashable, tuple[Shape, Stale]] = {}
        self._base, self._apart = base, apart

    def get(self, kind: Hashable) -> tuple[Shape, Stale] | None:
        """Return a shape and the positions at which it is to be counted again; None: all."""
        found = self._rows.get(kind)
        if found is None and self._base is not None:
            found = self._base.get(kind)
            return None if found is None else (found[0], found[1] | self._apart)
        return found

    def kinds(self) -> Iterator[Hashable]:
        """Yield the kinds of pods that it knows itself."""
        yield from self._rows.copy()

    def keep(self, kind: Hashable, shape: Shape) -> None:
        """Remember what is true of the snapshot, and all but true of the one it is a view of."""
        self._put(kind, shape, frozenset())
        if self._base is not None:
            self._base._put(kind, shape, self._apart)  # noqa: SLF001 - of the same class

    def _put(self, kind: Hashable, shape: Shape, stale: Stale) -> None:
        if len(self._rows) >= MOST_KINDS and kind not in self._rows:
            self._rows.clear()
        self._rows[kind] = shape, stale

    def changed(self, touched: Stale, num_nodes: int) -> Counted:
        """Return what is left of it once some nodes have changed; O(kinds)."""
        found = Counted(self._base, self._apart | touched)
        for kind, (shape, stale) in self._rows.copy().items():
            behind = stale | touched
            if len(behind) * MOST_STALE <= num_nodes:
                found._rows[kind] = shape, behind
        return found
