"""The best placement of a problem: pods placed, then strategies, then tiers, then domains.

Outer keys are tried in order and the first that can hold wins; within one tier the candidates'
domains are compared by the preset. Homogeneous jobs are counted (`counting`), all others searched
(`search`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from operator import itemgetter

import numpy as np

from generator.placement.capacity import Ints
from generator.placement.objective import Objective, measure
from generator.placement.problem import PartType, Problem
from generator.placement.search import Effort, Search

Parts = list[tuple[PartType, list[int]]]


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
    best: Solution | None = None
    total = 0
    for counts in _choices(problem):
        if best is not None and sum(counts) < total:
            break
        found = _solve_counts(problem, counts, effort)
        if found is not None and (best is None or _vector(problem, found) < _vector(problem, best)):
            best, total = found, sum(counts)
    return best


def _vector(problem: Problem, solution: Solution) -> tuple[int, ...]:
    return solution.objective.vector(problem.request.preset)


def _choices(problem: Problem) -> Iterator[tuple[int, ...]]:
    """Yield pods per group that the minimums allow, most pods first."""
    groups = problem.request.groups
    ranges = [range(group.count, group.least - 1, -1) for group in groups]
    if all(len(row) == 1 for row in ranges):
        rows = [tuple(group.count for group in groups)]
    else:
        rows = sorted(product(*ranges), key=sum, reverse=True)
    for counts in rows:
        if sum(counts) >= max(problem.request.least, 1) and _divides(problem, counts):
            yield counts


def _divides(problem: Problem, counts: tuple[int, ...]) -> bool:
    return problem.is_growth or all(
        layer.has_short or count % layer.size == 0
        for group, count in zip(problem.request.groups, counts, strict=True)
        for layer in group.slices
    )


def _solve_counts(problem: Problem, counts: tuple[int, ...], effort: Effort) -> Solution | None:
    for strategy, (job_cap, part_cap) in enumerate(problem.strategies):
        parts = problem.part_types(counts, part_cap)
        finder = _Finder(problem, parts, effort)
        for tier in range(min(job_cap, problem.job_cap) + 1):
            units = candidates(problem, counts, tier)
            if not len(units):
                continue
            found = finder.best(tier, units)
            if found is not None:
                pods = assemble(counts, parts, found)
                return Solution(pods, measure(problem, pods, strategy), is_proved=True)
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


class _Finder:
    """Finds the best of several units; what it learns at one tier serves at the next."""

    def __init__(self, problem: Problem, parts: list[tuple[PartType, int]], effort: Effort) -> None:
        counted = Counter(kind for kind, _ in parts)
        self._types = sorted(
            counted, key=lambda kind: (kind.shape, kind.size, kind.cap, kind.owner)
        )
        wanted = [counted[kind] for kind in self._types]
        self._search = Search(problem, self._types, wanted, effort)

    def best(self, tier: int, units: Ints) -> Parts | None:
        rows = (self._search.best_in(tier, int(unit)) for unit in units)
        found = [row for row in rows if row is not None]
        if not found:
            return None
        best = min(found, key=itemgetter(0))
        return [(self._types[index], nodes) for index, nodes in best.parts]


def assemble(
    counts: tuple[int, ...],
    parts: list[tuple[PartType, int]],
    found: Parts,
) -> tuple[tuple[int, ...], ...]:
    """Hand the found parts to groups: in tree order, whole slices before a short one."""
    stock: dict[PartType, list[list[int]]] = {}
    for kind, nodes in sorted(found, key=lambda row: sorted(row[1]), reverse=True):
        stock.setdefault(kind, []).append(sorted(nodes))
    pods: list[list[int]] = [[] for _ in counts]
    for kind, group in parts:
        pods[group] += stock[kind].pop()
    return tuple(tuple(row) for row in pods)
