"""Placement by a walk, as another scheduler does it: try domains in order, fill each in order.

The order is data (`presets.PlacementWalk`). Groups are placed one after the other inside the
first domain of the job that holds them all. Inside it, a group is placed by the tiers that it names
itself. The result of a walk satisfies every rule. If the walk finds nothing, the exact search
decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from generator.placement.answer import NO_DETAILS
from generator.placement.budget import Budget
from generator.placement.cluster.capacity import FreeCapacity
from generator.placement.cluster.levels import IntArray
from generator.placement.cluster.min_cover import fill_in_order
from generator.placement.emulation.balanced import BalancedShares
from generator.placement.emulation.candidates import CandidateDomains, Scope, ScopeBuilder, UnitRef
from generator.placement.emulation.level_descent import LevelDescent, PodsPerNode
from generator.placement.emulation.slice_counts import SliceCounts
from generator.placement.explain import unit_name
from generator.placement.groups import GangGroup
from generator.placement.presets import PRESETS, DomainSort, FlatFill, PlacementWalk
from generator.placement.problem.constraints import satisfies_rules
from generator.placement.problem.domain_capacity import GroupCapacity, units_inside
from generator.placement.problem.objective import Objective, PlacementCandidate
from generator.placement.problem.problem import Problem

PositionsPerGroup = list[list[int]]
"""Per group the positions of its pods."""


MAX_SHOWN_DOMAINS = 100
"""Most tried domains that the answer shows."""


class _WalkTarget(NamedTuple):
    """Which pods are placed, and where."""

    place: UnitRef
    counts: Sequence[int]
    """Pods to place per group."""
    free: FreeCapacity
    pods: PositionsPerGroup
    """Pods placed so far; more are added."""
    ranks: IntArray | None = None
    """Ranks of nodes, of the nearest scope that prefers a tier; None if none does."""


def place_by_walk(problem: Problem, budget: Budget) -> PlacementCandidate | None:
    """Return the placement of the preset's walk; None if none is found that satisfies all rules.

    Raises:
        BudgetExhausted: there are too many choices of pods per group.
    """
    walk = PRESETS[problem.request.preset].walk
    if walk is None or not _is_walkable(problem, walk):
        return None
    walker = Walker(problem, walk)
    pods = walker.place_minimum() if walk.starts_with_minimum else walker.place_most(budget)
    if pods is None:
        return None
    rows = _in_index_order(problem, pods)
    objective = Objective(problem, rows, 0)
    return PlacementCandidate(
        rows, objective, is_proved=True, make_details=walker.describe_candidates
    )


def describe_candidates(problem: Problem) -> Mapping[str, Any]:
    """Return the domains that the walk tries for an infeasible gang, as the answer shows them."""
    walk = PRESETS[problem.request.preset].walk
    if walk is None or not _is_walkable(problem, walk):
        return NO_DETAILS
    return Walker(problem, walk).describe_candidates()


def _is_walkable(problem: Problem, walk: PlacementWalk) -> bool:
    """Return whether pods can be counted per domain without tracking single slices."""
    groups, evictable = problem.request.groups, problem.evictable
    layers = [layer for group in groups for layer in group.slices]
    is_plain = all(
        not (layer.has_short or layer.is_indexed)
        or (walk.fills_by_level and _may_be_partial(group))
        for group in groups
        for layer in group.slices
    )
    if walk.fills_by_level:  # Kueue has neither.
        is_plain &= not any(layer.is_spread for layer in layers)
        is_plain &= not any(group.multiples for group in groups)
    grows_in_slices = bool(problem.own_pods.positions) and any(layer.tier for layer in layers)
    return is_plain and not (problem.request.strategies or evictable or grows_in_slices)


def _may_be_partial(group: GangGroup) -> bool:
    """Return whether the last slice of a group may be short, and stays in one domain."""
    (first, *others) = group.slices
    return not others and first.tier is not None and first.has_short and first.is_indexed


def _in_index_order(problem: Problem, pods: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Return the positions of each group's pods in tree order, the domain of a short slice last."""
    rows: list[tuple[int, ...]] = []
    for group, positions in zip(problem.request.groups, pods, strict=True):
        row = np.sort(np.array(positions, dtype=np.int64))
        for layer in group.slices:
            rest = len(row) % layer.size
            if layer.is_indexed and rest:
                units = problem.snapshot.levels.unit_of_node[
                    problem.snapshot.levels.height_of(layer.tier)
                ][row]
                found, counts = np.unique(units, return_counts=True)
                last = found[counts % layer.size == rest][:1]
                row = row[np.argsort(np.isin(units, last), kind="stable")]
        rows.append(tuple(row.tolist()))
    return tuple(rows)


class Walker:
    """The walk of one problem."""

    def __init__(self, problem: Problem, walk: PlacementWalk) -> None:
        """Build the scopes of the groups; nothing is placed yet."""
        self._problem, self._walk = problem, walk
        self._levels = problem.snapshot.levels
        self._scope = ScopeBuilder(problem, joins_leaders=walk.fills_by_level).job_scope()
        self._candidates = CandidateDomains(problem, walk, self._scope)

    def describe_candidates(self) -> Mapping[str, Any]:
        """Return the names of the domains that are tried for the job, in order, as details."""
        groups = self._problem.request.groups
        uses_minimum = self._walk.starts_with_minimum
        counts = [
            min(group.least or 1, group.count) if uses_minimum else group.count for group in groups
        ]
        root = UnitRef(self._levels.root, 0)
        free = self._target(root, counts).free
        order = self._candidates.in_order(self._scope, counts, free, root)
        places = islice(order, MAX_SHOWN_DOMAINS)
        return {"candidates": [unit_name(self._problem, *place) for place in places]}

    def place_most(self, budget: Budget) -> PositionsPerGroup | None:
        """Return the placement of the first choice of pods per group that can be placed."""
        for counts in self._problem.pod_counts(budget):
            placed = self._place_evenly(counts, budget) if self._walk.shares_evenly else None
            placed = placed or self._place_counts(counts)
            if placed is not None:
                return placed
        return None

    def _place_evenly(self, counts: Sequence[int], budget: Budget) -> PositionsPerGroup | None:
        """Return the pods of a single group in even shares over its preferred tier."""
        scope = self._scope
        if scope.members or scope.required is not None or not scope.preferred:
            return None
        start = self._target(UnitRef(self._levels.root, 0), counts)
        num_pods = counts[scope.groups[-1]]
        capacity = self._candidates.capacity_of(scope, start.free)
        counted = SliceCounts(capacity, num_pods)
        if counted.partial_pods:
            return None
        shares = BalancedShares(capacity, counted, min(scope.preferred), num_pods, budget)
        for share in shares.find_shares() or ():
            inner = scope if share.has_leader else scope._replace(groups=scope.groups[-1:])
            share_counts = [
                share.num_pods if group == scope.groups[-1] else count
                for group, count in enumerate(counts)
            ]
            place = UnitRef(share.tier, share.unit)
            target = start._replace(place=place, counts=share_counts)
            if not self._place_group(inner, target, is_pooled=False):
                return None
        is_whole = [len(positions) for positions in start.pods] == list(counts)
        return start.pods if is_whole and satisfies_rules(self._problem, start.pods) else None

    def _target(self, place: UnitRef, counts: Sequence[int]) -> _WalkTarget:
        """Return a domain in which no pod is placed yet."""
        free = FreeCapacity(self._problem.snapshot, self._problem.shapes)
        return _WalkTarget(place, counts, free, [list[int]() for _ in counts])

    def place_minimum(self) -> PositionsPerGroup | None:
        """Place the minimum number of pods, then add as many as fit."""
        groups = self._problem.request.groups
        full_counts = tuple(group.count for group in groups)
        steps = [self._problem.pod_count_step(group_index) for group_index in range(len(groups))]
        min_counts = tuple(
            min(-(-group.least // step) * step, group.count)
            for group, step in zip(groups, steps, strict=True)
        )
        if not any(min_counts):
            min_counts = full_counts
        starts = [min_counts]
        if self._problem.request.one_pod_is_enough:
            starts = [
                tuple(step if index == first else 0 for index in range(len(groups)))
                for first, step in enumerate(steps)
            ]
        attempts = (self._place_counts(start, grown_counts=full_counts) for start in starts)
        grown = next((placed for placed in attempts if placed is not None), None)
        if grown is not None and sum(map(len, grown)) == sum(full_counts):
            return grown
        fully_placed = self._place_counts(full_counts) if len(groups) > 1 else None
        return fully_placed or grown

    def _place_counts(
        self, counts: Sequence[int], grown_counts: Sequence[int] | None = None
    ) -> PositionsPerGroup | None:
        """Return a placement of these pods per group in the first domain that holds them."""
        root = UnitRef(self._levels.root, 0)
        empty = self._target(root, counts)
        ranks = self._ranks(self._scope, empty)
        for place in self._candidates.in_order(self._scope, counts, empty.free, root):
            target = self._target(place, counts)._replace(ranks=ranks)
            if not self._place_scope(self._scope, target):
                continue
            if satisfies_rules(self._problem, _in_index_order(self._problem, target.pods)):
                if grown_counts is not None:
                    self._grow(grown_counts, target)
                return target.pods
        return None

    def _ranks(self, scope: Scope, target: _WalkTarget) -> IntArray | None:
        """Return the ranks of nodes for a scope: its own if it prefers a tier, or else those above.

        None if the walk ranks no nodes.
        """
        if not (self._walk.spreads_from_emptiest and scope.preferred):
            return target.ranks
        return self._candidates.ranks_from_emptiest(scope, target.counts, target.free, target.place)

    def _place_scope(self, scope: Scope, target: _WalkTarget) -> bool:
        """Place the members of a scope in a domain, one after the other."""
        if not scope.members:
            return self._place_group(scope, target)
        for member in scope.members:
            if not any(target.counts[group] for group in member.groups):
                continue
            if not self._place_member(member, target):
                return False
        return True

    def _place_member(self, scope: Scope, target: _WalkTarget) -> bool:
        """Place one member in the first inner domain that holds it."""
        place, counts, free, pods, _ = target
        if not (scope.required is not None or scope.preferred or scope.members):
            return self._place_group(scope, target)
        ranks = self._ranks(scope, target)
        for inner in self._candidates.in_order(scope, counts, free, place):
            mark, lengths = len(free.changes), [len(positions) for positions in pods]
            if self._place_scope(scope, target._replace(place=inner, ranks=ranks)):
                return True
            free.undo(mark)
            for positions, old_length in zip(pods, lengths, strict=True):
                del positions[old_length:]
        return False

    def _place_group(self, scope: Scope, target: _WalkTarget, *, is_pooled: bool = True) -> bool:
        """Share the pods of a group, and of its leader, among the nodes of a domain."""
        place, counts, free, pods, _ = target
        *leaders, group = scope.groups
        num_pods = counts[group]
        capacity = self._candidates.capacity_of(scope, free, num_pods)
        if int(capacity.room[place.tier][place.unit]) < num_pods:
            return False
        shares, leader_position = self._share_pods(scope, capacity, target, is_pooled=is_pooled)
        if shares is None:
            return False
        for node, count in shares.items():
            free.take(self._problem.shape_of[group], node, count)
            pods[group] += [node] * count
        for leader in leaders:
            if leader_position is None:
                return False
            free.take(self._problem.shape_of[leader], leader_position, 1)
            pods[leader].append(leader_position)
        return True

    def _share_pods(
        self,
        scope: Scope,
        capacity: GroupCapacity,
        target: _WalkTarget,
        *,
        is_pooled: bool,
    ) -> tuple[PodsPerNode | None, int | None]:
        """Return pods per node in a domain, and the leader's node."""
        place, num_pods = target.place, target.counts[scope.groups[-1]]
        if not self._walk.fills_by_level:
            finest = self._finest_named_tier(scope)
            filler = _DomainFiller(self._walk, capacity, finest, num_pods)
            if self._walk.spreads_from_emptiest:
                return filler.fill_by_rank(place.tier, place.unit, target.ranks), None
            return filler.fill(place.tier, place.unit), None
        is_open = not scope.named_tiers and not self._scope.named_tiers
        descent = LevelDescent(capacity, self._walk, num_pods, starts_small=is_open)
        if is_open and not self._problem.request.groups[capacity.group].slices:
            return descent.scatter(), descent.leader_position
        shares = descent.fill(place.tier, place.unit, is_pooled=is_pooled)
        return shares, descent.leader_position

    def _finest_named_tier(self, scope: Scope) -> int:
        """Return the finest tier that a scope, or else the job, names; without any the cluster."""
        return min(scope.named_tiers or self._scope.named_tiers or [self._levels.root])

    def _grow(self, counts: Sequence[int], target: _WalkTarget) -> None:
        """Add pods up to the counts: inside the domain, then around it if the walk allows that."""
        domains = [target.place]
        if self._walk.may_leave_domain:
            domains += self._ancestors(target.place)
        for group, count in enumerate(counts):
            for domain in domains:
                missing = count - len(target.pods[group])
                self._add_pods(group, missing, target._replace(place=domain))

    def _ancestors(self, place: UnitRef) -> Iterator[UnitRef]:
        """Yield the units around one to which the job may spread."""
        start = int(self._levels.starts[place.tier][place.unit])
        required = self._scope.required
        highest = self._problem.job_cap if required is None else required
        for tier in range(place.tier + 1, highest + 1):
            yield UnitRef(tier, int(self._levels.unit_of_node[tier][start]))

    def _add_pods(self, group: int, missing: int, target: _WalkTarget) -> None:
        """Add as many pods of a group as fit a domain and satisfy its rules."""
        place, _, free, pods, _ = target
        scope = Scope((group,), (), None, ())
        max_count = int(
            self._candidates.capacity_of(scope, free).usable_slots[place.tier][place.unit]
        )
        mark, length = len(free.changes), len(pods[group])
        step = self._problem.pod_count_step(group)
        for count in range(min(missing, max_count) // step * step, 0, -step):
            counts = [count if other == group else 0 for other in range(len(pods))]
            is_placed = self._place_group(scope, target._replace(counts=counts))
            if is_placed and satisfies_rules(self._problem, pods):
                return
            free.undo(mark)
            del pods[group][length:]


class _DomainFiller:
    """Fills the nodes of a domain with the pods of one group, in the order of a walk."""

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
        self._flat_fill_tier = {
            FlatFill.NOWHERE: 0,
            FlatFill.LEAVES: 1,
            FlatFill.FINEST_NAMED: finest_named_tier,
        }[walk.flat_fill]

    def fill(self, tier: int, unit: int) -> PodsPerNode:
        """Return pods per node of a unit that holds them."""
        if not self._walk.is_slice_by_slice or self._capacity.slice_size == 1:
            return self._fill_unit(tier, unit, self._num_pods)
        pods: PodsPerNode = {}
        for _ in range(self._num_pods // self._capacity.slice_size):
            for node, count in self._fill_slice(tier, unit).items():
                pods[node] = pods.get(node, 0) + count
        return pods

    def fill_by_rank(self, tier: int, unit: int, ranks: IntArray | None) -> PodsPerNode:
        """Return pods per node of a unit, in the order of the nodes' ranks, then of the walk."""
        nodes = units_inside(self._capacity.problem, tier, unit, 0)
        nodes = self._sorted(0, nodes, self._walk.node_order)
        if ranks is not None:
            nodes = nodes[np.argsort(ranks[nodes], kind="stable")]
        return self._fill_nodes(nodes, self._num_pods)

    def _fill_slice(self, tier: int, unit: int) -> PodsPerNode:
        """Place one slice in the best domain for it, and subtract it from the counts."""
        size, slice_tier = self._capacity.slice_size, self._capacity.slice_tier
        units = units_inside(self._capacity.problem, tier, unit, slice_tier)
        units = units[self._capacity.usable_slots[slice_tier][units] >= size]
        order = self._walk.best_fit_order
        chosen = int(self._capacity.sorted_units(units, slice_tier, order, size)[0])
        pods = self._fill_unit(slice_tier, chosen, size)
        self._capacity = self._capacity.without_pods(pods)
        return pods

    def _fill_unit(self, tier: int, unit: int, num_pods: int) -> PodsPerNode:
        if tier <= self._flat_fill_tier:
            nodes = units_inside(self._capacity.problem, tier, unit, 0)
            nodes = self._sorted(0, nodes, self._walk.node_order or self._walk.fill_order)
            return self._fill_nodes(nodes, num_pods)
        pods: PodsPerNode = {}
        children = self._capacity.problem.snapshot.levels.children(tier, unit)
        units = self._sorted(tier - 1, np.array(children), self._walk.fill_order)
        while num_pods and len(units):
            chosen = self._next_unit(tier - 1, units, num_pods)
            share = min(int(self._capacity.usable_slots[tier - 1][chosen]), num_pods)
            pods |= self._fill_unit(tier - 1, chosen, share) if share else {}
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
