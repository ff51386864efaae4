"""The domains in which a walk tries to place groups, in the order in which it tries them.

A scope is a group, a leader with its workers, or a set of these: what shares one domain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from generator.placement.cluster.capacity import FreeCapacity
from generator.placement.cluster.levels import FloatArray, IntArray
from generator.placement.emulation.slice_counts import SliceCounts
from generator.placement.presets import CandidateTiers, DomainSort, PlacementWalk, SortKey
from generator.placement.problem.domain_capacity import (
    NONE_FITS,
    GroupCapacity,
    has_total_capacity,
    units_inside,
)
from generator.placement.problem.problem import Problem


class Scope(NamedTuple):
    """Groups that share one domain, which is inside the domain of the outer scope."""

    groups: tuple[int, ...]
    """Leaf groups in order; a leader comes before its workers."""
    members: tuple[Scope, ...]
    """Inner scopes; empty for a group, or for a leader with its workers."""
    required: int | None
    preferred: tuple[int, ...]

    @property
    def named_tiers(self) -> list[int]:
        """Tiers that the scope names."""
        return [*self.preferred, *([] if self.required is None else [self.required])]


class ScopeBuilder:
    """Builds the scopes of one problem."""

    def __init__(self, problem: Problem, *, joins_leaders: bool = False) -> None:
        """Store the problem.

        Args:
            problem: the request and the cluster.
            joins_leaders: whether a leader of one pod and its workers are placed together; else
                they are ordinary groups of a set.
        """
        self._snapshot, self._request = problem.snapshot, problem.request
        names = {group.name: index for index, group in enumerate(self._request.groups)}
        self._leader_of = {
            names[group.leader_of]: index
            for index, group in enumerate(self._request.groups)
            if joins_leaders and group.leader_of in names and group.count == 1
        }

    def job_scope(self) -> Scope:
        """Return the scope of the whole job; the tiers of a single group belong to the job."""
        request = self._request
        members = self._member_scopes(
            self._outermost(len(request.groups), [row.groups for row in request.sets]),
            self._outermost(len(request.sets), [row.sets for row in request.sets]),
        )
        return self._enclosing_scope(members, request.required, request.preferred)

    def _outermost(self, count: int, inner: Sequence[tuple[int, ...]]) -> list[int]:
        inner_indexes = {index for indexes in inner for index in indexes}
        return [index for index in range(count) if index not in inner_indexes]

    def _member_scopes(self, groups: Sequence[int], sets: Sequence[int]) -> tuple[Scope, ...]:
        leaders = set(self._leader_of.values())
        scopes = [self._group_scope(index) for index in groups if index not in leaders]
        scopes += [self._set_scope(index) for index in sets]
        return tuple(sorted(scopes, key=lambda scope: min(scope.groups)))

    def _group_scope(self, group_index: int) -> Scope:
        group = self._request.groups[group_index]
        leader = self._leader_of.get(group_index)
        groups = (group_index,) if leader is None else (leader, group_index)
        return Scope(groups, (), *self._tier_bounds(group.required, group.preferred))

    def _set_scope(self, set_index: int) -> Scope:
        group_set = self._request.sets[set_index]
        return self._enclosing_scope(
            self._member_scopes(group_set.groups, group_set.sets),
            group_set.required,
            group_set.preferred,
        )

    def _enclosing_scope(
        self, members: tuple[Scope, ...], required: str | None, preferred: Sequence[str]
    ) -> Scope:
        """Return the scope around members; a single group's own scope, with both bounds."""
        tier, preferred_tiers = self._tier_bounds(required, preferred)
        if len(members) == 1 and not members[0].members:
            only = members[0]
            required_tiers = [
                required_tier
                for required_tier in (tier, only.required)
                if required_tier is not None
            ]
            return Scope(
                only.groups,
                (),
                min(required_tiers, default=None),
                (*preferred_tiers, *only.preferred),
            )
        groups = tuple(group for member in members for group in member.groups)
        return Scope(groups, members, tier, preferred_tiers)

    def _tier_bounds(
        self, required: str | None, preferred: Sequence[str]
    ) -> tuple[int | None, tuple[int, ...]]:
        tier = None if required is None else self._snapshot.levels.height_of(required)
        return tier, tuple(self._snapshot.levels.height_of(name) for name in preferred)


NOTHING_FREE = 1000.0
"""Share of a resource of which nothing is free."""


class UnitRef(NamedTuple):
    """A unit of a tier."""

    tier: int
    unit: int


class CandidateDomains:
    """The candidate domains of one problem."""

    def __init__(self, problem: Problem, walk: PlacementWalk, job: Scope) -> None:
        """Store the arguments; `job` is the scope of the whole job."""
        self._problem, self._walk, self._scope = problem, walk, job
        self._levels = problem.snapshot.levels

    def in_order(
        self, scope: Scope, counts: Sequence[int], free: FreeCapacity, within: UnitRef
    ) -> Iterator[UnitRef]:
        """Yield the domains in which a scope may lie, in the order in which they are tried."""
        group = scope.groups[-1]
        capacity = self._capacity_for_order(scope, counts, free)
        num_pods = (
            sum(counts[member] for member in scope.groups) if scope.members else counts[group]
        )
        for tier in self._candidate_tiers(scope, within.tier):
            units = units_inside(self._problem, within.tier, within.unit, tier)
            if (
                scope.required is None
                and DomainSort(SortKey.PREFERRED_LABELS) in self._walk.domain_order
            ):
                units = capacity.units_with_most_preferred(tier, units)
            units = units[self._has_capacity(scope, counts, free, tier)[units]]
            units = self._near_running(scope, tier, units)
            for unit in capacity.sorted_units(units, tier, self._walk.domain_order, num_pods):
                yield UnitRef(tier, int(unit))
            if len(units) and self._walk.candidate_tiers in {
                CandidateTiers.LOWEST,
                CandidateTiers.LOWEST_FROM_LEAVES,
            }:
                return

    def ranks_from_emptiest(
        self, scope: Scope, counts: Sequence[int], free: FreeCapacity, within: UnitRef
    ) -> IntArray:
        """Return per node the rank of its domain of the preferred tier; the emptiest is 0."""
        tier = min(*scope.preferred, within.tier)
        capacity = self._capacity_for_order(scope, counts, free)
        units = units_inside(self._problem, within.tier, within.unit, tier)
        order = capacity.sorted_units(units, tier, self._walk.domain_order, 0)
        ranks = np.zeros(len(self._levels.starts[tier]), dtype=np.int64)
        ranks[order[::-1]] = np.arange(len(order))
        return np.asarray(ranks[self._levels.unit_of_node[tier]])

    def _capacity_for_order(
        self, scope: Scope, counts: Sequence[int], free: FreeCapacity
    ) -> GroupCapacity:
        """Return the capacity for the last group of a scope, with what domains are sorted by."""
        capacity = self.capacity_of(scope, free, counts[scope.groups[-1]])
        if any(sort.key is SortKey.FULLEST for sort in self._walk.domain_order):
            capacity.request_shares = self._request_shares(scope, counts, free)
        return capacity

    def _request_shares(
        self, scope: Scope, counts: Sequence[int], free: FreeCapacity
    ) -> list[FloatArray]:
        """Return per tier and unit the largest share of a free resource that all pods take."""
        total = Counter[str]()
        for group in scope.groups:
            shape = self._problem.shapes[self._problem.shape_of[group]]
            for name, need in shape.request.items():
                total[name] += need * counts[group]
        shares = [np.zeros(len(starts), dtype=np.float64) for starts in self._levels.starts]
        for name, need in total.items():
            per_node = free.free_of(name).astype(np.float64)
            for tier, starts in enumerate(self._levels.starts):
                quantity = np.add.reduceat(per_node, starts)
                share = np.where(quantity > 0, need / np.maximum(quantity, 1), NOTHING_FREE)
                shares[tier] = np.maximum(shares[tier], share if need else 0)
        return shares

    def capacity_of(self, scope: Scope, free: FreeCapacity, num_pods: int = 0) -> GroupCapacity:
        """Return the capacity for the group of a scope, beside its leader if it has one.

        With the number of pods, room for a partial slice is counted.
        """
        *leaders, group = scope.groups
        shape = self._problem.shape_of[group]
        slots_by_tier = free.slots_by_tier(shape)
        beside_leader = self._slots_beside_leader(leaders[0], group, free) if leaders else None
        capacity = GroupCapacity(self._problem, group, slots_by_tier, beside_leader)
        if self._walk.fills_by_level and num_pods % capacity.slice_size:
            capacity.room_beside_partial = SliceCounts(capacity, num_pods).room
        return capacity

    def _slots_beside_leader(self, leader: int, group: int, free: FreeCapacity) -> IntArray:
        """Return the pods that fit each node beside the leader, `NONE_FITS` if no leader fits."""
        leader_shape, group_shape = self._problem.shape_of[leader], self._problem.shape_of[group]
        shape, beside = self._problem.shapes[group_shape], self._problem.shapes[leader_shape]
        left = replace(self._problem.snapshot, free=free.free_array())
        slots = left.count_slots(shape.request, unbounded=shape.max_slots[0], used=beside.request)
        is_free = free.slots_by_tier(leader_shape)[0] > 0
        return np.where(is_free, np.where(shape.allowed, slots, 0), NONE_FITS)

    def _has_capacity(
        self, scope: Scope, counts: Sequence[int], free: FreeCapacity, tier: int
    ) -> IntArray:
        """Return which units of a tier hold the pods of each group, counted separately.

        If the walk checks total capacity, they are counted together.
        """
        if self._walk.checks_total_capacity:
            needed = {group: counts[group] for group in scope.groups}
            return np.asarray(has_total_capacity(self._problem, needed, tier))
        if not scope.members:
            num_pods = counts[scope.groups[-1]]
            return np.asarray(self.capacity_of(scope, free, num_pods).room[tier] >= num_pods)
        rows = [self._has_capacity(member, counts, free, tier) for member in scope.members]
        return np.asarray(np.logical_and.reduce(rows))

    def _candidate_tiers(self, scope: Scope, outer: int) -> list[int]:
        """Return the tiers whose domains are tried, finest first, up to the outer tier."""
        is_job = scope == self._scope
        cap = self._problem.job_cap if is_job else outer
        highest = min(outer, cap if scope.required is None else scope.required)
        named = [tier for tier in (*scope.preferred, highest) if tier <= highest]
        if self._walk.candidate_tiers is CandidateTiers.NAMED_ONLY:
            return sorted(set(named))
        if self._walk.candidate_tiers is CandidateTiers.FROM_PREFERRED:
            return list(range(min(named), highest + 1))
        return list(
            range(int(self._walk.candidate_tiers is CandidateTiers.LOWEST_FROM_LEAVES), highest + 1)
        )

    @property
    def _steering_nodes(self) -> list[str]:
        """Nodes that steer which domains are tried, as running pods do."""
        position = self._problem.snapshot.position_of
        return [name for name in self._problem.request.options.preferred_nodes if name in position]

    def _near_running(self, scope: Scope, tier: int, units: IntArray) -> IntArray:
        """Return the units that stay inside a required tier together with the running pods."""
        top = self._levels.root
        positions = [
            node for group in scope.groups for node in self._problem.own_pods.positions_of[group]
        ]
        positions = list(self._problem.own_pods.positions) if scope == self._scope else positions
        if self._walk.candidate_tiers is CandidateTiers.NAMED_ONLY:
            positions += [self._problem.snapshot.position_of[name] for name in self._steering_nodes]
            units = (
                units[self._levels.domain_of_unit[tier][units] >= 0] if 0 < tier < top else units
            )
        if not positions or (
            scope.required is None and self._walk.candidate_tiers is not CandidateTiers.NAMED_ONLY
        ):
            return units
        if self._walk.candidate_tiers is CandidateTiers.NAMED_ONLY and scope.required != tier:
            units_used = {int(self._levels.unit_of_node[tier][node]) for node in positions}
            return units[np.isin(units, list(units_used))] if len(units_used) == 1 else units[:0]
        bound = self._levels.unit_of_node[scope.required or 0]
        units_used = {int(bound[node]) for node in positions}
        starts = self._levels.starts[tier][units]
        return (
            units[np.isin(bound[starts], list(units_used))] if len(units_used) == 1 else units[:0]
        )
