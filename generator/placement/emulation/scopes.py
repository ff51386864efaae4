"""The domains in which a walk tries to place groups, in the order in which it tries them.

A scope is placed in one domain: a group, a leader with its workers, or a set of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from generator.placement.cluster.free_capacity import FreeCapacity
from generator.placement.cluster.levels import (
    BoolArray,
    FloatArray,
    IntArray,
    UnitRef,
    units_inside,
)
from generator.placement.emulation.kueue import NONE_FITS, KueueCapacity
from generator.placement.groups import GangGroup, GroupSet
from generator.placement.presets import CandidateTiers, DomainSort, PlacementWalk, SortKey
from generator.placement.problem.domain_capacity import GroupCapacity, has_total_capacity
from generator.placement.problem.problem import Problem
from generator.placement.request import PlacementRequest

NOTHING_FREE = 1000.0
"""Share of a resource of which nothing is free."""


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
        """The preferred tiers, then the required tier if there is one."""
        return [*self.preferred, *([] if self.required is None else [self.required])]


def build_job_scope(problem: Problem, *, joins_leaders: bool) -> Scope:
    """Return the scope of the whole job; the tiers of a single group belong to the job.

    With `joins_leaders`, a leader of one pod and its workers are placed together; else they are
    ordinary groups of a set.
    """
    request, height_of = problem.request, problem.snapshot.levels.height_of
    names = {group.name: index for index, group in enumerate(request.groups)}
    leader_of = {
        names[group.leader_of]: index
        for index, group in enumerate(request.groups)
        if joins_leaders and group.leader_of in names and group.count == 1
    }

    def enclose(members: Sequence[Scope], bounds: GangGroup | GroupSet | PlacementRequest) -> Scope:
        required = None if bounds.required is None else height_of(bounds.required)
        return _enclose(members, required, tuple(map(height_of, bounds.preferred)))

    leaves: list[list[Scope]] = []
    for index, group in enumerate(request.groups):
        leaders = (leader_of[index],) if index in leader_of else ()
        scope = Scope((*leaders, index), (), None, ())
        leaves.append([] if index in leader_of.values() else [enclose([scope], group)])
    members = request.nest(leaves, lambda index, inner: [enclose(inner, request.sets[index])])
    return enclose(members, request)


def _enclose(members: Sequence[Scope], required: int | None, preferred: tuple[int, ...]) -> Scope:
    """Return the scope around members; a single group's own scope, with both bounds."""
    if len(members) == 1 and not members[0].members:
        (only,) = members
        bounds = [bound for bound in (required, only.required) if bound is not None]
        return Scope(only.groups, (), min(bounds, default=None), (*preferred, *only.preferred))
    ordered = tuple(sorted(members, key=lambda scope: min(scope.groups)))
    groups = tuple(group for member in ordered for group in member.groups)
    return Scope(groups, ordered, required, preferred)


class CandidateDomains:
    """The domains in which the scopes of one problem may lie, while its pods are placed."""

    def __init__(self, problem: Problem, walk: PlacementWalk, free: FreeCapacity) -> None:
        """Build the scopes; `free` is what the pods placed so far leave."""
        self._problem, self._walk, self._free = problem, walk, free
        self._levels = problem.snapshot.levels
        self.job = build_job_scope(problem, joins_leaders=walk.fills_by_level)

    def in_order(self, scope: Scope, counts: Sequence[int], within: UnitRef) -> Iterator[UnitRef]:
        """Yield the domains in which a scope may lie, in the order in which they are tried."""
        order = self._walk.domain_order
        capacity = self._capacity_for_order(scope, counts)
        groups = scope.groups if scope.members else scope.groups[-1:]
        num_pods = sum(counts[group] for group in groups)
        for tier in self._candidate_tiers(scope, within.tier):
            units = units_inside(self._levels, within, tier)
            if scope.required is None and DomainSort(SortKey.PREFERRED_LABELS) in order:
                labels = capacity.negated_preferred_slots(tier)[units]
                units = units[labels == labels.min(initial=0)]
            units = units[self._has_capacity(scope, counts, tier)[units]]
            units = self._near_running(scope, tier, units)
            for unit in capacity.sorted_units(units, tier, order, num_pods).tolist():
                yield UnitRef(tier, unit)
            if len(units) and self._walk.candidate_tiers in {
                CandidateTiers.LOWEST,
                CandidateTiers.LOWEST_FROM_LEAVES,
            }:
                return

    def ranks_from_emptiest(self, scope: Scope, counts: Sequence[int], within: UnitRef) -> IntArray:
        """Return per node the rank of its domain of the preferred tier; the emptiest is 0."""
        tier = min(*scope.preferred, within.tier)
        capacity = self._capacity_for_order(scope, counts)
        units = units_inside(self._levels, within, tier)
        # The walk that spreads from the emptiest domain, that of KAI, tries the fullest one first.
        fullest_first = capacity.sorted_units(units, tier, self._walk.domain_order, 0)
        ranks = np.zeros(len(self._levels.starts[tier]), dtype=np.int64)
        ranks[fullest_first[::-1]] = np.arange(len(fullest_first))
        return np.asarray(ranks[self._levels.unit_of_node[tier]])

    def _capacity_for_order(self, scope: Scope, counts: Sequence[int]) -> GroupCapacity:
        """Return the capacity for the last group of a scope, with the sort values of domains."""
        capacity = self.capacity_of(scope, counts[scope.groups[-1]])
        if any(sort.key is SortKey.FULLEST for sort in self._walk.domain_order):
            capacity.request_shares = self._request_shares(scope, counts)
        return capacity

    def _request_shares(self, scope: Scope, counts: Sequence[int]) -> list[FloatArray]:
        """Return per tier and unit the largest share of a free resource that all pods take."""
        total = Counter[str]()
        for group in scope.groups:
            shape = self._problem.shapes[self._problem.shape_of[group]]
            for name, need in shape.request.items():
                total[name] += need * counts[group]
        shares = [np.zeros(len(starts), dtype=np.float64) for starts in self._levels.starts]
        for name, need in total.items():
            per_node = self._free.free_of(name).astype(np.float64)
            for tier, starts in enumerate(self._levels.starts):
                quantity = np.add.reduceat(per_node, starts)
                share = np.where(quantity > 0, need / np.maximum(quantity, 1), NOTHING_FREE)
                shares[tier] = np.maximum(shares[tier], share if need else 0)
        return shares

    def capacity_of(self, scope: Scope, num_pods: int) -> GroupCapacity:
        """Return the capacity for the last group of a scope, beside its leader if it has one."""
        *leaders, group = scope.groups
        slots_by_tier = self._free.slots_by_tier(self._problem.shape_of[group])
        if not self._walk.fills_by_level:
            return GroupCapacity(self._problem, group, slots_by_tier)
        # Of several groups, domains are compared by what fits beside a pod of the first one.
        beside_leader = self._slots_beside_leader(leaders[0], group) if leaders else None
        return KueueCapacity(self._problem, group, slots_by_tier, beside_leader, num_pods)

    def _slots_beside_leader(self, leader: int, group: int) -> IntArray:
        """Return the pods that fit each node beside the leader, `NONE_FITS` if no leader fits."""
        leader_shape, group_shape = self._problem.shape_of[leader], self._problem.shape_of[group]
        shape, leader_pod = self._problem.shapes[group_shape], self._problem.shapes[leader_shape]
        current = replace(self._problem.snapshot, free=self._free.free_array())
        slots = current.count_slots(
            shape.request, unbounded=shape.max_slots[0], used=leader_pod.request
        )
        leader_fits = self._free.slots_by_tier(leader_shape)[0] > 0
        return np.where(leader_fits, np.where(shape.allowed, slots, 0), NONE_FITS)

    def _has_capacity(self, scope: Scope, counts: Sequence[int], tier: int) -> BoolArray:
        """Return which units of a tier hold the pods of each group, counted separately.

        If the walk checks total capacity, they are counted together. If it compares how many pods
        each domain takes, no unit is left out.
        """
        if self._walk.scores_domains:
            return np.ones(len(self._levels.starts[tier]), dtype=np.bool_)
        if self._walk.checks_total_capacity:
            needed = {group: counts[group] for group in scope.groups}
            return has_total_capacity(self._problem, needed, tier)
        if not scope.members:
            num_pods = counts[scope.groups[-1]]
            return np.asarray(self.capacity_of(scope, num_pods).room[tier] >= num_pods)
        rows = [self._has_capacity(member, counts, tier) for member in scope.members]
        return np.asarray(np.logical_and.reduce(rows))

    def _candidate_tiers(self, scope: Scope, outer: int) -> list[int]:
        """Return the tiers whose domains are tried, finest first, up to the outer tier."""
        tiers = self._walk.candidate_tiers
        cap = self._problem.job_cap if scope == self.job else outer
        highest = min(outer, cap if scope.required is None else scope.required)
        named = [tier for tier in (*scope.preferred, highest) if tier <= highest]
        if tiers is CandidateTiers.REQUIRED_ONLY:
            return [outer if scope.required is None else highest]
        if tiers is CandidateTiers.NAMED_ONLY:
            return sorted(set(named))
        lowest = int(tiers is CandidateTiers.LOWEST_FROM_LEAVES)
        is_from_preferred = tiers is CandidateTiers.FROM_PREFERRED
        return list(range(min(named) if is_from_preferred else lowest, highest + 1))

    def _near_running(self, scope: Scope, tier: int, units: IntArray) -> IntArray:
        """Return the units that stay inside a required tier together with the running pods.

        If only named tiers are tried, the preferred nodes of the request count as running pods do,
        and their unit is followed at every tier.
        """
        problem, levels = self._problem, self._levels
        follows = self._walk.candidate_tiers is CandidateTiers.NAMED_ONLY
        positions = [
            node for group in scope.groups for node in problem.own_pods.positions_of[group]
        ]
        positions = list(problem.own_pods.positions) if scope == self.job else positions
        if follows:
            known = problem.snapshot.position_of
            steering = problem.request.options.preferred_nodes
            positions += [known[name] for name in steering if name in known]
            if 0 < tier < levels.root:
                units = units[levels.domain_of_unit[tier][units] >= 0]
        bound = tier if follows else scope.required
        if not positions or bound is None:
            return units
        unit_of = levels.unit_of_node[bound]
        used = np.unique(unit_of[positions])
        is_near = unit_of[levels.starts[tier][units]] == used[0]
        return units[is_near] if len(used) == 1 else units[:0]
