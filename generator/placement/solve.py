"""The best placement of a problem: pods placed, then strategies, then tiers, then domains.

Outer keys are tried in order and the first that can hold wins; within one tier the candidates'
domains are compared by the preset. Homogeneous jobs are counted (`counting`), all others searched
(`search`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from generator.placement.capacity import Ints
from generator.placement.counting import Counting, is_countable
from generator.placement.effort import Effort, EffortSpent
from generator.placement.found import Found
from generator.placement.objective import Objective, measure
from generator.placement.problem import PartType, Problem
from generator.placement.rough import Rough
from generator.placement.search import Search

ROUGH_STEPS = 200_000
"""Budget of choices of pods per group, where each is placed without proof."""
CHOICE_STEPS = 100
"""What setting up one choice of pods per group costs."""
NODES_PER_STEP = 500
"""Nodes that arrays are compared over in the time of one step of the search."""


class Finder(Protocol):
    """Finds the best of several units; what it learns at one tier serves at the next."""

    def best(self, tier: int, units: Ints) -> Found | None:
        """Return the best placement whose domain is one of these units of a tier."""


MakeFinder = Callable[[Problem, list[PartType], list[int]], Finder]


@dataclass(frozen=True, slots=True)
class Solution:
    """A placement by position."""

    pods: tuple[tuple[int, ...], ...]
    """Per group the positions of its placed pods, in index order."""
    objective: Objective
    is_proved: bool


def solve(problem: Problem, effort: Effort) -> Solution | None:
    """Return the best placement, None where there is none.

    Raises:
        EffortSpent: the budget ended first.
    """
    return _solve(problem, partial(_finder, effort=effort), effort)


def solve_roughly(problem: Problem) -> Solution | None:
    """Return some placement that keeps all rules, None where none was found; never proved."""
    try:
        return _solve(problem, Rough, Effort(ROUGH_STEPS))
    except EffortSpent:
        return None


def _solve(problem: Problem, make: MakeFinder, effort: Effort) -> Solution | None:
    best: Solution | None = None
    total = 0
    for counts in _choices(problem):
        if best is not None and sum(counts) < total:
            break
        effort.spend(CHOICE_STEPS + problem.snapshot.num_nodes // NODES_PER_STEP)
        found = _solve_counts(problem, counts, make)
        if found is not None and (best is None or _vector(problem, found) < _vector(problem, best)):
            best, total = found, sum(counts)
    return best


def _vector(problem: Problem, solution: Solution) -> tuple[int, ...]:
    return solution.objective.vector(problem.request.preset)


def _choices(problem: Problem) -> Iterator[tuple[int, ...]]:
    """Yield pods per group that the minimums and the room allow, most pods first."""
    groups = problem.request.groups
    most = [
        min(group.count, _most(problem, shape))
        for group, shape in zip(groups, problem.shape_of, strict=True)
    ]
    least = [group.least for group in groups]
    for total in range(sum(most), max(problem.request.least, sum(least), 1) - 1, -1):
        for counts in _shared_out(total, least, most):
            if _divides(problem, counts):
                yield counts


def _shared_out(total: int, least: list[int], most: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield all ways to share a total among groups, the first ones getting most first."""
    if not least:
        if total == 0:
            yield ()
        return
    lowest = max(least[0], total - sum(most[1:]))
    for count in range(min(most[0], total - sum(least[1:])), lowest - 1, -1):
        for rest in _shared_out(total - count, least[1:], most[1:]):
            yield (count, *rest)


def _most(problem: Problem, shape: int) -> int:
    """Return the most pods of a shape that one domain of the widest tier holds."""
    slots = problem.shapes[shape].slots
    return int(np.add.reduceat(slots, problem.snapshot.levels.starts[widest(problem)]).max())


def widest(problem: Problem) -> int:
    """Return the highest tier at which the job may lie."""
    return min(problem.job_cap, max(job for job, _ in problem.strategies))


def _divides(problem: Problem, counts: tuple[int, ...]) -> bool:
    return problem.is_growth or all(
        layer.has_short or count % layer.size == 0
        for group, count in zip(problem.request.groups, counts, strict=True)
        for layer in group.slices
    )


def _solve_counts(problem: Problem, counts: tuple[int, ...], make: MakeFinder) -> Solution | None:
    for strategy, (job_cap, part_cap) in enumerate(problem.strategies):
        parts = problem.part_types(counts, part_cap)
        counted = Counter(kind for kind, _ in parts)
        types = sorted(counted, key=lambda kind: (kind.shape, kind.size, kind.cap, kind.owner))
        finder = make(problem, types, [counted[kind] for kind in types])
        for tier in range(min(job_cap, problem.job_cap) + 1):
            units = candidates(problem, counts, tier)
            if not len(units):
                continue
            found = finder.best(tier, units)
            if found is not None:
                pods = assemble(counts, parts, found.parts)
                return Solution(pods, measure(problem, pods, strategy), found.is_proved)
    return None


def candidates(problem: Problem, counts: tuple[int, ...], tier: int) -> Ints:
    """Return the units of a tier with room for the pods of every shape and all running ones."""
    levels = problem.snapshot.levels
    starts = levels.starts[tier]
    enough = np.ones(len(starts), dtype=np.bool_)
    for index, shape in enumerate(problem.shapes):
        need = sum(n for n, at in zip(counts, problem.shape_of, strict=True) if at == index)
        enough &= np.add.reduceat(shape.slots, starts) >= need
    for at in {problem.own[0], problem.own[-1]} if problem.own else ():
        enough &= np.arange(len(starts)) == levels.unit[tier][at]
    return np.flatnonzero(enough)


def _finder(
    problem: Problem, types: list[PartType], wanted: list[int], *, effort: Effort
) -> Finder:
    if is_countable(problem, types):
        return Counting(problem, types[0], wanted[0], effort)
    return Search(problem, types, wanted, effort)


def assemble(
    counts: tuple[int, ...],
    parts: list[tuple[PartType, int]],
    found: list[tuple[PartType, list[int]]],
) -> tuple[tuple[int, ...], ...]:
    """Hand the found parts to groups: in tree order, whole slices before a short one."""
    stock: dict[PartType, list[list[int]]] = {}
    for kind, nodes in sorted(found, key=lambda row: sorted(row[1]), reverse=True):
        stock.setdefault(kind, []).append(sorted(nodes))
    pods: list[list[int]] = [[] for _ in counts]
    for kind, group in parts:
        pods[group] += stock[kind].pop()
    return tuple(tuple(row) for row in pods)
