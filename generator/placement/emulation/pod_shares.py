"""Share the pods of one group among the nodes of a domain, in the order of a preset's walk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generator.placement.cluster.levels import IntArray
from generator.placement.presets import DomainSort, FlatFill, PlacementWalk
from generator.placement.problem.domain_capacity import GroupCapacity, units_inside

PodsPerNode = dict[int, int]
"""Number of pods per node position."""


class DomainFiller:
    """Fills domains one after the other."""

    def __init__(
        self, walk: PlacementWalk, capacity: GroupCapacity, finest_named_tier: int
    ) -> None:
        """Store the arguments; `finest_named_tier` is the finest tier that the group names."""
        self._walk, self._capacity = walk, capacity
        self._levels = capacity.problem.snapshot.levels
        self._flat_fill_tier = {
            FlatFill.NOWHERE: 0,
            FlatFill.LEAVES: 1,
            FlatFill.FINEST_NAMED: finest_named_tier,
        }[walk.flat_fill]
        self.leader_position: int | None = None
        """Node of the leader, once it is placed."""
        self._num_group_pods = 0
        """Pods that one node can offer room for at most: those of the group, not those left."""

    def fill(self, tier: int, unit: int, num_pods: int) -> PodsPerNode:
        """Return pods per node for pods in a unit that holds them."""
        self._num_group_pods = num_pods
        if not self._walk.is_slice_by_slice or self._capacity.slice_size == 1:
            return self._fill_unit(tier, unit, num_pods, has_leader=self._capacity.has_leader)
        pods: PodsPerNode = {}
        for _ in range(num_pods // self._capacity.slice_size):
            for node, count in self._fill_slice(tier, unit).items():
                pods[node] = pods.get(node, 0) + count
        return pods

    def fill_by_rank(
        self, tier: int, unit: int, num_pods: int, ranks: IntArray | None
    ) -> PodsPerNode:
        """Return pods per node of a unit, in the order of the nodes' ranks, then of the walk."""
        nodes = units_inside(self._capacity.problem, tier, unit, 0)
        nodes = self._capacity.sorted_units(nodes, 0, self._walk.node_order, num_pods)
        if ranks is not None:
            nodes = nodes[np.argsort(ranks[nodes], kind="stable")]
        return self._fill_nodes(nodes, num_pods, has_leader=self._capacity.has_leader)

    def scatter(self, num_pods: int) -> PodsPerNode:
        """Return pods per node for a group without any tier: over all nodes, in their own order."""
        units = np.arange(len(self._capacity.usable_slots[0]), dtype=np.int64)
        order = self._capacity.sorted_units(units, 0, self._walk.untiered_node_order, num_pods)
        sufficient = order[self._capacity.slots_beside_leader[0][order] >= num_pods]
        nodes = sufficient[:1] if len(sufficient) else order
        return self._fill_nodes(nodes, num_pods, has_leader=self._capacity.has_leader)

    def _fill_slice(self, tier: int, unit: int) -> PodsPerNode:
        """Place one slice in the best domain for it, and subtract it from the counts."""
        size, capacity = self._capacity.slice_size, self._capacity
        slice_tier = self._capacity.slice_tier
        units = units_inside(self._capacity.problem, tier, unit, slice_tier)
        units = units[capacity.usable_slots[slice_tier][units] >= size]
        chosen = int(capacity.sorted_units(units, slice_tier, self._walk.best_fit_order, size)[0])
        pods = self._fill_unit(slice_tier, chosen, size, has_leader=False)
        self._capacity = capacity.without_pods(pods)
        return pods

    def _fill_unit(self, tier: int, unit: int, num_pods: int, *, has_leader: bool) -> PodsPerNode:
        if tier == 0:
            return self._fill_node(unit, num_pods, has_leader=has_leader)
        if tier <= self._flat_fill_tier:
            nodes = units_inside(self._capacity.problem, tier, unit, 0)
            order = self._walk.node_order or self._walk.fill_order
            nodes = self._sorted(0, nodes, order)
            return self._fill_nodes(nodes, num_pods, has_leader=has_leader)
        children = np.array(self._levels.children(tier, unit), dtype=np.int64)
        return self._fill_units(tier - 1, children, num_pods, has_leader=has_leader)

    def _fill_node(self, node: int, num_pods: int, *, has_leader: bool) -> PodsPerNode:
        if has_leader:
            self.leader_position = node
        return {node: num_pods} if num_pods else {}

    def _fill_units(
        self, tier: int, units: IntArray, num_pods: int, *, has_leader: bool
    ) -> PodsPerNode:
        """Share pods among units of a tier in the order of the walk."""
        pods: PodsPerNode = {}
        if has_leader:
            units, taken, pods = self._place_leader(tier, units, num_pods)
            num_pods -= taken
        remaining_units = self._sorted(tier, units, self._walk.fill_order)
        fits = self._capacity.usable_slots[tier]
        while num_pods and len(remaining_units):
            chosen = int(self._next_unit(tier, remaining_units, num_pods))
            share = min(int(fits[chosen]), num_pods)
            pods |= self._fill_unit(tier, chosen, share, has_leader=False) if share else {}
            remaining_units, num_pods = remaining_units[remaining_units != chosen], num_pods - share
        return pods

    def _place_leader(
        self, tier: int, units: IntArray, num_pods: int
    ) -> tuple[IntArray, int, PodsPerNode]:
        """Place the leader and the pods beside it; return the other units, pods placed, and where.

        Workers that fit one unit together stay there, whether the leader fits beside them or not.
        """
        capacity, order = self._capacity, self._walk.best_fit_order or self._walk.fill_order
        leader_units = units[capacity.slots_beside_leader[tier][units] >= 0]
        units_for_all = leader_units[capacity.slots_beside_leader[tier][leader_units] >= num_pods]
        units_without_leader = units[capacity.usable_slots[tier][units] >= num_pods]
        if len(units_for_all):
            chosen, share = self._first_unit(tier, units_for_all, order), num_pods
        elif len(units_without_leader) and len(
            leader_units[leader_units != self._first_unit(tier, units_without_leader, order)]
        ):
            other_leader_units = leader_units[
                leader_units != self._first_unit(tier, units_without_leader, order)
            ]
            chosen, share = self._first_unit(tier, other_leader_units, order), 0
        else:
            chosen = self._first_unit(tier, leader_units, self._walk.fill_order)
            share = min(int(capacity.slots_beside_leader[tier][chosen]), num_pods)
        pods = self._fill_unit(tier, chosen, share, has_leader=True)
        return units[units != chosen], share, pods

    def _first_unit(self, tier: int, units: IntArray, order: Sequence[DomainSort]) -> int:
        return int(self._sorted(tier, units, order)[0])

    def _sorted(self, tier: int, units: IntArray, order: Sequence[DomainSort]) -> IntArray:
        return self._capacity.sorted_units(units, tier, order, self._num_group_pods)

    def _next_unit(self, tier: int, remaining_units: IntArray, num_pods: int) -> int:
        """Return the next unit to fill: the first, or the best that holds all remaining pods."""
        if (
            not self._walk.best_fit_order
            or self._capacity.usable_slots[tier][remaining_units[0]] < num_pods
        ):
            return int(remaining_units[0])
        units_for_all = remaining_units[
            self._capacity.usable_slots[tier][remaining_units] >= num_pods
        ]
        return self._first_unit(tier, units_for_all, self._walk.best_fit_order)

    def _fill_nodes(self, nodes: IntArray, num_pods: int, *, has_leader: bool) -> PodsPerNode:
        """Fill nodes in order, the leader's node first."""
        pods: PodsPerNode = {}
        if has_leader:
            self.leader_position, share = self._choose_leader_node(nodes, num_pods)
            pods, nodes = (
                {self.leader_position: share} if share else {},
                nodes[nodes != self.leader_position],
            )
            num_pods -= share
        for node in nodes:
            share = min(int(self._capacity.usable_slots[0][node]), num_pods)
            pods |= {int(node): share} if share else {}
            num_pods -= share
        return pods

    def _choose_leader_node(self, nodes: IntArray, num_pods: int) -> tuple[int, int]:
        """Return the leader's node, and the pods beside it: all of them if a node holds them."""
        beside_leader = self._capacity.slots_beside_leader[0]
        leader_nodes = nodes[beside_leader[nodes] >= 0]
        nodes_for_all = leader_nodes[beside_leader[leader_nodes] >= num_pods]
        node = int((nodes_for_all if len(nodes_for_all) else leader_nodes)[0])
        return node, min(int(beside_leader[node]), num_pods)
