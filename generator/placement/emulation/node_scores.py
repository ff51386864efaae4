"""Scores of nodes and domains, and how kube-scheduler fills a domain by them.

In a domain the pods of a group are placed one after the other, each on the node with the largest
free share of CPU and memory; none is taken back. A domain scores up to 100 for the share of its CPU
and memory that is then in use.

Source: kubernetes v1.37.2, pkg/scheduler/schedule_one_podgroup.go and the plugins topologyaware,
noderesources (placementScorer) and podgrouppodscount.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from generator.placement.budget import Budget
from generator.placement.cluster.levels import IntArray, UnitRef
from generator.placement.problem.problem import Problem
from generator.placement.problem.trial import Trial, TrialPods

MAX_SCORE: Final = 100
_SCORED: Final = ("cpu", "memory")


class NodeScores:
    """The scores of one problem, while its pods are placed."""

    def __init__(self, problem: Problem, trial: Trial, budget: Budget) -> None:
        """Read the capacities of the nodes."""
        self._problem, self._trial, self._budget = problem, trial, budget
        totals = {name: problem.snapshot.quantities(name, counts_free=False) for name in _SCORED}
        self._total = {name: total for name, total in totals.items() if total.any()}

    def fill_group(self, group: int, place: UnitRef) -> None:
        """Place as many pods of a group as fit a unit, each on the node with most room."""
        nodes = self._nodes_of(place)
        need = self._problem.shapes[self._problem.shape_of[group]].request
        scores = self._score_nodes(need, nodes)
        for _ in range(self._problem.request.groups[group].count):
            self._budget.check()
            slots = self._trial.slots_by_tier(group)[0][nodes]
            open_scores = np.where(slots > 0, scores, -1)
            best = int(open_scores.argmax())
            if open_scores[best] < 0:
                return
            node = nodes.start + best
            self._trial.put(TrialPods(group, node, 1))
            scores[best] = self._score_nodes(need, slice(node, node + 1))[0]

    def score_use(self, place: UnitRef) -> int:
        """Return the share of a unit that is in use, 0 to 100."""
        nodes, shares = self._nodes_of(place), list[int]()
        for name, totals in self._total.items():
            total = int(totals[nodes].sum())
            used = min(total - int(self._trial.free.free_of(name)[nodes].sum()), total)
            shares += [used * MAX_SCORE // total] if total else []
        return sum(shares) // len(shares) if shares else 0

    def _nodes_of(self, place: UnitRef) -> slice:
        levels = self._problem.snapshot.levels
        start, stop = levels.starts[place.tier][place.unit], levels.stops[place.tier][place.unit]
        return slice(int(start), int(stop))

    def _score_nodes(self, need: Mapping[str, int], nodes: slice) -> IntArray:
        """Return the free share of each node with one more pod, 0 to 100."""
        scores = np.zeros(nodes.stop - nodes.start, dtype=np.int64)
        for name, total in self._total.items():
            room = np.maximum(self._trial.free.free_of(name)[nodes] - need.get(name, 0), 0)
            scores += room * MAX_SCORE // np.maximum(total[nodes], 1)
        return scores // max(len(self._total), 1)
