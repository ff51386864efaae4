"""Answer a placement request on a snapshot: the placement, or why there is none and what would do.

Pure: the only clock is the one that the caller passes for the request's deadline.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, NamedTuple

from generator.placement.answer import (
    NOTHING,
    Alternative,
    DomainVerdict,
    Placement,
    Reason,
    ReasonKind,
)
from generator.placement.cluster.snapshot import RunningGang, RunningPods, Snapshot, seen_by
from generator.placement.emulation.task_topology import bucketed
from generator.placement.emulation.walk import tried_in_vain, walked
from generator.placement.explanation import reasons
from generator.placement.explanation.alternatives import alternatives
from generator.placement.explanation.deferred import DeferredMapping, DeferredRows
from generator.placement.explanation.verdicts import verdicts
from generator.placement.presets import Key
from generator.placement.problem.objective import broken, measure, render_objective
from generator.placement.problem.preemption import evictable, freed
from generator.placement.problem.problem import Problem, build_problem
from generator.placement.request import PlacementRequest
from generator.placement.solve.budget import Effort, EffortSpent
from generator.placement.solve.candidate import Solution
from generator.placement.solve.pod_counts import widest
from generator.placement.solve.solver import solve, solve_roughly
from generator.placement.solve.uniform_gang import plain_pods

STEPS = 1_000_000
"""Budget of a search: about half a second."""
EXACT_LEAVES = 8
"""Up to so many domains of the lowest tier only a deadline ends a search."""
ROUGH_STEPS = 200_000
"""Budget of choices of pods per group, where each is placed without proof."""
EXACT_SHARE = 0.7
"""Part of a deadline that the exact search may use; the rest is for placing without proof."""
MOST_REMEMBERED = 64
"""Answers that a snapshot remembers; then it begins anew, which needs no lock."""
EXPLAINING_STEPS = 500_000
"""Budget of finding out why nothing fits, and what would do."""


class _Time(NamedTuple):
    """The time of one query."""

    clock: Callable[[], float] | None
    """None where there is no deadline."""
    begins_at: float = 0.0
    deadline_s: float = 0.0

    @classmethod
    def of(cls, request: PlacementRequest, clock: Callable[[], float] | None) -> _Time:
        """Start it."""
        if clock is None or request.deadline_s is None:
            return cls(None)
        return cls(clock, clock(), request.deadline_s)

    def effort(self, steps: int, *, share: float = 1.0) -> Effort:
        """Return a budget of so many steps that ends with this share of the time."""
        return Effort(steps, self.clock, self.begins_at + share * self.deadline_s)


def place(
    snapshot: Snapshot,
    request: PlacementRequest,
    *,
    clock: Callable[[], float] | None = None,
) -> Placement:
    """Return the best placement, or the reason why there is none.

    What is proved is remembered with the snapshot, so that a gang that waits and asks again gets
    its answer at once, and so does another that asks the same; O(request).

    Args:
        snapshot: the cluster.
        request: what is asked for.
        clock: seconds of a monotonic clock, to keep `deadline_s`; without it only the number of
            steps is bounded.
    """
    asked = _question(snapshot, request)
    known = snapshot.answers.get(asked)
    if isinstance(known, Placement):
        return known
    found = _answered(snapshot, request, clock)
    if found.is_proved:
        if len(snapshot.answers) >= MOST_REMEMBERED:
            snapshot.answers.clear()
        snapshot.answers[asked] = found
    return found


def _question(snapshot: Snapshot, request: PlacementRequest) -> tuple[object, ...]:
    """Return all of a request that its answer depends on: a gang's name only where it is known."""
    is_known = request.gang in snapshot.running or any(
        row.gang == request.gang for row in snapshot.nominated.values()
    )
    return (request.gang if is_known else None, *request.question)


def _answered(
    snapshot: Snapshot, request: PlacementRequest, clock: Callable[[], float] | None
) -> Placement:
    refusal = reasons.refusal(snapshot, request)
    if refusal is not None:
        return _infeasible(refusal)
    time = _Time.of(request, clock)
    snapshot = seen_by(snapshot, request.gang, request.priority)
    pods = plain_pods(snapshot, request)
    if pods is not None:
        return plain_answer(snapshot, request, pods, lambda: snapshot)
    problem = build_problem(snapshot, request)
    if snapshot.num_nodes == 0:
        return _infeasible(reasons.no_domain(problem) or Reason(ReasonKind.NO_FIT))
    found, is_proved = _solved(problem, time)
    victims = evictable(snapshot, request) if found is None else None
    if victims is not None:
        problem = build_problem(freed(snapshot, victims), request, victims)
        found, is_proved = _solved(problem, time)
    if found is not None:
        return answer_of(problem, found)
    if not is_proved:
        return _infeasible(Reason(ReasonKind.NO_FIT), is_proved=False)
    return _explained(problem, time.effort(EXPLAINING_STEPS))


def plain_answer(
    snapshot: Snapshot,
    request: PlacementRequest,
    pods: tuple[int, ...],
    view: Callable[[], Snapshot],
) -> Placement:
    """Return the answer of a plain gang; the problem is stated when somebody asks why.

    Args:
        snapshot: of the cluster at any time.
        request: of a plain gang.
        pods: positions of its nodes, in index order.
        view: returns the snapshot that explains the answer.
    """
    specs, tier = snapshot.specs, snapshot.levels.common(pods[0], pods[-1])
    why = _Why(view, request, pods)
    names = tuple([specs[at].name for at in pods])
    return Placement(
        is_feasible=True,
        assignment=MappingProxyType({request.groups[0].name: names}),
        tier=snapshot.levels.tiers[tier],
        objective=DeferredMapping(why.objective),
        is_proved=True,
        domains=DeferredRows(why.domains),
    )


class _Why:
    """What explains the answer of a plain gang."""

    def __init__(
        self, view: Callable[[], Snapshot], request: PlacementRequest, pods: tuple[int, ...]
    ) -> None:
        self._view, self._request, self._pods = view, request, pods

    @cached_property
    def _solved(self) -> tuple[Problem, Solution]:
        problem, pods = build_problem(self._view(), self._request), (self._pods,)
        return problem, Solution(pods, measure(problem, pods, 0), is_proved=True)

    def objective(self) -> Mapping[str, object]:
        problem, found = self._solved
        return render_objective(problem, found.objective)

    def domains(self) -> Sequence[DomainVerdict]:
        problem, found = self._solved
        return verdicts(problem, found.objective.values[Key.JOB_TIER][0], found)


def _solved(problem: Problem, time: _Time) -> tuple[Solution | None, bool]:
    """Return the best placement, or some one where the budget ends; and whether that is proved."""
    try:
        follow = bucketed if problem.uses_buckets else walked
        found = follow(problem, time.effort(ROUGH_STEPS))
        if found is not None:
            return found, found.is_proved
    except EffortSpent:
        pass
    try:
        found = solve(problem, time.effort(_steps(problem.snapshot), share=EXACT_SHARE))
    except EffortSpent:
        return solve_roughly(problem, time.effort(ROUGH_STEPS)), False
    if found is None or found.is_proved or len(problem.shapes) == 1:
        return found, found is None or found.is_proved
    rough = solve_roughly(problem, time.effort(ROUGH_STEPS))
    rivals = [found] if rough is None else [found, rough]
    return min(rivals, key=lambda row: row.objective.vector(problem.order)), False


def running_gang(request: PlacementRequest, placement: Placement) -> RunningGang:
    """Return a placement as the gang that runs once its pods are bound."""
    per_pod = {group.name: dict(group.request) for group in request.groups}
    pods = [
        RunningPods(node, per_pod[name], num, name)
        for name, nodes in placement.assignment.items()
        for node, num in Counter(nodes).items()
        if node is not None
    ]
    return RunningGang(request.gang, tuple(pods), request.priority)


def _steps(snapshot: Snapshot) -> int:
    """Return the budget of the exact search: none where the cluster is small."""
    lowest = snapshot.levels.starts[min(1, snapshot.levels.root)]
    return sys.maxsize if len(lowest) <= EXACT_LEAVES else STEPS


def _infeasible(
    reason: Reason,
    *,
    is_proved: bool = True,
    others: tuple[Alternative, ...] = (),
    domains: Sequence[DomainVerdict] = (),
    working: Mapping[str, Any] = NOTHING,
) -> Placement:
    return Placement(
        is_feasible=False,
        assignment=MappingProxyType({}),
        tier=None,
        objective=MappingProxyType({}),
        is_proved=is_proved,
        reason=reason,
        alternatives=others,
        domains=domains,
        working=working,
    )


def _explained(problem: Problem, effort: Effort) -> Placement:
    is_proved = True
    try:
        reason = reasons.why_not(problem, effort)
    except EffortSpent:
        reason, is_proved = Reason(ReasonKind.NO_FIT), False
    return _infeasible(
        reason,
        is_proved=is_proved,
        others=alternatives(problem, effort),
        domains=DeferredRows(partial(verdicts, problem, widest(problem), None)),
        working=tried_in_vain(problem),
    )


def answer_of(problem: Problem, found: Solution) -> Placement:
    """Return a placement of a problem as the answer to its request."""
    specs = problem.snapshot.specs
    assignment: dict[str, tuple[str | None, ...]] = {}
    for group, row in zip(problem.request.groups, found.pods, strict=True):
        names = [specs[at].name for at in row]
        assignment[group.name] = (*names, *[None] * (group.count - len(names)))
    tier = found.objective.values[Key.JOB_TIER][0]
    gone = broken(problem, found.pods)
    is_summed = gone is None or gone.num_gangs == 1
    return Placement(
        is_feasible=True,
        assignment=MappingProxyType(assignment),
        tier=problem.snapshot.levels.tiers[tier],
        objective=DeferredMapping(partial(render_objective, problem, found.objective)),
        is_proved=found.is_proved and is_summed,
        victims=gone.names(problem.eviction) if gone and problem.eviction else (),
        domains=DeferredRows(partial(verdicts, problem, tier, found)),
        working=found.working,
    )
