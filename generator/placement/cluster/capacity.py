"""The shapes of the pods of a request, and the capacity that is left while pods come and go.

Groups whose pods look the same to a node share a shape: resources, selector, tolerations and
preferred labels. A group has its own shape if rules on its pods per domain, or its traffic, require
that it is counted separately. Placing pods updates the counts of every shape at the node and at the
units around it, whatever the size of the cluster: O(shapes × tiers).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from generator.placement.budget import Budget
from generator.placement.cluster.levels import BoolArray, IntArray
from generator.placement.cluster.shapes import MAX_SHAPES, CountedShape, PodShape
from generator.placement.cluster.snapshot import Snapshot, fit_pods
from generator.placement.groups import GangGroup
from generator.placement.request import PlacementRequest
from topology.model.errors import InvariantError

PodNeed = tuple[tuple[int, int], ...]
"""(row of free quantities, quantity) per resource of a pod; quantities are above 0."""


class NodeUse(NamedTuple):
    """Equal pods on one node."""

    node: int
    need: PodNeed
    num_pods: int
    """Below 0: pods that are removed."""


@dataclass(slots=True)
class _ShapeCounts:
    """The slots of one shape."""

    need: PodNeed
    allowed: BoolArray
    reserved: IntArray | None
    slots_by_tier: list[IntArray]
    """Per tier and unit; shared with the shape until the first change."""
    cells: tuple[memoryview, ...] = ()
    """The same memory, in which one unit is read and written sooner than in an array."""


_Gains = list[tuple[tuple[memoryview, ...], int]]
"""Per shape that a change affects: its cells per tier, and the slots that it gains."""


class FreeCapacity:
    """What a snapshot has free, and the slots of some shapes, as pods come and go."""

    def __init__(self, snapshot: Snapshot, shapes: Iterable[PodShape] = ()) -> None:
        """Begin with the free capacity of a snapshot."""
        self.snapshot, self.levels = snapshot, snapshot.levels
        self.changes: list[NodeUse] = []
        """All changes so far, without those that were undone."""
        self._gains: list[_Gains] = []
        """Per change, the slots that each changed shape gained; below 0 for slots lost."""
        self._row_of_resource = {name: row for row, name in enumerate(snapshot.resources)}
        self._free: IntArray = snapshot.free
        """Shared with the snapshot until the first change."""
        self._free_cells: tuple[memoryview, ...] = ()
        """The same memory, one row per resource."""
        self._max_slots = snapshot.max_node_slots
        self._is_shared = True
        self._counts: list[_ShapeCounts] = []
        for shape in shapes:
            self.add_shape(shape)

    def add_shape(self, shape: PodShape, reserved: IntArray | None = None) -> int:
        """Return the index of a shape; all shapes are added before any pod is placed.

        Args:
            shape: the shape in the snapshot as its gang sees it.
            reserved: quantities reserved for other gangs, shaped like the snapshot's free
                quantities.
        """
        need = self.pod_need(shape.request)
        is_fixed = any(
            need and name not in self._row_of_resource for name, need in shape.request.items()
        )
        self._counts.append(
            _ShapeCounts(
                () if is_fixed else need, shape.allowed, reserved, list(shape.slots_by_tier)
            )
        )
        return len(self._counts) - 1

    def pod_need(self, request: Mapping[str, int]) -> PodNeed:
        """Return the quantities that a pod uses on a node; other resources are not tracked."""
        return tuple(
            (self._row_of_resource[name], quantity)
            for name, quantity in request.items()
            if quantity and name in self._row_of_resource
        )

    def slots_by_tier(self, shape: int) -> Sequence[IntArray]:
        """Return the slots of a shape per tier and unit, which change as pods are placed."""
        return self._counts[shape].slots_by_tier

    def free_quantities(self, node: int) -> list[int]:
        """Return the free quantities of a node by row."""
        quantities: list[int] = self._free[:, node].tolist()
        return quantities

    def free_array(self) -> IntArray:
        """Return all free quantities, shaped like those of the snapshot; O(resources × nodes)."""
        return self._free.copy()

    def free_of(self, resource: str) -> IntArray:
        """Return the free quantity of a resource per node now; 0 if it is unknown."""
        row = self._row_of_resource.get(resource)
        if row is None:
            return np.zeros(self.snapshot.num_nodes, dtype=np.int64)
        free: IntArray = self._free[row]
        return free

    def take(self, shape: int, node: int, num_pods: int) -> None:
        """Place pods of a shape on a node.

        Raises:
            InvariantError: the node does not hold them.
        """
        counts = self._counts[shape]
        if counts.slots_by_tier[0].item(node) < num_pods:
            raise InvariantError(f"node {node} does not hold {num_pods} more pods")
        self.change(NodeUse(node, counts.need, num_pods))

    def take_all(self, uses: Iterable[NodeUse]) -> None:
        """Place pods."""
        for use in uses:
            self.change(use)

    def give_back(self, uses: Iterable[NodeUse]) -> None:
        """Remove pods."""
        for node, need, num_pods in uses:
            self.change(NodeUse(node, need, -num_pods))

    def undo(self, num_changes: int) -> None:
        """Undo all but the first changes."""
        while len(self.changes) > num_changes:
            node, need, num_pods = self.changes.pop()
            for row, quantity in need:
                self._free_cells[row][node] += quantity * num_pods
            units = self._units_around(node)
            for cells, gained in self._gains.pop():
                for slots, unit in zip(cells, units, strict=True):
                    slots[unit] -= gained

    def _units_around(self, node: int) -> list[int]:
        """Return the unit of a node per tier."""
        return [unit_of.item(node) for unit_of in self.levels.unit_of_node]

    def _copy_shared(self) -> None:
        """Copy what is shared with the snapshot and its shapes, before the first change."""
        self._free = self.snapshot.free.copy()
        self._free_cells = tuple(row.data for row in self._free)
        for counts in self._counts:
            counts.slots_by_tier = [row.copy() for row in counts.slots_by_tier]
            counts.cells = tuple(row.data for row in counts.slots_by_tier)
        self._is_shared = False

    def change(self, use: NodeUse) -> None:
        """Place or remove pods on a node."""
        self.changes.append(use)
        self._gains.append(self._apply(*use))

    def _apply(self, node: int, need: PodNeed, num_pods: int) -> _Gains:
        """Place or remove pods; return the slots that each changed shape gains."""
        if self._is_shared:
            self._copy_shared()
        for row, quantity in need:
            self._free_cells[row][node] -= quantity * num_pods
        free, units = self.free_quantities(node), self._units_around(node)
        gains: _Gains = []
        for counts in self._counts:
            if not counts.need or not counts.allowed[node]:
                continue
            left = free
            if counts.reserved is not None:
                left = [
                    quantity - kept
                    for quantity, kept in zip(free, counts.reserved[:, node].tolist(), strict=True)
                ]
            fits = fit_pods(left, counts.need, self._max_slots)
            change = fits - counts.cells[0][node]
            if change:
                for slots, unit in zip(counts.cells, units, strict=True):
                    slots[unit] += change
                gains.append((counts.cells, change))
        return gains


def build_shapes(
    snapshot: Snapshot, request: PlacementRequest, budget: Budget | None = None
) -> tuple[tuple[PodShape, ...], tuple[int, ...]]:
    """Return the distinct shapes in a fixed order, and the index of each group's shape.

    Cached shapes of the snapshot are reused. A shape from before some nodes changed is counted
    again on those nodes only. Cost: O(tiers × nodes) to copy, O(resources × nodes) for a new shape.

    Raises:
        BudgetExhausted: the budget ended.
    """
    own_shape_groups = _groups_with_own_shape(request, is_growth=request.gang in snapshot.running)
    keys = [
        _shape_key(group, own_shape=index if index in own_shape_groups else -1)
        for index, group in enumerate(request.groups)
    ]
    group_by_key = dict(zip(reversed(keys), reversed(request.groups), strict=True))
    distinct_keys = sorted(group_by_key)
    job = sum(group.count for group in request.groups), request.uses_tiers
    shapes = []
    for key in distinct_keys:
        if budget is not None:
            budget.spend_on_arrays(snapshot.num_nodes)
        shapes.append(_cached_shape(snapshot, group_by_key[key], key[:-1], job))
    return tuple(shapes), tuple(distinct_keys.index(key) for key in keys)


def _cached_shape(
    snapshot: Snapshot, group: GangGroup, key: tuple[object, ...], job: tuple[int, bool]
) -> PodShape:
    """Return the shape of a group by its key, the job's pods and the job's use of tiers."""
    total_pods, uses_tiers = job
    cache_key = (key, uses_tiers, None if any(need for _, need in group.request) else total_pods)
    cache = snapshot.shape_cache
    cached = cache.get(cache_key)
    if cached is None:
        shape = _count_shape(snapshot, group, total_pods=total_pods, uses_tiers=uses_tiers)
    elif cached.free is snapshot.free:
        return cached.shape
    else:
        shape = _count_changes(snapshot, cached, unbounded=total_pods)
    if len(cache) >= MAX_SHAPES and cached is None:
        cache.clear()
    cache[cache_key] = CountedShape(shape, snapshot.free)
    return shape


def _count_changes(snapshot: Snapshot, cached: CountedShape, *, unbounded: int) -> PodShape:
    """Return a shape that was counted with other free quantities of the same nodes."""
    shape, resources = cached.shape, snapshot.resources
    rows = [row for row, name in enumerate(resources) if shape.request.get(name)]
    nodes = np.flatnonzero((cached.free[rows] != snapshot.free[rows]).any(axis=0))
    if not len(nodes):
        return shape
    slots = snapshot.count_slots(shape.request, unbounded=unbounded, nodes=nodes)
    return shape.with_slots(snapshot.levels, nodes, np.where(shape.allowed[nodes], slots, 0))


def _groups_with_own_shape(request: PlacementRequest, *, is_growth: bool) -> frozenset[int]:
    """Return the groups whose pods must be counted separately from those of other groups."""
    paired_groups = {name for first, second, _ in pair_weights(request) for name in (first, second)}
    has_exclusive = any(group.exclusive for group in request.groups) or any(
        group_set.exclusive for group_set in request.sets
    )
    return frozenset(
        index
        for index, group in enumerate(request.groups)
        if group.name in paired_groups
        or group.multiples
        or group.spread
        or has_exclusive
        or _has_unit_rules(group, is_growth=is_growth)
    )


def _has_unit_rules(group: GangGroup, *, is_growth: bool) -> bool:
    """Return whether slices bound the pods per unit, beyond what the tiers of parts require."""
    bound = [layer for layer in group.slices if layer.tier is not None]
    coarse = [layer for layer in group.slices[:-1] if layer.tier is not None]
    return bool(coarse) or any(layer.is_spread for layer in bound) or (is_growth and bool(bound))


def pair_weights(request: PlacementRequest) -> tuple[tuple[str, str, int], ...]:
    """Return traffic and affinity as (group, group, weight); attraction is 1, repulsion -1."""
    rows = list(request.traffic)
    for weight, name_sets in ((1, request.roles.attract), (-1, request.roles.repel)):
        for names in name_sets:
            pairs = [(names[0], names[0])] if len(names) == 1 else _role_pairs(names)
            rows += [(first, second, weight) for first, second in pairs]
    return tuple(rows)


def _role_pairs(names: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(first, second) for index, first in enumerate(names) for second in names[index + 1 :]]


def _shape_key(group: GangGroup, *, own_shape: int) -> tuple[object, ...]:
    tolerations = tuple(sorted(group.tolerations))
    tiers = tuple(sorted(_tiers_with_rules(group)))
    return (group.request, group.selector, tolerations, group.wishes, tiers, own_shape)


def _tiers_with_rules(group: GangGroup) -> set[str]:
    """Return the tiers that a node must have a domain of, because a rule counts pods in it."""
    tiers = {layer.tier for layer in group.slices if layer.tier is not None}
    return tiers | {tier for tier, _ in group.multiples} | {bound.tier for bound in group.spread}


def _count_shape(
    snapshot: Snapshot, group: GangGroup, *, total_pods: int, uses_tiers: bool
) -> PodShape:
    allowed = snapshot.schedulable & snapshot.has_tolerated_taints(group.tolerations)
    if snapshot.closed is not None:
        allowed &= ~snapshot.closed
    for key, values in group.selector:
        allowed &= snapshot.has_label(key, values)
    if uses_tiers:
        allowed[snapshot.num_tree_nodes :] = False
    for tier in _tiers_with_rules(group):
        height = snapshot.levels.height_of(tier)
        if 0 < height < snapshot.levels.root:
            allowed &= (
                snapshot.levels.domain_of_unit[height][snapshot.levels.unit_of_node[height]] >= 0
            )
    slots = np.where(allowed, snapshot.count_slots(dict(group.request), unbounded=total_pods), 0)
    misses: IntArray | None = None
    if group.wishes:
        carried = [snapshot.has_label(key, (value,)) for key, value in group.wishes]
        misses = np.full(snapshot.num_nodes, len(carried), dtype=np.int64) - np.sum(carried, axis=0)
    return PodShape(dict(group.request), allowed, tuple(snapshot.levels.sum_by_tier(slots)), misses)
