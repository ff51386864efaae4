"""Cut the new pods of a group into slices by index, beside its running pods.

Pods have the indices 0, 1, 2 … in their group. New pods take the lowest indices that no running pod
has. Running pods with unknown index are in no slice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import NamedTuple

from generator.placement.groups import SliceLayer

IndexedPods = tuple[tuple[int, int], ...]
"""(index, position of its node) per running pod whose index is known."""


class SlicePods(NamedTuple):
    """The new pods of one slice, cut further by the inner layers."""

    size: int
    """Number of new pods."""
    tier: str | None
    """Tier that the indexed slice must stay within; None: no tier, or unit rules cover it."""
    running_positions: tuple[int, ...]
    """Positions of the running pods of the slice, sorted."""
    inner_slices: tuple[SlicePods, ...]
    """Slices of the next layer; empty in the last layer."""

    @property
    def running_span(self) -> tuple[int, int] | None:
        """First and last position of the running pods."""
        return (
            (self.running_positions[0], self.running_positions[-1])
            if self.running_positions
            else None
        )


def cut_slices(
    layers: Sequence[SliceLayer], ranked: IndexedPods, num_pods: int
) -> tuple[SlicePods, ...]:
    """Cut this many new pods of a group into slices, in order of their indices.

    Layers that are not indexed do not cut, except the last one, which cuts the parts that the
    objective counts. Cost: O(layers × pods).
    """
    taken = {index for index, _ in ranked}
    free = (index for index in count() if index not in taken)
    kept = [layer for layer in layers[:-1] if layer.is_indexed]
    return _cut_layers((*kept, layers[-1]), list(islice(free, num_pods)), ranked)


def innermost_slices(pieces: Sequence[SlicePods]) -> Iterator[SlicePods]:
    """Yield the slices of the last layer in order."""
    for piece in pieces:
        yield from innermost_slices(piece.inner_slices) if piece.inner_slices else (piece,)


def all_slices(pieces: Sequence[SlicePods]) -> Iterator[SlicePods]:
    """Yield the slices of every layer, outer slices first."""
    for piece in pieces:
        yield piece
        yield from all_slices(piece.inner_slices)


def slices_with_positions(
    pieces: Sequence[SlicePods], row: Sequence[int]
) -> Iterator[tuple[SlicePods, list[int]]]:
    """Yield every slice with the positions of its new and its running pods."""
    start = 0
    for piece in pieces:
        inside = row[start : start + piece.size]
        yield piece, [*inside, *piece.running_positions]
        yield from slices_with_positions(piece.inner_slices, inside)
        start += piece.size


def _cut_layers(
    layers: Sequence[SliceLayer], indices: Sequence[int], ranked: IndexedPods
) -> tuple[SlicePods, ...]:
    if not layers:
        return ()
    layer, *inner = layers
    found = []
    for key, inside in _indices_by_slice(layer, indices):
        mine = tuple(row for row in ranked if layer.is_indexed and row[0] // layer.size == key)
        found.append(
            SlicePods(
                size=len(inside),
                tier=layer.tier if layer.is_indexed else None,
                running_positions=tuple(sorted(at for _, at in mine)),
                inner_slices=_cut_layers(inner, inside, mine),
            )
        )
    return tuple(found)


def _indices_by_slice(layer: SliceLayer, indices: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Return (number of the slice, its indices); without an index, pods are cut in order."""
    found: dict[int, list[int]] = {}
    for at, index in enumerate(indices):
        found.setdefault((index if layer.is_indexed else at) // layer.size, []).append(index)
    return list(found.items())
