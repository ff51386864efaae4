"""Free room of every unit as plain numbers, kept as gangs of a batch come and go.

Gangs whose pods look alike to nodes share a view: how many such pods each unit of each tier
holds. Taking or giving back pods changes the views of the spots touched and of the units above
them: O(spots × views × tiers), whatever the size of the cluster. A spot is a node; where a
single view is all there is, it is a leaf, since then only sums count.
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
"""A domain counts as so many of the tier below."""

PodNeed = tuple[tuple[int, int], ...]
"""(row of free quantities, quantity) per resource of a pod, quantities above 0."""


class SpotUse(NamedTuple):
    """Equal pods on one spot."""

    spot: int
    need: PodNeed
    num_pods: int


class ShapeView(NamedTuple):
    """What pods of one look see."""

    need: PodNeed
    allowed: list[bool]
    """Per spot."""
    reserved: list[list[int]] | None
    """Per row and spot: what others have reserved; None where nobody has."""
    slots_by_tier: list[list[int]]
    """Per tier, from the spots up: pods that each unit holds."""


class FreeIndex:
    """Free quantities of spots, and the views of them."""

    def __init__(self, snapshot: Snapshot, only: PodShape | None = None) -> None:
        """Begin with what a snapshot has free.

        Args:
            snapshot: with all gangs of the batch that have a place.
            only: what all gangs that may move look like; None: they differ.
        """
        levels = snapshot.levels
        self.leaf_tier = 1 if only is None else 0
        """Index of the tier of leaves."""
        skipped = 1 - self.leaf_tier
        self.first_child = [row.tolist() for row in levels.first_child[skipped:]]
        """Per tier above the spots: the first child of each unit, then one past the last of all."""
        starts = levels.starts[skipped]
        self.unit_of_spot = [row[starts].tolist() for row in levels.unit_of_node[skipped:]]
        """Per tier: the unit of each spot."""
        self.spot_of_node: IntArray = levels.unit_of_node[skipped]
        """Per node."""
        self._only_shape = only
        self._row_of_resource = {name: row for row, name in enumerate(snapshot.resources)}
        self.free: list[list[int]] = (
            snapshot.free.tolist() if only is None else [only.slots_by_tier[1].tolist()]
        )
        self.views: list[ShapeView] = []
        self._view_indexes: dict[tuple[object, ...], int] = {}

    def pod_need(self, request: Mapping[str, int]) -> PodNeed:
        """Return what a pod takes of what there is on a spot."""
        if self._only_shape is not None:
            return ((0, 1),)
        return tuple(
            (self._row_of_resource[name], n)
            for name, n in request.items()
            if n and name in self._row_of_resource
        )

    def add_view(self, shape: PodShape, kept: IntArray | None) -> int:
        """Return the index of the view of a shape; to be asked before anything is taken.

        Args:
            shape: met with the snapshot as its gang sees it.
            kept: what others have reserved, like the snapshot's free quantities.
        """
        need = self.pod_need(shape.request)
        key = (need, shape.allowed.tobytes(), None if kept is None else kept.tobytes())
        if key not in self._view_indexes:
            self._view_indexes[key] = len(self.views)
            rooms = [row.tolist() for row in shape.slots_by_tier[1 - self.leaf_tier :]]
            is_open = [True] * len(rooms[0])
            allowed = shape.allowed.tolist() if self._only_shape is None else is_open
            reserved = None if kept is None else kept.tolist()
            self.views.append(ShapeView(need, allowed, reserved, rooms))
        return self._view_indexes[key]

    def count_uses(
        self, needs: Sequence[PodNeed], pods: Sequence[Sequence[int]]
    ) -> tuple[SpotUse, ...]:
        """Return what pods use, given per group the need of each and their nodes."""
        counted: Counter[tuple[int, PodNeed]] = Counter()
        for need, row in zip(needs, pods, strict=True):
            counted.update((int(self.spot_of_node[node]), need) for node in row)
        return tuple(SpotUse(spot, need, count) for (spot, need), count in counted.items())

    def take(self, uses: Iterable[SpotUse]) -> None:
        """Put pods on spots."""
        self._change(uses, -1)

    def give_back(self, uses: Iterable[SpotUse]) -> None:
        """Take them off again."""
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
            kept = view.reserved
            fits = min((self.free[row][spot] - kept[row][spot]) // n for row, n in view.need)
        change = max(fits, 0) - view.slots_by_tier[0][spot]
        if change:
            for rooms, unit in zip(view.slots_by_tier, self.unit_of_spot, strict=True):
                rooms[unit[spot]] += change

    def span(self, spots: Iterable[int]) -> int:
        """Return the domains around spots, one counting as `SPAN_FACTOR` of the tier below."""
        found, weight = 0, 1
        inside = set(spots)
        for unit in self.unit_of_spot[self.leaf_tier : -1]:
            found += weight * len({unit[spot] for spot in inside})
            weight *= SPAN_FACTOR
        return found


def min_units_needed(rooms: IntArray, num_pods: int) -> int:
    """Return how many of the largest rooms hold so many pods, which all together do."""
    if int(rooms.max(initial=0)) >= num_pods:
        return 1
    sums = np.cumsum(np.sort(rooms)[::-1])
    return int(np.searchsorted(sums, num_pods)) + 1
