"""Share the pods of one group tier by tier, as Kueue does.

Above the tier of the slices, the parts of all chosen domains are compared together, and filled
again from the start. From that tier down, each chosen domain shares its own pods among its parts.
Parts with more slices come first, then those with fewer pods, then names as text. The last part is
the smallest that holds the rest. A leader is placed where the fewest slices are lost.

Two of Kueue's steps waste domains: inside a slice it fills the parts with the fewest pods first,
and it tears workers that fit one domain if the leader does not fit beside them. Both are followed
only where the pods are no further apart than without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from generator.placement.cluster.levels import BoolArray, IntArray
from generator.placement.presets import DomainSort, PlacementWalk, SortKey
from generator.placement.problem.domain_capacity import GroupCapacity, name_ranks, sum_beside_leader

PodsPerNode = dict[int, int]
"""Number of pods per node position."""


class _Share(NamedTuple):
    """The pods of one domain."""

    unit: int
    num_pods: int
    has_leader: bool


class _Need(NamedTuple):
    """What a row of domains must hold."""

    num_parts: int
    """Slices, or pods where `size` is 1."""
    size: int
    has_leader: bool


class _Counts(NamedTuple):
    """Slices, or pods, per unit of one tier."""

    alone: IntArray
    beside_leader: IntArray


class LevelDescent:
    """Shares the pods of one group."""

    def __init__(self, capacity: GroupCapacity, walk: PlacementWalk, *, starts_small: bool) -> None:
        """Count pods and slices per tier.

        Args:
            capacity: pods of the group per node.
            walk: the preset's walk; it says whether preferred labels count.
            starts_small: whether the smallest domains are filled first, as for a group that names
                no tier.
        """
        self._capacity, self._starts_small = capacity, starts_small
        self._saves_domains = False
        self._uses_labels = DomainSort(SortKey.PREFERRED_LABELS) in walk.domain_order
        self._levels = capacity.problem.snapshot.levels
        self.leader_position: int | None = None
        """Node of the leader, once it is placed."""
        snapshot = capacity.problem.snapshot
        layers = [
            (snapshot.levels.height_of(layer.tier), layer.size)
            for layer in capacity.problem.request.groups[capacity.group].slices
            if layer.tier is not None and not capacity.problem.own_pods.positions
        ]
        self.slice_tier, self.slice_size = layers[0] if layers else (0, 1)
        self._inner_sizes = {
            tier: size
            for (outer, _), (inner, size) in pairwise(layers)
            for tier in range(inner, outer)
        }
        self._count_tiers()

    def _count_tiers(self) -> None:
        """Sum pods and slices up the tiers, alone and beside the leader."""
        slots, leader = self._capacity.slots_by_tier[0], self._capacity.slots_of_leader_nodes
        beside = slots if leader is None else np.maximum(leader, 0)
        holds = np.ones(len(slots), dtype=np.bool_) if leader is None else leader >= 0
        self.pods = [_Counts(slots, np.where(holds, beside, 0))]
        self.holds_leader: list[BoolArray] = [holds]
        self.slices = [self._whole(self.pods[0], self.slice_size)]
        for tier in range(1, self._levels.root + 1):
            first = self._levels.first_child[tier][:-1]
            below, below_holds = self.pods[-1], self.holds_leader[-1]
            inner = self._inner_sizes.get(tier - 1, 1)
            rounded = _Counts(below.alone // inner * inner, below.beside_leader // inner * inner)
            pods = self._summed(rounded, below_holds, first)
            self.pods.append(pods)
            self.holds_leader.append(np.logical_or.reduceat(below_holds, first))
            self.slices.append(
                self._whole(pods, self.slice_size)
                if tier <= self.slice_tier
                else self._summed(self.slices[-1], below_holds, first)
            )

    def _whole(self, pods: _Counts, size: int) -> _Counts:
        return _Counts(pods.alone // size, pods.beside_leader // size)

    def _summed(self, below: _Counts, holds_leader: BoolArray, first: IntArray) -> _Counts:
        """Return sums; the leader is placed in the part where it costs the fewest."""
        alone = np.add.reduceat(below.alone, first)
        if not self._capacity.has_leader:
            return _Counts(alone, alone)
        beside = sum_beside_leader(below.alone, below.beside_leader, holds_leader, first)
        return _Counts(alone, beside)

    def fill(
        self, tier: int, unit: int, num_pods: int, *, is_pooled: bool = True
    ) -> PodsPerNode | None:
        """Return pods per node for pods in a unit; None if they are not placed.

        Without `is_pooled`, each domain shares its own pods from the first tier on.
        """
        options = []
        # Only a leader, and parts inside a slice, are shared in two ways.
        has_choice = self._capacity.has_leader or self.slice_tier > 0
        for self._saves_domains in (False, True) if has_choice else (False,):
            shares = self._descend(tier, unit, num_pods, is_pooled=is_pooled)
            options += [] if shares is None else [shares]
        return self._pods_per_node(min(options, key=self._extent)) if options else None

    def _extent(self, shares: Sequence[_Share]) -> list[int]:
        """Return the common tier of the pods beside a leader, and the domains used per tier."""
        levels = self._levels
        workers = [share.unit for share in shares if share.num_pods]
        tier = levels.common_tier(min(workers), max(workers)) if workers else 0
        nodes = [share.unit for share in shares]
        return [
            max(tier, 1) if self._capacity.has_leader else 0,
            *(
                len({int(levels.unit_of_node[outer][node]) for node in nodes})
                for outer in range(levels.root - 1, -1, -1)
            ),
        ]

    def _descend(
        self, tier: int, unit: int, num_pods: int, *, is_pooled: bool
    ) -> list[_Share] | None:
        """Return shares of nodes for pods in a unit."""
        need = _Need(num_pods // self.slice_size, self.slice_size, self._capacity.has_leader)
        if tier == self._levels.root:
            tier -= 1
            shares = self._fill_top(tier, need)
        else:
            shares = self._take(tier, [unit], self.slices[tier], need)
        while shares is not None and tier > self.slice_tier and is_pooled:
            if any(share.has_leader and not share.num_pods for share in shares):
                break
            tier -= 1
            units = self._sorted(tier, self._children(tier + 1, shares), self.slices[tier])
            shares = self._take(tier, units, self.slices[tier], need)
        while shares is not None and tier > 0:
            tier -= 1
            shares = self._fill_inside(tier, shares)
        return None if shares is None else [s for s in shares if s.num_pods or s.has_leader]

    def scatter(self, num_pods: int) -> PodsPerNode | None:
        """Return pods per node for a group without any tier: the smallest nodes first."""
        need = _Need(num_pods, 1, self._capacity.has_leader)
        shares = self._fill_top(0, need)
        return None if shares is None else self._pods_per_node(shares)

    def _fill_top(self, tier: int, need: _Need) -> list[_Share] | None:
        """Return shares over all units of a tier, of which one may hold all."""
        counts, holds = self.slices[tier], self.holds_leader[tier]
        units = self._sorted(tier, range(len(counts.alone)), counts)
        if need.has_leader:
            columns = counts.beside_leader, self.pods[tier].beside_leader
            units = self._sorted(tier, units, _Counts(counts.beside_leader, columns[1]), columns[1])
            units = sorted(units, key=lambda unit: not holds[unit])
        if self._starts_small:
            for unit in units:
                fits = counts.beside_leader if need.has_leader else counts.alone
                if fits[unit] >= need.num_parts and (holds[unit] or not need.has_leader):
                    return self._take(tier, [unit], counts, need)
        if need.has_leader:
            units = self._with_leader_first(tier, units, counts, need)
            if not holds[units[0]]:
                return None
            units = [units[0], *self._sorted(tier, units[1:], counts)]
        return self._take(tier, units, counts, need)

    def _fill_inside(self, tier: int, shares: Sequence[_Share]) -> list[_Share] | None:
        """Return shares of a tier: each domain above shares its own pods among its parts."""
        is_inside_slice = tier < self.slice_tier
        size = self._inner_sizes.get(tier, 1) if is_inside_slice else self.slice_size
        counts = self._whole(self.pods[tier], size)
        fewest_first = _Counts(np.zeros_like(counts.alone), counts.beside_leader)
        compared = counts if self._saves_domains else fewest_first
        inner: list[_Share] = []
        for share in shares:
            units = self._sorted(
                tier,
                self._children(tier + 1, [share]),
                compared if is_inside_slice else self.slices[tier],
            )
            need = _Need(share.num_pods // size, size, share.has_leader)
            taken = self._take(tier, units, counts, need)
            if taken is None:
                return None
            inner += taken
        return inner

    def _children(self, tier: int, shares: Iterable[_Share]) -> list[int]:
        return [unit for share in shares for unit in self._levels.children(tier, share.unit)]

    def _sorted(
        self,
        tier: int,
        units: Iterable[int],
        counts: _Counts,
        pods: IntArray | None = None,
    ) -> list[int]:
        """Return units: more slices first, or fewer if small ones start; then fewer pods."""
        rows = np.fromiter(units, dtype=np.int64)
        pods = self.pods[tier].alone if pods is None else pods
        sign = 1 if self._starts_small else -1
        keys = [
            name_ranks(self._capacity.problem, tier)[rows],
            pods[rows],
            sign * counts.alone[rows],
        ]
        if self._uses_labels:
            keys.append(self._labels(tier)[rows])
        return list(rows[np.lexsort(keys)].tolist())

    def _labels(self, tier: int) -> IntArray:
        if not self._uses_labels:
            return np.zeros(len(self.pods[tier].alone), dtype=np.int64)
        return self._capacity.negated_preferred_slots(tier)

    def _with_leader_first(
        self, tier: int, units: list[int], counts: _Counts, need: _Need
    ) -> list[int]:
        """Return units with that one first which loses so few to the leader that the rest fits."""
        slack = sum(int(counts.alone[unit]) for unit in units) - need.num_parts
        for unit in units:
            lost = counts.alone[unit] - counts.beside_leader[unit]
            if self.holds_leader[tier][unit] and lost <= slack:
                return [unit, *(other for other in units if other != unit)]
        return units

    def _take(
        self, tier: int, units: list[int], counts: _Counts, need: _Need
    ) -> list[_Share] | None:
        """Return the shares of units in order, the last one the smallest that holds the rest."""
        holds, needs_leader, missing = self.holds_leader[tier], need.has_leader, need.num_parts
        if needs_leader:
            apart = self._apart_from_leader(tier, units, counts, need)
            if apart is not None and self._saves_domains:
                return apart
            units = self._with_leader_first(tier, units, counts, need)
        shares: list[_Share] = []
        for index, first in enumerate(units):
            fits = counts.beside_leader if needs_leader else counts.alone
            unit = first
            is_last = fits[unit] >= missing and (holds[unit] or not needs_leader)
            if is_last and not self._starts_small:
                rest = _Need(missing, need.size, needs_leader)
                unit = self._tightest(tier, units[index:], fits, rest)
            share = min(int(fits[unit]), missing)
            has_leader = needs_leader and bool(holds[unit])
            shares.append(_Share(unit, share * need.size, has_leader))
            missing, needs_leader = missing - share, needs_leader and not has_leader
            if not missing and not needs_leader:
                return shares
        return None

    def _apart_from_leader(
        self, tier: int, units: Sequence[int], counts: _Counts, need: _Need
    ) -> list[_Share] | None:
        """Return all workers in one unit and the leader in another, if no unit holds both."""
        holds = self.holds_leader[tier]
        if any(holds[unit] and counts.beside_leader[unit] >= need.num_parts for unit in units):
            return None
        by_size = sorted(units, key=lambda unit: int(counts.alone[unit]))
        workers = next((unit for unit in by_size if counts.alone[unit] >= need.num_parts), None)
        leader = next((unit for unit in by_size if holds[unit] and unit != workers), None)
        if workers is None or leader is None:
            return None
        num_pods = need.num_parts * need.size
        return [
            _Share(leader, 0, has_leader=True),
            _Share(workers, num_pods, has_leader=False),
        ]

    def _tightest(self, tier: int, units: Sequence[int], fits: IntArray, need: _Need) -> int:
        """Return the first of the smallest units that hold all and carry as many labels."""
        rows = np.array(units)
        is_option = fits[rows] >= need.num_parts
        if need.has_leader:
            is_option &= self.holds_leader[tier][rows]
        if self._uses_labels:
            labels = self._labels(tier)
            is_option &= labels[rows] == labels[rows[0]]
        rows = rows[is_option]
        return int(rows[np.argmin(fits[rows])])

    def _pods_per_node(self, shares: Sequence[_Share]) -> PodsPerNode:
        self.leader_position = next((share.unit for share in shares if share.has_leader), None)
        return {share.unit: share.num_pods for share in shares if share.num_pods}
