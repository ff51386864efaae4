"""What would do where nothing fits: small changes of the request, each one solved to be sure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from generator.placement.answer import Alternative
from generator.placement.cluster.levels import CLUSTER
from generator.placement.explanation.reasons import exclusions, without_exclusions
from generator.placement.presets import Key
from generator.placement.problem.problem import Problem, build_problem
from generator.placement.request import PlacementRequest
from generator.placement.solve.budget import Effort, EffortSpent
from generator.placement.solve.candidate import Solution
from generator.placement.solve.pod_counts import widest
from generator.placement.solve.solver import solve

PLACED = "{placed}"
"""Stands in the text of a change for the pods that its solution places."""


def alternatives(problem: Problem, effort: Effort) -> tuple[Alternative, ...]:
    """Return the changes after which the request fits: the nearest of each kind, in fixed order.

    What the budget leaves no room to verify is left out.
    """
    found: list[Alternative] = []
    try:
        for changes in _changes(problem):
            found += islice(_fitting(changes, effort), 1)
    except EffortSpent:
        pass
    return tuple(found)


def _fitting(changes: Iterator[tuple[str, Problem]], effort: Effort) -> Iterator[Alternative]:
    """Yield the changes after which the request fits."""
    for text, problem in changes:
        solution = solve(problem, effort)
        if solution is not None:
            yield _alternative(text, problem, solution)


def _changes(problem: Problem) -> Iterator[Iterator[tuple[str, Problem]]]:
    """Yield kinds of changes, each with its steps from small to large."""
    yield _wider(problem)
    if problem.limits:
        yield iter([("without max_domains", replace(problem, limits=()))])
    if exclusions(problem):
        yield iter([("without excluded nodes", without_exclusions(problem))])
    yield _fewer(problem)


def _fewer(problem: Problem) -> Iterator[tuple[str, Problem]]:
    """Yield the problem with all minimums let go: its solution has the most pods that fit."""
    request = problem.request
    needed = max(request.least, sum(group.least for group in request.groups))
    groups = tuple(replace(group, least=0) for group in request.groups)
    changed = replace(request, groups=groups, least=1)
    yield f"min {PLACED} instead of {needed}", replace(problem, request=changed)


def _wider(problem: Problem) -> Iterator[tuple[str, Problem]]:
    """Yield the problem with one higher tier allowed after the other."""
    snapshot, at = problem.snapshot, widest(problem)
    tiers, request = snapshot.levels.tiers, _unbound(problem.request)
    for tier in tiers[at + 1 :]:
        is_across = request.across_islands or tier == CLUSTER
        allowed = replace(request, required=tier, across_islands=is_across)
        yield f"required tier {tier} instead of {tiers[at]}", build_problem(snapshot, allowed)


def _unbound(request: PlacementRequest) -> PlacementRequest:
    """Return a request without bounds on the job; an only group's required tier is one."""
    groups = request.groups
    if len(groups) == 1:
        groups = (replace(groups[0], required=None),)
    return replace(request, groups=groups, strategies=(), required=None)


def _alternative(change: str, problem: Problem, solution: Solution) -> Alternative:
    values = solution.objective.values
    change = change.replace(PLACED, str(values[Key.PLACED][0]))
    tier = values[Key.JOB_TIER][0]
    return Alternative(change, problem.snapshot.levels.tiers[tier], is_feasible=True)
