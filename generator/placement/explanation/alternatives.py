"""Find small changes that make an infeasible request feasible; each is verified by solving it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from generator.placement.answer import Alternative
from generator.placement.cluster.levels import CLUSTER_TIER
from generator.placement.explanation.reasons import count_excluded_nodes, without_exclusions
from generator.placement.presets import ObjectiveKey
from generator.placement.problem.problem import Problem, build_problem
from generator.placement.request import PlacementRequest
from generator.placement.solve.budget import Budget, BudgetExhausted
from generator.placement.solve.candidate import PlacementCandidate
from generator.placement.solve.solver import solve

PLACED_MARK = "{placed}"
"""Placeholder in the text of a change: the number of pods that its solution places."""


def find_alternatives(problem: Problem, budget: Budget) -> tuple[Alternative, ...]:
    """Return changes that make the request feasible: the smallest of each kind, in fixed order.

    Changes that the budget cannot verify are left out.
    """
    alternatives: list[Alternative] = []
    try:
        for changes in _changes(problem):
            alternatives += islice(_feasible_changes(changes, budget), 1)
    except BudgetExhausted:
        pass
    return tuple(alternatives)


def _feasible_changes(
    changes: Iterator[tuple[str, Problem]], budget: Budget
) -> Iterator[Alternative]:
    """Yield the changes that make the request feasible."""
    for text, problem in changes:
        solution = solve(problem, budget)
        if solution is not None:
            yield _build_alternative(text, problem, solution)


def _changes(problem: Problem) -> Iterator[Iterator[tuple[str, Problem]]]:
    """Yield the kinds of changes, each as its steps from small to large."""
    yield _with_wider_tiers(problem)
    if problem.domain_limits:
        yield iter([("without max_domains", replace(problem, domain_limits=()))])
    if count_excluded_nodes(problem):
        yield iter([("without node exclusions", without_exclusions(problem))])
    yield _without_minimums(problem)


def _without_minimums(problem: Problem) -> Iterator[tuple[str, Problem]]:
    """Yield the problem without any minimum: its solution places the most pods that fit."""
    request = problem.request
    needed = max(request.least, sum(group.least for group in request.groups))
    groups = tuple(replace(group, least=0) for group in request.groups)
    changed_request = replace(request, groups=groups, least=1)
    yield f"min {PLACED_MARK} instead of {needed}", replace(problem, request=changed_request)


def _with_wider_tiers(problem: Problem) -> Iterator[tuple[str, Problem]]:
    """Yield the problem once per higher tier, with that tier as the required one."""
    snapshot, job_tier = problem.snapshot, problem.highest_job_tier
    tiers, request = snapshot.levels.tiers, _without_tier_bounds(problem.request)
    for tier in tiers[job_tier + 1 :]:
        is_across = request.across_islands or tier == CLUSTER_TIER
        wider_request = replace(request, required=tier, across_islands=is_across)
        yield (
            f"required tier {tier} instead of {tiers[job_tier]}",
            build_problem(snapshot, wider_request),
        )


def _without_tier_bounds(request: PlacementRequest) -> PlacementRequest:
    """Return a request without tier bounds on the job; a single group's required tier is one."""
    groups = request.groups
    if len(groups) == 1:
        groups = (replace(groups[0], required=None),)
    return replace(request, groups=groups, strategies=(), required=None)


def _build_alternative(change: str, problem: Problem, solution: PlacementCandidate) -> Alternative:
    values = solution.objective.values
    change = change.replace(PLACED_MARK, str(values[ObjectiveKey.PLACED][0]))
    tier = values[ObjectiveKey.JOB_TIER][0]
    return Alternative(change, problem.snapshot.levels.tiers[tier], is_feasible=True)
