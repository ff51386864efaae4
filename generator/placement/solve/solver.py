"""Find the best placement of a problem: most pods, then best strategy, tier and domain.

Outer keys are tried in order, and the first feasible choice wins. Within one tier, the preset
compares the candidate domains. Homogeneous jobs are counted (`homogeneous`); all others are
searched (`tree_search`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Protocol

import numpy as np

from generator.placement.cluster.levels import IntArray
from generator.placement.problem.objective import measure
from generator.placement.problem.problem import Problem
from generator.placement.problem.request_parts import RequestPart, assign_parts
from generator.placement.solve.budget import Budget, BudgetExhausted
from generator.placement.solve.candidate import PlacementCandidate
from generator.placement.solve.greedy import GreedyFinder
from generator.placement.solve.homogeneous import HomogeneousFinder, is_homogeneous
from generator.placement.solve.part_placement import PartPlacement
from generator.placement.solve.pod_counts import pod_count_choices
from generator.placement.solve.tree_search import TreeSearch

CHOICE_STEPS = 500
"""Cost of preparing one choice of pods per group, or one more strategy for it."""
NO_UNITS: IntArray = np.empty(0, dtype=np.int64)
NODES_PER_STEP = 100
"""Nodes over which arrays are compared in the time of one search step."""


class Finder(Protocol):
    """Finds the best of several units; work for one tier is reused at the next."""

    def find_best(self, tier: int, units: IntArray) -> PartPlacement | None:
        """Return the best placement whose domain is one of these units of a tier."""


MakeFinder = Callable[[Problem, list[RequestPart]], Finder]


def solve(problem: Problem, budget: Budget) -> PlacementCandidate | None:
    """Return the best placement; None if there is none.

    Raises:
        BudgetExhausted: the budget ended first.
    """
    best = None
    for candidate in _improvements(problem, partial(_make_finder, budget=budget), budget):
        best = candidate
    return best


def solve_greedily(problem: Problem, budget: Budget) -> PlacementCandidate | None:
    """Return a placement that satisfies all rules, or None if none is found; never proved.

    One choice of pods per group is tried even if the budget has already ended.
    """
    best = None
    with suppress(BudgetExhausted):
        for candidate in _improvements(problem, GreedyFinder, budget):
            best = candidate
    return best


def _improvements(
    problem: Problem, make_finder: MakeFinder, budget: Budget
) -> Iterator[PlacementCandidate]:
    """Yield placements, each better than the one before; the last one is the best.

    Raises:
        BudgetExhausted: the budget ended first.
    """
    best: PlacementCandidate | None = None
    total = 0
    for index, counts in enumerate(pod_count_choices(problem, budget)):
        if best is not None and sum(counts) < total:
            return
        if index:
            budget.spend(CHOICE_STEPS + problem.snapshot.num_nodes // NODES_PER_STEP)
        candidate = _solve_counts(problem, counts, make_finder=make_finder, budget=budget)
        if candidate is not None and (
            best is None or _objective_vector(problem, candidate) < _objective_vector(problem, best)
        ):
            best, total = candidate, sum(counts)
            yield best


def _objective_vector(problem: Problem, solution: PlacementCandidate) -> tuple[int, ...]:
    return solution.objective.vector(problem.objective_order)


def _solve_counts(
    problem: Problem, counts: tuple[int, ...], *, make_finder: MakeFinder, budget: Budget
) -> PlacementCandidate | None:
    """Return the best placement of these pods per group.

    Strategies and tiers are tried from the best on, and the first feasible one wins, unless the
    preset compares another key before them.
    """
    best: PlacementCandidate | None = None
    for strategy, (job_cap, part_cap) in enumerate(problem.strategies):
        if strategy:
            budget.spend(CHOICE_STEPS)
        parts = problem.parts(counts, part_cap)
        finder = make_finder(problem, parts)
        for tier in range(problem.lowest_job_tier, min(job_cap, problem.job_cap) + 1):
            units = candidate_units(problem, counts, tier)
            part_placement = finder.find_best(tier, units) if len(units) else None
            if part_placement is None:
                continue
            pods = assign_parts(len(counts), parts, part_placement.parts)
            candidate = PlacementCandidate(
                pods, measure(problem, pods, strategy), part_placement.is_proved
            )
            if problem.compares_tiers_first:
                return candidate
            if best is None or _objective_vector(problem, candidate) < _objective_vector(
                problem, best
            ):
                best = candidate
    return best


def candidate_units(problem: Problem, counts: tuple[int, ...], tier: int) -> IntArray:
    """Return the units of a tier that hold the pods of every shape and all running pods."""
    needs = [0] * len(problem.shapes)
    for count, shape_index in zip(counts, problem.shape_of, strict=True):
        needs[shape_index] += count
    shape_needs = list(zip(problem.shapes, needs, strict=True))
    if any(shape.max_slots[tier] < need for shape, need in shape_needs):
        return NO_UNITS
    is_sufficient = shape_needs[0][0].slots_by_tier[tier] >= needs[0]
    for shape, need in shape_needs[1:]:
        is_sufficient &= shape.slots_by_tier[tier] >= need
    for node in (
        {problem.running_positions[0], problem.running_positions[-1]}
        if problem.running_positions
        else ()
    ):
        is_sufficient &= (
            np.arange(len(is_sufficient)) == problem.snapshot.levels.unit_of_node[tier][node]
        )
    return np.flatnonzero(is_sufficient)


def _make_finder(problem: Problem, parts: list[RequestPart], *, budget: Budget) -> Finder:
    part_counts = Counter(part.part_type for part in parts)
    if is_homogeneous(problem, part_counts):
        ((part_type, num_parts),) = part_counts.items()
        return HomogeneousFinder(problem, part_type, num_parts, budget)
    return TreeSearch(problem, parts, budget)
