"""What would do where nothing fits: small changes of the request, each one solved to be sure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from generator.placement.answer import Alternative
from generator.placement.levels import CLUSTER
from generator.placement.presets import Key
from generator.placement.problem import Problem, build_problem
from generator.placement.reasons import exclusions, widest, without_exclusions
from generator.placement.request import PlacementRequest
from generator.placement.search import Effort, EffortSpent
from generator.placement.solve import Solution, solve


def alternatives(problem: Problem, effort: Effort) -> tuple[Alternative, ...]:
    """Return the changes after which the request fits: the nearest of each kind, in fixed order.

    What the budget leaves no room to verify is left out.
    """
    found = []
    try:
        for change, changed in _changes(problem):
            solution = solve(changed, effort)
            if solution is not None:
                found.append(_alternative(change, changed, solution))
        found += _fewer(problem, effort)
    except EffortSpent:
        pass
    return tuple(found)


def _changes(problem: Problem) -> Iterator[tuple[str, Problem]]:
    yield from _wider(problem)
    if problem.limits:
        yield "without max_domains", replace(problem, limits=())
    if exclusions(problem):
        yield "without excluded nodes", without_exclusions(problem)


def _wider(problem: Problem) -> Iterator[tuple[str, Problem]]:
    """Yield the problem with the next higher tiers allowed, the lowest that has room first."""
    snapshot, root = problem.snapshot, problem.root
    tiers, at = snapshot.levels.tiers, widest(problem)
    del root
    if at + 1 >= len(tiers):
        return
    request = _unbound(problem.request)
    for tier in range(at + 1, len(tiers)):
        allowed = replace(
            request,
            required=tiers[tier],
            across_islands=request.across_islands or tiers[tier] == CLUSTER,
        )
        yield (
            f"required tier {tiers[tier]} instead of {tiers[at]}",
            build_problem(snapshot, allowed),
        )


def _unbound(request: PlacementRequest) -> PlacementRequest:
    """Return a request without bounds on the job; an only group's required tier is one."""
    groups = request.groups
    if len(groups) == 1:
        groups = (replace(groups[0], required=None),)
    return replace(request, groups=groups, strategies=(), required=None)


def _fewer(problem: Problem, effort: Effort) -> list[Alternative]:
    """Return the largest part of the gang that fits, found by letting minimums go."""
    request = problem.request
    groups = tuple(replace(group, least=0) for group in request.groups)
    needed = max(request.least, sum(group.least for group in request.groups))
    fewer = replace(problem, request=replace(request, groups=groups, least=1))
    solution = solve(fewer, effort)
    if solution is None:
        return []
    placed = solution.objective.values[Key.PLACED][0]
    return [_alternative(f"min {placed} instead of {needed}", fewer, solution)]


def _alternative(change: str, problem: Problem, solution: Solution) -> Alternative:
    tier = solution.objective.values[Key.JOB_TIER][0]
    return Alternative(change, problem.snapshot.levels.tiers[tier], is_feasible=True)
