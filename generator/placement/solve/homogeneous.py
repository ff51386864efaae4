"""Exact placement of homogeneous jobs by counting: one shape, equal parts, no running pods.

In a unit with `slots` free, `slots // s` parts of s pods fit. The sum over all units of a tier is
the number of parts that can each lie in one unit of this tier. So feasibility, tiers and histogram
need no search. The histogram is best exactly if every unit of the tiers below the worst part holds
all whole parts that it can, which bounds the pods of each unit from below. `domain_dp` then
minimises the slots left, or, if its work exceeds the budget, the children with the most slots are
filled first, and the answer is not proved. Cost: O(tiers² × units) on arrays; the only loops over
nodes are those of the domains tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from generator.placement.budget import Budget, BudgetExhausted
from generator.placement.cluster.levels import IntArray, TreeLevels, units_with_min
from generator.placement.cluster.min_cover import MinCover
from generator.placement.presets import Direction, ObjectiveKey
from generator.placement.problem.problem import Problem
from generator.placement.problem.request_parts import PartPlacement, PlacedPart, RequestPart
from generator.placement.solve.domain_dp import (
    Bounds,
    DomainTables,
    FillContext,
)
from topology.model.errors import InvariantError


def is_solved_by_counting(problem: Problem, parts: Sequence[RequestPart]) -> bool:
    """Return whether counting gives the exact answer.

    Counting optimizes the histogram first, so with several parts the preset must compare it.
    """
    compares_histogram = any(term.key is ObjectiveKey.HISTOGRAM for term in problem.objective_order)
    return all(
        (
            not problem.own_pods.positions,
            not problem.has_domain_rules,
            not problem.traffic_pairs,
            problem.evictable is None,
            problem.node_weights is None,
            len(problem.shapes) == 1,
            problem.shapes[0].missing_labels is None,
            not any(part.members for part in parts),
            len({part.part_type for part in parts}) == 1,
            compares_histogram or len(parts) == 1,
        )
    )


class HomogeneousFinder:
    """Counts the parts of one homogeneous job per unit, and chooses among domains."""

    def __init__(self, problem: Problem, parts: Sequence[RequestPart], budget: Budget) -> None:
        """Store the parts, which are all of one type; nothing is counted yet."""
        self._problem, self.parts, self._budget = problem, parts, budget
        self._part_type, self._num_parts = parts[0].part_type, len(parts)
        self._levels, self._shape = problem.snapshot.levels, problem.shapes[0]
        self._num_pods = self._num_parts * self._part_type.size
        self._floor = min(self._part_type.histogram_floor, self._part_type.max_tier)

    def find_best(self, tier: int, units: IntArray) -> PartPlacement | None:
        """Return the best placement whose domain is one of these units of a tier."""
        fitting = units[
            self._num_parts_within(min(self._part_type.max_tier, tier), tier, units)
            >= self._num_parts
        ]
        if not len(fitting):
            return None
        fitting = self._units_with_best_histogram(tier, fitting)
        bounds = self._build_bounds(self._worst_tier(tier, fitting[:1]), tier)
        keys = {term.key for term in self._problem.objective_order}
        context = FillContext(
            self._levels,
            bounds,
            self._budget,
            counts_fragmentation=ObjectiveKey.FRAGMENTATION in keys,
            counts_islands=ObjectiveKey.ISLANDS in keys and self._problem.spares_islands,
        )
        best = self._find_best_fill(tier, fitting, context)
        if self._num_parts == 1:
            parts = [
                [node for node, count in sorted(best.pods_per_node.items()) for _ in range(count)]
            ]
        else:
            parts = cut_parts(self._levels, best.pods_per_node, self._part_type.size)
        return PartPlacement([PlacedPart(self._part_type, part) for part in parts], best.is_proved)

    def _has_whole_part(self, tier: int) -> bool:
        """Return whether any unit of a tier holds a whole part."""
        return self._shape.max_slots[tier] >= self._part_type.size

    def _num_parts_within(
        self, inner: int, tier: int, units: IntArray | slice = slice(None)
    ) -> IntArray:
        """Return per unit of a tier how many parts fit, each inside one unit of an inner tier."""
        if inner == tier:
            return self._shape.slots_by_tier[tier][units] // self._part_type.size
        first = np.searchsorted(self._levels.starts[inner], self._levels.starts[tier])
        parts_per_unit = self._shape.slots_by_tier[inner] // self._part_type.size
        return np.asarray(np.add.reduceat(parts_per_unit, first)[units])

    def _units_with_best_histogram(self, tier: int, units: IntArray) -> IntArray:
        """Return the units with the best histogram: most parts close, widest tier first."""
        for inner in reversed(range(self._floor, tier)):
            if len(units) == 1 or not self._has_whole_part(inner):
                break
            num_within = np.minimum(self._num_parts_within(inner, tier, units), self._num_parts)
            units = units[num_within == num_within.max()]
        return units

    def _worst_tier(self, tier: int, unit: IntArray) -> int:
        """Return the lowest tier at which all parts can lie, not below the floor."""
        return next(
            inner
            for inner in range(min(self._floor, tier), tier + 1)
            if self._has_whole_part(inner)
            and self._num_parts_within(inner, tier, unit)[0] >= self._num_parts
        )

    def _build_bounds(self, worst: int, tier: int) -> Bounds:
        """Return the fewest and most pods per unit under which the histogram is the best one."""
        size, slots_by_tier = self._part_type.size, self._shape.slots_by_tier
        lows: list[IntArray | None] = []
        highs: list[IntArray] = []
        for bounded_tier in range(tier):
            inner_tier = bounded_tier if bounded_tier < worst else worst - 1
            is_counted = inner_tier >= self._floor and self._has_whole_part(inner_tier)
            lows.append(
                self._num_parts_within(inner_tier, bounded_tier) * size if is_counted else None
            )
            highs.append(
                slots_by_tier[bounded_tier]
                if bounded_tier < worst
                else self._num_parts_within(worst, bounded_tier) * size
            )
        return Bounds(tuple(lows), tuple(highs), slots_by_tier, worst, size)

    def _find_best_fill(self, tier: int, units: IntArray, context: FillContext) -> _DomainFill:
        """Return the best fill; units are tried in the order of a lower bound on their vector.

        Of units with equal contents only the first is filled.
        """
        bounds = context.bounds
        fewest = [self._min_units(bounds, inner, tier, units) for inner in range(tier)]
        left = [
            self._shape.min_cover(self._levels, inner, tier).least_slots(units, fewest[inner])
            for inner in range(tier)
        ]
        left = [np.maximum(row - self._num_pods, 0) for row in left]
        columns = self._columns(tier, units, fewest, left)
        if tier == 0:
            index = np.arange(len(units))
            for column in columns:
                index = units_with_min(index, column[index])
            return _fill_domain(context, tier, int(units[index[0]]), self._num_pods)
        best: _DomainFill | None = None
        best_vector: list[int] = []
        is_proved, tried = True, set[bytes]()
        for index in np.lexsort(columns[::-1]).tolist():
            if best is not None and best_vector < [int(column[index]) for column in columns]:
                break
            unit = int(units[index])
            content = self._levels.content_key(self._shape.slots, tier, unit)
            if content in tried:
                continue
            tried.add(content)
            fill = _fill_domain(context, tier, unit, self._num_pods)
            is_proved &= fill.is_proved
            vector = self._fill_vector(tier, unit, fill)
            if best is None or vector < best_vector:
                best, best_vector = fill, vector
        if best is None:
            raise InvariantError("no unit was filled")
        return best._replace(is_proved=is_proved)

    def _fill_vector(self, tier: int, unit: int, fill: _DomainFill) -> list[int]:
        """Return the values that the preset compares, of one fill of a unit."""
        # Columns of one unit, as `_columns` compares many units.
        nodes, used, left = list(fill.pods_per_node), list[IntArray](), list[IntArray]()
        for inner in range(tier):
            touched = np.unique(self._levels.unit_of_node[inner][nodes])
            slots = self._shape.slots_by_tier[inner][touched].sum(keepdims=True)
            used.append(np.array([len(touched)]))
            # All pods lie in the touched units, so the rest stays free.
            left.append(slots - self._num_pods)
        return [int(column[0]) for column in self._columns(tier, np.array([unit]), used, left)]

    def _columns(
        self, tier: int, units: IntArray, used: Sequence[IntArray], left: Sequence[IntArray]
    ) -> list[IntArray]:
        """Return the columns by which the preset compares units of a tier with equal histograms.

        `used` and `left` are the used domains of each tier below, and the slots left in them.
        """
        slots, root = self._shape.slots_by_tier, self._levels.root
        starts = self._levels.starts[tier][units]
        around = [
            slots[outer][self._levels.unit_of_node[outer][starts]] for outer in range(tier, root)
        ]
        is_island = self._problem.spares_islands and tier == root - 1
        columns: dict[ObjectiveKey, Sequence[IntArray]] = {
            ObjectiveKey.ISLANDS: [slots[tier][units]] if is_island else [],
            ObjectiveKey.DOMAINS: used[::-1],
            ObjectiveKey.SORT: [rule[tier][units] for rule in self._problem.sort_columns],
            ObjectiveKey.SURPLUS: [slots[tier][units]],
            ObjectiveKey.PARENT_SURPLUS: around[1:],
            ObjectiveKey.FRAGMENTATION: [*left, *around],
            ObjectiveKey.NAMES: [units],
        }
        return [
            column if term.direction is Direction.LESS else -column
            for term in self._problem.objective_order
            for column in columns.get(term.key, ())
        ]

    def _min_units(self, bounds: Bounds, inner: int, tier: int, units: IntArray) -> IntArray:
        """Return the fewest units of an inner tier that must be used in units of a tier."""
        if inner < bounds.worst_tier:
            cover = self._shape.min_cover(self._levels, inner, tier)
        else:
            cover = MinCover.build(self._levels, inner, tier, bounds.high[inner])
        fewest = cover.min_units(units, self._num_pods)
        low = bounds.low[inner]
        if low is None:
            return fewest
        first = np.searchsorted(self._levels.starts[inner], self._levels.starts[tier])
        return np.maximum(fewest, np.add.reduceat(low > 0, first, dtype=np.int64)[units])


class _DomainFill(NamedTuple):
    """Pods per node of one domain."""

    pods_per_node: dict[int, int]
    is_proved: bool


def _fill_domain(context: FillContext, tier: int, unit: int, num_pods: int) -> _DomainFill:
    """Share out the pods of a job whose domain is this unit."""
    if tier == 0:
        return _DomainFill({unit: num_pods}, is_proved=True)
    try:
        pods = DomainTables(context, tier, unit, num_pods).pods_per_node(tier, unit, num_pods)
    except BudgetExhausted:
        return _DomainFill(_fullest_first(context, tier, unit, num_pods), is_proved=False)
    return _DomainFill(pods, is_proved=True)


def _fullest_first(context: FillContext, tier: int, unit: int, num_pods: int) -> dict[int, int]:
    """Return pods per node: minimums, then children with most slots, the last a tight fit."""
    if tier == 0:
        return {unit: num_pods} if num_pods else {}
    span = context.levels.children(tier, unit)
    low = context.bounds.lower_bounds(tier - 1, span)
    spare = context.bounds.high[tier - 1][span.start : span.stop] - low
    shares, missing_pods = low.copy(), num_pods - int(low.sum())
    order = np.lexsort((np.arange(len(span)), -spare, low == 0))
    for rank, index in enumerate(order):
        tight_fits = [later for later in order[rank:] if spare[later] >= missing_pods]
        is_last = bool(tight_fits) and (low[index] == 0 or low[tight_fits[-1]] > 0)
        chosen = tight_fits[-1] if is_last else index
        shares[chosen] += min(int(spare[chosen]), missing_pods)
        missing_pods -= min(int(spare[chosen]), missing_pods)
        if not missing_pods:
            break
    pods: dict[int, int] = {}
    for child, share in zip(span, shares.tolist(), strict=True):
        if share:
            pods |= _fullest_first(context, tier - 1, child, share)
    return pods


def cut_parts(levels: TreeLevels, pods: dict[int, int], size: int) -> list[list[int]]:
    """Cut pods per node into whole parts, lowest tiers first; O(tiers × pods)."""
    parts: list[list[int]] = []
    waiting = {node: [node] * count for node, count in sorted(pods.items())}
    for unit_of in levels.unit_of_node:
        units: dict[int, list[int]] = {}
        for unit, loose in zip(unit_of[list(waiting)].tolist(), waiting.values(), strict=True):
            units.setdefault(unit, []).extend(loose)
        waiting = {}
        for loose in units.values():
            num_whole = len(loose) // size * size
            parts += [loose[start : start + size] for start in range(0, num_whole, size)]
            if len(loose) > num_whole:
                waiting[loose[num_whole]] = loose[num_whole:]
        if not waiting:
            break
    return parts
