"""Pods on trial: placed on what a problem has free, and taken back where they do not help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from generator.placement.cluster.free_capacity import FreeCapacity
from generator.placement.cluster.levels import IntArray
from generator.placement.problem.problem import Problem


class TrialPods(NamedTuple):
    """Pods of a group on one node."""

    group: int
    node: int
    num_pods: int


class Trial:
    """The pods placed so far, and what they leave free."""

    def __init__(self, problem: Problem) -> None:
        """Begin with no pod placed."""
        self.free = FreeCapacity(problem.snapshot, problem.shapes)
        self.pods: list[TrialPods] = []
        """The pods in the order in which they were placed."""
        self._problem = problem

    @property
    def mark(self) -> int:
        """The mark of the present state, for `undo` and for a slice of `pods`."""
        return len(self.pods)

    def put(self, pods: TrialPods) -> None:
        """Place pods.

        Raises:
            InvariantError: the node does not hold them.
        """
        self.free.take(self._problem.shape_of[pods.group], pods.node, pods.num_pods)
        self.pods.append(pods)

    def undo(self, mark: int) -> None:
        """Take back all pods that were placed after a mark."""
        self.free.undo(mark)
        del self.pods[mark:]

    def slots_by_tier(self, group: int) -> Sequence[IntArray]:
        """Return the pods of a group that still fit, per tier and unit."""
        return self.free.slots_by_tier(self._problem.shape_of[group])

    def num_pods(self, mark: int = 0) -> list[int]:
        """Return the pods per group that were placed after a mark."""
        counts = [0] * len(self._problem.shape_of)
        for group, _, num_pods in self.pods[mark:]:
            counts[group] += num_pods
        return counts

    def positions(self) -> list[list[int]]:
        """Return per group the nodes of its pods, in the order of placement."""
        rows: list[list[int]] = [[] for _ in self._problem.shape_of]
        for group, node, num_pods in self.pods:
            rows[group] += [node] * num_pods
        return rows
