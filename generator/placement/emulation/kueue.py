"""Count the pods and whole slices that each domain holds, and fill a domain, as Kueue does.

Everything is counted twice: alone, and beside the leader of the group, which is placed where it
costs the fewest slices. Pods that make no whole slice are a partial slice. It stays in one domain
of the slices' tier, and is counted where it costs the fewest whole slices.

Above the tier of the slices, the parts of all chosen domains are compared together, and filled
again from the start. From that tier down, each chosen domain shares its own pods among its parts.
Parts with more slices come first, then those with fewer pods, then names as text. The last part is
the smallest that holds the rest. A leader is placed where the fewest slices are lost. A partial
slice is placed in the last part, or else in the first part with room for it.

Two of Kueue's steps waste domains: inside a slice it fills the parts with the fewest pods first,
and it tears workers that fit one domain if the leader does not fit beside them. Both are followed
only where the pods are no further apart than without them.

Source: kubernetes-sigs/kueue 0.20, `fillInCountsHelper` and `tas_partial_slices.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from generator.placement.cluster.levels import BoolArray, IntArray
from generator.placement.problem.domain_capacity import GroupCapacity, name_ranks
from generator.placement.problem.problem import Problem

NONE_FITS: Final = -1
"""Pods in a domain where the leader, or the partial slice, does not fit."""
_INFINITE = np.iinfo(np.int64).max // 4
"""A cost that no domain pays; the sum of two does not overflow."""


class Counts(NamedTuple):
    """Slices, or pods, per unit of one tier."""

    alone: IntArray
    beside_leader: IntArray

    def with_leader(self, *, has_leader: bool) -> IntArray:
        """Return the counts per unit with the leader in the unit, or without it."""
        return self.beside_leader if has_leader else self.alone

    def whole(self, size: int) -> Counts:
        """Return the slices of a size that the pods make."""
        return Counts(self.alone // size, self.beside_leader // size)


class KueueCapacity(GroupCapacity):
    """Pods and slices of one group per tier and unit."""

    def __init__(
        self,
        problem: Problem,
        group: int,
        slots_by_tier: Sequence[IntArray],
        beside_leader: IntArray | None,
        num_pods: int,
    ) -> None:
        """Count the pods and slices of a group.

        Args:
            problem: the request and the cluster.
            group: index of the group.
            slots_by_tier: pods of the group that fit, per tier and unit.
            beside_leader: for a group with a leader: its pods that fit each node beside it,
                `NONE_FITS` where no leader fits.
            num_pods: pods of the group that are placed.
        """
        super().__init__(problem, group, slots_by_tier)
        self._levels, self.has_leader = problem.snapshot.levels, beside_leader is not None
        layers = [
            (self._levels.height_of(layer.tier), layer.size)
            for layer in problem.request.groups[group].slices
            if layer.tier is not None and not problem.own_pods.positions
        ]
        self.coarsest_tier, self.coarsest_size = layers[0] if layers else (0, 1)
        self.inner_sizes = {
            tier: size
            for (outer, _), (inner, size) in pairwise(layers)
            for tier in range(inner, outer)
        }
        """Pods of an inner slice, by tier."""
        self._count_tiers(beside_leader)
        self.partial_pods = num_pods % self.coarsest_size
        """Pods of the partial slice; 0 without one."""
        self.beside_partial = self._count_beside_partial() if self.partial_pods else self.slices
        """Whole slices beside the partial one; `NONE_FITS` where it does not fit."""

    @property
    def room(self) -> list[IntArray]:
        """Per tier and unit the pods that fit beside the leader, the partial slice included."""
        return [
            np.where(whole < 0, NONE_FITS, whole * self.coarsest_size + self.partial_pods)
            for whole in self._beside_leader(self.beside_partial)
        ]

    def _room_columns(self, tier: int) -> list[IntArray]:
        """Return the slices beside the partial one, then all whole slices."""
        return [self._beside_leader(rows)[tier] for rows in (self.beside_partial, self.slices)]

    def _beside_leader(self, rows: Sequence[Counts]) -> list[IntArray]:
        return [counts.with_leader(has_leader=self.has_leader) for counts in rows]

    def _count_tiers(self, leader: IntArray | None) -> None:
        """Sum pods and slices up the tiers, alone and beside the leader."""
        slots = self.slots_by_tier[0]
        beside = slots if leader is None else np.maximum(leader, 0)
        holds = np.ones(len(slots), dtype=np.bool_) if leader is None else leader >= 0
        self.pods = [Counts(slots, np.where(holds, beside, 0))]
        self.holds_leader: list[BoolArray] = [holds]
        self.slices = [self.pods[0].whole(self.coarsest_size)]
        for tier in range(1, self._levels.root + 1):
            first = self._levels.first_child[tier][:-1]
            below, below_holds = self.pods[-1], self.holds_leader[-1]
            inner = self.inner_sizes.get(tier - 1, 1)
            rounded = Counts(below.alone // inner * inner, below.beside_leader // inner * inner)
            pods = self._summed(rounded, below_holds, first)
            self.pods.append(pods)
            self.holds_leader.append(np.logical_or.reduceat(below_holds, first))
            self.slices.append(
                pods.whole(self.coarsest_size)
                if tier <= self.coarsest_tier
                else self._summed(self.slices[-1], below_holds, first)
            )

    def _summed(self, below: Counts, holds_leader: BoolArray, first: IntArray) -> Counts:
        """Return sums; the leader is placed in the part where it costs the fewest."""
        alone = np.add.reduceat(below.alone, first)
        if not self.has_leader:
            return Counts(alone, alone)
        costs = np.where(holds_leader, below.alone - below.beside_leader, _INFINITE)
        least = np.minimum.reduceat(costs, first)
        return Counts(alone, np.where(least >= _INFINITE, 0, alone - least))

    def _count_beside_partial(self) -> list[Counts]:
        """Return per tier the whole slices beside the partial one."""
        counted = [
            Counts(
                *(
                    np.where(
                        pods < self.partial_pods,
                        NONE_FITS,
                        (pods - self.partial_pods) // self.coarsest_size,
                    )
                    for pods in counts
                )
            )
            for counts in self.pods[: self.coarsest_tier + 1]
        ]
        for tier in range(self.coarsest_tier + 1, self._levels.root + 1):
            first = self._levels.first_child[tier][:-1]
            below, holds = self.slices[tier - 1], self.holds_leader[tier - 1]
            total = np.add.reduceat(below.alone, first)
            lost = _lost(below.alone, counted[-1].alone)
            costs = leader_costs(below, counted[-1], holds, first) if self.has_leader else lost
            least, least_of_both = (np.minimum.reduceat(column, first) for column in (lost, costs))
            counted.append(
                Counts(
                    np.where(least >= _INFINITE, NONE_FITS, total - least),
                    np.where(least_of_both >= _INFINITE, NONE_FITS, total - least_of_both),
                )
            )
        return counted


def leader_costs(
    whole: Counts, beside_partial: Counts, holds_leader: BoolArray, first: IntArray
) -> IntArray:
    """Return per part what the leader costs there, with the partial slice where it costs least.

    Args:
        whole: whole slices of each part.
        beside_partial: the same beside the partial slice; equal to `whole` without one.
        holds_leader: whether the leader fits each part.
        first: the first part of each row of parts that share the leader and the slice.
    """
    partial = _lost(whole.alone, beside_partial.alone)
    leader = np.where(holds_leader, whole.alone - whole.beside_leader, _INFINITE)
    both = np.where(holds_leader, _lost(whole.alone, beside_partial.beside_leader), _INFINITE)
    return np.minimum(both, leader + _least_of_others(partial, first))


def _lost(whole: IntArray, beside: IntArray) -> IntArray:
    return np.where(beside < 0, _INFINITE, whole - beside)


def _least_of_others(costs: IntArray, first: IntArray) -> IntArray:
    """Return per part the least cost of the other parts in its row; `_INFINITE` without others."""
    row = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(costs))))
    is_least = costs == np.minimum.reduceat(costs, first)[row]
    is_only = is_least & (np.add.reduceat(is_least, first, dtype=np.int64) == 1)[row]
    second = np.minimum.reduceat(np.where(is_least, _INFINITE, costs), first)[row]
    least = np.minimum.reduceat(costs, first)[row]
    return np.where(is_only, second, least)


PodsPerNode = dict[int, int]
"""Number of pods per node position."""


class _Share(NamedTuple):
    """The pods of one domain."""

    unit: int
    num_pods: int
    has_leader: bool


class _Need(NamedTuple):
    """What a row of domains must hold."""

    num_pods: int
    size: int
    """Pods of a slice; 1 where pods are shared one by one."""
    has_leader: bool

    @property
    def num_parts(self) -> int:
        """Whole slices, or pods where `size` is 1."""
        return self.num_pods // self.size

    @property
    def partial_pods(self) -> int:
        """Pods of the partial slice; 0 without one."""
        return self.num_pods % self.size


class LevelDescent:
    """Shares the pods of one group."""

    def __init__(self, capacity: KueueCapacity, num_pods: int, *, starts_small: bool) -> None:
        """Store the arguments.

        Args:
            capacity: pods and slices of the group per domain.
            num_pods: pods of the group to place.
            starts_small: whether the smallest domains are filled first, as for a group that names
                no tier.
        """
        self._capacity, self._num_pods, self._starts_small = capacity, num_pods, starts_small
        self._saves_domains = False
        self._levels = capacity.problem.snapshot.levels
        self.leader_position: int | None = None
        """Node of the leader, once it is placed."""

    def fill(self, tier: int, unit: int, *, is_pooled: bool = True) -> PodsPerNode | None:
        """Return pods per node in a unit; None if they are not placed.

        Without `is_pooled`, each domain shares its own pods from the first tier on.
        """
        options = []
        # Only a leader, and parts inside a slice, are shared in two ways.
        has_choice = self._capacity.has_leader or self._capacity.coarsest_tier > 0
        for self._saves_domains in (False, True) if has_choice else (False,):
            shares = self._descend(tier, unit, is_pooled=is_pooled)
            options += [] if shares is None else [shares]
        return self._pods_per_node(min(options, key=self._extent)) if options else None

    def _extent(self, shares: Sequence[_Share]) -> list[int]:
        """Return the common tier of the pods beside a leader, and the domains used per tier."""
        levels = self._levels
        workers = [share.unit for share in shares if share.num_pods]
        tier = levels.common_tier(min(workers), max(workers)) if workers else 0
        nodes = [share.unit for share in shares]
        num_domains = [
            len({int(levels.unit_of_node[outer][node]) for node in nodes})
            for outer in range(levels.root - 1, -1, -1)
        ]
        return [max(tier, 1) if self._capacity.has_leader else 0, *num_domains]

    def _descend(self, tier: int, unit: int, *, is_pooled: bool) -> list[_Share] | None:
        """Return shares of nodes for the pods in a unit."""
        capacity = self._capacity
        need = _Need(self._num_pods, capacity.coarsest_size, self._capacity.has_leader)
        if tier == self._levels.root:
            tier -= 1
            shares = self._fill_top(tier, need)
        else:
            shares = self._take(tier, [unit], capacity.slices[tier], need)
        while shares is not None and tier > capacity.coarsest_tier and is_pooled:
            if any(share.has_leader and not share.num_pods for share in shares):
                break
            tier -= 1
            slices = capacity.slices[tier].alone
            units = self._sorted(tier, self._children(tier + 1, shares), slices)
            shares = self._take(tier, units, capacity.slices[tier], need)
        while shares is not None and tier > 0:
            tier -= 1
            shares = self._fill_inside(tier, shares)
        return (
            None
            if shares is None
            else [share for share in shares if share.num_pods or share.has_leader]
        )

    def scatter(self) -> PodsPerNode | None:
        """Return pods per node for a group without any tier: the smallest nodes first."""
        shares = self._fill_top(0, _Need(self._num_pods, 1, self._capacity.has_leader))
        return None if shares is None else self._pods_per_node(shares)

    def _fill_top(self, tier: int, need: _Need) -> list[_Share] | None:
        """Return shares over all units of a tier, of which one may hold all."""
        counts, holds = self._capacity.slices[tier], self._capacity.holds_leader[tier]
        units = self._sorted(tier, range(len(counts.alone)), counts.alone)
        if need.has_leader:
            pods = self._capacity.pods[tier].beside_leader
            units = self._sorted(tier, units, counts.beside_leader, pods)
            units = sorted(units, key=lambda unit: not holds[unit])
        if self._starts_small:
            room = self._room(tier, counts, need).with_leader(has_leader=need.has_leader)
            for unit in units:
                if room[unit] >= need.num_parts and (holds[unit] or not need.has_leader):
                    return self._take(tier, [unit], counts, need)
        if need.has_leader:
            units = self._with_leader_first(tier, units, counts, need)
            if not holds[units[0]]:
                return None
            units = [units[0], *self._sorted(tier, units[1:], counts.alone)]
        if need.partial_pods:
            whole = need._replace(num_pods=need.num_parts * need.size)
            shares = self._take(tier, units, counts, whole)
            shares = None if shares is None else self._add_partial(tier, units, shares, need)
            if shares is None:
                return None
            units = [share.unit for share in shares]
        return self._take(tier, units, counts, need)

    def _fill_inside(self, tier: int, shares: Sequence[_Share]) -> list[_Share] | None:
        """Return shares of a tier: each domain above shares its own pods among its parts."""
        capacity = self._capacity
        is_inside_slice = tier < capacity.coarsest_tier
        size = capacity.inner_sizes.get(tier, 1) if is_inside_slice else capacity.coarsest_size
        counts = capacity.pods[tier].whole(size)
        compared = capacity.slices[tier].alone
        if is_inside_slice:
            # Without slices to compare, parts with the fewest pods come first.
            compared = counts.alone if self._saves_domains else np.zeros_like(counts.alone)
        inner: list[_Share] = []
        for share in shares:
            units = self._sorted(tier, self._children(tier + 1, [share]), compared)
            taken = self._take(tier, units, counts, _Need(share.num_pods, size, share.has_leader))
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
        slices: IntArray,
        pods: IntArray | None = None,
    ) -> list[int]:
        """Return units: more slices first, or fewer if `starts_small`; then fewer pods."""
        rows = np.fromiter(units, dtype=np.int64)
        pods = self._capacity.pods[tier].alone if pods is None else pods
        sign = 1 if self._starts_small else -1
        keys = (
            name_ranks(self._capacity.problem, tier)[rows],
            pods[rows],
            sign * slices[rows],
            self._capacity.negated_preferred_slots(tier)[rows],
        )
        return list(rows[np.lexsort(keys)].tolist())

    def _room(self, tier: int, counts: Counts, need: _Need) -> Counts:
        """Return the counts of a tier beside the partial slice, if there is one."""
        return self._capacity.beside_partial[tier] if need.partial_pods else counts

    def _with_leader_first(
        self, tier: int, units: list[int], counts: Counts, need: _Need
    ) -> list[int]:
        """Return units; first is a unit that loses so little to the leader that the rest fits."""
        rows = np.array(units)
        room, holds = self._room(tier, counts, need), self._capacity.holds_leader[tier][rows]
        whole, beside = (Counts(*(column[rows] for column in row)) for row in (counts, room))
        costs = leader_costs(whole, beside, holds, np.zeros(1, dtype=np.int64))
        slack = int(whole.alone.sum()) - need.num_parts
        for unit, cost in zip(units, costs.tolist(), strict=True):
            if cost <= slack:
                return [unit, *(other for other in units if other != unit)]
        return units

    def _take(
        self, tier: int, units: list[int], counts: Counts, need: _Need
    ) -> list[_Share] | None:
        """Return the shares of units in order, the last one the smallest that holds the rest."""
        holds, needs_leader = self._capacity.holds_leader[tier], need.has_leader
        missing = need.num_parts
        if needs_leader:
            apart = self._apart_from_leader(tier, units, counts, need)
            if apart is not None and self._saves_domains:
                return apart
            units = self._with_leader_first(tier, units, counts, need)
        shares: list[_Share] = []
        for index, first in enumerate(units):
            rest = _Need(missing * need.size + need.partial_pods, need.size, needs_leader)
            if need.partial_pods and not self._holds_partial(tier, shares, need):
                last = self._last_with_partial(tier, units[index:], counts, rest)
                if last is not None:
                    return [*shares, _Share(last, rest.num_pods, needs_leader)]
            fits = counts.with_leader(has_leader=needs_leader)
            unit = first
            is_last = fits[unit] >= missing and (holds[unit] or not needs_leader)
            if is_last and not self._starts_small:
                unit = self._tightest(tier, units[index:], [fits], rest)
            share = min(int(fits[unit]), missing)
            has_leader = needs_leader and bool(holds[unit])
            shares.append(_Share(unit, share * need.size, has_leader))
            missing, needs_leader = missing - share, needs_leader and not has_leader
            if not missing and not needs_leader:
                return self._add_partial(tier, units, shares, need)
        return None

    def _last_with_partial(
        self, tier: int, units: Sequence[int], counts: Counts, need: _Need
    ) -> int | None:
        """Return the unit that holds all the rest and the partial slice; None without one.

        It has no more slices than the unit that would be the last without the partial slice.
        """
        fits = counts.with_leader(has_leader=need.has_leader)
        holds = self._capacity.holds_leader[tier]
        if fits[units[0]] < need.num_parts or (need.has_leader and not holds[units[0]]):
            return None
        room = self._room(tier, counts, need).with_leader(has_leader=need.has_leader)
        unit = units[0]
        if not self._starts_small:
            unit = self._tightest(tier, units, [room, fits], need)
            if fits[unit] > fits[self._tightest(tier, units, [fits], need)]:
                return None
        return unit if room[unit] >= need.num_parts else None

    def _holds_partial(self, tier: int, shares: Iterable[_Share], need: _Need) -> bool:
        """Return whether the partial slice fits beside the pods of one of the shares."""
        return any(self._has_room(tier, share, need) for share in shares)

    def _has_room(self, tier: int, share: _Share, need: _Need) -> bool:
        room = self._capacity.beside_partial[tier].with_leader(has_leader=share.has_leader)
        return bool(share.num_pods // need.size <= room[share.unit])

    def _add_partial(
        self, tier: int, units: Iterable[int], shares: Sequence[_Share], need: _Need
    ) -> list[_Share] | None:
        """Return shares with the partial slice: beside the first pods that leave room for it.

        If no share does, the first other unit takes it. None if it fits nowhere.
        """
        if not need.partial_pods:
            return list(shares)
        for index, share in enumerate(shares):
            if self._has_room(tier, share, need):
                grown = share._replace(num_pods=share.num_pods + need.partial_pods)
                return [*shares[:index], grown, *shares[index + 1 :]]
        used = {share.unit for share in shares}
        alone = self._capacity.beside_partial[tier].alone
        other = next((unit for unit in units if unit not in used and alone[unit] >= 0), None)
        if other is None:
            return None
        return [*shares, _Share(other, need.partial_pods, has_leader=False)]

    def _apart_from_leader(
        self, tier: int, units: Sequence[int], counts: Counts, need: _Need
    ) -> list[_Share] | None:
        """Return all workers in one unit and the leader in another, if no unit holds both."""
        holds, room = self._capacity.holds_leader[tier], self._room(tier, counts, need)
        if any(holds[unit] and room.beside_leader[unit] >= need.num_parts for unit in units):
            return None
        # Units are ordered by whole slices alone; the partial slice only decides which ones fit.
        by_size = sorted(units, key=lambda unit: int(counts.alone[unit]))
        workers_unit = next((unit for unit in by_size if room.alone[unit] >= need.num_parts), None)
        leader_unit = next((unit for unit in by_size if holds[unit] and unit != workers_unit), None)
        if workers_unit is None or leader_unit is None:
            return None
        return [
            _Share(leader_unit, 0, has_leader=True),
            _Share(workers_unit, need.num_pods, has_leader=False),
        ]

    def _tightest(
        self, tier: int, units: Sequence[int], columns: Sequence[IntArray], need: _Need
    ) -> int:
        """Return the smallest unit that holds all, with as many preferred labels as the first unit.

        The units are compared by the columns, the most important first. Without one that holds all
        by the first column, the first unit is returned.
        """
        rows = np.array(units)
        is_option = columns[0][rows] >= need.num_parts
        if need.has_leader:
            is_option &= self._capacity.holds_leader[tier][rows]
        labels = self._capacity.negated_preferred_slots(tier)[rows]
        is_option &= labels == labels[0]
        rows = rows[is_option]
        order = np.lexsort([column[rows] for column in reversed(columns)])
        return int(rows[order[0]]) if len(rows) else units[0]

    def _pods_per_node(self, shares: Sequence[_Share]) -> PodsPerNode:
        self.leader_position = next((share.unit for share in shares if share.has_leader), None)
        return {share.unit: share.num_pods for share in shares if share.num_pods}
