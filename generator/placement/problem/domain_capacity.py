"""Count the pods of one group that each domain holds, and sort domains as a preset does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from generator.placement.cluster.levels import BoolArray, FloatArray, IntArray
from generator.placement.presets import AncestorOrder, DomainSort, SortKey
from generator.placement.problem.problem import Problem


class GroupCapacity:
    """Slots per tier and unit for one group."""

    def __init__(self, problem: Problem, group: int, slots_by_tier: Sequence[IntArray]) -> None:
        """Count pods per node and sum them up the tiers.

        Args:
            problem: the request and the cluster.
            group: index of the group.
            slots_by_tier: pods of the group that fit, per tier and unit.

        Raises:
            BudgetExhausted: the budget of the query ended.
        """
        problem.budget.spend_on_arrays(problem.snapshot.num_nodes)
        self.problem, self.group = problem, group
        self._unit_multiples = _unit_multiples(problem, group)
        self.slots_by_tier = slots_by_tier
        self.usable_slots = slots_by_tier
        if self._unit_multiples:
            levels = problem.snapshot.levels
            self.usable_slots = levels.sum_by_tier(slots_by_tier[0], self._round_down)
        self.request_shares: Sequence[FloatArray] = ()
        """Per tier and unit: share of the free resources that the whole request takes."""

    @property
    def room(self) -> Sequence[IntArray]:
        """Per tier and unit: the pods that may be placed."""
        return self.usable_slots

    def _room_columns(self, tier: int) -> list[IntArray]:
        """Return the columns by which the room of units is compared, the most important first."""
        return [self.usable_slots[tier]]

    def _round_down(self, counts: IntArray, tier: int) -> IntArray:
        """Return counts rounded down to what multiples and slices of a tier allow."""
        for rule_tier, multiple, max_pods in self._unit_multiples:
            if rule_tier == tier:
                counts = counts // multiple * multiple
                counts = counts if max_pods is None else np.minimum(counts, max_pods)
        return counts

    def without_pods(self, pods: Mapping[int, int]) -> GroupCapacity:
        """Return the capacity after pods of the group are placed, by node; O(tiers × nodes)."""
        slots = self.slots_by_tier[0].copy()
        slots[list(pods)] -= list(pods.values())
        slots_by_tier = self.problem.snapshot.levels.sum_by_tier(slots)
        return GroupCapacity(self.problem, self.group, slots_by_tier)

    @property
    def slice_size(self) -> int:
        """Pods of a slice that shares a domain; 1 without slices."""
        return max((multiple for _, multiple, _ in self._unit_multiples), default=1)

    @property
    def slice_tier(self) -> int:
        """Highest tier that has a rule on pods per domain; 0 if there is none."""
        return max((tier for tier, _, _ in self._unit_multiples), default=0)

    def sorted_units(
        self, units: IntArray, tier: int, order: Sequence[DomainSort], num_pods: int
    ) -> IntArray:
        """Return units of a tier, sorted; O(units × tiers); the budget may end."""
        self.problem.budget.spend_on_arrays(self.problem.snapshot.num_nodes)
        columns = [
            column for sort in order for column in self._sort_columns(units, tier, sort, num_pods)
        ]
        return units[np.lexsort((units, *reversed(columns)))]

    def _sort_columns(
        self, units: IntArray, tier: int, sort: DomainSort, num_pods: int
    ) -> list[IntArray | FloatArray]:
        """Return the columns by which units are compared, the most important first."""
        levels = self.problem.snapshot.levels
        starts = levels.starts[tier][units]
        has_ancestors = sort.ancestors is not AncestorOrder.NONE
        rows = [
            [
                column[levels.unit_of_node[outer][starts]]
                for column in self._sort_values(outer, sort.key, num_pods)
            ]
            for outer in range(tier, max(levels.root, tier + 1) if has_ancestors else tier + 1)
        ]
        if sort.ancestors is AncestorOrder.ANCESTORS_FIRST:
            rows.reverse()
        return [column for row in rows for column in row]

    def _sort_values(self, tier: int, by: SortKey, num_pods: int) -> list[IntArray | FloatArray]:
        """Return the values by which all units of a tier are compared, smaller first."""
        if by in {SortKey.TIGHT, SortKey.ROOMY}:
            sign = 1 if by is SortKey.TIGHT else -1
            columns = [sign * column for column in self._room_columns(tier)]
            return [*columns, self._slots_of_inner_slices(tier)]
        if by is SortKey.FULLEST:
            return [-self.request_shares[tier], name_ranks(self.problem, tier)]
        if by is SortKey.USER_RULES:
            return [column[tier] for column in self.problem.sort_columns]
        return [self._sort_value(tier, by, num_pods)]

    def _sort_value(self, tier: int, by: SortKey, num_pods: int) -> IntArray:
        problem, levels = self.problem, self.problem.snapshot.levels
        index = np.arange(len(levels.starts[tier]))
        if by is SortKey.RUNNING:
            return -np.bincount(
                levels.unit_of_node[tier][list(problem.own_pods.positions)], minlength=len(index)
            )
        if by in {SortKey.SMALL_OFFER, SortKey.LARGE_OFFER}:
            per_node = np.minimum(self.slots_by_tier[0], num_pods)
            offer = levels.sum_by_tier(per_node, self._round_down)[tier]
            return offer if by is SortKey.SMALL_OFFER else -offer
        if by in {SortKey.NAME_TEXT, SortKey.OWN_NAME_TEXT}:
            return (name_ranks if by is SortKey.NAME_TEXT else own_name_ranks)(problem, tier)
        if by is SortKey.PREFERRED_LABELS:
            return self.negated_preferred_slots(tier)
        return index if by is SortKey.TREE_ORDER else -index

    def _slots_of_inner_slices(self, tier: int) -> IntArray:
        """Return the slots of the units of a tier; below the coarsest slices only whole slices."""
        if len(self._unit_multiples) <= 1:
            return self.slots_by_tier[tier]
        below = min(tier, self.slice_tier)

        def round_below(counts: IntArray, inner: int) -> IntArray:
            return self._round_down(counts, inner) if inner < below else counts

        return self.problem.snapshot.levels.sum_by_tier(self.slots_by_tier[0], round_below)[tier]

    def negated_preferred_slots(self, tier: int) -> IntArray:
        """Return per unit the negated count of preferred labels on nodes with a free slot."""
        shape = self.problem.shapes[self.problem.shape_of[self.group]]
        if shape.missing_labels is None:
            return np.zeros(len(self.usable_slots[tier]), dtype=np.int64)
        max_labels = len(self.problem.request.groups[self.group].preferred_labels)
        carried = (max_labels - shape.missing_labels) * (self.slots_by_tier[0] > 0)
        return -np.add.reduceat(carried, self.problem.snapshot.levels.starts[tier])


def _unit_multiples(problem: Problem, group: int) -> list[tuple[int, int, int | None]]:
    """Return (tier, multiple, maximum) of all rules on the pods of a group per domain."""
    multiples = [
        (rule.tier, rule.multiple, rule.max_pods)
        for rule in problem.rules.unit_rules
        if rule.group == group
    ]
    layers = problem.request.groups[group].slices
    if layers and layers[-1].tier is not None and not problem.own_pods.positions:
        multiples.append((problem.slice_tier_of(group), layers[-1].size, None))
    return multiples


def has_total_capacity(problem: Problem, counts: Mapping[int, int], tier: int) -> BoolArray:
    """Return which units of a tier have the total capacity, free or used, for pods of groups.

    The needs of all groups are added. A node counts if any of the groups may use it.
    """
    snapshot, starts = problem.snapshot, problem.snapshot.levels.starts[tier]
    total: Counter[str] = Counter()
    for group, num_pods in counts.items():
        for name, need in problem.shapes[problem.shape_of[group]].request.items():
            total[name] += need * num_pods
    allowed = np.logical_or.reduce(
        [problem.shapes[problem.shape_of[group]].allowed for group in counts]
    )
    enough = np.ones(len(starts), dtype=np.bool_)
    for name, quantity in total.items():
        capacity = np.where(allowed, snapshot.quantities(name, counts_free=False), 0)
        # Floats: the bytes of many nodes may exceed 64 bits.
        enough &= np.add.reduceat(capacity.astype(np.float64), starts) >= quantity
    return enough


def name_ranks(problem: Problem, tier: int) -> IntArray:
    """Return the rank of each unit when names are compared as text, from the top tier down.

    Cost: O(units × log units), once per tree and tier.
    """
    levels, snapshot = problem.snapshot.levels, problem.snapshot
    if tier in snapshot.name_ranks:
        return snapshot.name_ranks[tier]
    outer = np.zeros(len(levels.starts[tier]), dtype=np.int64)
    if tier + 1 < levels.root:
        outer = name_ranks(problem, tier + 1)[levels.unit_of_node[tier + 1][levels.starts[tier]]]
    names = [_unit_name(problem, tier, unit) for unit in range(len(outer))]
    keys = list(zip(outer.tolist(), names, strict=True))
    order = sorted(range(len(keys)), key=keys.__getitem__)
    ranks = np.empty(len(keys), dtype=np.int64)
    ranks[order] = np.arange(len(keys))
    snapshot.name_ranks[tier] = ranks
    return ranks


def own_name_ranks(problem: Problem, tier: int) -> IntArray:
    """Return the rank of each unit when own names are compared as text; equal names rank alike.

    The own name of a domain is the last part of its path.
    """
    units = range(len(problem.snapshot.levels.starts[tier]))
    names = np.array([_unit_name(problem, tier, unit).rpartition("/")[2] for unit in units])
    return np.asarray(np.unique(names, return_inverse=True)[1], dtype=np.int64)


def _unit_name(problem: Problem, tier: int, unit: int) -> str:
    """Return the name of a domain, or of the first node if the unit is not a domain."""
    levels, snapshot = problem.snapshot.levels, problem.snapshot
    domain = int(levels.domain_of_unit[tier][unit])
    if domain >= 0:
        return snapshot.tree.domains[domain].name
    return snapshot.specs[int(levels.starts[tier][unit])].name
