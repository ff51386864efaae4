"""The best placement of a problem: pods placed, then strategies, then tiers, then domains.

Outer keys are tried in order and the first that can hold wins; within one tier the candidates'
domains are compared by the preset. Homogeneous jobs are counted (`counting`), all others searched
(`search`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import gcd, lcm
from typing import Protocol

import numpy as np

from generator.placement.capacity import Ints
from generator.placement.counting import Counting, is_countable
from generator.placement.effort import Effort, EffortSpent
from generator.placement.found import Found
from generator.placement.objective import Objective, measure
from generator.placement.problem import PartType, Problem
from generator.placement.request import Group
from generator.placement.rough import Rough
from generator.placement.search import Search

CHOICE_STEPS = 100
"""What setting up one choice of pods per group, or one more strategy of it, costs."""
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
    for at, counts in enumerate(_choices(problem, effort)):
        if best is not None and sum(counts) < total:
            return
        if at:
            effort.spend(CHOICE_STEPS + problem.snapshot.num_nodes // NODES_PER_STEP)
        found = _solve_counts(problem, counts, make=make, effort=effort)
        if found is not None and (best is None or _vector(problem, found) < _vector(problem, best)):
            best, total = found, sum(counts)
            yield best


def _vector(problem: Problem, solution: Solution) -> tuple[int, ...]:
    return solution.objective.vector(problem.request.preset)


def _choices(problem: Problem, effort: Effort) -> Iterator[tuple[int, ...]]:
    """Yield pods per group that minimums, room and slices allow, most pods first."""
    allowed = [
        _allowed(problem, group, min(group.count, _most(problem, shape)))
        for group, shape in zip(problem.request.groups, problem.shape_of, strict=True)
    ]
    if not all(allowed):
        return
    least = max(problem.request.least, sum(counts[0] for counts in allowed), 1)
    most = sum(counts[-1] for counts in allowed)
    for total in range(most, least - 1, -gcd(*(counts.step for counts in allowed))):
        yield from _shared_out(total, allowed, effort)


def _allowed(problem: Problem, group: Group, most: int) -> range:
    """Return how many pods a group may have: whole slices, unless it only grows."""
    sizes = [layer.size for layer in group.slices if not layer.has_short]
    step = 1 if problem.is_growth else lcm(*sizes)
    return range(-(-group.least // step) * step, most + 1, step)


def _shared_out(total: int, allowed: Sequence[range], effort: Effort) -> Iterator[tuple[int, ...]]:
    """Yield all ways to share a total among groups, the first ones getting most first.

    Cost: a step for each group at which a total that whole slices cannot make up ends.
    """
    first, *others = allowed
    if not others:
        if total in first:
            yield (total,)
        else:
            effort.spend(1)
        return
    highest = min(first[-1], total - sum(counts[0] for counts in others))
    lowest = max(first[0], total - sum(counts[-1] for counts in others))
    for count in range(highest - (highest - first[0]) % first.step, lowest - 1, -first.step):
        for rest in _shared_out(total - count, others, effort):
            yield (count, *rest)


def _most(problem: Problem, shape: int) -> int:
    """Return the most pods of a shape that one domain of the widest tier holds."""
    slots = problem.shapes[shape].slots
    return int(np.add.reduceat(slots, problem.snapshot.levels.starts[widest(problem)]).max())


def widest(problem: Problem) -> int:
    """Return the highest tier at which the job may lie."""
    return min(problem.job_cap, max(job for job, _ in problem.strategies))


def _solve_counts(
    problem: Problem, counts: tuple[int, ...], *, make: MakeFinder, effort: Effort
) -> Solution | None:
    for strategy, (job_cap, part_cap) in enumerate(problem.strategies):
        if strategy:
            effort.spend(CHOICE_STEPS)
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
