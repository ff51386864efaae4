"""The best placement of a problem: pods placed, then strategies, then tiers, then domains.

Outer keys are tried in order and the first that can hold wins; within one tier the candidates'
domains are compared by the preset. Homogeneous jobs are counted (`counting`), all others searched
(`search`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Protocol

import numpy as np

from generator.placement.cluster.levels import Ints
from generator.placement.problem.objective import measure
from generator.placement.problem.parts import Part, assemble
from generator.placement.problem.problem import Problem
from generator.placement.solve.budget import Effort, EffortSpent
from generator.placement.solve.candidate import Solution
from generator.placement.solve.greedy import Rough
from generator.placement.solve.homogeneous import Counting, is_countable
from generator.placement.solve.part_placement import Found
from generator.placement.solve.pod_counts import choices
from generator.placement.solve.tree_search import Search

CHOICE_STEPS = 500
"""What setting up one choice of pods per group, or one more strategy of it, costs."""
NOWHERE: Ints = np.empty(0, dtype=np.int64)
NODES_PER_STEP = 100
"""Nodes that arrays are compared over in the time of one step of the search."""


class Finder(Protocol):
    """Finds the best of several units; what it learns at one tier serves at the next."""

    def best(self, tier: int, units: Ints) -> Found | None:
        """Return the best placement whose domain is one of these units of a tier."""


MakeFinder = Callable[[Problem, list[Part]], Finder]


def solve(problem: Problem, effort: Effort) -> Solution | None:
    """Return the best placement, None where there is none.

    Raises:
        EffortSpent: the budget ended first.
    """
    best = None
    for better in _improvements(problem, partial(_finder, effort=effort), effort):
        best = better
    return best


def solve_roughly(problem: Problem, effort: Effort) -> Solution | None:
    """Return some placement that keeps all rules, None where none was found; never proved.

    One choice of pods per group is tried even where the budget is spent already.
    """
    best = None
    with suppress(EffortSpent):
        for better in _improvements(problem, Rough, effort):
            best = better
    return best


def _improvements(problem: Problem, make: MakeFinder, effort: Effort) -> Iterator[Solution]:
    """Yield placements, each better than the one before, the last one being the best.

    Raises:
        EffortSpent: the budget ended first.
    """
    best: Solution | None = None
    total = 0
    for at, counts in enumerate(choices(problem, effort)):
        if best is not None and sum(counts) < total:
            return
        if at:
            effort.spend(CHOICE_STEPS + problem.snapshot.num_nodes // NODES_PER_STEP)
        found = _solve_counts(problem, counts, make=make, effort=effort)
        if found is not None and (best is None or _vector(problem, found) < _vector(problem, best)):
            best, total = found, sum(counts)
            yield best


def _vector(problem: Problem, solution: Solution) -> tuple[int, ...]:
    return solution.objective.vector(problem.order)


def _solve_counts(
    problem: Problem, counts: tuple[int, ...], *, make: MakeFinder, effort: Effort
) -> Solution | None:
    """Return the best placement of so many pods per group.

    Strategies and tiers are tried from the best on, and the first that holds wins, unless the
    preset compares something else before them.
    """
    best: Solution | None = None
    for strategy, (job_cap, part_cap) in enumerate(problem.strategies):
        if strategy:
            effort.spend(CHOICE_STEPS)
        parts = problem.parts(counts, part_cap)
        finder = make(problem, parts)
        for tier in range(problem.lowest, min(job_cap, problem.job_cap) + 1):
            units = candidates(problem, counts, tier)
            found = finder.best(tier, units) if len(units) else None
            if found is None:
                continue
            pods = assemble(len(counts), parts, found.parts)
            measured = Solution(pods, measure(problem, pods, strategy), found.is_proved)
            if problem.is_closest_first:
                return measured
            if best is None or _vector(problem, measured) < _vector(problem, best):
                best = measured
    return best


def candidates(problem: Problem, counts: tuple[int, ...], tier: int) -> Ints:
    """Return the units of a tier with room for the pods of every shape and all running ones."""
    needs = [0] * len(problem.shapes)
    for count, at in zip(counts, problem.shape_of, strict=True):
        needs[at] += count
    rows = list(zip(problem.shapes, needs, strict=True))
    if any(shape.most[tier] < need for shape, need in rows):
        return NOWHERE
    enough = rows[0][0].rooms[tier] >= needs[0]
    for shape, need in rows[1:]:
        enough &= shape.rooms[tier] >= need
    for at in {problem.own[0], problem.own[-1]} if problem.own else ():
        enough &= np.arange(len(enough)) == problem.snapshot.levels.unit[tier][at]
    return np.flatnonzero(enough)


def _finder(problem: Problem, parts: list[Part], *, effort: Effort) -> Finder:
    counted = Counter(part.kind for part in parts)
    if is_countable(problem, counted):
        ((kind, wanted),) = counted.items()
        return Counting(problem, kind, wanted, effort)
    return Search(problem, parts, effort)
