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
    layers: Sequence[SliceLayer], indexed_pods: IndexedPods, num_pods: int
) -> tuple[SlicePods, ...]:
    """Cut this many new pods of a group into slices, in order of their indices.

    Layers that are not indexed do not cut, except the last one, which cuts the parts that the
    objective counts. Cost: O(layers × pods).
    """
    used_indices = {index for index, _ in indexed_pods}
    free_indices = (index for index in count() if index not in used_indices)
    indexed_layers = [layer for layer in layers[:-1] if layer.is_indexed]
    return _cut_layers(
        (*indexed_layers, layers[-1]), list(islice(free_indices, num_pods)), indexed_pods
    )


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
    pieces: Sequence[SlicePods], positions: Sequence[int]
) -> Iterator[tuple[SlicePods, list[int]]]:
    """Yield every slice with the positions of its new and its running pods."""
    start = 0
    for piece in pieces:
        inner_positions = positions[start : start + piece.size]
        yield piece, [*inner_positions, *piece.running_positions]
        yield from slices_with_positions(piece.inner_slices, inner_positions)
        start += piece.size


def _cut_layers(
    layers: Sequence[SliceLayer], indices: Sequence[int], indexed_pods: IndexedPods
) -> tuple[SlicePods, ...]:
    if not layers:
        return ()
    layer, *inner = layers
    slices = []
    for key, slice_indices in _indices_by_slice(layer, indices):
        running = tuple(
            row for row in indexed_pods if layer.is_indexed and row[0] // layer.size == key
        )
        slices.append(
            SlicePods(
                size=len(slice_indices),
                tier=layer.tier if layer.is_indexed else None,
                running_positions=tuple(sorted(node for _, node in running)),
                inner_slices=_cut_layers(inner, slice_indices, running),
            )
        )
    return tuple(slices)


def _indices_by_slice(layer: SliceLayer, indices: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Return (number of the slice, its indices); without an index, pods are cut in order."""
    slices: dict[int, list[int]] = {}
    for offset, index in enumerate(indices):
        slices.setdefault((index if layer.is_indexed else offset) // layer.size, []).append(index)
    return list(slices.items())
