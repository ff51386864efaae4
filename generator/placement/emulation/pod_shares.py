"""How the pods of one group are shared among the nodes of a domain, as a preset's walk says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generator.placement.cluster.levels import Ints
from generator.placement.presets import Flat, Sort, Walk
from generator.placement.problem.domain_capacity import Rooms, inside

Shares = dict[int, int]
"""Pods per position."""


class Sharing:
    """Fills one domain after the other; counts are those of `rooms`, which it uses up."""

    def __init__(self, walk: Walk, rooms: Rooms, asked: int) -> None:
        """Keep the arguments; `asked` is the finest tier that the group names."""
        self._walk, self._rooms = walk, rooms
        self._levels = rooms.problem.snapshot.levels
        self._flat = {Flat.NOWHERE: 0, Flat.LEAVES: 1, Flat.ASKED: asked}[walk.flat]
        self.leader: int | None = None
        """Where the leader went."""

    def fill(self, tier: int, unit: int, num_pods: int) -> Shares:
        """Return pods per node of so many in a unit that has room for them."""
        if not self._walk.is_slice_by_slice or self._rooms.slice_size == 1:
            return self._shared(tier, unit, num_pods, leads=self._rooms.has_leader)
        pods: Shares = {}
        for _ in range(num_pods // self._rooms.slice_size):
            for at, count in self._slice(tier, unit).items():
                pods[at] = pods.get(at, 0) + count
        return pods

    def scatter(self, num_pods: int) -> Shares:
        """Return pods per node of a group without any tier: on all nodes, in their own order."""
        units = np.arange(len(self._rooms.fits[0]), dtype=np.int64)
        order = self._rooms.sorted_units(units, 0, self._walk.scattered, num_pods)
        whole = order[self._rooms.led[0][order] >= num_pods]
        nodes = whole[:1] if len(whole) else order
        return self._poured(nodes, num_pods, leads=self._rooms.has_leader)

    def _slice(self, tier: int, unit: int) -> Shares:
        """Place one slice in the domain that suits it best, and take it off the counts."""
        size, rooms = self._rooms.slice_size, self._rooms
        at = self._rooms.slice_tier
        units = inside(self._rooms.problem, tier, unit, at)
        units = units[rooms.fits[at][units] >= size]
        chosen = int(rooms.sorted_units(units, at, self._walk.rest, size)[0])
        pods = self._shared(at, chosen, size, leads=False)
        for node, count in pods.items():
            rooms.take(node, count)
        return pods

    def _shared(self, tier: int, unit: int, num_pods: int, *, leads: bool) -> Shares:
        if tier == 0:
            return self._on_node(unit, num_pods, leads=leads)
        if tier <= self._flat:
            nodes = inside(self._rooms.problem, tier, unit, 0)
            order = self._walk.nodes or self._walk.fill
            nodes = self._rooms.sorted_units(nodes, 0, order, num_pods)
            return self._poured(nodes, num_pods, leads=leads)
        children = np.array(self._levels.children(tier, unit), dtype=np.int64)
        return self._among(tier - 1, children, num_pods, leads=leads)

    def _on_node(self, at: int, num_pods: int, *, leads: bool) -> Shares:
        if leads:
            self.leader = at
        return {at: num_pods} if num_pods else {}

    def _among(self, tier: int, units: Ints, num_pods: int, *, leads: bool) -> Shares:
        """Share pods among units of a tier in the order of the walk."""
        pods: Shares = {}
        if leads:
            units, taken, pods = self._led(tier, units, num_pods)
            num_pods -= taken
        left = self._rooms.sorted_units(units, tier, self._walk.fill, num_pods)
        fits = self._rooms.fits[tier]
        while num_pods and len(left):
            chosen = int(self._suited(tier, left, num_pods))
            share = min(int(fits[chosen]), num_pods)
            pods |= self._shared(tier, chosen, share, leads=False) if share else {}
            left, num_pods = left[left != chosen], num_pods - share
        return pods

    def _led(self, tier: int, units: Ints, num_pods: int) -> tuple[Ints, int, Shares]:
        """Place the leader and what goes with it; return the other units, pods placed, and where.

        Workers that fit one unit whole stay together there, whether the leader joins them or not.
        """
        rooms, order = self._rooms, self._walk.rest or self._walk.fill
        capable = units[rooms.led[tier][units] >= 0]
        whole = capable[rooms.led[tier][capable] >= num_pods]
        alone = units[rooms.fits[tier][units] >= num_pods]
        if len(whole):
            chosen, share = self._first(tier, whole, order), num_pods
        elif len(alone) and len(capable[capable != self._first(tier, alone, order)]):
            apart = capable[capable != self._first(tier, alone, order)]
            chosen, share = self._first(tier, apart, order), 0
        else:
            chosen = self._first(tier, capable, self._walk.fill)
            share = min(int(rooms.led[tier][chosen]), num_pods)
        pods = self._shared(tier, chosen, share, leads=True)
        return units[units != chosen], share, pods

    def _first(self, tier: int, units: Ints, order: Sequence[Sort]) -> int:
        return int(self._rooms.sorted_units(units, tier, order, 0)[0])

    def _suited(self, tier: int, left: Ints, num_pods: int) -> int:
        """Return the next unit to fill: the first, or the best of those that hold all the rest."""
        if not self._walk.rest or self._rooms.fits[tier][left[0]] < num_pods:
            return int(left[0])
        whole = left[self._rooms.fits[tier][left] >= num_pods]
        return self._first(tier, whole, self._walk.rest)

    def _poured(self, nodes: Ints, num_pods: int, *, leads: bool) -> Shares:
        """Fill nodes in order, the leader's first."""
        pods: Shares = {}
        if leads:
            self.leader, share = self._leader_node(nodes, num_pods)
            pods, nodes = {self.leader: share} if share else {}, nodes[nodes != self.leader]
            num_pods -= share
        for at in nodes:
            share = min(int(self._rooms.fits[0][at]), num_pods)
            pods |= {int(at): share} if share else {}
            num_pods -= share
        return pods

    def _leader_node(self, nodes: Ints, num_pods: int) -> tuple[int, int]:
        """Return where the leader goes, with all pods if a node holds them; and how many."""
        led = self._rooms.led[0]
        capable = nodes[led[nodes] >= 0]
        whole = capable[led[capable] >= num_pods]
        at = int((whole if len(whole) else capable)[0])
        return at, min(int(led[at]), num_pods)
