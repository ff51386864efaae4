"""Placement by buckets, as Volcano's task-topology plugin does it: pod by pod, best node first.

A bucket holds pods whose roles attract each other. Pods join one after the other: the bucket that
attracts them most, or a new bucket if all repel them. Buckets are then ordered by their final size;
pods that are placed later do not change the order.

A score is a preference and never excludes a node, so that nothing has to be taken back.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from generator.placement.budget import Budget
from generator.placement.problem.constraints import satisfies_rules
from generator.placement.problem.objective import Objective, PlacementCandidate
from generator.placement.problem.problem import Problem
from generator.placement.problem.trial import Trial, TrialPods
from generator.placement.request import RoleAffinity

MAX_SHOWN_PODS = 100
"""Pods up to which the scores of all nodes are part of the answer."""


class AffinityKind(IntEnum):
    """How a role relates to other roles, by the strongest set that names it."""

    NONE = 0
    REPELS_OTHERS = 1
    ATTRACTS_ITSELF = 2
    ATTRACTED = 3
    REPELS_ITSELF = 4


class TaskPod(NamedTuple):
    """One pod that is to be placed."""

    group: int
    number: int
    """The index of the pod in the group."""


@dataclass(eq=False)
class Bucket:
    """Pods that attract each other to one node."""

    pods_per_group: Counter[int] = field(default_factory=Counter)
    """Running pods included."""
    pods_per_node: Counter[int] = field(default_factory=Counter)
    """Running and placed pods."""
    pods: list[TaskPod] = field(default_factory=list)
    """New pods, in the order in which they joined."""
    load: int = 0
    """Requested quantities of the new pods, summed over all resources."""


class Roles:
    """How groups attract and repel each other, by group index."""

    def __init__(self, problem: Problem) -> None:
        """Read the roles of a request."""
        roles, names = problem.request.roles, [group.name for group in problem.request.groups]
        self._attracts = _group_pairs(roles.attract, names)
        self._repels = _group_pairs(roles.repel, names)
        self.kinds = [_affinity_kind(roles, name) for name in names]
        rank = {name: position for position, name in enumerate(roles.order)}
        self._keys = [
            (rank.get(name, len(rank)), -kind, name)
            for name, kind in zip(names, self.kinds, strict=True)
        ]

    def net_attraction(self, group: int, pods: Counter[int]) -> int:
        """Return how many of these pods attract a pod of a group, minus those that repel it."""
        attracting = sum(num for other, num in pods.items() if (group, other) in self._attracts)
        return attracting - self.num_repelling(group, pods)

    def num_repelling(self, group: int, pods: Counter[int]) -> int:
        """Return how many of these pods repel a pod of a group."""
        return sum(num for other, num in pods.items() if (group, other) in self._repels)

    def in_order(self, pods: Sequence[TaskPod]) -> list[TaskPod]:
        """Return pods in the order in which they join, and are placed within a bucket."""
        return sorted(pods, key=lambda pod: (*self._keys[pod.group], pod.number))


def _group_pairs(sets: Sequence[Sequence[str]], names: Sequence[str]) -> set[tuple[int, int]]:
    """Return all ordered pairs of each set; a set of one role pairs it with itself."""
    return {
        (names.index(first), names.index(second))
        for roles in sets
        for first in roles
        for second in roles
        if first != second or len(roles) == 1
    }


def _affinity_kind(roles: RoleAffinity, name: str) -> AffinityKind:
    kinds = [AffinityKind.NONE]
    for roles_of_set in roles.attract:
        if name in roles_of_set:
            is_single = len(roles_of_set) == 1
            kinds.append(AffinityKind.ATTRACTS_ITSELF if is_single else AffinityKind.ATTRACTED)
    for roles_of_set in roles.repel:
        if name in roles_of_set:
            is_single = len(roles_of_set) == 1
            kinds.append(AffinityKind.REPELS_ITSELF if is_single else AffinityKind.REPELS_OTHERS)
    return max(kinds)


def place_by_buckets(problem: Problem, budget: Budget) -> PlacementCandidate | None:
    """Return the placement by buckets; None if none is found that satisfies all rules.

    Raises:
        BudgetExhausted: there are too many choices of pods per group.
    """
    for counts in problem.pod_counts(budget):
        attempt = _BucketAttempt(problem, counts)
        pods = attempt.place()
        if pods is not None and satisfies_rules(problem, pods):
            rows = tuple(tuple(positions) for positions in pods)
            objective = Objective(problem, rows, 0)
            return PlacementCandidate(rows, objective, is_proved=True, make_details=attempt.details)
    return None


class _BucketAttempt:
    """One attempt with these pods per group."""

    def __init__(self, problem: Problem, counts: Sequence[int]) -> None:
        self._problem, self._counts = problem, counts
        self._roles, self._trial = Roles(problem), Trial(problem)
        self._pods_on_node: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for group, positions in enumerate(problem.own_pods.positions_of):
            for node in positions:
                self._pods_on_node[node][group] += 1
        self._buckets = self._build_buckets()
        self._sequence = self._order_pods()
        self._scores: dict[str, dict[str, float]] = {}

    def _build_buckets(self) -> list[Bucket]:
        """Return the buckets, oldest first; the pods of the gang that run open one per node."""
        specs = self._problem.snapshot.specs
        buckets = [
            Bucket(pods.copy(), Counter({node: pods.total()}))
            for node, pods in sorted(
                self._pods_on_node.items(), key=lambda entry: specs[entry[0]].name
            )
        ]
        joining = [
            TaskPod(group, number)
            for group, count in enumerate(self._counts)
            if self._roles.kinds[group]
            for number in range(count)
        ]
        for pod in self._roles.in_order(joining):
            attraction = [
                self._roles.net_attraction(pod.group, bucket.pods_per_group) for bucket in buckets
            ]
            if max(attraction, default=-1) < 0:
                bucket = Bucket()
                buckets.append(bucket)
            else:
                strongest = max(attraction)
                attracting = [
                    bucket
                    for bucket, pull in zip(buckets, attraction, strict=True)
                    if pull == strongest
                ]
                bucket = min(attracting, key=lambda bucket: bucket.load)
            bucket.pods_per_group[pod.group] += 1
            bucket.pods.append(pod)
            request = self._problem.request.groups[pod.group].request
            bucket.load += sum(quantity for _, quantity in request)
        return buckets

    def _order_pods(self) -> list[tuple[TaskPod, Bucket | None]]:
        """Return all pods in the order in which they are placed: the largest bucket first."""
        by_size = sorted(self._buckets, key=lambda bucket: -bucket.pods_per_group.total())
        in_buckets = {
            pod: bucket for bucket in by_size for pod in self._roles.in_order(bucket.pods)
        }
        in_order: list[tuple[TaskPod, Bucket | None]] = [*in_buckets.items()]
        for group, count in enumerate(self._counts):
            pods = (TaskPod(group, number) for number in range(count))
            in_order += [(pod, None) for pod in pods if pod not in in_buckets]
        return in_order

    def place(self) -> list[list[int]] | None:
        """Return the positions per group in index order; None if a pod does not fit."""
        pods: list[list[int]] = [[-1] * count for count in self._counts]
        waiting = {bucket: list(bucket.pods) for bucket in self._buckets}
        for pod, bucket in self._sequence:
            open_nodes = np.flatnonzero(self._trial.slots_by_tier(pod.group)[0]).tolist()
            if not open_nodes:
                return None
            left = waiting[bucket] if bucket is not None else []
            scores = {node: self._score(pod, bucket, left, node) for node in open_nodes}
            self._record_scores(pod, scores)
            node = max(scores, key=lambda option: (scores[option], -option))
            pods[pod.group][pod.number] = node
            self._trial.put(TrialPods(pod.group, node, 1))
            self._pods_on_node[node][pod.group] += 1
            if bucket is not None:
                left.remove(pod)
                bucket.pods_per_node[node] += 1
        return pods

    def _score(
        self, pod: TaskPod, bucket: Bucket | None, waiting: Sequence[TaskPod], node: int
    ) -> int:
        """Return the score of a node that has a free slot for the pod."""
        self._problem.budget.check()
        if bucket is None:
            return 0
        num_repelling = self._roles.num_repelling(pod.group, self._pods_on_node[node])
        return bucket.pods_per_node[node] - num_repelling + self._num_fitting(waiting, node)

    def _num_fitting(self, pods: Sequence[TaskPod], node: int) -> int:
        """Return how many of these pods fit a node together if the largest are left out first."""
        free = self._trial.free.free_quantities(node)
        groups, snapshot = self._problem.request.groups, self._problem.snapshot
        requests = [dict(groups[pod.group].request) for pod in pods]
        requests.sort(key=lambda request: sum(snapshot.pod_needs(request).values()))
        for num_fitting, request in enumerate(requests):
            for row, quantity in self._trial.free.pod_need(request):
                free[row] -= quantity
                if free[row] < 0:
                    return num_fitting
        return len(requests)

    def _record_scores(self, pod: TaskPod, scores: Mapping[int, int]) -> None:
        """Store the scores of all nodes; nodes without a free slot have 0."""
        if sum(self._counts) > MAX_SHOWN_PODS:
            return
        specs = self._problem.snapshot.specs
        by_name: dict[str, float] = {
            spec.name: scores.get(node, 0) for node, spec in enumerate(specs)
        }
        weight = self._problem.request.options.score_weight
        if weight is not None:
            sizes = (bucket.pods_per_group.total() for bucket in self._buckets)
            scale = weight * 100 / max(sizes, default=1)
            by_name = {name: round(score * scale, 6) for name, score in by_name.items()}
        self._scores[self._pod_name(pod)] = by_name

    def _pod_name(self, pod: TaskPod) -> str:
        return f"{self._problem.request.groups[pod.group].name}-{pod.number}"

    def details(self) -> Mapping[str, Any]:
        """Return buckets, the order of pods, and the score of every node for every pod."""
        buckets = [[self._pod_name(pod) for pod in bucket.pods] for bucket in self._buckets]
        sequence = [self._pod_name(pod) for pod, _ in self._sequence]
        return MappingProxyType({"buckets": buckets, "sequence": sequence, "scores": self._scores})
