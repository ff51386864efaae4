"""Find the best placement of a problem: most pods, then best strategy, tier and domain.

Outer keys are tried in order, and the first feasible choice wins. Within one tier, the preset
compares the candidate domains. Homogeneous jobs are counted (`homogeneous`); all others are
searched (`tree_search`).

If running pods may be evicted, the search counts victims as a bound. If the best placement evicts
more than its bound, decisions about one of its victims split the problem, and the part with the
best bound is solved first.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count, islice
from typing import Protocol

from generator.placement.budget import NODES_PER_STEP, Budget, BudgetExhausted
from generator.placement.cluster.levels import IntArray
from generator.placement.presets import ObjectiveKey
from generator.placement.problem.constraints import has_allowed_counts
from generator.placement.problem.objective import Objective, PlacementCandidate
from generator.placement.problem.pod_counts import GangMember
from generator.placement.problem.preemption import EvictablePods, eviction_branches
from generator.placement.problem.problem import Problem
from generator.placement.problem.request_parts import (
    PartPlacement,
    RequestPart,
    assign_parts,
    build_parts,
)
from generator.placement.solve.greedy import GreedyFinder
from generator.placement.solve.homogeneous import HomogeneousFinder, is_solved_by_counting
from generator.placement.solve.tree_search import TreeSearch

CHOICE_STEPS = 500
"""Cost of preparing one choice of pods per group, or one more strategy for it."""
MAX_GREEDY_CHOICES = 8
"""Choices of pods per group that are tried greedily before the fewest pods are grown."""


class Finder(Protocol):
    """Finds the best of several units; work for one tier is reused at the next."""

    @property
    def parts(self) -> Sequence[RequestPart]:
        """All parts of the job; inner parts are inside their set."""

    def find_best(self, tier: int, units: IntArray) -> PartPlacement | None:
        """Return the best placement whose domain is one of these units of a tier."""


MakeFinder = Callable[[Problem, tuple[int, ...], int, Budget], Finder]
"""Makes the finder for these pods per group, whose parts lie at most at a tier."""


def solve(problem: Problem, budget: Budget) -> PlacementCandidate | None:
    """Return the best placement, or the best that was found before the budget ended, not proved.

    Returns:
        None if there is no placement.

    Raises:
        BudgetExhausted: the budget ended before any placement was found.
    """
    best = None
    try:
        for candidate in _improvements(problem, _exact_finder, budget):
            best = candidate
    except BudgetExhausted:
        if best is None:
            raise
        return replace(best, is_proved=False)
    return best


def solve_greedily(problem: Problem, budget: Budget) -> PlacementCandidate | None:
    """Return a placement that satisfies all rules, or None if none is found; never proved.

    The numbers with most pods are tried first. If they do not fit, the fewest pods are placed, and
    grow member by member and group by group.
    """
    best: PlacementCandidate | None = None
    with suppress(BudgetExhausted):
        choices = islice(problem.pod_counts(budget), MAX_GREEDY_CHOICES)
        for candidate in _improvements(problem, _greedy_finder, budget, choices):
            best = candidate
    if best is not None:
        return best
    growth = Growth(problem, budget)
    with suppress(BudgetExhausted):
        growth.grow()
    return growth.best


def _improvements(
    problem: Problem,
    make_finder: MakeFinder,
    budget: Budget,
    choices: Iterable[tuple[int, ...]] | None = None,
) -> Iterator[PlacementCandidate]:
    """Yield placements, each better than the one before; the last one is the best.

    Raises:
        BudgetExhausted: the budget ended first.
    """
    best: PlacementCandidate | None = None
    total, order = 0, problem.objective_order
    for index, counts in enumerate(choices or problem.pod_counts(budget)):
        if best is not None and sum(counts) < total:
            return
        if index:
            budget.spend(CHOICE_STEPS + problem.snapshot.num_nodes // NODES_PER_STEP)
        for candidate in _candidates_of(problem, counts, make_finder=make_finder, budget=budget):
            if best is None or candidate.objective.vector(order) < best.objective.vector(order):
                best, total = candidate, sum(counts)
                yield best


def _candidates_of(
    problem: Problem, counts: tuple[int, ...], *, make_finder: MakeFinder, budget: Budget
) -> Iterator[PlacementCandidate]:
    """Yield placements of these pods per group; the best possible one is among them.

    Strategies and tiers are tried from the best on, and the first feasible one wins, unless the
    preset compares another key before them.
    """
    for strategy, (job_cap, part_cap) in enumerate(problem.strategies):
        if strategy:
            budget.spend(CHOICE_STEPS)
        finder = make_finder(problem, counts, part_cap, budget)
        for tier in range(problem.lowest_job_tier, min(job_cap, problem.job_cap) + 1):
            units = problem.candidate_units(counts, tier)
            part_placement = finder.find_best(tier, units) if len(units) else None
            if part_placement is None:
                continue
            pods = assign_parts(len(counts), finder.parts, part_placement.parts)
            yield PlacementCandidate(
                pods, Objective(problem, pods, strategy), part_placement.is_proved
            )
            if problem.compares_tiers_first:
                return


def _exact_finder(
    problem: Problem, counts: tuple[int, ...], max_part_tier: int, budget: Budget
) -> Finder:
    parts = build_parts(problem, counts, max_part_tier)
    if is_solved_by_counting(problem, parts):
        return HomogeneousFinder(problem, parts, budget)
    return TreeSearch(problem, parts, budget)


def _greedy_finder(
    problem: Problem, counts: tuple[int, ...], max_part_tier: int, budget: Budget
) -> Finder:
    return GreedyFinder(problem, build_parts(problem, counts, max_part_tier), budget)


class Growth:
    """A greedy placement of the fewest pods, to which members and pods are added."""

    def __init__(self, problem: Problem, budget: Budget) -> None:
        """Store the members of the gang; nothing is placed yet."""
        self._problem, self._budget = problem, budget
        self._gang = problem.gang
        self._members = sorted(self._gang.all_members(), key=lambda member: member.fewest_pods)
        self._counts = (0,) * len(problem.request.groups)
        self.best: PlacementCandidate | None = None

    def grow(self) -> None:
        """Place the fewest pods, then add what fits.

        Raises:
            BudgetExhausted: the budget ended; `best` is what was found.
        """
        if not self._gang.totals:
            return
        fewest = [0] * len(self._counts)
        self._gang.add_fewest(fewest)
        self._counts = tuple(fewest)
        if not self._place(self._fill_up(self._problem.min_pods)):
            return
        for inner in self._optional_members():
            self._add_member(inner)
        for member in self._members:
            if member.counts and (self._counts[member.group] or not member.counts[0]):
                self._add_pods(member)

    def _optional_members(self) -> Iterator[GangMember]:
        """Yield the members of sets that need only some of them, those with fewest pods first."""
        for member in self._members:
            if member.least < len(member.members):
                yield from sorted(member.members, key=lambda inner: inner.fewest_pods)

    def _fill_up(self, num_pods: int) -> tuple[int, ...]:
        """Return the fewest pods per group, increased towards a total as far as possible.

        Groups that take part get more pods; only then members that were left out take part.
        """
        counts = self._with_more_pods(self._counts, num_pods)
        for inner in self._optional_members():
            if sum(counts) >= num_pods:
                break
            counts = self._with_more_pods(self._with_member(inner, counts), num_pods)
        return counts

    def _with_more_pods(self, counts: tuple[int, ...], num_pods: int) -> tuple[int, ...]:
        """Return more pods for the groups that take part, up to a total."""
        filled = list(counts)
        for member in self._members:
            missing = num_pods - sum(filled)
            is_in = bool(member.counts) and (filled[member.group] or not member.counts[0])
            if missing > 0 and is_in:
                step = member.counts.step
                most = filled[member.group] + -(-missing // step) * step
                filled[member.group] = min(member.counts[-1], most)
        return tuple(filled)

    def _with_member(self, member: GangMember, counts: tuple[int, ...]) -> tuple[int, ...]:
        """Add the fewest pods of a member that was left out; else return the same pods."""
        added = [0] * len(counts)
        if member.totals:
            member.add_fewest(added)
        if any(new and old for new, old in zip(added, counts, strict=True)):
            return counts
        return tuple(map(sum, zip(counts, added, strict=True)))

    def _add_member(self, member: GangMember) -> None:
        """Place a member that was left out, with its fewest pods, if it fits."""
        counts = self._with_member(member, self._counts)
        if counts != self._counts:
            self._place(counts)

    def _add_pods(self, member: GangMember) -> None:
        """Give a group as many pods as are found to fit, in O(log pods) tries."""
        before = self._counts
        low, high = member.counts.index(before[member.group]), len(member.counts) - 1
        while low < high:
            middle = (low + high + 1) // 2
            counts = list(before)
            counts[member.group] = member.counts[middle]
            if self._place(tuple(counts)):
                low = middle
            else:
                high = middle - 1

    def _place(self, counts: tuple[int, ...]) -> bool:
        """Place these pods per group, and keep the placement; return whether that is possible."""
        if not has_allowed_counts(self._problem, counts):
            return False
        self._budget.spend(CHOICE_STEPS + self._problem.snapshot.num_nodes // NODES_PER_STEP)
        found = list(
            _candidates_of(self._problem, counts, make_finder=_greedy_finder, budget=self._budget)
        )
        if not found:
            return False
        order = self._problem.objective_order
        best = min(found, key=lambda candidate: candidate.objective.vector(order))
        self._counts, self.best = counts, best
        return True


def solve_with_eviction(problem: Problem, budget: Budget) -> PlacementCandidate | None:
    """Return the best placement, or the best that was found before the budget ended, not proved.

    Returns:
        None if there is no placement, whatever is evicted.

    Raises:
        BudgetExhausted: the budget ended before any placement was found.
    """
    if problem.evictable is None:
        return solve(problem, budget)
    order, numbers = problem.objective_order, count()
    best: PlacementCandidate | None = None
    is_proved = True
    root = problem.evictable.as_bound()
    waiting: list[tuple[tuple[int, ...], int, EvictablePods]] = [((), next(numbers), root)]
    try:
        while waiting:
            least, _, evictable = heapq.heappop(waiting)
            if best is not None and least >= best.objective.vector(order):
                break
            relaxed = solve(replace(problem, evictable=evictable), budget)
            if relaxed is None:
                continue
            is_proved &= relaxed.is_proved
            bound = relaxed.objective.vector(order)
            (strategy,) = relaxed.objective[ObjectiveKey.STRATEGY]
            outcome = replace(relaxed, objective=Objective(problem, relaxed.positions, strategy))
            if best is None or outcome.objective.vector(order) < best.objective.vector(order):
                best = outcome
            if bound < best.objective.vector(order):
                needs = problem.resources_used(relaxed.positions)
                for part in eviction_branches(problem.snapshot, evictable, needs):
                    heapq.heappush(waiting, (bound, next(numbers), part))
    except BudgetExhausted:
        if best is None:
            raise
        is_proved = False
    return None if best is None else replace(best, is_proved=is_proved)
