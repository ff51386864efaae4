"""Small changes that make an infeasible request feasible, each verified by solving it.

The same changes find the reason: a request that is feasible without one of its bounds is refused
because of that bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from generator.placement.answer import Alternative
from generator.placement.budget import Budget, BudgetExhausted
from generator.placement.cluster.gang_view import reopen_view
from generator.placement.cluster.levels import CLUSTER_TIER
from generator.placement.presets import ObjectiveKey
from generator.placement.problem.objective import PlacementCandidate
from generator.placement.problem.problem import Problem, build_problem
from generator.placement.request import PlacementRequest
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
    for _, change, without_limit in without_limits(problem):
        yield iter([(change, without_limit)])
    if count_excluded_nodes(problem):
        yield iter([("without node exclusions", without_exclusions(problem))])
    yield _without_minimums(problem)


def without_limits(problem: Problem) -> Iterator[tuple[str, str, Problem]]:
    """Yield the kinds of bounds on domains: (first tier, text of the change, changed problem).

    Each problem lacks one kind of bound.
    """
    levels, request = problem.snapshot.levels, problem.request
    if problem.rules.limits:
        tier = levels.tiers[problem.rules.limits[0][0]]
        yield tier, "without max_domains", replace(problem, rules=problem.rules._replace(limits=()))
    if problem.rules.spread_rules:
        tier = levels.tiers[problem.rules.spread_rules[0].tier]
        yield (
            tier,
            "without spread",
            replace(problem, rules=problem.rules._replace(spread_rules=())),
        )
    if problem.rules.exclusive_rules or request.exclusive:
        tier = request.exclusive or levels.tiers[problem.rules.exclusive_rules[0].tier]
        yield tier, "without exclusive", _without_exclusive(problem)


def _without_exclusive(problem: Problem) -> Problem:
    """Return the problem of a gang that may share all its domains."""
    request = problem.request
    groups = tuple(replace(group, exclusive=None) for group in request.groups)
    sets = tuple(replace(group_set, exclusive=None) for group_set in request.sets)
    view = reopen_view(problem.snapshot, request.gang, request.priority)
    shared = replace(request, exclusive=None, groups=groups, sets=sets)
    return build_problem(view, shared, problem.evictable, budget=problem.budget)


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
            build_problem(snapshot, wider_request, budget=problem.budget),
        )


def _without_tier_bounds(request: PlacementRequest) -> PlacementRequest:
    """Return a request without tier bounds on the job; a single group's required tier is one."""
    groups = request.groups
    if len(groups) == 1:
        groups = (replace(groups[0], required=None),)
    return replace(request, groups=groups, strategies=(), required=None)


def _build_alternative(change: str, problem: Problem, solution: PlacementCandidate) -> Alternative:
    values = solution.objective
    change = change.replace(PLACED_MARK, str(values[ObjectiveKey.PLACED][0]))
    tier = values[ObjectiveKey.JOB_TIER][0]
    return Alternative(change, problem.snapshot.levels.tiers[tier], is_feasible=True)


def without_exclusions(problem: Problem) -> Problem:
    """Return the problem with every node of the tree open to every pod."""
    snapshot = problem.snapshot
    open_snapshot = replace(
        snapshot,
        schedulable=np.ones(snapshot.num_nodes, dtype=np.bool_),
        closed=None,
        taint_sets=(frozenset(),),
        taint_set_of=np.zeros(snapshot.num_nodes, dtype=np.int64),
        shape_cache={},
    )
    groups = tuple(replace(group, selector=(), affinity=()) for group in problem.request.groups)
    changed_request = replace(problem.request, groups=groups)
    return build_problem(open_snapshot, changed_request, budget=problem.budget)


def count_excluded_nodes(problem: Problem) -> dict[str, int]:
    """Return the number of nodes that each cause excludes for some group; zero counts are left out.

    A node is counted once, under its first cause: those of `Exclusion`, then in the order of
    `Snapshot.node_masks`.
    """
    counts = problem.snapshot.count_unschedulable()
    remaining = problem.snapshot.schedulable.copy()
    masks = [problem.snapshot.node_masks(group) for group in problem.request.groups]
    for cause, allowed in ((cause, row[cause]) for cause in masks[0] for row in masks):
        num_excluded = int((remaining & ~allowed).sum())
        if num_excluded:
            counts[cause] = counts.get(cause, 0) + num_excluded
        remaining &= allowed
    return counts
