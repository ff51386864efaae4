"""Place plain gangs of a batch one after the other, on counts that are updated in place.

Starting a gang makes a new snapshot, which costs more than choosing its nodes. So each request that
a batch repeats keeps one rank per leaf, from which the best leaf is found at once. Placing pods
updates the ranks of their leaves only. The answers equal those of `solve.uniform_gang` on the
snapshot that the earlier gangs leave.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from generator.placement.cluster.levels import IntArray
from generator.placement.cluster.pod_shapes import build_shapes
from generator.placement.cluster.shape import PodShape
from generator.placement.cluster.snapshot import RunningGang, Snapshot, view_for
from generator.placement.cluster.units import LEAF_TIER, UnitSlots, tightest_units
from generator.placement.explanation.reasons import find_refusal
from generator.placement.request import PlacementRequest
from generator.placement.solve.uniform_gang import (
    fill_tightest,
    is_uniform_gang,
    may_span,
    nodes_in_index_order,
)

MIN_REPEATS = 4
"""A request that fewer gangs of a batch share gets no ranking."""
MAX_RANKINGS = 32
"""Each ranking takes one number per leaf."""
NODE_COUNT_OFFSET = 1 << 62
"""Added to a number of nodes, so that leaves with one sufficient node rank before all others."""
NO_FIT = int(np.iinfo(np.int64).max)


class UniformBatch:
    """The free capacity that placed gangs leave, as plain gangs need it."""

    def __init__(self, snapshot: Snapshot, requests: Sequence[PlacementRequest]) -> None:
        """Build rankings of the repeated requests, before any gang is placed."""
        self._snapshot = snapshot
        self._free_views: dict[Snapshot, _FreeView] = {}
        # A gang with running or nominated pods sees another cluster than equal requests do.
        own_view_gangs = snapshot.running.keys() | {
            nomination.gang for nomination in snapshot.nominated.values()
        }
        keys = [
            None if request.gang in own_view_gangs else request.cache_key for request in requests
        ]
        examples = dict(zip(keys, requests, strict=True))
        common_keys = Counter(key for key in keys if key is not None).most_common(MAX_RANKINGS)
        rankings = {
            key: self._build_ranking(examples[key])
            for key, count in common_keys
            if count >= MIN_REPEATS
        }
        self._rankings = [None if key is None else rankings.get(key) for key in keys]
        """One per request; None if the full engine must answer."""

    def _build_ranking(self, request: PlacementRequest) -> _LeafRanking | None:
        view = view_for(self._snapshot, request.gang, request.priority)
        if find_refusal(view, request) is not None or not is_uniform_gang(view, request):
            return None
        (shape,), _ = build_shapes(view, request)
        if view not in self._free_views:
            self._free_views[view] = _FreeView(view)
        shape_counts = self._free_views[view].shape_counts(shape)
        return _LeafRanking(shape_counts, request, may_span=may_span(view, request, LEAF_TIER))

    def place(self, index: int) -> tuple[int, ...] | None:
        """Place one of the requests on the best nodes, and return them in index order.

        None: nothing is placed, and the full engine must answer.
        """
        ranking = self._rankings[index]
        pods = None if ranking is None else ranking.find_best()
        if ranking is None or pods is None:
            return None
        for free_view in self._free_views.values():
            for node, count in pods.items():
                free_view.take(node, ranking.group.request, count)
        return ranking.nodes_in_index_order(pods)

    def take_gang(self, gang: RunningGang) -> None:
        """Subtract the pods of a gang that the full engine has placed."""
        for pods in gang.pods:
            node = self._snapshot.position_of[pods.node]
            for free_view in self._free_views.values():
                free_view.take(node, pods.request.items(), pods.count)

    def apply_difference(self, before: Snapshot, after: Snapshot) -> None:
        """Apply the difference of two snapshots to the free capacity."""
        for node in np.flatnonzero((before.free != after.free).any(axis=0)).tolist():
            change = (after.free[:, node] - before.free[:, node]).tolist()
            for free_view in self._free_views.values():
                free_view.add(node, change)


class _FreeView:
    """Free capacity for gangs that see the same nominations."""

    def __init__(self, view: Snapshot) -> None:
        self.snapshot = view
        self.changed_nodes: list[int] = []
        """Changed nodes, one entry per change."""
        self._nodes: dict[int, _FreeNode] = {}
        self._row_of_resource = {name: row for row, name in enumerate(view.resources)}
        self._shape_counts: dict[object, _ShapeCounts] = {}

    def shape_counts(self, shape: PodShape) -> _ShapeCounts:
        """Return the counts of a shape; equal shapes share them."""
        key = (frozenset(shape.request.items()), shape.allowed.tobytes(), shape.total_slots)
        cached = self._shape_counts.get(key)
        if cached is None:
            cached = self._shape_counts[key] = _ShapeCounts(self, shape)
        return cached

    def node(self, node: int) -> _FreeNode:
        """Return the state of a node."""
        cached = self._nodes.get(node)
        if cached is None:
            levels = self.snapshot.levels
            units = tuple(
                unit_of.item(node) for unit_of in levels.unit_of_node[LEAF_TIER : levels.root]
            )
            cached = self._nodes[node] = _FreeNode(self.snapshot.free[:, node].tolist(), units)
        return cached

    def take(self, node: int, request: Iterable[tuple[str, int]], count: int) -> None:
        """Start pods on a node."""
        free = self.node(node).free
        for name, need in request:
            if name in self._row_of_resource:
                free[self._row_of_resource[name]] -= need * count
        self.changed_nodes.append(node)

    def add(self, node: int, change: Sequence[int]) -> None:
        """Add free quantities, per resource, to a node."""
        free = self.node(node).free
        free[:] = [quantity + added for quantity, added in zip(free, change, strict=True)]
        self.changed_nodes.append(node)

    def pod_need(self, shape: PodShape) -> list[tuple[int, int]]:
        """Return (row, quantity) per resource of a pod; empty if nodes lack one of them."""
        needed = [(name, need) for name, need in shape.request.items() if need]
        if any(name not in self._row_of_resource for name, _ in needed):
            return []
        return [(self._row_of_resource[name], need) for name, need in needed]


class _FreeNode(NamedTuple):
    """A node whose free capacity has changed."""

    free: list[int]
    """Free quantity per resource."""
    units: tuple[int, ...]
    """Its leaf, and the units around the leaf."""


class _LeafSlots:
    """The nodes of a leaf, and the pods of one shape that fit them."""

    __slots__ = ("slots", "sorted_slots", "start")

    def __init__(self, start: int, slots: list[int]) -> None:
        self.start = start
        self.slots = slots
        """Per node: pods that fit."""
        self.sorted_slots = sorted(slots)

    def set_slots(self, node: int, slots: int) -> int:
        """Set the pods that fit a node, and return the change."""
        before = self.slots[node - self.start]
        if slots == before:
            return 0
        self.slots[node - self.start] = slots
        del self.sorted_slots[bisect_left(self.sorted_slots, before)]
        insort(self.sorted_slots, slots)
        return slots - before

    def rank(self, num_pods: int) -> int:
        """Return the rank of the leaf for this many pods: lower is better."""
        position = bisect_left(self.sorted_slots, num_pods)
        if position < len(self.sorted_slots):
            return self.sorted_slots[position]
        total = 0
        for num, slots in enumerate(reversed(self.sorted_slots), NODE_COUNT_OFFSET + 1):
            total += slots
            if total >= num_pods:
                return num
        return NO_FIT


class _ShapeCounts:
    """Counts of one shape per node and unit, updated when they are read."""

    def __init__(self, free_view: _FreeView, shape: PodShape) -> None:
        self.levels = free_view.snapshot.levels
        self.shape = shape
        self.slots_by_tier = [row.copy() for row in shape.slots_by_tier[: self.levels.root]]
        """The counts of nodes are not updated here, but in their leaves."""
        self.changed_leaves: list[int] = []
        """Changed leaves, one entry per change."""
        self._free_view, self._pod_need = free_view, free_view.pod_need(shape)
        self._slots_above_nodes = self.slots_by_tier[LEAF_TIER:]
        self._leaves: dict[int, _LeafSlots] = {}
        self._num_applied = len(free_view.changed_nodes)

    def leaf(self, leaf: int) -> _LeafSlots:
        """Return the current state of a leaf."""
        cached = self._leaves.get(leaf)
        if cached is None:
            start, stop = (
                self.levels.starts[LEAF_TIER].item(leaf),
                self.levels.stops[LEAF_TIER].item(leaf),
            )
            cached = self._leaves[leaf] = _LeafSlots(start, self.shape.slots[start:stop].tolist())
        return cached

    def refresh(self) -> None:
        """Count the pods that fit the changed nodes."""
        changed, self._num_applied = (
            self._free_view.changed_nodes[self._num_applied :],
            len(self._free_view.changed_nodes),
        )
        if not self._pod_need:
            return
        for node in set(changed):
            free, units = self._free_view.node(node)
            slots = max(min([free[row] // need for row, need in self._pod_need]), 0)
            change = self.leaf(units[0]).set_slots(node, slots) if self.shape.allowed[node] else 0
            if change:
                self.changed_leaves.append(units[0])
                for tier_slots, unit in zip(self._slots_above_nodes, units, strict=True):
                    tier_slots[unit] += change


class _LeafRanking:
    """One rank per leaf: how well it holds a gang."""

    def __init__(
        self, shape_counts: _ShapeCounts, request: PlacementRequest, *, may_span: bool
    ) -> None:
        (self.group,) = request.groups
        self._shape_counts, self._may_span = shape_counts, may_span
        self._ranks = _rank_leaves(shape_counts, self.group.count)
        self._num_applied = 0

    def find_best(self) -> dict[int, int] | None:
        """Return the pods of a gang per node, in tree order; None if no leaf holds it."""
        shape_counts, count = self._shape_counts, self.group.count
        shape_counts.refresh()
        for leaf in set(shape_counts.changed_leaves[self._num_applied :]):
            self._ranks[leaf] = shape_counts.leaf(leaf).rank(count)
        self._num_applied = len(shape_counts.changed_leaves)
        best = self._ranks.item(self._ranks.argmin())
        if best == NO_FIT or (best > NODE_COUNT_OFFSET and not self._may_span):
            return None
        leaves = tightest_units(
            shape_counts.levels,
            shape_counts.slots_by_tier,
            LEAF_TIER,
            (self._ranks == best).nonzero()[0],
        )
        if best < NODE_COUNT_OFFSET:
            best_leaf = shape_counts.leaf(leaves.item(0))
            return {best_leaf.start + best_leaf.slots.index(best): count}
        return fill_tightest(_distinct_leaves(map(shape_counts.leaf, leaves.tolist())), count)

    def nodes_in_index_order(self, pods: dict[int, int]) -> tuple[int, ...]:
        """Return the nodes of pods in index order."""
        return nodes_in_index_order(self._shape_counts.levels, self.group, pods)


def _distinct_leaves(leaves: Iterable[_LeafSlots]) -> Iterator[UnitSlots]:
    """Yield leaves; of those with equal nodes, only the first."""
    seen_slots = set[tuple[int, ...]]()
    for leaf in leaves:
        slots = tuple(leaf.slots)
        if slots not in seen_slots:
            seen_slots.add(slots)
            yield UnitSlots.build(leaf.start, slots)


def _rank_leaves(shape_counts: _ShapeCounts, count: int) -> IntArray:
    """Return the rank of every leaf before the batch; O(nodes)."""
    levels, shape = shape_counts.levels, shape_counts.shape
    sufficient_slots = np.where(shape.slots >= count, shape.slots, NO_FIT)
    ranks: IntArray = np.minimum.reduceat(sufficient_slots, levels.starts[LEAF_TIER])
    spread = np.flatnonzero((ranks == NO_FIT) & (shape.slots_by_tier[LEAF_TIER] >= count))
    if len(spread):
        ranks[spread] = NODE_COUNT_OFFSET + shape.min_cover(levels, 0, LEAF_TIER).min_units(
            spread, count
        )
    return ranks
