"""Share the pods of one group among the nodes of a domain, in the order of a preset's walk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generator.placement.cluster.levels import IntArray
from generator.placement.problem.domain_capacity import GroupCapacity, units_inside
from generator.placement.walk_rules import DomainSort, FlatFill, PlacementWalk

PodsPerNode = dict[int, int]
"""Number of pods per node position."""


class DomainFiller:
    """Fills domains one after the other, and subtracts from the counts of `rooms`."""

    def __init__(self, walk: PlacementWalk, rooms: GroupCapacity, asked: int) -> None:
        """Store the arguments; `asked` is the finest tier that the group names."""
        self._walk, self._capacity = walk, rooms
        self._levels = rooms.problem.snapshot.levels
        self._flat_fill_tier = {
            FlatFill.NOWHERE: 0,
            FlatFill.LEAVES: 1,
            FlatFill.FINEST_NAMED: asked,
        }[walk.flat_fill]
        self.leader_position: int | None = None
        """Node of the leader, once it is placed."""

    def fill(self, tier: int, unit: int, num_pods: int) -> PodsPerNode:
        """Return pods per node for pods in a unit that holds them."""
        if not self._walk.is_slice_by_slice or self._capacity.slice_size == 1:
            return self._fill_unit(tier, unit, num_pods, has_leader=self._capacity.has_leader)
        pods: PodsPerNode = {}
        for _ in range(num_pods // self._capacity.slice_size):
            for at, count in self._fill_slice(tier, unit).items():
                pods[at] = pods.get(at, 0) + count
        return pods

    def scatter(self, num_pods: int) -> PodsPerNode:
        """Return pods per node for a group without any tier: over all nodes, in their own order."""
        units = np.arange(len(self._capacity.usable_slots[0]), dtype=np.int64)
        order = self._capacity.sorted_units(units, 0, self._walk.untiered_node_order, num_pods)
        whole = order[self._capacity.slots_beside_leader[0][order] >= num_pods]
        nodes = whole[:1] if len(whole) else order
        return self._fill_nodes(nodes, num_pods, has_leader=self._capacity.has_leader)

    def _fill_slice(self, tier: int, unit: int) -> PodsPerNode:
        """Place one slice in the best domain for it, and subtract it from the counts."""
        size, rooms = self._capacity.slice_size, self._capacity
        at = self._capacity.slice_tier
        units = units_inside(self._capacity.problem, tier, unit, at)
        units = units[rooms.usable_slots[at][units] >= size]
        chosen = int(rooms.sorted_units(units, at, self._walk.best_fit_order, size)[0])
        pods = self._fill_unit(at, chosen, size, has_leader=False)
        for node, count in pods.items():
            rooms.take(node, count)
        return pods

    def _fill_unit(self, tier: int, unit: int, num_pods: int, *, has_leader: bool) -> PodsPerNode:
        if tier == 0:
            return self._fill_node(unit, num_pods, has_leader=has_leader)
        if tier <= self._flat_fill_tier:
            nodes = units_inside(self._capacity.problem, tier, unit, 0)
            order = self._walk.node_order or self._walk.fill_order
            nodes = self._capacity.sorted_units(nodes, 0, order, num_pods)
            return self._fill_nodes(nodes, num_pods, has_leader=has_leader)
        children = np.array(self._levels.children(tier, unit), dtype=np.int64)
        return self._fill_units(tier - 1, children, num_pods, has_leader=has_leader)

    def _fill_node(self, at: int, num_pods: int, *, has_leader: bool) -> PodsPerNode:
        if has_leader:
            self.leader_position = at
        return {at: num_pods} if num_pods else {}

    def _fill_units(
        self, tier: int, units: IntArray, num_pods: int, *, has_leader: bool
    ) -> PodsPerNode:
        """Share pods among units of a tier in the order of the walk."""
        pods: PodsPerNode = {}
        if has_leader:
            units, taken, pods = self._place_leader(tier, units, num_pods)
            num_pods -= taken
        left = self._capacity.sorted_units(units, tier, self._walk.fill_order, num_pods)
        fits = self._capacity.usable_slots[tier]
        while num_pods and len(left):
            chosen = int(self._next_unit(tier, left, num_pods))
            share = min(int(fits[chosen]), num_pods)
            pods |= self._fill_unit(tier, chosen, share, has_leader=False) if share else {}
            left, num_pods = left[left != chosen], num_pods - share
        return pods

    def _place_leader(
        self, tier: int, units: IntArray, num_pods: int
    ) -> tuple[IntArray, int, PodsPerNode]:
        """Place the leader and the pods beside it; return the other units, pods placed, and where.

        Workers that fit one unit together stay there, whether the leader fits beside them or not.
        """
        rooms, order = self._capacity, self._walk.best_fit_order or self._walk.fill_order
        capable = units[rooms.slots_beside_leader[tier][units] >= 0]
        whole = capable[rooms.slots_beside_leader[tier][capable] >= num_pods]
        alone = units[rooms.usable_slots[tier][units] >= num_pods]
        if len(whole):
            chosen, share = self._first_unit(tier, whole, order), num_pods
        elif len(alone) and len(capable[capable != self._first_unit(tier, alone, order)]):
            apart = capable[capable != self._first_unit(tier, alone, order)]
            chosen, share = self._first_unit(tier, apart, order), 0
        else:
            chosen = self._first_unit(tier, capable, self._walk.fill_order)
            share = min(int(rooms.slots_beside_leader[tier][chosen]), num_pods)
        pods = self._fill_unit(tier, chosen, share, has_leader=True)
        return units[units != chosen], share, pods

    def _first_unit(self, tier: int, units: IntArray, order: Sequence[DomainSort]) -> int:
        return int(self._capacity.sorted_units(units, tier, order, 0)[0])

    def _next_unit(self, tier: int, left: IntArray, num_pods: int) -> int:
        """Return the next unit to fill: the first, or the best that holds all remaining pods."""
        if not self._walk.best_fit_order or self._capacity.usable_slots[tier][left[0]] < num_pods:
            return int(left[0])
        whole = left[self._capacity.usable_slots[tier][left] >= num_pods]
        return self._first_unit(tier, whole, self._walk.best_fit_order)

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
        for at in nodes:
            share = min(int(self._capacity.usable_slots[0][at]), num_pods)
            pods |= {int(at): share} if share else {}
            num_pods -= share
        return pods

    def _choose_leader_node(self, nodes: IntArray, num_pods: int) -> tuple[int, int]:
        """Return the leader's node, and the pods beside it: all of them if a node holds them."""
        led = self._capacity.slots_beside_leader[0]
        capable = nodes[led[nodes] >= 0]
        whole = capable[led[capable] >= num_pods]
        at = int((whole if len(whole) else capable)[0])
        return at, min(int(led[at]), num_pods)
