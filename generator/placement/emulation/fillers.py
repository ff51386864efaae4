"""Fill a domain with the pods of one group: in the order of a walk, or by scores of nodes.

`NodeScores` fills as kube-scheduler does: pod by pod, each on the node with the largest free share
of CPU and memory; none is taken back. A domain scores up to 100 for the share of its CPU and memory
that is then in use. Source: kubernetes v1.37.2, pkg/scheduler/schedule_one_podgroup.go and the
plugins topologyaware, noderesources (placementScorer) and podgrouppodscount.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from generator.placement.budget import Budget
from generator.placement.cluster.levels import IntArray, UnitRef, units_inside
from generator.placement.cluster.min_cover import fill_in_order
from generator.placement.presets import DomainSort, FlatFill, PlacementWalk
from generator.placement.problem.domain_capacity import GroupCapacity
from generator.placement.problem.problem import Problem
from generator.placement.problem.trial import Trial, TrialPods

PodsPerNode = dict[int, int]
"""Number of pods per node position."""


class OrderedFill:
    """Fills domains with the pods of one group."""

    def __init__(
        self, walk: PlacementWalk, capacity: GroupCapacity, finest_named_tier: int, num_pods: int
    ) -> None:
        """Store the arguments.

        Args:
            walk: the preset's walk.
            capacity: pods of the group per domain.
            finest_named_tier: the finest tier that the group names.
            num_pods: pods of the group; no node offers room for more.
        """
        self._walk, self._capacity, self._num_pods = walk, capacity, num_pods
        self._levels = capacity.problem.snapshot.levels
        self._flat_fill_tier = {
            FlatFill.NOWHERE: 0,
            FlatFill.LEAVES: 1,
            FlatFill.FINEST_NAMED: finest_named_tier,
        }[walk.flat_fill]

    def fill(self, place: UnitRef) -> PodsPerNode:
        """Return pods per node of a unit that holds them."""
        if not self._walk.is_slice_by_slice or self._capacity.slice_size == 1:
            return self._fill_unit(place, self._num_pods)
        pods: PodsPerNode = {}
        for _ in range(self._num_pods // self._capacity.slice_size):
            for node, count in self._fill_slice(place).items():
                pods[node] = pods.get(node, 0) + count
        return pods

    def fill_by_rank(self, place: UnitRef, ranks: IntArray | None) -> PodsPerNode:
        """Return pods per node of a unit, in the order of the nodes' ranks, then of the walk."""
        nodes = units_inside(self._levels, place, 0)
        nodes = self._sorted(0, nodes, self._walk.node_order)
        if ranks is not None:
            nodes = nodes[np.argsort(ranks[nodes], kind="stable")]
        return self._fill_nodes(nodes, self._num_pods)

    def _fill_slice(self, place: UnitRef) -> PodsPerNode:
        """Place one slice in the best domain for it, and subtract it from the counts."""
        size, slice_tier = self._capacity.slice_size, self._capacity.slice_tier
        units = units_inside(self._levels, place, slice_tier)
        units = units[self._capacity.usable_slots[slice_tier][units] >= size]
        order = self._walk.best_fit_order
        chosen = int(self._capacity.sorted_units(units, slice_tier, order, size)[0])
        pods = self._fill_unit(UnitRef(slice_tier, chosen), size)
        self._capacity = self._capacity.without_pods(pods)
        return pods

    def _fill_unit(self, place: UnitRef, num_pods: int) -> PodsPerNode:
        if place.tier <= self._flat_fill_tier:
            nodes = units_inside(self._levels, place, 0)
            nodes = self._sorted(0, nodes, self._walk.node_order or self._walk.fill_order)
            return self._fill_nodes(nodes, num_pods)
        pods: PodsPerNode = {}
        tier = place.tier - 1
        units = np.array(self._levels.children(*place))
        units = self._sorted(tier, units, self._walk.fill_order)
        while num_pods and len(units):
            chosen = self._next_unit(tier, units, num_pods)
            share = min(int(self._capacity.usable_slots[tier][chosen]), num_pods)
            pods |= self._fill_unit(UnitRef(tier, chosen), share) if share else {}
            units, num_pods = units[units != chosen], num_pods - share
        return pods

    def _next_unit(self, tier: int, units: IntArray, num_pods: int) -> int:
        """Return the next unit to fill: the first, or the best that holds all remaining pods."""
        slots = self._capacity.usable_slots[tier][units]
        if not self._walk.best_fit_order or slots[0] < num_pods:
            return int(units[0])
        return int(self._sorted(tier, units[slots >= num_pods], self._walk.best_fit_order)[0])

    def _sorted(self, tier: int, units: IntArray, order: Sequence[DomainSort]) -> IntArray:
        return self._capacity.sorted_units(units, tier, order, self._num_pods)

    def _fill_nodes(self, nodes: IntArray, num_pods: int) -> PodsPerNode:
        """Fill nodes in order."""
        pods = fill_in_order(self._capacity.usable_slots[0], nodes.tolist(), num_pods)
        return {node: count for node, count in pods.items() if count}


MAX_SCORE: Final = 100
_SCORED: Final = ("cpu", "memory")


class NodeScores:
    """The scores of one problem, while its pods are placed."""

    def __init__(self, problem: Problem, trial: Trial, budget: Budget) -> None:
        """Read the capacities of the nodes."""
        self._problem, self._trial, self._budget = problem, trial, budget
        totals = {name: problem.snapshot.quantities(name, counts_free=False) for name in _SCORED}
        self._total = {name: total for name, total in totals.items() if total.any()}

    def fill_group(self, group: int, place: UnitRef) -> None:
        """Place as many pods of a group as fit a unit, each on the node with most room."""
        nodes = self._nodes_of(place)
        need = self._problem.shapes[self._problem.shape_of[group]].request
        scores = self._score_nodes(need, nodes)
        for _ in range(self._problem.request.groups[group].count):
            self._budget.check()
            slots = self._trial.slots_by_tier(group)[0][nodes]
            open_scores = np.where(slots > 0, scores, -1)
            best = int(open_scores.argmax())
            if open_scores[best] < 0:
                return
            node = nodes.start + best
            self._trial.put(TrialPods(group, node, 1))
            scores[best] = self._score_nodes(need, slice(node, node + 1))[0]

    def score_use(self, place: UnitRef) -> int:
        """Return the share of a unit that is in use, 0 to 100."""
        nodes, shares = self._nodes_of(place), list[int]()
        for name, totals in self._total.items():
            total = int(totals[nodes].sum())
            used = min(total - int(self._trial.free.free_of(name)[nodes].sum()), total)
            shares += [used * MAX_SCORE // total] if total else []
        return sum(shares) // len(shares) if shares else 0

    def _nodes_of(self, place: UnitRef) -> slice:
        levels = self._problem.snapshot.levels
        start, stop = levels.starts[place.tier][place.unit], levels.stops[place.tier][place.unit]
        return slice(int(start), int(stop))

    def _score_nodes(self, need: Mapping[str, int], nodes: slice) -> IntArray:
        """Return the free share of each node with one more pod, 0 to 100."""
        scores = np.zeros(nodes.stop - nodes.start, dtype=np.int64)
        for name, total in self._total.items():
            room = np.maximum(self._trial.free.free_of(name)[nodes] - need.get(name, 0), 0)
            scores += room * MAX_SCORE // np.maximum(total[nodes], 1)
        return scores // max(len(self._total), 1)
