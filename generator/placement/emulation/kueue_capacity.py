"""Count the pods and the whole slices of one group that each domain holds, as Kueue does.

Everything is counted twice: alone, and beside the leader of the group, which is placed where it
costs the fewest slices. Pods that make no whole slice are a partial slice. It stays in one domain
of the slices' tier, and is counted where it costs the fewest whole slices.

Source: kubernetes-sigs/kueue 0.20, `fillInCountsHelper` and `tas_partial_slices.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from generator.placement.cluster.levels import BoolArray, IntArray
from generator.placement.problem.domain_capacity import GroupCapacity
from generator.placement.problem.problem import Problem

NONE_FITS: Final = -1
"""Pods in a domain where the leader, or the partial slice, does not fit."""
_INFINITE = np.iinfo(np.int64).max // 4
"""A cost that no domain pays; the sum of two does not overflow."""


class Counts(NamedTuple):
    """Slices, or pods, per unit of one tier."""

    alone: IntArray
    beside_leader: IntArray

    def beside(self, *, has_leader: bool) -> IntArray:
        """Return what units hold beside the leader, or without it."""
        return self.beside_leader if has_leader else self.alone

    def whole(self, size: int) -> Counts:
        """Return the slices of a size that the pods make."""
        return Counts(self.alone // size, self.beside_leader // size)


class KueueCapacity(GroupCapacity):
    """Pods and slices of one group per tier and unit."""

    def __init__(
        self,
        problem: Problem,
        group: int,
        slots_by_tier: Sequence[IntArray],
        beside_leader: IntArray | None,
        num_pods: int,
    ) -> None:
        """Count them.

        Args:
            problem: the request and the cluster.
            group: index of the group.
            slots_by_tier: pods of the group that fit, per tier and unit.
            beside_leader: for a group with a leader: its pods that fit each node beside it,
                `NONE_FITS` where no leader fits.
            num_pods: pods of the group that are placed.
        """
        super().__init__(problem, group, slots_by_tier)
        self._levels, self.has_leader = problem.snapshot.levels, beside_leader is not None
        layers = [
            (self._levels.height_of(layer.tier), layer.size)
            for layer in problem.request.groups[group].slices
            if layer.tier is not None and not problem.own_pods.positions
        ]
        self.coarsest_tier, self.coarsest_size = layers[0] if layers else (0, 1)
        self.inner_sizes = {
            tier: size
            for (outer, _), (inner, size) in pairwise(layers)
            for tier in range(inner, outer)
        }
        """Pods of an inner slice, by tier."""
        self._count_tiers(beside_leader)
        self.partial_pods = num_pods % self.coarsest_size
        """Pods of the partial slice; 0 without one."""
        self.beside_partial = self._count_beside_partial() if self.partial_pods else self.slices
        """Whole slices beside the partial one; `NONE_FITS` where it does not fit."""

    @property
    def room(self) -> list[IntArray]:
        """Per tier and unit the pods that fit beside the leader, the partial slice included."""
        return [
            np.where(whole < 0, NONE_FITS, whole * self.coarsest_size + self.partial_pods)
            for whole in self._beside_leader(self.beside_partial)
        ]

    def _room_columns(self, tier: int) -> list[IntArray]:
        """Return the slices beside the partial one, then all whole slices."""
        return [self._beside_leader(rows)[tier] for rows in (self.beside_partial, self.slices)]

    def _beside_leader(self, rows: Sequence[Counts]) -> list[IntArray]:
        return [counts.beside(has_leader=self.has_leader) for counts in rows]

    def _count_tiers(self, leader: IntArray | None) -> None:
        """Sum pods and slices up the tiers, alone and beside the leader."""
        slots = self.slots_by_tier[0]
        beside = slots if leader is None else np.maximum(leader, 0)
        holds = np.ones(len(slots), dtype=np.bool_) if leader is None else leader >= 0
        self.pods = [Counts(slots, np.where(holds, beside, 0))]
        self.holds_leader: list[BoolArray] = [holds]
        self.slices = [self.pods[0].whole(self.coarsest_size)]
        for tier in range(1, self._levels.root + 1):
            first = self._levels.first_child[tier][:-1]
            below, below_holds = self.pods[-1], self.holds_leader[-1]
            inner = self.inner_sizes.get(tier - 1, 1)
            rounded = Counts(below.alone // inner * inner, below.beside_leader // inner * inner)
            pods = self._summed(rounded, below_holds, first)
            self.pods.append(pods)
            self.holds_leader.append(np.logical_or.reduceat(below_holds, first))
            self.slices.append(
                pods.whole(self.coarsest_size)
                if tier <= self.coarsest_tier
                else self._summed(self.slices[-1], below_holds, first)
            )

    def _summed(self, below: Counts, holds_leader: BoolArray, first: IntArray) -> Counts:
        """Return sums; the leader is placed in the part where it costs the fewest."""
        alone = np.add.reduceat(below.alone, first)
        if not self.has_leader:
            return Counts(alone, alone)
        costs = np.where(holds_leader, below.alone - below.beside_leader, _INFINITE)
        least = np.minimum.reduceat(costs, first)
        return Counts(alone, np.where(least >= _INFINITE, 0, alone - least))

    def _count_beside_partial(self) -> list[Counts]:
        """Return per tier the whole slices beside the partial one."""
        counted = [
            Counts(
                *(
                    np.where(
                        pods < self.partial_pods,
                        NONE_FITS,
                        (pods - self.partial_pods) // self.coarsest_size,
                    )
                    for pods in counts
                )
            )
            for counts in self.pods[: self.coarsest_tier + 1]
        ]
        for tier in range(self.coarsest_tier + 1, self._levels.root + 1):
            first = self._levels.first_child[tier][:-1]
            below, holds = self.slices[tier - 1], self.holds_leader[tier - 1]
            total = np.add.reduceat(below.alone, first)
            lost = _lost(below.alone, counted[-1].alone)
            costs = leader_costs(below, counted[-1], holds, first) if self.has_leader else lost
            least, least_of_both = (np.minimum.reduceat(column, first) for column in (lost, costs))
            counted.append(
                Counts(
                    np.where(least >= _INFINITE, NONE_FITS, total - least),
                    np.where(least_of_both >= _INFINITE, NONE_FITS, total - least_of_both),
                )
            )
        return counted


def leader_costs(
    whole: Counts, beside_partial: Counts, holds_leader: BoolArray, first: IntArray
) -> IntArray:
    """Return per part what the leader costs there, with the partial slice where it costs least.

    Args:
        whole: whole slices of each part.
        beside_partial: the same beside the partial slice; equal to `whole` without one.
        holds_leader: whether the leader fits each part.
        first: the first part of each row of parts that share the leader and the slice.
    """
    partial = _lost(whole.alone, beside_partial.alone)
    leader = np.where(holds_leader, whole.alone - whole.beside_leader, _INFINITE)
    both = np.where(holds_leader, _lost(whole.alone, beside_partial.beside_leader), _INFINITE)
    return np.minimum(both, leader + _least_of_others(partial, first))


def _lost(whole: IntArray, beside: IntArray) -> IntArray:
    return np.where(beside < 0, _INFINITE, whole - beside)


def _least_of_others(costs: IntArray, first: IntArray) -> IntArray:
    """Return per part the least cost of the other parts in its row; `_INFINITE` without others."""
    row = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(costs))))
    is_least = costs == np.minimum.reduceat(costs, first)[row]
    is_only = is_least & (np.add.reduceat(is_least, first, dtype=np.int64) == 1)[row]
    second = np.minimum.reduceat(np.where(is_least, _INFINITE, costs), first)[row]
    least = np.minimum.reduceat(costs, first)[row]
    return np.where(is_only, second, least)
