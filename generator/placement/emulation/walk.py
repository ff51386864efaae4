"""Placement by a walk, as another scheduler does it: try domains in order, fill each, undo.

The order is data (`presets.PlacementWalk`). The pods of a group are placed by a *filler*: in the
order of the walk (`OrderedFill`), by scores of nodes (`NodeScores`), or level by level (`kueue`).
Groups are placed one after the other inside a domain of the job, each in a domain of the tiers that
it names itself. The first domain that holds all is taken, or of all such domains the one with the
best score. If the walk finds nothing, the exact search decides.

`NodeScores` fills as kube-scheduler does: pod by pod, each on the node with the largest free share
of CPU and memory; none is taken back. A domain scores up to 100 for the share of its CPU and memory
that is then in use. Source: kubernetes v1.37.2, pkg/scheduler/schedule_one_podgroup.go and the
plugins topologyaware, noderesources (placementScorer) and podgrouppodscount.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np

from generator.placement.answer import NO_DETAILS
from generator.placement.budget import Budget
from generator.placement.cluster.levels import IntArray, UnitRef, units_inside
from generator.placement.cluster.min_cover import fill_in_order
from generator.placement.emulation.balanced import BalancedShares
from generator.placement.emulation.kueue import KueueCapacity, LevelDescent, PodsPerNode
from generator.placement.emulation.scopes import CandidateDomains, Scope
from generator.placement.explain import unit_name
from generator.placement.groups import GangGroup
from generator.placement.presets import PRESETS, DomainSort, FlatFill, PlacementWalk
from generator.placement.problem.constraints import has_allowed_counts, satisfies_rules
from generator.placement.problem.domain_capacity import GroupCapacity
from generator.placement.problem.objective import (
    Objective,
    PlacementCandidate,
    PositionsPerGroup,
)
from generator.placement.problem.problem import Problem
from generator.placement.problem.trial import Trial, TrialPods

MAX_SHOWN_DOMAINS = 100
"""Most tried domains that the answer shows."""
MAX_SCORE: Final = 100
_SCORED: Final = ("cpu", "memory")


def place_by_walk(problem: Problem, budget: Budget) -> PlacementCandidate | None:
    """Return the placement of the preset's walk.

    None if the preset has no walk that supports the whole request, or if the walk finds nothing.

    Raises:
        BudgetExhausted: there are too many choices of pods per group, or the time is over.
    """
    walk = PRESETS[problem.request.preset].walk
    if walk is None or not _is_walkable(problem, walk):
        return None
    if walk.scores_domains:
        attempt = _Attempt(problem, walk, [group.count for group in problem.request.groups], budget)
        rows = attempt.place()
        is_proved = len(problem.request.groups) == 1 and not attempt.is_sample
    else:
        place = _place_minimum if walk.starts_with_minimum else _place_most
        rows, is_proved = place(problem, walk, budget), True
    if rows is None:
        return None
    return PlacementCandidate(
        rows, Objective(problem, rows, 0), is_proved, lambda: describe_candidates(problem)
    )


def describe_candidates(problem: Problem) -> Mapping[str, Any]:
    """Return the names of the domains that the walk tries for the job, in order, as details."""
    walk = PRESETS[problem.request.preset].walk
    if walk is None or walk.scores_domains or not _is_walkable(problem, walk):
        return NO_DETAILS
    counts = [
        min(group.least or 1, group.count) if walk.starts_with_minimum else group.count
        for group in problem.request.groups
    ]
    order = _Attempt(problem, walk, counts, problem.budget).candidates()
    places = islice(order, MAX_SHOWN_DOMAINS)
    return {"candidates": [unit_name(problem, *place) for place in places]}


def _is_walkable(problem: Problem, walk: PlacementWalk) -> bool:
    """Return whether the walk supports everything that the request asks for."""
    groups, request = problem.request.groups, problem.request
    if request.strategies or problem.evictable:
        return False
    layers = [layer for group in groups for layer in group.slices]
    if walk.scores_domains:  # kube-scheduler has no slices and no limits.
        return not (layers or problem.has_domain_rules)
    if problem.own_pods.positions and any(layer.tier for layer in layers):
        return False
    if not walk.fills_by_level:
        return not any(layer.has_short or layer.is_indexed for layer in layers)
    # Kueue has neither spread slices nor multiples.
    if any(layer.is_spread for layer in layers) or any(group.multiples for group in groups):
        return False
    return all(_may_be_partial(group) for group in groups if _is_cut_by_index(group))


def _is_cut_by_index(group: GangGroup) -> bool:
    return any(layer.has_short or layer.is_indexed for layer in group.slices)


def _may_be_partial(group: GangGroup) -> bool:
    """Return whether the last slice of a group may be short, and stays in one domain."""
    (first, *others) = group.slices
    return not others and first.tier is not None and first.has_short and first.is_indexed


def _place_most(problem: Problem, walk: PlacementWalk, budget: Budget) -> PositionsPerGroup | None:
    """Return the placement of the first choice of pods per group that can be placed."""
    for counts in problem.pod_counts(budget):
        rows = None
        if walk.shares_evenly:
            rows = _Attempt(problem, walk, counts, budget).place_evenly()
        rows = rows or _Attempt(problem, walk, counts, budget).place()
        if rows is not None:
            return rows
    return None


def _place_minimum(
    problem: Problem, walk: PlacementWalk, budget: Budget
) -> PositionsPerGroup | None:
    """Place the minimum number of pods, then add as many as fit."""
    groups = problem.request.groups
    full_counts = tuple(group.count for group in groups)
    steps = [problem.pod_count_step(group_index) for group_index in range(len(groups))]
    min_counts = tuple(
        min(-(-group.least // step) * step, group.count)
        for group, step in zip(groups, steps, strict=True)
    )
    starts = [min_counts if any(min_counts) else full_counts]
    if problem.request.one_pod_is_enough:
        starts = [
            tuple(step if index == first else 0 for index in range(len(groups)))
            for first, step in enumerate(steps)
        ]
    grown = None
    for start in starts:
        if not grown:
            grown = _Attempt(problem, walk, start, budget).place(grown_counts=full_counts)
    if len(groups) == 1 or (grown is not None and sum(map(len, grown)) == sum(full_counts)):
        return grown
    return _Attempt(problem, walk, full_counts, budget).place() or grown


class _ScoredPods(NamedTuple):
    """The pods of a scope in one domain."""

    pods: tuple[TrialPods, ...]
    used_score: int
    """The share of the domain that is in use, 0 to 100."""


class _Attempt:
    """One run of the walk, with fixed numbers of pods per group; placed pods can be taken back."""

    def __init__(
        self, problem: Problem, walk: PlacementWalk, counts: Sequence[int], budget: Budget
    ) -> None:
        """Nothing is placed yet."""
        self._problem, self._walk, self._budget = problem, walk, budget
        self._counts = list(counts)
        """Pods to place per group."""
        self._levels = problem.snapshot.levels
        self._trial = Trial(problem)
        self._domains = CandidateDomains(problem, walk, self._trial.free)
        self._job, self._root = self._domains.job, UnitRef(self._levels.root, 0)
        self.is_sample = False
        """Whether domains with room may be left that were not compared."""

    @cached_property
    def _scores(self) -> NodeScores:
        return NodeScores(self._problem, self._trial, self._budget)

    def candidates(self) -> Iterator[UnitRef]:
        """Yield the domains that are tried for the job, in order."""
        return self._domains.in_order(self._job, self._counts, self._root)

    def place(self, grown_counts: Sequence[int] | None = None) -> PositionsPerGroup | None:
        """Return a placement in the first domain that holds all pods, or in the best one.

        With `grown_counts`, pods are then added up to these numbers.
        """
        if self._walk.scores_domains:
            return self._rows() if self._place_best(self._job, self._root) else None
        ranks = self._ranks(self._job, self._root, None)
        for place in self._attempts(self._job, self._root, ranks):
            if satisfies_rules(self._problem, self._rows()):
                if grown_counts is not None:
                    self._grow(grown_counts, place, ranks)
                return self._rows()
        return None

    def place_evenly(self) -> PositionsPerGroup | None:
        """Return a placement of a single group in even shares over its preferred tier."""
        scope, counts = self._job, list(self._counts)
        if scope.members or scope.required is not None or not scope.preferred:
            return None
        workers = scope.groups[-1]
        num_pods = counts[workers]
        capacity = self._domains.capacity_of(scope, num_pods)
        if not isinstance(capacity, KueueCapacity) or capacity.partial_pods:
            return None
        shares = BalancedShares(capacity, min(scope.preferred), num_pods, self._budget)
        without_leader = scope._replace(groups=(workers,))
        for share in shares.find_shares() or ():
            self._counts[workers] = share.num_pods
            inner = scope if share.has_leader else without_leader
            if not self._fill_group(inner, share.place, is_pooled=False):
                return None
        if self._trial.num_pods() != counts:
            return None
        is_allowed = satisfies_rules(self._problem, self._trial.positions())
        return self._rows() if is_allowed else None

    def _rows(self) -> PositionsPerGroup:
        """Return the positions of each group's pods in tree order, a short slice's domain last."""
        rows: list[tuple[int, ...]] = []
        for group, positions in zip(
            self._problem.request.groups, self._trial.positions(), strict=True
        ):
            row = np.sort(np.array(positions, dtype=np.int64))
            for layer in group.slices:
                rest = len(row) % layer.size
                if layer.is_indexed and rest:
                    unit_of = self._levels.unit_of_node[self._levels.height_of(layer.tier)]
                    units, counts = np.unique(unit_of[row], return_counts=True)
                    last = units[counts % layer.size == rest][:1]
                    row = row[np.argsort(np.isin(unit_of[row], last), kind="stable")]
            rows.append(tuple(row.tolist()))
        return tuple(rows)

    def _attempts(
        self, scope: Scope, within: UnitRef, ranks: IntArray | None = None
    ) -> Iterator[UnitRef]:
        """Yield each domain that holds a scope, with its pods placed there until the next one."""
        for place in self._domains.in_order(scope, self._counts, within):
            mark = self._trial.mark
            if self._fill(scope, place, ranks):
                yield place
            self._trial.undo(mark)

    def _ranks(self, scope: Scope, within: UnitRef, outer: IntArray | None) -> IntArray | None:
        """Return the ranks of nodes for a scope, or None if the walk ranks no nodes.

        A scope that prefers a tier has ranks of its own; any other uses those of the outer scope.
        """
        if not (self._walk.spreads_from_emptiest and scope.preferred):
            return outer
        return self._domains.ranks_from_emptiest(scope, self._counts, within)

    def _fill(self, scope: Scope, place: UnitRef, ranks: IntArray | None) -> bool:
        """Place the pods of a scope in a domain, one member after the other."""
        if self._walk.scores_domains:
            return self._fill_as_fits(scope, place)
        if not scope.members:
            return self._fill_group(scope, place, ranks)
        return all(
            self._fill_member(member, place, ranks)
            for member in scope.members
            if any(self._counts[group] for group in member.groups)
        )

    def _fill_member(self, scope: Scope, place: UnitRef, ranks: IntArray | None) -> bool:
        """Place one member in the first inner domain that holds it."""
        if not (scope.required is not None or scope.preferred or scope.members):
            return self._fill_group(scope, place, ranks)
        ranks = self._ranks(scope, place, ranks)
        return next(self._attempts(scope, place, ranks), None) is not None

    def _fill_group(
        self,
        scope: Scope,
        place: UnitRef,
        ranks: IntArray | None = None,
        *,
        is_pooled: bool = True,
    ) -> bool:
        """Share the pods of a group, and of its leader, among the nodes of a domain."""
        *leaders, group = scope.groups
        num_pods = self._counts[group]
        capacity = self._domains.capacity_of(scope, num_pods)
        if int(capacity.room[place.tier][place.unit]) < num_pods:
            return False
        leader: int | None = None
        if isinstance(capacity, KueueCapacity):
            shares, leader = self._descend(scope, capacity, place, is_pooled=is_pooled)
        else:
            shares = self._fill_in_order(scope, capacity, place, ranks)
        if shares is None or (leaders and leader is None):
            return False
        for node, count in shares.items():
            self._trial.put(TrialPods(group, node, count))
        if leader is not None:
            self._trial.put(TrialPods(leaders[0], leader, 1))
        return True

    def _descend(
        self, scope: Scope, capacity: KueueCapacity, place: UnitRef, *, is_pooled: bool
    ) -> tuple[PodsPerNode | None, int | None]:
        """Return pods per node in a domain, and the leader's node, level by level."""
        is_open = not scope.named_tiers and not self._job.named_tiers
        descent = LevelDescent(capacity, self._counts[capacity.group], starts_small=is_open)
        if is_open and not self._problem.request.groups[capacity.group].slices:
            return descent.scatter(), descent.leader_position
        return descent.fill(*place, is_pooled=is_pooled), descent.leader_position

    def _fill_in_order(
        self, scope: Scope, capacity: GroupCapacity, place: UnitRef, ranks: IntArray | None
    ) -> PodsPerNode:
        """Return pods per node in a domain; below the finest named tier, nodes are not grouped."""
        finest = min(scope.named_tiers or self._job.named_tiers or [self._levels.root])
        filler = OrderedFill(self._walk, capacity, finest, self._counts[capacity.group])
        if self._walk.spreads_from_emptiest:
            return filler.fill_by_rank(place, ranks)
        return filler.fill(place)

    def _fill_as_fits(self, scope: Scope, place: UnitRef) -> bool:
        """Place as many pods of a scope in a domain as fit; return whether they are enough."""
        self._budget.check()
        mark, groups = self._trial.mark, self._problem.request.groups
        for member in scope.members:
            is_optional = all(not groups[group].least for group in member.groups)
            if not self._place_best(member, place) and not is_optional:
                return False
        for group in () if scope.members else scope.groups:
            self._scores.fill_group(group, place)
        counts = self._trial.num_pods(mark)
        if scope == self._job:
            return has_allowed_counts(self._problem, counts)
        placed = [group for group, num_pods in enumerate(counts) if num_pods]
        return bool(placed) and all(counts[group] >= groups[group].least for group in placed)

    def _place_best(self, scope: Scope, within: UnitRef) -> bool:
        """Place a scope in the domain with the best score; return whether one holds it.

        A domain scores up to 100 for the share of it that is then in use, and up to 100 for the
        number of the gang's pods in it. If scores are equal, kube-scheduler takes a random domain,
        and this takes the first domain in tree order.
        """
        mark = self._trial.mark
        attempts = (
            _ScoredPods(tuple(self._trial.pods[mark:]), self._scores.score_use(place))
            for place in self._attempts(scope, within)
        )
        sample = self._problem.request.options.sample if scope == self._job else 0
        fitting = list(islice(attempts, sample) if sample else attempts)
        self._trial.undo(mark)
        if sample and len(fitting) >= sample:
            self.is_sample = True
        if not fitting:
            return False
        positions_of = self._problem.own_pods.positions_of
        num_running = sum(len(positions_of[group]) for group in scope.groups)
        most_pods = max(len(row.pods) for row in fitting) + num_running

        def score(row: _ScoredPods) -> int:
            num_pods = len(row.pods) + num_running
            return row.used_score + num_pods * MAX_SCORE // most_pods

        best = max(fitting, key=score)
        for pods in best.pods:
            self._trial.put(pods)
        return True

    def _grow(self, counts: Sequence[int], place: UnitRef, ranks: IntArray | None) -> None:
        """Add pods up to the counts: inside the domain, then around it if the walk allows that."""
        domains = [place]
        if self._walk.may_leave_domain:
            start = int(self._levels.starts[place.tier][place.unit])
            bound = self._job.required
            highest = self._problem.job_cap if bound is None else bound
            outer_tiers = range(place.tier + 1, highest + 1)
            unit_of = self._levels.unit_of_node
            domains += [UnitRef(tier, int(unit_of[tier][start])) for tier in outer_tiers]
        for group, count in enumerate(counts):
            for domain in domains:
                missing = count - self._trial.num_pods()[group]
                self._add_pods(group, missing, domain, ranks)

    def _add_pods(self, group: int, missing: int, place: UnitRef, ranks: IntArray | None) -> None:
        """Add as many pods of a group as fit a domain and satisfy its rules."""
        scope = Scope((group,), (), None, ())
        capacity = self._domains.capacity_of(scope, missing)
        max_count = int(capacity.usable_slots[place.tier][place.unit])
        mark, step = self._trial.mark, self._problem.pod_count_step(group)
        for count in range(min(missing, max_count) // step * step, 0, -step):
            self._counts[group] = count
            is_placed = self._fill_group(scope, place, ranks)
            if is_placed and satisfies_rules(self._problem, self._trial.positions()):
                return
            self._trial.undo(mark)


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
        """Return the unit to fill next: the first.

        If the walk has a best-fit order and the first holds all remaining pods, return the
        best-fitting unit that holds them all.
        """
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
            if total:
                shares.append(used * MAX_SCORE // total)
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
