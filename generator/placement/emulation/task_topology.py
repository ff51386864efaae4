"""Placement by buckets, as Volcano's task-topology plugin does it: pod by pod, best node first.

A bucket holds pods whose roles attract each other. Pods join one after the other: the bucket that
attracts them most, or a new bucket if all repel them. Buckets are then ordered by their final size;
pods that are placed later do not change the order.

A score is a preference and never excludes a node. Scores depend on the pods per node, which are
counted as pods are placed, so that nothing has to be undone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from generator.placement.budget import Budget
from generator.placement.cluster.capacity import FreeCapacity
from generator.placement.problem.constraints import satisfies_rules
from generator.placement.problem.objective import Objective, PlacementCandidate
from generator.placement.problem.problem import Problem
from generator.placement.request import RoleAffinity


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
    """Its index in the group."""


@dataclass
class Bucket:
    """Pods that attract each other to one node."""

    node: int | None = None
    """Node position of the running pods that opened the bucket."""
    pods_per_group: Counter[int] = field(default_factory=Counter)
    """Pods per group, running ones included."""
    pods: list[TaskPod] = field(default_factory=list)
    """New pods, in the order in which they joined."""
    load: int = 0
    """Requested quantities of the new pods, summed over all resources."""


class AffinityIndex:
    """How groups attract and repel each other, by group index."""

    def __init__(self, problem: Problem) -> None:
        """Read the roles of a request."""
        groups = problem.request.groups
        index = {group.name: position for position, group in enumerate(groups)}
        self.roles = problem.request.roles
        self.attracts = _group_pairs(self.roles.attract, index)
        self.repels = _group_pairs(self.roles.repel, index)
        self.kinds = [_affinity_kind(self.roles, group.name) for group in groups]
        listed = {name: position for position, name in enumerate(self.roles.order)}
        self.rank = [listed.get(group.name, len(listed)) for group in groups]
        self.names = [group.name for group in groups]

    def net_attraction(self, group: int, names: Counter[int]) -> int:
        """Return how many of these pods attract a pod of a group, minus those that repel it."""
        return sum(
            count * (((group, other) in self.attracts) - ((group, other) in self.repels))
            for other, count in names.items()
        )

    def num_repelling(self, group: int, names: Counter[int]) -> int:
        """Return how many of these pods repel a pod of a group."""
        return sum(count for other, count in names.items() if (group, other) in self.repels)

    def sort_key(self, pod: TaskPod) -> tuple[object, ...]:
        """Return the sort key of a pod."""
        return (
            self.rank[pod.group],
            -self.kinds[pod.group],
            self.names[pod.group],
            pod.number,
        )


def build_buckets(
    problem: Problem, counts: tuple[int, ...], affinity: AffinityIndex
) -> list[Bucket]:
    """Return the buckets for these pods per group, oldest first."""
    buckets = _running_buckets(problem)
    loads = [sum(quantity for _, quantity in group.request) for group in problem.request.groups]
    pods = [
        TaskPod(group, index)
        for group, count in enumerate(counts)
        if affinity.kinds[group]
        for index in range(count)
    ]
    for pod in sorted(pods, key=affinity.sort_key):
        options = [
            (-affinity.net_attraction(pod.group, bucket.pods_per_group), bucket.load, bucket_index)
            for bucket_index, bucket in enumerate(buckets)
        ]
        best = min(options, default=None)
        if best is None or best[0] > 0:
            buckets.append(Bucket())
        chosen = buckets[-1] if best is None or best[0] > 0 else buckets[best[2]]
        chosen.pods_per_group[pod.group] += 1
        chosen.pods.append(pod)
        chosen.load += loads[pod.group]
    return buckets


def order_pods(
    counts: tuple[int, ...], buckets: list[Bucket], affinity: AffinityIndex
) -> list[tuple[TaskPod, Bucket | None]]:
    """Return all pods in the order in which they are placed: the largest bucket first."""
    by_size = sorted(buckets, key=lambda bucket: -bucket.pods_per_group.total())
    bucketed = [
        (pod, bucket) for bucket in by_size for pod in sorted(bucket.pods, key=affinity.sort_key)
    ]
    bucketed_pods = {pod for pod, _ in bucketed}
    unbucketed = [
        TaskPod(group, index)
        for group, count in enumerate(counts)
        for index in range(count)
        if TaskPod(group, index) not in bucketed_pods
    ]
    return [*bucketed, *((pod, None) for pod in unbucketed)]


def _running_buckets(problem: Problem) -> list[Bucket]:
    """Return one bucket per node where pods of the gang run, by node name."""
    buckets: dict[int, Bucket] = {}
    for group, positions in enumerate(problem.own_pods.positions_of):
        for node in positions:
            buckets.setdefault(node, Bucket(node=node)).pods_per_group[group] += 1
    specs = problem.snapshot.specs
    return [buckets[node] for node in sorted(buckets, key=lambda node: specs[node].name)]


def _group_pairs(sets: tuple[tuple[str, ...], ...], index: dict[str, int]) -> set[tuple[int, int]]:
    """Return all ordered pairs of each set; a set of one role pairs it with itself."""
    return {
        (index[first], index[second])
        for names in sets
        for first in names
        for second in names
        if first != second or len(names) == 1
    }


def _affinity_kind(roles: RoleAffinity, name: str) -> AffinityKind:
    single_kinds = (AffinityKind.ATTRACTS_ITSELF, AffinityKind.REPELS_ITSELF)
    shared_kinds = (AffinityKind.ATTRACTED, AffinityKind.REPELS_OTHERS)
    kinds = [
        (single_kinds if len(names) == 1 else shared_kinds)[index]
        for index, name_sets in enumerate((roles.attract, roles.repel))
        for names in name_sets
        if name in names
    ]
    return max(kinds, default=AffinityKind.NONE)


MAX_SHOWN_PODS = 100
"""Pods up to which the scores of all nodes are part of the answer."""


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
        for group, positions in enumerate(problem.own_pods.positions_of):
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
        per_group = [snapshot.pod_needs(dict(group.request)) for group in groups]
        requests = sorted((per_group[pod.group] for pod in pods), key=_total_request)
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
