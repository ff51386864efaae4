"""Placement by buckets, as Volcano's task-topology plugin does it: pod by pod, best node first.

A score wishes and never forbids. What it depends on, the pods on every node, is counted from what
is placed, so nothing has to be undone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from generator.placement.emulation.task_buckets import (
    Affinity,
    Bucket,
    Pod,
    build_buckets,
    sequence,
)
from generator.placement.problem.constraints import keeps_rules
from generator.placement.problem.free_capacity import Leftover
from generator.placement.problem.objective import measure
from generator.placement.problem.problem import Problem
from generator.placement.solve.budget import Effort
from generator.placement.solve.candidate import Solution
from generator.placement.solve.pod_counts import choices

SHOWN_PODS = 100
"""Pods up to which the scores of all nodes are part of the answer."""


def bucketed(problem: Problem, effort: Effort) -> Solution | None:
    """Return the placement by buckets, None where it finds none that keeps all rules.

    Raises:
        EffortSpent: there are too many choices of pods per group.
    """
    for counts in choices(problem, effort):
        run = _Run(problem, counts)
        pods = run.placed()
        if pods is not None and keeps_rules(problem, pods):
            rows = tuple(tuple(row) for row in pods)
            objective = measure(problem, rows, 0)
            return Solution(rows, objective, is_proved=True, working=run.working())
    return None


class _Run:
    """One attempt with so many pods per group."""

    def __init__(self, problem: Problem, counts: tuple[int, ...]) -> None:
        self._problem, self._counts = problem, counts
        self._affinity = Affinity(problem)
        self._buckets = build_buckets(problem, counts, self._affinity)
        self._order = sequence(counts, self._buckets, self._affinity)
        self._left = Leftover(problem)
        self._on_node: dict[int, Counter[int]] = {}
        self._of_bucket: dict[tuple[int, int], int] = {}
        for bucket in self._buckets:
            if bucket.node is not None:
                running = bucket.names.total() - len(bucket.pods)
                self._of_bucket[id(bucket), bucket.node] = running
        for group, row in enumerate(problem.own_of):
            for at in row:
                self._on_node.setdefault(at, Counter())[group] += 1
        self._scores: dict[str, dict[str, float]] = {}

    def placed(self) -> list[list[int]] | None:
        """Return the positions per group in index order, None where a pod finds no room."""
        pods: list[list[int]] = [[-1] * count for count in self._counts]
        waiting = {id(bucket): list(bucket.pods) for bucket in self._buckets}
        for pod, bucket in self._order:
            shape = self._problem.shape_of[pod.group]
            open_nodes = np.flatnonzero(self._left.slots[shape])
            if not len(open_nodes):
                return None
            unbound = waiting[id(bucket)] if bucket is not None else []
            scores = {int(at): self._score(pod, bucket, unbound, int(at)) for at in open_nodes}
            self._keep_scores(pod, scores)
            at = max(scores, key=lambda node: (scores[node], -node))
            pods[pod.group][pod.number] = at
            self._left.take(shape, at, 1)
            self._on_node.setdefault(at, Counter())[pod.group] += 1
            if bucket is not None:
                unbound.remove(pod)
                key = (id(bucket), at)
                self._of_bucket[key] = self._of_bucket.get(key, 0) + 1
        return pods

    def _score(self, pod: Pod, bucket: Bucket | None, unbound: list[Pod], at: int) -> int:
        """Return the score of a node that has room for the pod."""
        if bucket is None:
            return 0
        repelled = self._affinity.repelled(pod.group, self._on_node.get(at, Counter()))
        return self._of_bucket.get((id(bucket), at), 0) - repelled + self._fitting(unbound, at)

    def _fitting(self, pods: list[Pod], at: int) -> int:
        """Return how many of these pods a node holds when the largest are left out first."""
        snapshot, groups = self._problem.snapshot, self._problem.request.groups
        free = self._left.free(at)
        requests = sorted((dict(groups[pod.group].request) for pod in pods), key=_load)
        while requests:
            need = Counter[str]()
            for request in requests:
                need.update(request)
            if all(
                need[name] <= free.get(name, 0)
                for name in need
                if need[name] and name in snapshot.resources
            ):
                return len(requests)
            requests.pop()
        return 0

    def _keep_scores(self, pod: Pod, scores: Mapping[int, int]) -> None:
        """Remember the scores of all nodes in the tree; those without room have 0."""
        if sum(self._counts) > SHOWN_PODS:
            return
        specs = self._problem.snapshot.specs
        weight, largest = self._problem.request.options.score_weight, self._largest()
        self._scores[self._name(pod)] = {
            specs[at].name: scores.get(at, 0)
            if weight is None
            else round(scores.get(at, 0) * weight * 100 / largest, 6)
            for at in range(len(specs))
        }

    def _largest(self) -> int:
        return max((bucket.names.total() for bucket in self._buckets), default=1)

    def _name(self, pod: Pod) -> str:
        return f"{self._problem.request.groups[pod.group].name}-{pod.number}"

    def working(self) -> Mapping[str, Any]:
        """Return buckets, the order of pods, and the score of every node for every pod."""
        buckets = [[self._name(pod) for pod in bucket.pods] for bucket in self._buckets]
        order = [self._name(pod) for pod, _ in self._order]
        return MappingProxyType({"buckets": buckets, "sequence": order, "scores": self._scores})


def _load(request: Mapping[str, int]) -> int:
    return sum(request.values())
