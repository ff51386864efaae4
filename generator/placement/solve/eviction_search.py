"""Find the best placement if running pods may be evicted: branch on what happens to each gang.

The search counts victims as a bound. If the best placement evicts more than its bound, decisions
about one of its victims split the problem, and the part with the best bound is solved first.
"""

from __future__ import annotations

import heapq
from dataclasses import replace
from itertools import count

from generator.placement.budget import Budget, BudgetExhausted
from generator.placement.presets import ObjectiveKey
from generator.placement.problem.evictable_pods import EvictablePods
from generator.placement.problem.objective import PlacementCandidate, measure, resources_used
from generator.placement.problem.preemption import eviction_branches
from generator.placement.problem.problem import Problem
from generator.placement.solve.solver import solve


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
            (strategy,) = relaxed.objective.values[ObjectiveKey.STRATEGY]
            outcome = replace(relaxed, objective=measure(problem, relaxed.positions, strategy))
            if best is None or outcome.objective.vector(order) < best.objective.vector(order):
                best = outcome
            if bound < best.objective.vector(order):
                needs = resources_used(problem, relaxed.positions)
                for part in eviction_branches(problem.snapshot, evictable, needs):
                    heapq.heappush(waiting, (bound, next(numbers), part))
    except BudgetExhausted:
        if best is None:
            raise
        is_proved = False
    return None if best is None else replace(best, is_proved=is_proved)
