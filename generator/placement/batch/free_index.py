"""Free capacity as plain numbers, updated in place as gangs of a batch are placed and removed.

Gangs whose pods look the same to nodes share a view: the number of such pods that each unit of each
tier holds. Placing or removing pods updates the views at the affected spots and the units above
them: O(spots × views × tiers), regardless of the cluster's size. A spot is a node. If all gangs
share a single view, a spot is a leaf, because only sums are needed then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from generator.placement.cluster.levels import IntArray
from generator.placement.cluster.shape import PodShape
from generator.placement.cluster.snapshot import Snapshot

SPAN_FACTOR = 8
"""A domain counts as this many of the tier below."""

PodNeed = tuple[tuple[int, int], ...]
"""(row of free quantities, quantity) per resource of a pod; quantities are above 0."""


class SpotUse(NamedTuple):
    """Equal pods on one spot."""

    spot: int
    need: PodNeed
    num_pods: int


class ShapeView(NamedTuple):
    """The spots as pods of one shape see them."""

    need: PodNeed
    allowed: list[bool]
    """Per spot: whether pods of the shape may be placed there."""
    reserved: list[list[int]] | None
    """Per row and spot: quantities reserved for other gangs; None if nothing is reserved."""
    slots_by_tier: list[list[int]]
    """Per tier, from the spots up: pods that each unit holds."""


class FreeIndex:
    """The free quantities of spots, and the views of them."""

    def __init__(self, snapshot: Snapshot, only_shape: PodShape | None = None) -> None:
        """Begin with the free capacity of a snapshot.

        Args:
            snapshot: the cluster with all placed gangs of the batch running.
            only_shape: the common shape of all gangs that may move; None: their shapes differ.
        """
        levels = snapshot.levels
        self.leaf_tier = 1 if only_shape is None else 0
        """Index of the tier of leaves."""
        skipped = 1 - self.leaf_tier
        self.first_child = [row.tolist() for row in levels.first_child[skipped:]]
        """Per tier above the spots: the first child of each unit, then the end of the last."""
        starts = levels.starts[skipped]
        self.unit_of_spot = [row[starts].tolist() for row in levels.unit_of_node[skipped:]]
        """Per tier: the unit of each spot."""
        self.spot_of_node: IntArray = levels.unit_of_node[skipped]
        """Per node: its spot."""
        self._only_shape = only_shape
        self._row_of_resource = {name: row for row, name in enumerate(snapshot.resources)}
        self.free: list[list[int]] = (
            snapshot.free.tolist() if only_shape is None else [only_shape.slots_by_tier[1].tolist()]
        )
        self.views: list[ShapeView] = []
        self._view_indexes: dict[tuple[object, ...], int] = {}

    def pod_need(self, request: Mapping[str, int]) -> PodNeed:
        """Return the quantities that a pod uses on a spot."""
        if self._only_shape is not None:
            return ((0, 1),)
        return tuple(
            (self._row_of_resource[name], quantity)
            for name, quantity in request.items()
            if quantity and name in self._row_of_resource
        )

    def add_view(self, shape: PodShape, reserved: IntArray | None) -> int:
        """Return the index of the view for a shape; call this before any pod is placed.

        Args:
            shape: the shape in the snapshot as its gang sees it.
            reserved: quantities reserved for other gangs, shaped like the snapshot's free
                quantities.
        """
        need = self.pod_need(shape.request)
        key = (
            need,
            shape.allowed.tobytes(),
            None if reserved is None else reserved.tobytes(),
        )
        if key not in self._view_indexes:
            self._view_indexes[key] = len(self.views)
            slots_by_tier = [row.tolist() for row in shape.slots_by_tier[1 - self.leaf_tier :]]
            all_spots = [True] * len(slots_by_tier[0])
            allowed = shape.allowed.tolist() if self._only_shape is None else all_spots
            reserved_rows = None if reserved is None else reserved.tolist()
            self.views.append(ShapeView(need, allowed, reserved_rows, slots_by_tier))
        return self._view_indexes[key]

    def count_uses(
        self, needs: Sequence[PodNeed], pods: Sequence[Sequence[int]]
    ) -> tuple[SpotUse, ...]:
        """Return what pods use, given the need of a pod and the nodes per group."""
        uses: Counter[tuple[int, PodNeed]] = Counter()
        for need, positions in zip(needs, pods, strict=True):
            uses.update((int(self.spot_of_node[node]), need) for node in positions)
        return tuple(SpotUse(spot, need, count) for (spot, need), count in uses.items())

    def take(self, uses: Iterable[SpotUse]) -> None:
        """Place pods on spots."""
        self._change(uses, -1)

    def give_back(self, uses: Iterable[SpotUse]) -> None:
        """Remove pods from spots."""
        self._change(uses, 1)

    def _change(self, uses: Iterable[SpotUse], sign: int) -> None:
        for use in uses:
            for row, need in use.need:
                self.free[row][use.spot] += sign * need * use.num_pods
            for view in self.views:
                self._update_view(view, use.spot)

    def _update_view(self, view: ShapeView, spot: int) -> None:
        if not view.allowed[spot]:
            return
        if view.reserved is None:
            fits = min(self.free[row][spot] // need for row, need in view.need)
        else:
            reserved = view.reserved
            fits = min(
                (self.free[row][spot] - reserved[row][spot]) // quantity
                for row, quantity in view.need
            )
        change = max(fits, 0) - view.slots_by_tier[0][spot]
        if change:
            for slots, unit in zip(view.slots_by_tier, self.unit_of_spot, strict=True):
                slots[unit[spot]] += change

    def span(self, spots: Iterable[int]) -> int:
        """Return the domains around spots, each counted as `SPAN_FACTOR` of the tier below."""
        span, weight = 0, 1
        distinct_spots = set(spots)
        for unit in self.unit_of_spot[self.leaf_tier : -1]:
            span += weight * len({unit[spot] for spot in distinct_spots})
            weight *= SPAN_FACTOR
        return span


def min_units_needed(slots: IntArray, num_pods: int) -> int:
    """Return how many of the largest bins hold the pods; all bins together must hold them."""
    if int(slots.max(initial=0)) >= num_pods:
        return 1
    sums = np.cumsum(np.sort(slots)[::-1])
    return int(np.searchsorted(sums, num_pods)) + 1
