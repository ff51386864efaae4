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
        apart = snapshot.running.keys() | {row.gang for row in snapshot.nominated.values()}
        keys = [None if one.gang in apart else one.cache_key for one in requests]
        examples = dict(zip(keys, requests, strict=True))
        often = Counter(key for key in keys if key is not None).most_common(MAX_RANKINGS)
        found = {
            key: self._build_ranking(examples[key]) for key, num in often if num >= MIN_REPEATS
        }
        self._rankings = [None if key is None else found.get(key) for key in keys]
        """One per request; None if the full engine must answer."""

    def _build_ranking(self, request: PlacementRequest) -> _LeafRanking | None:
        view = view_for(self._snapshot, request.gang, request.priority)
        if find_refusal(view, request) is not None or not is_uniform_gang(view, request):
            return None
        (shape,), _ = build_shapes(view, request)
        if shape.max_slots[0] >= NODE_COUNT_OFFSET:
            return None
        if view not in self._free_views:
            self._free_views[view] = _FreeView(view)
        kind = self._free_views[view].shape_counts(shape)
        return _LeafRanking(kind, request, may_span=may_span(view, request, LEAF_TIER))

    def place(self, at: int) -> tuple[int, ...] | None:
        """Place one of the requests on the best nodes, and return them in index order.

        None: nothing is placed, and the full engine must answer.
        """
        question = self._rankings[at]
        pods = None if question is None else question.find_best()
        if question is None or pods is None:
            return None
        for stock in self._free_views.values():
            for node, num in pods.items():
                stock.take(node, question.group.request, num)
        return question.nodes_in_index_order(pods)

    def take_gang(self, gang: RunningGang) -> None:
        """Subtract the pods of a gang that the full engine has placed."""
        for pods in gang.pods:
            at = self._snapshot.position_of[pods.node]
            for stock in self._free_views.values():
                stock.take(at, pods.request.items(), pods.count)

    def apply_difference(self, before: Snapshot, after: Snapshot) -> None:
        """Apply the difference of two snapshots to the free capacity."""
        for at in np.flatnonzero((before.free != after.free).any(axis=0)).tolist():
            more = (after.free[:, at] - before.free[:, at]).tolist()
            for stock in self._free_views.values():
                stock.add(at, more)


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
        known = self._shape_counts.get(key)
        if known is None:
            known = self._shape_counts[key] = _ShapeCounts(self, shape)
        return known

    def node(self, at: int) -> _FreeNode:
        """Return the state of a node."""
        known = self._nodes.get(at)
        if known is None:
            levels = self.snapshot.levels
            units = tuple(row.item(at) for row in levels.unit_of_node[LEAF_TIER : levels.root])
            known = self._nodes[at] = _FreeNode(self.snapshot.free[:, at].tolist(), units)
        return known

    def take(self, at: int, request: Iterable[tuple[str, int]], num: int) -> None:
        """Start pods on a node."""
        left = self.node(at).free
        for name, need in request:
            if name in self._row_of_resource:
                left[self._row_of_resource[name]] -= need * num
        self.changed_nodes.append(at)

    def add(self, at: int, more: Sequence[int]) -> None:
        """Add free quantities, per resource, to a node."""
        left = self.node(at).free
        left[:] = [held + one for held, one in zip(left, more, strict=True)]
        self.changed_nodes.append(at)

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

    def set_slots(self, at: int, slots: int) -> int:
        """Set the pods that fit a node, and return the change."""
        before = self.slots[at - self.start]
        if slots == before:
            return 0
        self.slots[at - self.start] = slots
        del self.sorted_slots[bisect_left(self.sorted_slots, before)]
        insort(self.sorted_slots, slots)
        return slots - before

    def rank(self, num_pods: int) -> int:
        """Return the rank of the leaf for this many pods: lower is better."""
        at = bisect_left(self.sorted_slots, num_pods)
        if at < len(self.sorted_slots):
            return self.sorted_slots[at]
        held = 0
        for num, slots in enumerate(reversed(self.sorted_slots), NODE_COUNT_OFFSET + 1):
            held += slots
            if held >= num_pods:
                return num
        return NO_FIT


class _ShapeCounts:
    """Counts of one shape per node and unit, updated when they are read."""

    def __init__(self, stock: _FreeView, shape: PodShape) -> None:
        self.levels = stock.snapshot.levels
        self.shape = shape
        self.slots_by_tier = [row.copy() for row in shape.slots_by_tier[: self.levels.root]]
        """The counts of nodes are not updated here, but in their leaves."""
        self.changed_leaves: list[int] = []
        """Changed leaves, one entry per change."""
        self._free_view, self._pod_need = stock, stock.pod_need(shape)
        self._slots_above_nodes = self.slots_by_tier[LEAF_TIER:]
        self._leaves: dict[int, _LeafSlots] = {}
        self._num_applied = len(stock.changed_nodes)

    def leaf(self, at: int) -> _LeafSlots:
        """Return the current state of a leaf."""
        known = self._leaves.get(at)
        if known is None:
            start, stop = (
                self.levels.starts[LEAF_TIER].item(at),
                self.levels.stops[LEAF_TIER].item(at),
            )
            known = self._leaves[at] = _LeafSlots(start, self.shape.slots[start:stop].tolist())
        return known

    def refresh(self) -> None:
        """Count the pods that fit the changed nodes."""
        changed, self._num_applied = (
            self._free_view.changed_nodes[self._num_applied :],
            len(self._free_view.changed_nodes),
        )
        if not self._pod_need:
            return
        for at in set(changed):
            left, units = self._free_view.node(at)
            slots = max(min([left[row] // need for row, need in self._pod_need]), 0)
            more = self.leaf(units[0]).set_slots(at, slots) if self.shape.allowed[at] else 0
            if more:
                self.changed_leaves.append(units[0])
                for room, unit in zip(self._slots_above_nodes, units, strict=True):
                    room[unit] += more


class _LeafRanking:
    """One rank per leaf: how well it holds a gang."""

    def __init__(self, kind: _ShapeCounts, request: PlacementRequest, *, may_span: bool) -> None:
        (self.group,) = request.groups
        self._shape_counts, self._may_span = kind, may_span
        self._ranks = _rank_leaves(kind, self.group.count)
        self._num_applied = 0

    def find_best(self) -> dict[int, int] | None:
        """Return the pods of a gang per node, in tree order; None if no leaf holds it."""
        kind, count = self._shape_counts, self.group.count
        kind.refresh()
        for leaf in set(kind.changed_leaves[self._num_applied :]):
            self._ranks[leaf] = kind.leaf(leaf).rank(count)
        self._num_applied = len(kind.changed_leaves)
        best = self._ranks.item(self._ranks.argmin())
        if best == NO_FIT or (best > NODE_COUNT_OFFSET and not self._may_span):
            return None
        leaves = tightest_units(
            kind.levels, kind.slots_by_tier, LEAF_TIER, (self._ranks == best).nonzero()[0]
        )
        if best < NODE_COUNT_OFFSET:
            found = kind.leaf(leaves.item(0))
            return {found.start + found.slots.index(best): count}
        return fill_tightest(_distinct_leaves(map(kind.leaf, leaves.tolist())), count)

    def nodes_in_index_order(self, pods: dict[int, int]) -> tuple[int, ...]:
        """Return the nodes of pods in index order."""
        return nodes_in_index_order(self._shape_counts.levels, self.group, pods)


def _distinct_leaves(leaves: Iterable[_LeafSlots]) -> Iterator[UnitSlots]:
    """Yield leaves; of those with equal nodes, only the first."""
    met = set[tuple[int, ...]]()
    for leaf in leaves:
        slots = tuple(leaf.slots)
        if slots not in met:
            met.add(slots)
            yield UnitSlots.build(leaf.start, slots)


def _rank_leaves(kind: _ShapeCounts, count: int) -> IntArray:
    """Return the rank of every leaf before the batch; O(nodes)."""
    levels, shape = kind.levels, kind.shape
    enough = np.where(shape.slots >= count, shape.slots, NO_FIT)
    ranks: IntArray = np.minimum.reduceat(enough, levels.starts[LEAF_TIER])
    spread = np.flatnonzero((ranks == NO_FIT) & (shape.slots_by_tier[LEAF_TIER] >= count))
    if len(spread):
        ranks[spread] = NODE_COUNT_OFFSET + shape.min_cover(levels, 0, LEAF_TIER).min_units(
            spread, count
        )
    return ranks
