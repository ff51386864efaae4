"""What was counted on a snapshot per kind of pod, so that a changed one counts only what changed.

Memos, never a state: a row that is lost is counted again. Written without a lock; two threads that
count the same at once write the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from generator.placement.cluster.shape import PodShape

MAX_SHAPES = 64
"""Kinds of pods; then it begins anew."""
STALE_DIVISOR = 8
"""A row is let go once this part of the nodes, one in so many, has changed since.

A node counts as often as it has changed.
"""

StaleNodes = frozenset[int]
"""Positions of nodes that have changed since something was counted."""


class _CachedShape(NamedTuple):
    """A shape, and what has changed since it was counted."""

    shape: PodShape
    stale: tuple[StaleNodes, ...]
    """Change by change: put together when the shape is asked for, not at every change."""
    num_stale: int


class SlotCache:
    """Shapes by kind of pod, each with what has changed since."""

    def __init__(self, base: SlotCache | None = None, apart: StaleNodes = frozenset()) -> None:
        """Begin empty, or as a view of another that differs from it at some positions."""
        self._rows: dict[Hashable, _CachedShape] = {}
        self._base, self._changed_nodes = base, apart

    def get(self, kind: Hashable) -> tuple[PodShape, StaleNodes] | None:
        """Return a shape and the positions at which it is to be counted again; None: all."""
        found = self._rows.get(kind)
        if found is not None:
            return found.shape, frozenset().union(*found.stale)
        base = None if self._base is None else self._base.get(kind)
        return None if base is None else (base[0], base[1] | self._changed_nodes)

    def keys(self) -> Iterator[Hashable]:
        """Yield the kinds of pods that it knows itself."""
        yield from self._rows.copy()

    def store(self, kind: Hashable, shape: PodShape) -> None:
        """Remember what is true of the snapshot, and all but true of the one it is a view of."""
        self._store_row(kind, _CachedShape(shape, (), 0))
        if self._base is not None:
            apart = (self._changed_nodes,) if self._changed_nodes else ()
            self._base._store_row(kind, _CachedShape(shape, apart, len(self._changed_nodes)))  # noqa: SLF001 - of the same class

    def _store_row(self, kind: Hashable, row: _CachedShape) -> None:
        if len(self._rows) >= MAX_SHAPES and kind not in self._rows:
            self._rows.clear()
        self._rows[kind] = row

    def after_change(self, touched: StaleNodes, num_nodes: int) -> SlotCache:
        """Return what is left of it once some nodes have changed; O(kinds)."""
        found, num_touched = SlotCache(self._base, self._changed_nodes | touched), len(touched)
        most = num_nodes // STALE_DIVISOR - num_touched
        found._rows = {
            kind: _CachedShape(shape, (*stale, touched), num_stale + num_touched)
            for kind, (shape, stale, num_stale) in self._rows.copy().items()
            if num_stale <= most
        }
        return found
