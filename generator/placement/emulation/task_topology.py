"""Placement by buckets, as Volcano's task-topology plugin does it: pod by pod, best node first.

A score is a preference and never excludes a node. Scores depend on the pods per node, which are
counted as pods are placed, so that nothing has to be undone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from generator.placement.budget import Budget
from generator.placement.cluster.capacity import FreeCapacity
from generator.placement.emulation.task_buckets import (
    AffinityIndex,
    Bucket,
    TaskPod,
    build_buckets,
    order_pods,
)
from generator.placement.problem.constraints import satisfies_rules
from generator.placement.problem.objective import PlacementCandidate, measure
from generator.placement.problem.problem import Problem
from generator.placement.solve.pod_counts import pod_count_choices

MAX_SHOWN_PODS = 100
"""Pods up to which the scores of all nodes are part of the answer."""


def place_by_buckets(problem: Problem, budget: Budget) -> PlacementCandidate | None:
    """Return the placement by buckets; None if none is found that satisfies all rules.

    Raises:
        BudgetExhausted: there are too many choices of pods per group.
    """
    for counts in pod_count_choices(problem, budget):
        attempt = _BucketAttempt(problem, counts)
        pods = attempt.place()
        if pods is not None and satisfies_rules(problem, pods):
            rows = tuple(tuple(positions) for positions in pods)
            objective = measure(problem, rows, 0)
            return PlacementCandidate(
                rows, objective, is_proved=True, preset_details=attempt.details()
            )
    return None


class _BucketAttempt:
    """One attempt with these pods per group."""

    def __init__(self, problem: Problem, counts: tuple[int, ...]) -> None:
        self._problem, self._counts = problem, counts
        self._affinity = AffinityIndex(problem)
        self._buckets = build_buckets(problem, counts, self._affinity)
        self._order = order_pods(counts, self._buckets, self._affinity)
        self._free_slots = FreeCapacity(problem.snapshot, problem.shapes)
        self._pods_on_node: dict[int, Counter[int]] = {}
        self._num_bucket_pods: dict[tuple[int, int], int] = {}
        for bucket in self._buckets:
            if bucket.node is not None:
                running = bucket.pods_per_group.total() - len(bucket.pods)
                self._num_bucket_pods[id(bucket), bucket.node] = running
        for group, positions in enumerate(problem.running_positions_of):
            for node in positions:
                self._pods_on_node.setdefault(node, Counter())[group] += 1
        self._scores: dict[str, dict[str, float]] = {}

    def place(self) -> list[list[int]] | None:
        """Return the positions per group in index order; None if a pod does not fit."""
        pods: list[list[int]] = [[-1] * count for count in self._counts]
        waiting = {id(bucket): list(bucket.pods) for bucket in self._buckets}
        for pod, bucket in self._order:
            shape = self._problem.shape_of[pod.group]
            open_nodes = np.flatnonzero(self._free_slots.slots_by_tier(shape)[0])
            if not len(open_nodes):
                return None
            waiting_pods = waiting[id(bucket)] if bucket is not None else []
            scores = {
                int(node): self._score(pod, bucket, waiting_pods, int(node)) for node in open_nodes
            }
            self._record_scores(pod, scores)
            node = max(scores, key=lambda option: (scores[option], -option))
            pods[pod.group][pod.number] = node
            self._free_slots.take(shape, node, 1)
            self._pods_on_node.setdefault(node, Counter())[pod.group] += 1
            if bucket is not None:
                waiting_pods.remove(pod)
                key = (id(bucket), node)
                self._num_bucket_pods[key] = self._num_bucket_pods.get(key, 0) + 1
        return pods

    def _score(self, pod: TaskPod, bucket: Bucket | None, waiting: list[TaskPod], node: int) -> int:
        """Return the score of a node that has a free slot for the pod."""
        self._problem.budget.check()
        if bucket is None:
            return 0
        repelled = self._affinity.num_repelling(pod.group, self._pods_on_node.get(node, Counter()))
        return (
            self._num_bucket_pods.get((id(bucket), node), 0)
            - repelled
            + self._num_fitting(waiting, node)
        )

    def _num_fitting(self, pods: list[TaskPod], node: int) -> int:
        """Return how many of these pods fit a node together if the largest are left out first."""
        snapshot, groups = self._problem.snapshot, self._problem.request.groups
        free = dict(zip(snapshot.resources, self._free_slots.free_quantities(node), strict=True))
        requests = sorted((dict(groups[pod.group].request) for pod in pods), key=_total_request)
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

    def _record_scores(self, pod: TaskPod, scores: Mapping[int, int]) -> None:
        """Store the scores of all nodes; nodes without a free slot have 0."""
        if sum(self._counts) > MAX_SHOWN_PODS:
            return
        specs = self._problem.snapshot.specs
        weight, largest = self._problem.request.options.score_weight, self._largest_bucket_size()
        self._scores[self._pod_name(pod)] = {
            specs[node].name: scores.get(node, 0)
            if weight is None
            else round(scores.get(node, 0) * weight * 100 / largest, 6)
            for node in range(len(specs))
        }

    def _largest_bucket_size(self) -> int:
        return max((bucket.pods_per_group.total() for bucket in self._buckets), default=1)

    def _pod_name(self, pod: TaskPod) -> str:
        return f"{self._problem.request.groups[pod.group].name}-{pod.number}"

    def details(self) -> Mapping[str, Any]:
        """Return buckets, the order of pods, and the score of every node for every pod."""
        buckets = [[self._pod_name(pod) for pod in bucket.pods] for bucket in self._buckets]
        order = [self._pod_name(pod) for pod, _ in self._order]
        return MappingProxyType({"buckets": buckets, "sequence": order, "scores": self._scores})


def _total_request(request: Mapping[str, int]) -> int:
    return sum(request.values())
