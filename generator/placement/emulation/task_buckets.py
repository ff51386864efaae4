"""Buckets of pods whose roles attract each other, as Volcano's task-topology plugin builds them.

Pods join one after the other: the bucket that attracts them most, or a new bucket if all repel
them. Buckets are then ordered by their final size; pods that are placed later do not change the
order.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

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
    for group, positions in enumerate(problem.running_positions_of):
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
