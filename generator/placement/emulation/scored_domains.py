"""Placement as kube-scheduler places a PodGroup: fill every domain of a tier, keep the best score.

In each domain the pods are placed one after the other, each on the node with the largest free share
of CPU and memory; none is taken back. A domain scores up to 100 for the share of its CPU and memory
that is then in use, and up to 100 for its pods of the gang. kube-scheduler takes a random domain of
those with the best score; here it is the first in tree order. Inner groups are placed the same way
inside the domain of the outer one.

Source: kubernetes v1.37.2, pkg/scheduler/schedule_one_podgroup.go and the plugins topologyaware,
noderesources (placementScorer) and podgrouppodscount.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from generator.placement.budget import Budget
from generator.placement.cluster.capacity import FreeCapacity
from generator.placement.cluster.levels import IntArray
from generator.placement.emulation.candidates import Scope, ScopeBuilder
from generator.placement.problem.objective import Objective, PlacementCandidate
from generator.placement.problem.problem import Problem

_SCORED: Final = ("cpu", "memory")
_MAX_SCORE: Final = 100


class _Attempt(NamedTuple):
    """The pods of a scope in one domain."""

    pods: tuple[tuple[int, int], ...]
    """(group, node) of each pod, in the order of placement."""
    used_score: int
    """The share of the domain that is in use, 0 to 100."""


def place_by_score(problem: Problem, budget: Budget) -> PlacementCandidate | None:
    """Return the placement in the domain with the best score; None if there is none.

    It is proved if no domain scores better: for one group, of which each domain gets the most pods,
    and all domains with room were compared.

    kube-scheduler has no slices, limits or strategies: a request with one is not answered.

    Raises:
        BudgetExhausted: the time is over.
    """
    request = problem.request
    has_rules = problem.has_domain_rules or any(group.slices for group in request.groups)
    if has_rules or request.strategies or problem.evictable is not None:
        return None
    domains = _ScoredDomains(problem, budget)
    found = domains.place()
    if found is None:
        return None
    rows = tuple(
        tuple(sorted(node for other, node in found if other == group))
        for group in range(len(request.groups))
    )
    is_proved = len(request.groups) == 1 and not domains.is_sample
    return PlacementCandidate(rows, Objective(problem, rows, 0), is_proved)


class _ScoredDomains:
    """The domains of one problem, and what is free while they are tried."""

    def __init__(self, problem: Problem, budget: Budget) -> None:
        """Nothing is placed yet."""
        self._problem, self._budget = problem, budget
        self._levels, snapshot = problem.snapshot.levels, problem.snapshot
        self._free = FreeCapacity(snapshot, problem.shapes)
        self._total = {
            name: total
            for name in _SCORED
            if (total := snapshot.quantities(name, counts_free=False)).any()
        }
        self._sample = problem.request.options.sample
        self.is_sample = False
        """Whether domains with room may be left that were not compared."""

    def place(self) -> Sequence[tuple[int, int]] | None:
        """Return (group, node) of each pod; None if no domain holds the gang."""
        scope = ScopeBuilder(self._problem).job_scope()
        return self._place_scope(scope, self._levels.root, 0, is_job=True)

    def _place_scope(
        self, scope: Scope, tier: int, unit: int, *, is_job: bool = False
    ) -> Sequence[tuple[int, int]] | None:
        """Place a scope in the best domain inside a unit; None if none holds it."""
        attempts = self._try_domains(scope, tier, unit, is_job=is_job)
        fitting = list(islice(attempts, self._sample) if is_job and self._sample else attempts)
        self.is_sample |= is_job and 0 < self._sample <= len(fitting)
        if not fitting:
            return None
        num_running = sum(len(self._problem.own_pods.positions_of[one]) for one in scope.groups)
        most = max(len(attempt.pods) for attempt in fitting) + num_running
        best = max(
            fitting,
            key=lambda one: one.used_score + (len(one.pods) + num_running) * _MAX_SCORE // most,
        )
        for group, node in best.pods:
            self._take(group, node)
        return best.pods

    def _try_domains(
        self, scope: Scope, tier: int, unit: int, *, is_job: bool
    ) -> Iterator[_Attempt]:
        """Yield the pods in each domain that holds the scope; all of them are taken back."""
        for at, domain in self._find_domains(scope, tier, unit):
            self._budget.check()
            mark = len(self._free.changes)
            pods = self._fill(scope, at, domain)
            is_enough = pods is not None and (bool(pods) and self._holds(pods, is_job=is_job))
            used = self._score_use(at, domain) if is_enough else 0
            self._free.undo(mark)
            if pods is not None and is_enough:
                yield _Attempt(tuple(pods), used)

    def _find_domains(self, scope: Scope, tier: int, unit: int) -> Iterator[tuple[int, int]]:
        """Yield (tier, unit) of the domains inside a unit, those of running pods alone."""
        if scope.required is None or scope.required >= tier:
            yield tier, unit
            return
        unit_of = self._levels.unit_of_node[scope.required]
        running = {
            int(unit_of[node])
            for group in scope.groups
            for node in self._problem.own_pods.positions_of[group]
        }
        first, last = self._levels.starts[tier][unit], self._levels.stops[tier][unit] - 1
        for inner in range(int(unit_of[first]), int(unit_of[last]) + 1):
            if not running or running == {inner}:
                yield scope.required, inner

    def _fill(self, scope: Scope, tier: int, unit: int) -> list[tuple[int, int]] | None:
        """Place the pods of a scope in a unit; None if an inner group finds no domain."""
        placed: list[tuple[int, int]] = []
        if not scope.members:
            for group in scope.groups:
                placed += self._fill_group(group, tier, unit)
            return placed
        for member in scope.members:
            found = self._place_scope(member, tier, unit)
            is_optional = all(not self._problem.request.groups[one].least for one in member.groups)
            if found is None and not is_optional:
                return None
            placed += found or ()
        return placed

    def _fill_group(self, group: int, tier: int, unit: int) -> list[tuple[int, int]]:
        """Place as many pods of a group as fit a unit, each on the node with most room."""
        start = int(self._levels.starts[tier][unit])
        stop = int(self._levels.stops[tier][unit])
        shape = self._problem.shape_of[group]
        slots = self._free.slots_by_tier(shape)[0]
        need = self._problem.shapes[shape].request
        scores = self._score_nodes(need, start, stop)
        placed = []
        for _ in range(self._problem.request.groups[group].count):
            self._budget.check()
            open_scores = np.where(slots[start:stop] > 0, scores, -1)
            place = int(open_scores.argmax())
            if open_scores[place] < 0:
                break
            node = start + place
            self._take(group, node)
            slots = self._free.slots_by_tier(shape)[0]
            scores[place] = self._score_nodes(need, node, node + 1)[0]
            placed.append((group, node))
        return placed

    def _score_nodes(self, need: Mapping[str, int], start: int, stop: int) -> IntArray:
        """Return the free share of each node with one more pod, 0 to 100."""
        scores = np.zeros(stop - start, dtype=np.int64)
        for name, total in self._total.items():
            room = np.maximum(self._free.free_of(name)[start:stop] - need.get(name, 0), 0)
            scores += room * _MAX_SCORE // np.maximum(total[start:stop], 1)
        return scores // max(len(self._total), 1)

    def _score_use(self, tier: int, unit: int) -> int:
        """Return the share of a unit that is in use, 0 to 100."""
        start, stop = self._levels.starts[tier][unit], self._levels.stops[tier][unit]
        shares = []
        for name, totals in self._total.items():
            total = int(totals[start:stop].sum())
            used = min(total - int(self._free.free_of(name)[start:stop].sum()), total)
            shares += [used * _MAX_SCORE // total] if total else []
        return sum(shares) // len(shares) if shares else 0

    def _holds(self, pods: Sequence[tuple[int, int]], *, is_job: bool) -> bool:
        """Return whether there are enough pods of each group, and of the whole job."""
        groups = self._problem.request.groups
        counts = [0] * len(groups)
        for group, _ in pods:
            counts[group] += 1
        if not is_job:
            return all(counts[group] >= groups[group].least for group in {one for one, _ in pods})
        return len(pods) >= self._problem.min_pods and self._problem.gang.takes_part(counts)

    def _take(self, group: int, node: int) -> None:
        self._free.take(self._problem.shape_of[group], node, 1)
