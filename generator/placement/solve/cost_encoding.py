"""Encode the additive keys of a preset's objective as one integer, to add and compare costs.

Every additive key and tier has a digit, in the order of the preset. Digits are wide enough that
they never overflow. Keys that the search decides beforehand (pods, strategy, tier of the job) have
no digit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from generator.placement.cluster.levels import IntArray, units_with_min
from generator.placement.cluster.shapes import sum_requests
from generator.placement.presets import Direction, ObjectiveKey
from generator.placement.problem.objective import slots_after_use
from generator.placement.problem.problem import Problem
from generator.placement.problem.request_parts import PartType


class CostEncoding:
    """The additive keys of a preset as one integer: one base-2^b digit per key and tier."""

    def __init__(self, problem: Problem, num_pods: int) -> None:
        """Lay out the digits for a job of this many pods."""
        self._problem = problem
        levels = problem.snapshot.levels
        largest = problem.shapes[problem.scarcest_shape]
        self._slots_before = largest.slots_by_tier
        bits = (2 * (largest.total_slots + num_pods) * (levels.root + 2) + 8).bit_length() + 1
        bits = max(bits, (2 * len(largest.slots)).bit_length() + 2, _digit_width(problem, num_pods))
        self._digits: dict[tuple[ObjectiveKey, int], int] = {}
        order = [
            (term, tier)
            for term in problem.objective_order
            for tier in _tiers_of(problem, term.key)
        ]
        for position, (term, tier) in enumerate(reversed(order)):
            sign = -1 if term.direction is Direction.MORE else 1
            self._digits[term.key, tier] = sign << (bits * position)
        self._running_units = [
            frozenset(int(unit_of[node]) for node in problem.own_pods.positions)
            for unit_of in levels.unit_of_node
        ]
        self._cost_per_lost_slot = sum(
            self._digit_of(key, tier)
            for key in (
                ObjectiveKey.SURPLUS,
                ObjectiveKey.PARENT_SURPLUS,
                ObjectiveKey.FRAGMENTATION,
            )
            for tier in range(levels.root)
        )

    def _digit_of(self, key: ObjectiveKey, tier: int) -> int:
        return self._digits.get((key, tier), 0)

    def node_cost(self, node: int, counts: tuple[int, ...]) -> int | None:
        """Return the cost of pods on a node: mainly the slots of the scarcest shape they use.

        None if the pods that would have to be evicted are to stay.
        """
        shapes = self._problem.shapes
        largest = shapes[self._problem.scarcest_shape]
        before = int(largest.slots[node])
        if not any(counts):
            return 0
        misses = sum(
            count * int(shape.missing_labels[node])
            for shape, count in zip(shapes, counts, strict=True)
            if shape.missing_labels is not None
        )
        after = (
            before - sum(counts)
            if len(shapes) == 1
            else slots_after_use(self._problem, largest, node, sum_requests(shapes, counts))
        )
        cost = (after - before) * self._cost_per_lost_slot + misses * self._digit_of(
            ObjectiveKey.NODE_MISSES, 0
        )
        if self._problem.node_weights is not None:
            rank = int(self._problem.node_weights.weight_index[node])
            cost += sum(counts) * self._digit_of(ObjectiveKey.NODE_WEIGHTS, rank)
        victims_cost = self._victims_cost(node, counts)
        return None if victims_cost is None else cost + victims_cost

    def _victims_cost(self, node: int, counts: tuple[int, ...]) -> int | None:
        """Return the cost of the victims that pods on a node require; None if none may go."""
        eviction = self._problem.evictable
        if eviction is None:
            return 0
        cover = eviction.find_cover(node, sum_requests(self._problem.shapes, counts))
        if cover is None:
            return None
        return sum(
            victim.pods
            * (
                self._digit_of(
                    ObjectiveKey.VICTIM_PRIORITIES, eviction.priorities.index(victim.priority)
                )
                + self._digit_of(ObjectiveKey.VICTIM_PODS, 0)
            )
            for victim in cover.victims
        )

    def part_cost(self, tier: int, part_type: PartType) -> int:
        """Return the cost of completing a part at a tier."""
        misses = sum(tier > preferred for preferred in part_type.preferred)
        if part_type.members:
            return misses * self._digit_of(ObjectiveKey.PREFERRED_MISSES, 0)
        return self._digit_of(
            ObjectiveKey.HISTOGRAM, max(tier, part_type.histogram_floor)
        ) + misses * self._digit_of(ObjectiveKey.PREFERRED_MISSES, 0)

    def unit_cost(self, tier: int, unit: int, pods: Sequence[int]) -> int:
        """Return the cost of these pods per shape in a unit, apart from what is inside it."""
        num_pods = sum(pods)
        if num_pods == 0 or tier == self._problem.root:
            return 0
        cost = self._digit_of(ObjectiveKey.DOMAINS, tier) + self.slots_cost(tier, unit)
        cost += self._digit_of(ObjectiveKey.ISLANDS, 0) if self._is_island(tier) else 0
        if unit in self._running_units[tier]:
            cost += self._digit_of(ObjectiveKey.EXISTING, tier) * num_pods
        for first, second, weight in self._problem.traffic_pairs:
            together = (
                pods[first] * (pods[first] - 1) // 2
                if first == second
                else pods[first] * pods[second]
            )
            cost -= self._digit_of(ObjectiveKey.TRAFFIC, 0) * weight * together
        return cost

    def slots_cost(self, tier: int, unit: int) -> int:
        """Return the cost of a unit's slots once it is used."""
        slots = int(self._slots_before[tier][unit])
        return slots * sum(self._slot_digits(tier))

    def _slot_digits(self, tier: int) -> Iterator[int]:
        yield self._digit_of(ObjectiveKey.FRAGMENTATION, tier)
        if self._is_island(tier):
            yield self._digit_of(ObjectiveKey.ISLANDS, 1)

    def _is_island(self, tier: int) -> bool:
        """Return whether units of a tier are top domains that are to be spared."""
        return tier == self._problem.root - 1 and self._problem.spares_islands

    def cheapest_domain(self, tier: int, units: IntArray) -> tuple[int, int]:
        """Return the lowest cost of using one of some units as the job's domain, and that unit.

        The cost includes the slots of the units, and not what is inside them. Of equal units the
        first is returned. Costs are comparable between units of a tier. Cost: O(units) per digit;
        the highest digits usually decide.
        """
        terms = [term for term in self._domain_terms(tier, units) if term[0]]
        candidates = np.arange(len(units))
        for digit, column in sorted(terms, key=lambda term: -abs(term[0])):
            candidates = units_with_min(
                candidates, column[candidates] if digit > 0 else -column[candidates]
            )
        index = int(candidates[0])
        return sum(digit * int(column[index]) for digit, column in terms), int(units[index])

    def _domain_terms(self, tier: int, units: IntArray) -> Iterator[tuple[int, IntArray]]:
        """Yield the cost of units as the job's domain: per digit, the value of each unit.

        The units that contain such a unit also count as used, once each.
        """
        levels, slots = self._problem.snapshot.levels, self._slots_before[tier][units]
        starts = levels.starts[tier][units]
        yield self._digit_of(ObjectiveKey.NAMES, 0), starts
        yield self._digit_of(ObjectiveKey.SURPLUS, 0), slots
        for digit in self._slot_digits(tier):
            yield digit, slots
        for index, column in enumerate(self._problem.sort_columns):
            yield self._digit_of(ObjectiveKey.SORT, index), column[tier][units]
        for outer in range(tier + 1, levels.root):
            outer_slots = self._slots_before[outer][levels.unit_of_node[outer][starts]]
            yield self._digit_of(ObjectiveKey.PARENT_SURPLUS, outer), outer_slots
            yield self._digit_of(ObjectiveKey.FRAGMENTATION, outer), outer_slots
        for inner in range(1, tier + 1):
            yield self._digit_of(ObjectiveKey.PARENT_SURPLUS, inner), slots


def _tiers_of(problem: Problem, key: ObjectiveKey) -> Iterable[int]:
    """Return the tiers of a key in the order of comparison; empty if the key is not additive."""
    root, eviction, weights = problem.root, problem.evictable, problem.node_weights
    single, no_tiers = range(1), range(0)
    tiers_by_key: dict[ObjectiveKey, Iterable[int]] = {
        ObjectiveKey.PREFERRED_MISSES: single,
        ObjectiveKey.NODE_MISSES: single,
        ObjectiveKey.SURPLUS: single,
        ObjectiveKey.TRAFFIC: single,
        ObjectiveKey.VICTIM_PODS: single,
        ObjectiveKey.NAMES: single,
        ObjectiveKey.EXISTING: reversed(range(root)),
        ObjectiveKey.ISLANDS: range(2),
        ObjectiveKey.DOMAINS: reversed(range(root)),
        ObjectiveKey.HISTOGRAM: reversed(range(root + 1)),
        ObjectiveKey.PARENT_SURPLUS: range(1, root),
        ObjectiveKey.FRAGMENTATION: range(root),
        ObjectiveKey.NODE_WEIGHTS: range(len(weights.weights) if weights else 0),
        ObjectiveKey.SORT: range(len(problem.sort_columns)),
        ObjectiveKey.VICTIM_PRIORITIES: range(len(eviction.priorities) if eviction else 0),
    }
    return tiers_by_key.get(key, no_tiers)


def _digit_width(problem: Problem, num_pods: int) -> int:
    """Return the digit width that holds the sums of pairs, sort columns and preferred labels."""
    traffic = (
        sum(abs(weight) for _, _, weight in problem.traffic_pairs)
        * num_pods**2
        * (problem.root + 1)
    )
    ordered = max(
        (int(abs(column).max()) for rule in problem.sort_columns for column in rule), default=0
    )
    preferred_labels = num_pods * max(
        (len(group.preferred_labels) for group in problem.request.groups), default=0
    )
    num_victim_pods = 0
    if problem.evictable is not None:
        num_victim_pods = sum(
            victim.pods
            for victims in problem.evictable.victims_by_node.values()
            for victim in victims
        )
    return (2 * max(traffic, ordered, preferred_labels, num_victim_pods)).bit_length() + 2
