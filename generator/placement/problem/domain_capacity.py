"""Count the pods of one group that each domain holds, and sort domains as a preset does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generator.placement.cluster.levels import IntArray
from generator.placement.problem.problem import Problem
from generator.placement.request import SortRule
from generator.placement.walk_rules import AncestorOrder, DomainSort, SortKey

DEFAULT_SORT_RULE = SortRule("cpu", counts_free=False, is_descending=False)
NONE_FITS = -1
"""Pods beside a leader in a domain where no leader fits."""


class GroupCapacity:
    """Slots per tier and unit for one group; `take` updates them as pods are placed."""

    def __init__(
        self,
        problem: Problem,
        group: int,
        rooms: Sequence[IntArray],
        leader: IntArray | None = None,
    ) -> None:
        """Count pods per node and sum them up the tiers.

        Args:
            problem: the request and the cluster.
            group: index of the group.
            rooms: pods of the group that fit, per tier and unit, or per node only.
            leader: for a group with a leader: its pods that fit each node beside one leader,
                `NONE_FITS` where no leader fits.
        """
        self.problem, self.group = problem, group
        levels = problem.snapshot.levels
        self._unit_multiples = _unit_multiples(problem, group)
        self.slots_by_tier = list(rooms)
        for first in levels.first_child[len(rooms) :]:
            self.slots_by_tier.append(np.add.reduceat(self.slots_by_tier[-1], first[:-1]))
        self.usable_slots = list(self.slots_by_tier)
        if self._unit_multiples:
            self.usable_slots = [self._round_down(rooms[0], 0)]
            for tier, first in enumerate(levels.first_child[1:], start=1):
                below = np.add.reduceat(self.usable_slots[-1], first[:-1])
                self.usable_slots.append(self._round_down(below, tier))
        self.slots_beside_leader = (
            self.usable_slots if leader is None else self._count_beside_leader(leader)
        )
        self.has_leader = leader is not None
        self._is_shared = True

    def _round_down(self, counts: IntArray, tier: int) -> IntArray:
        """Return counts rounded down to what multiples and slices of a tier allow."""
        for at, multiple, most in self._unit_multiples:
            if at == tier:
                counts = counts // multiple * multiple
                counts = counts if most is None else np.minimum(counts, most)
        return counts

    def _count_beside_leader(self, leader: IntArray) -> list[IntArray]:
        """Return the pods that fit beside the leader, which is placed where it costs the fewest."""
        levels = self.problem.snapshot.levels
        found = [np.where(leader < 0, NONE_FITS, self._round_down(np.maximum(leader, 0), 0))]
        far = np.iinfo(np.int64).max // 2
        for tier in range(1, levels.root + 1):
            below, first = self.usable_slots[tier - 1], levels.first_child[tier][:-1]
            cost = np.where(found[-1] < 0, far, below - found[-1])
            least = np.minimum.reduceat(cost, first)
            left = self._round_down(np.add.reduceat(below, first) - np.minimum(least, far), tier)
            found.append(np.where(least >= far, NONE_FITS, np.maximum(left, 0)))
        return found

    def take(self, at: int, count: int) -> None:
        """Subtract pods from a node and from all units around it."""
        levels = self.problem.snapshot.levels
        if self._is_shared:
            self.slots_by_tier = [row.copy() for row in self.slots_by_tier]
            self.usable_slots[:] = [row.copy() for row in self.usable_slots]
            self._is_shared = False
        for tier in range(levels.root + 1):
            unit = int(levels.unit_of_node[tier][at])
            self.slots_by_tier[tier][unit] -= count
            inner = (
                self.slots_by_tier[0][at : at + 1] if tier == 0 else self._sum_children(tier, unit)
            )
            self.usable_slots[tier][unit] = self._round_down(inner, tier)[0]

    def _sum_children(self, tier: int, unit: int) -> IntArray:
        span = self.problem.snapshot.levels.children(tier, unit)
        return np.array([self.usable_slots[tier - 1][span.start : span.stop].sum()])

    def units_with_most_preferred(self, tier: int, units: IntArray) -> IntArray:
        """Return the units of a tier with the most preferred labels on nodes with a free slot."""
        values = self._negated_preferred_slots(tier)[units]
        best: IntArray = units[values == values.min(initial=0)]
        return best

    @property
    def slice_size(self) -> int:
        """Pods of a slice that shares a domain; 1 if there are no such slices."""
        return max((multiple for _, multiple, _ in self._unit_multiples), default=1)

    @property
    def slice_tier(self) -> int:
        """Highest tier that has a rule on pods per domain; 0 if there is none."""
        return max((tier for tier, _, _ in self._unit_multiples), default=0)

    def sorted_units(
        self, units: IntArray, tier: int, order: Sequence[DomainSort], num_pods: int
    ) -> IntArray:
        """Return units of a tier, sorted; O(units × tiers)."""
        columns = [
            column for sort in order for column in self._sort_columns(units, tier, sort, num_pods)
        ]
        return units[np.lexsort((units, *reversed(columns)))]

    def _sort_columns(
        self, units: IntArray, tier: int, sort: DomainSort, num_pods: int
    ) -> list[IntArray]:
        """Return the columns by which units are compared, the most important first."""
        levels = self.problem.snapshot.levels
        own = self._sort_values(tier, sort.key, num_pods)
        rows = [[column[units] for column in own]]
        above = (
            range(tier + 1, levels.root) if sort.ancestors is not AncestorOrder.NONE else range(0)
        )
        starts = levels.starts[tier][units]
        for at in above:
            over = levels.unit_of_node[at][starts]
            rows.append([column[over] for column in self._sort_values(at, sort.key, num_pods)])
        if sort.ancestors is AncestorOrder.ANCESTORS_FIRST:
            rows.reverse()
        return [column for row in rows for column in row]

    def _sort_values(self, tier: int, by: SortKey, num_pods: int) -> list[IntArray]:
        """Return the values by which all units of a tier are compared, smaller first."""
        if by is SortKey.TIGHT:
            return [self.slots_beside_leader[tier], self.slots_by_tier[tier]]
        if by is SortKey.ROOMY:
            return [-self.slots_beside_leader[tier], self.slots_by_tier[tier]]
        if by is SortKey.USER_RULES:
            return [column[tier] for column in self._user_sort_columns()]
        return [self._sort_value(tier, by, num_pods)]

    def _sort_value(self, tier: int, by: SortKey, num_pods: int) -> IntArray:
        problem, levels = self.problem, self.problem.snapshot.levels
        index = np.arange(len(levels.starts[tier]))
        if by is SortKey.TIGHT_FOR_GANG:
            return np.add.reduceat(np.minimum(self.usable_slots[0], num_pods), levels.starts[tier])
        if by is SortKey.RUNNING:
            return -np.bincount(
                levels.unit_of_node[tier][list(problem.running_positions)], minlength=len(index)
            )
        if by is SortKey.PREFERRED_LABELS:
            return self._negated_preferred_slots(tier)
        if by is SortKey.NAME_TEXT:
            return name_ranks(problem, tier)
        return index if by is SortKey.TREE_ORDER else -index

    def _negated_preferred_slots(self, tier: int) -> IntArray:
        """Return per unit the negated count of preferred labels on nodes with a free slot."""
        shape = self.problem.shapes[self.problem.shape_of[self.group]]
        if shape.missing_labels is None:
            return np.zeros(len(self.usable_slots[tier]), dtype=np.int64)
        most = len(self.problem.request.groups[self.group].wishes)
        kept = (most - shape.missing_labels) * (self.slots_by_tier[0] > 0)
        return -np.add.reduceat(kept, self.problem.snapshot.levels.starts[tier])

    def _user_sort_columns(self) -> tuple[tuple[IntArray, ...], ...]:
        columns = self.problem.sort_columns
        return columns or (self.problem.sort_column(DEFAULT_SORT_RULE),)


def _unit_multiples(problem: Problem, group: int) -> list[tuple[int, int, int | None]]:
    """Return (tier, multiple, maximum) of all rules on the pods of a group per domain."""
    found = [
        (rule.tier, rule.multiple, rule.max_pods)
        for rule in problem.unit_rules
        if rule.group == group
    ]
    layers = problem.request.groups[group].slices
    if layers and layers[-1].tier is not None and not problem.running_positions:
        found.append((problem.slice_tier_of(group), layers[-1].size, None))
    return found


def units_inside(problem: Problem, tier: int, unit: int, below: int) -> IntArray:
    """Return the units of a lower tier inside a unit."""
    levels = problem.snapshot.levels
    low, high = levels.starts[tier][unit], levels.stops[tier][unit]
    return np.arange(
        levels.unit_of_node[below][low], levels.unit_of_node[below][high - 1] + 1, dtype=np.int64
    )


def name_ranks(problem: Problem, tier: int) -> IntArray:
    """Return the rank of each unit when names are compared as text, from the top tier down.

    Cost: O(units × log units), once per tree and tier.
    """
    levels, snapshot = problem.snapshot.levels, problem.snapshot
    if tier in snapshot.name_ranks:
        return snapshot.name_ranks[tier]
    starts = levels.starts[tier]
    paths = [
        (
            *(
                _domain_name(problem, at, int(levels.unit_of_node[at][start]))
                for at in range(levels.root - 1, 0, -1)
                if at >= tier
            ),
            snapshot.specs[int(start)].name if tier == 0 else "",
        )
        for start in starts
    ]
    order = sorted(range(len(paths)), key=lambda unit: (paths[unit], unit))
    ranks = np.empty(len(paths), dtype=np.int64)
    ranks[order] = np.arange(len(paths))
    snapshot.name_ranks[tier] = ranks
    return ranks


def _domain_name(problem: Problem, tier: int, unit: int) -> str:
    """Return the name of a domain, or of the first node if the unit is no domain."""
    levels, snapshot = problem.snapshot.levels, problem.snapshot
    domain = int(levels.domain_of_unit[tier][unit])
    if domain >= 0:
        return snapshot.tree.domains[domain].name
    return snapshot.specs[int(levels.starts[tier][unit])].name
