"""Answer one placement request on a snapshot: a placement, or a reason with alternatives.

Pure: the only clock is the one that the caller passes for the request's deadline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

from generator.placement.answer import (
    NO_DETAILS,
    Placement,
    Reason,
    ReasonKind,
)
from generator.placement.budget import (
    Budget,
    BudgetExhausted,
    IsCancelled,
    never_cancelled,
)
from generator.placement.cluster.gang_view import view_for
from generator.placement.cluster.nodes import RunningGang, RunningPods
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.emulation.leaf_rows import refill_leaves
from generator.placement.emulation.task_topology import place_by_buckets
from generator.placement.emulation.walk import describe_candidates, place_by_walk
from generator.placement.explain import (
    find_alternatives,
    find_reason,
    find_refusal,
    judge_domains,
    no_domain_reason,
)
from generator.placement.presets import CLOSENESS_KEYS, PRESETS, ObjectiveKey
from generator.placement.problem.constraints import is_allowed, require_allowed
from generator.placement.problem.objective import Objective, PlacementCandidate, render_objective
from generator.placement.problem.preemption import find_evictable, without_evictable
from generator.placement.problem.problem import Problem, build_problem
from generator.placement.request import PlacementRequest
from generator.placement.solve.solver import solve_greedily, solve_with_eviction
from topology.model.tree import Unplaced

SEARCH_STEPS = 1_000_000
"""Step budget of a preset's walk, and of the exact search: about half a second."""
GREEDY_STEPS = 200_000
"""Step budget of the greedy finder."""
EXACT_TIME_SHARE = 0.7
"""Share of a deadline for the walk and the exact search; the rest is for the greedy finder."""
MAX_CACHED_ANSWERS = 64
"""Answers that a snapshot caches; the cache is then cleared, which needs no lock."""
EXPLANATION_STEPS = 500_000
"""Step budget for the reason and the alternatives of an infeasible request."""

_UNPROVED = Placement(is_feasible=False, is_proved=False, reason=Reason(ReasonKind.NO_FIT))
"""The answer if the time is over before a placement is found."""


def place(
    snapshot: Snapshot,
    request: PlacementRequest,
    *,
    clock: Callable[[], float] | None = None,
    explains: bool = True,
    is_cancelled: IsCancelled = never_cancelled,
) -> Placement:
    """Return the best placement, or the reason why there is none.

    Proved answers are cached with the snapshot: a waiting gang that asks again, or another gang
    with an equal request, is answered from the cache in O(request).

    Args:
        snapshot: the cluster.
        request: the gang's request.
        clock: seconds of a monotonic clock, for `deadline_s`; without a clock only the number of
            steps is bounded.
        explains: whether a placement is explained; a refusal always is.
        is_cancelled: asked at each step of the search.

    Raises:
        SearchCancelledError: the search was cancelled before it had an answer.
    """
    key = (explains, *_cache_key(snapshot, request))
    cached = snapshot.answers.get(key)
    if isinstance(cached, Placement):
        return cached
    budget = Budget.of_query(request.deadline_s, clock, is_cancelled)
    placement = _compute_answer(snapshot, request, budget, explains=explains)
    if placement.is_proved:
        if len(snapshot.answers) >= MAX_CACHED_ANSWERS:
            snapshot.answers.clear()
        snapshot.answers[key] = placement
    return placement


def _cache_key(snapshot: Snapshot, request: PlacementRequest) -> tuple[object, ...]:
    """Return all that the answer depends on: the gang's name only if the gang is known."""
    is_known = request.gang in snapshot.running or any(
        nomination.gang == request.gang for nomination in snapshot.nominated.values()
    )
    return (request.gang if is_known else None, *request.cache_key)


def _compute_answer(
    snapshot: Snapshot,
    request: PlacementRequest,
    budget: Budget,
    *,
    explains: bool,
) -> Placement:
    refusal = find_refusal(snapshot, request)
    if refusal is not None:
        return Placement(is_feasible=False, reason=refusal)
    budget.renew(SEARCH_STEPS, has_grace=True)
    try:
        view = view_for(snapshot, request.gang, request.priority, exclusive=request.exclusive)
        problem = build_problem(view, request, budget=budget)
        return _solve_in_time(problem, explains=explains)
    except BudgetExhausted:
        return _UNPROVED
    finally:
        budget.end()


def _solve_in_time(problem: Problem, *, explains: bool) -> Placement:
    """Return the answer.

    Raises:
        BudgetExhausted: the time was over before the eviction was prepared.
    """
    snapshot, request, budget = problem.snapshot, problem.request, problem.budget
    if snapshot.num_nodes == 0:
        reason = no_domain_reason(problem) or Reason(ReasonKind.NO_FIT)
        return Placement(is_feasible=False, reason=reason)
    candidate, is_proved = _find_best(problem)
    evictable = None
    if candidate is None:
        evictable = find_evictable(snapshot, request, budget.renew(SEARCH_STEPS))
    if evictable is not None:
        bare = without_evictable(snapshot, evictable)
        problem = build_problem(bare, request, evictable, budget=budget)
        needs_victims = is_proved
        candidate, is_proved = _find_best(problem)
        if candidate is not None and not needs_victims:
            candidate = replace(candidate, is_proved=False)
    if candidate is not None:
        budget.end()
        return build_answer(problem, candidate, explains=explains)
    if not is_proved:
        return _UNPROVED
    return _explain_infeasible(problem)


def _find_best(problem: Problem) -> tuple[PlacementCandidate | None, bool]:
    """Return the best placement found, and whether the search ended, which proves a None.

    A node without a place in the tree is a domain by itself, so it is the tightest one at all
    tiers above it. If another placement gives the gang as much, that one is returned.
    """
    best, is_proved = _find_any(problem)
    takes_last = PRESETS[problem.request.preset].takes_unplaced_last
    if best is None or not takes_last or not _list_unplaced(problem, best):
        return best, is_proved
    placed, _ = _find_any(_without_unplaced(problem))
    if placed is None or _measure_closeness(problem, placed) > _measure_closeness(problem, best):
        return best, is_proved
    objective = Objective(problem, placed.positions, placed.objective.strategy)
    return replace(placed, objective=objective), is_proved


def _list_unplaced(problem: Problem, candidate: PlacementCandidate) -> list[Unplaced]:
    """Return the nodes of a placement that have no place in the tree, with the reasons."""
    snapshot = problem.snapshot
    used = {node for row in candidate.positions for node in row if node >= snapshot.num_tree_nodes}
    reasons = {row.node: row.reason for row in snapshot.tree.unplaced} if used else {}
    names = [snapshot.specs[node].name for node in sorted(used)]
    return [Unplaced(name, reasons.get(name, "no source shows it")) for name in names]


def _without_unplaced(problem: Problem) -> Problem:
    """Return the problem with the nodes of the tree alone."""
    snapshot = problem.snapshot
    schedulable = snapshot.schedulable.copy()
    schedulable[snapshot.num_tree_nodes :] = False
    inside = replace(snapshot, schedulable=schedulable)
    return build_problem(inside, problem.request, problem.evictable, budget=problem.budget)


def _measure_closeness(problem: Problem, candidate: PlacementCandidate) -> tuple[int, ...]:
    order = [term for term in problem.objective_order if term.key in CLOSENESS_KEYS]
    return candidate.objective.vector(order)


def _find_any(problem: Problem) -> tuple[PlacementCandidate | None, bool]:
    """Return the best placement, wherever its nodes are, and whether the search ended.

    A placement is proved only if both the steps of the preset's scheduler and the search ended.
    """
    rules = PRESETS[problem.request.preset]
    emulated, is_complete = _emulate(problem) if rules.has_steps else (None, True)
    if emulated is not None and (_is_final(problem) or _places_all(problem, emulated)):
        return emulated, emulated.is_proved
    searched, is_proved = _search(problem)
    if searched is not None and rules.refills_leaves:
        searched = refill_leaves(problem, searched)
    # Pods placed come first.
    if emulated is not None and (
        searched is None or _num_placed(searched) <= _num_placed(emulated)
    ):
        best: PlacementCandidate | None = emulated
    else:
        best = searched
    if best is not None:
        best = replace(best, is_proved=best.is_proved and is_proved and is_complete)
    return best, is_proved


def _is_final(problem: Problem) -> bool:
    """Return whether the scheduler's own steps decide even if the search would place more pods.

    They decide if the scheduler chooses a domain by its score, or for the minimum of a single
    group. Other schedulers leave pods out only because they do not try another order of groups.
    """
    walk = PRESETS[problem.request.preset].walk
    if walk is None:
        return False
    takes_minimum = walk.starts_with_minimum and len(problem.request.groups) == 1
    return walk.scores_domains or takes_minimum


def _places_all(problem: Problem, candidate: PlacementCandidate) -> bool:
    """Return whether no more pods of the gang can be placed; a bound is built only if some wait."""
    num_placed = _num_placed(candidate)
    num_pods = sum(group.count for group in problem.request.groups)
    return num_placed == num_pods or num_placed == problem.totals.bit_length() - 1


def _num_placed(candidate: PlacementCandidate) -> int:
    return sum(map(len, candidate.positions))


def _emulate(problem: Problem) -> tuple[PlacementCandidate | None, bool]:
    """Return the placement by the steps of the preset's scheduler, and whether they all were taken.

    None if they give no answer.
    """
    emulate = place_by_buckets if problem.uses_buckets else place_by_walk
    try:
        candidate = emulate(problem, problem.budget.renew(SEARCH_STEPS, share=EXACT_TIME_SHARE))
    except BudgetExhausted:
        return None, False
    # A walk that breaks a rule, or places fewer pods than it must, is no answer.
    if candidate is None or not is_allowed(problem, candidate.positions):
        return None, True
    return candidate, True


def _search(problem: Problem) -> tuple[PlacementCandidate | None, bool]:
    """Return the best placement by the preset's order, and whether it is proved."""
    try:
        budget = problem.budget.renew(SEARCH_STEPS, share=EXACT_TIME_SHARE)
        candidate = solve_with_eviction(problem, budget)
    except BudgetExhausted:
        return solve_greedily(problem, problem.budget.renew(GREEDY_STEPS, has_grace=True)), False
    if candidate is None or candidate.is_proved or len(problem.shapes) == 1:
        return candidate, candidate is None or candidate.is_proved
    greedy = solve_greedily(problem, problem.budget.renew(GREEDY_STEPS, has_grace=True))
    options = [candidate] if greedy is None else [candidate, greedy]
    return min(options, key=lambda option: option.objective.vector(problem.objective_order)), False


def as_running_gang(request: PlacementRequest, placement: Placement) -> RunningGang:
    """Return a placement as the gang that runs once its pods are bound."""
    per_pod = {group.name: dict(group.request) for group in request.groups}
    pods = [
        RunningPods(node, per_pod[name], num, name)
        for name, nodes in placement.assignment.items()
        for node, num in Counter(nodes).items()
        if node is not None
    ]
    return RunningGang(request.gang, tuple(pods), request.priority, exclusive=request.exclusive)


def _explain_infeasible(problem: Problem) -> Placement:
    budget, is_proved = problem.budget.renew(EXPLANATION_STEPS), True
    try:
        reason = find_reason(problem, budget)
    except BudgetExhausted:
        reason, is_proved = Reason(ReasonKind.NO_FIT), False
    alternatives = find_alternatives(problem, budget)
    budget.end()
    return Placement(
        is_feasible=False,
        is_proved=is_proved,
        reason=reason,
        alternatives=alternatives,
        domain_verdicts=judge_domains(problem, problem.highest_job_tier, None),
        preset_details=describe_candidates(problem),
    )


def build_answer(problem: Problem, candidate: PlacementCandidate, *, explains: bool) -> Placement:
    """Return the answer for a placement of a problem, once every rule of it is checked.

    Raises:
        InvariantError: the placement breaks a rule.
    """
    require_allowed(problem, candidate.positions)
    specs = problem.snapshot.specs
    assignment: dict[str, tuple[str | None, ...]] = {}
    for group, positions in zip(problem.request.groups, candidate.positions, strict=True):
        names = [specs[node].name for node in positions]
        assignment[group.name] = (*names, *[None] * (group.count - len(names)))
    tier = candidate.objective[ObjectiveKey.JOB_TIER][0]
    eviction = candidate.objective.eviction
    return Placement(
        is_feasible=True,
        assignment=MappingProxyType(assignment),
        tier=problem.snapshot.levels.tiers[tier],
        objective=render_objective(problem, candidate.objective) if explains else NO_DETAILS,
        is_proved=candidate.is_proved and (eviction is None or eviction.is_exact),
        victims=eviction.victim_names(problem.evictable) if eviction and problem.evictable else (),
        domain_verdicts=judge_domains(problem, tier, candidate) if explains else (),
        preset_details=candidate.make_details() if explains else NO_DETAILS,
        unplaced=tuple(_list_unplaced(problem, candidate)) if explains else (),
    )
