"""The state of a unit in the tree search: parts and pods in it, and sums that rules bound.

`PartContents` says what a part holds, and how many parts and pods may leave a unit upwards.
`TierRules` checks rules unit by unit, and keeps the sums over the units of a tier that other rules
bound: units used, or pods beyond whole slices. `StateEncoding` makes a state one integer, so that
one operation adds or bounds two states. Every count has its own field, wide enough for the sum of
two, with a guard bit above it. The bound with all guards set, minus the state, keeps every guard if
and only if no count exceeds its bound.

`CostEncoding` makes the additive keys of a preset's objective one integer, to add and compare
costs. Every additive key and tier has a digit, in the order of the preset. Digits are wide enough
that they never overflow. Keys that the search decides beforehand (pods, strategy, tier of the job)
have no digit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from operator import add, gt
from typing import NamedTuple

import numpy as np

from generator.placement.cluster.levels import IntArray, units_with_min
from generator.placement.cluster.shapes import sum_requests
from generator.placement.presets import Direction, ObjectiveKey
from generator.placement.problem.objective import slots_after_use
from generator.placement.problem.problem import Problem
from generator.placement.problem.request_parts import PartType
from generator.placement.problem.rules import ExclusiveRule, ShortSliceRule, SpreadRule


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

        None if pods that must stay would have to be evicted.
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
        """Return the cost of the victims that pods on a node require; None if they must stay."""
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
        """Return the lowest cost of a unit as the domain of the job, and that unit.

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
        ObjectiveKey.NODE_WEIGHTS: range(len(weights.distinct_weights) if weights else 0),
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


class PartContents:
    """The parts of one job by type; inner types come before the types that contain them."""

    def __init__(
        self, types: Sequence[PartType], num_wanted: Sequence[int], num_shapes: int
    ) -> None:
        """Count the contents of each type.

        Args:
            types: all part types, inner types first.
            num_wanted: number of parts of each type outside sets.
            num_shapes: number of pod shapes.
        """
        self._types, self._wanted = types, num_wanted
        index = {part_type: number for number, part_type in enumerate(types)}
        self._members = [
            [(index[inner], count) for inner, count in part_type.members] for part_type in types
        ]
        self._pods: list[list[int]] = []
        for part_type, members in zip(types, self._members, strict=True):
            pods_per_shape = [0] * num_shapes
            if part_type.shape >= 0:
                pods_per_shape[part_type.shape] = part_type.size
            for inner, count in members:
                pods_per_shape = [
                    total + count * inner_pods
                    for total, inner_pods in zip(pods_per_shape, self._pods[inner], strict=True)
                ]
            self._pods.append(pods_per_shape)
        self.pods_per_shape = cache(self._count_pods)
        """Returns the pods per shape in complete parts and loose ones."""
        self.job_pods = self.pods_per_shape(tuple(num_wanted), (0,) * num_shapes)

    def _count_pods(self, done: tuple[int, ...], loose: tuple[int, ...]) -> list[int]:
        total = list(loose)
        for count, pods_per_shape in zip(done, self._pods, strict=True):
            if count:
                total = [
                    pods + count * part_pods
                    for pods, part_pods in zip(total, pods_per_shape, strict=True)
                ]
        return total

    def max_above(self, done: Sequence[int], above: int) -> tuple[list[int], list[int]]:
        """Return the most parts per type and loose pods per shape that may leave a unit upwards.

        Parts are passed up to `above` and higher while a set that may lie there, or the job, still
        needs them; pods while a part needs them.
        """
        missing = [
            num_wanted - num_done for num_wanted, num_done in zip(self._wanted, done, strict=True)
        ]
        max_parts = list(self._wanted)
        for type_index in reversed(range(len(self._types))):
            for inner, count in self._members[type_index]:
                waiting = max(missing[type_index], 0) * count
                missing[inner] += waiting
                max_parts[inner] += waiting if self._types[type_index].max_tier >= above else 0
        pods = [0] * len(self.job_pods)
        for part_type, num_missing in zip(self._types, missing, strict=True):
            if part_type.shape >= 0 and part_type.max_tier >= above and num_missing > 0:
                pods[part_type.shape] += num_missing * part_type.size
        return max_parts, pods

    def max_completable(
        self, index: int, num_missing: int, done: Sequence[int], loose: Sequence[int]
    ) -> int:
        """Return how many of the missing parts of a type can be completed."""
        part_type = self._types[index]
        if part_type.shape >= 0:
            return min(num_missing, loose[part_type.shape] // part_type.size)
        return min(num_missing, *(done[inner] // count for inner, count in self._members[index]))

    def complete_parts(
        self, index: int, count: int, done: tuple[int, ...], loose: tuple[int, ...]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the parts and loose pods after this many parts of a type are completed."""
        parts, pods = list(done), list(loose)
        parts[index] += count
        for inner, per_set in self._members[index]:
            parts[inner] -= count * per_set
        part_type = self._types[index]
        if part_type.shape >= 0:
            pods[part_type.shape] -= count * part_type.size
        return tuple(parts), tuple(pods)


class TierRules:
    """All rules of a problem, for one choice of pods per group."""

    def __init__(self, problem: Problem, job_pods: Sequence[int]) -> None:
        """Count the running pods per unit.

        Args:
            problem: the request and the cluster.
            job_pods: new pods of the job per shape; a group with rules has a shape of its own.
        """
        self._problem, self._job_pods = problem, job_pods
        self._spread_rules = [
            rule for rule in problem.rules.spread_rules if self._num_new(rule.group)
        ]
        self._running: dict[tuple[int, int], Counter[int]] = {}
        self.max_sums = [
            *(max_units for _, max_units in problem.rules.limits),
            *map(self._max_short_pods, problem.rules.short_slice_rules),
            *map(self._max_new_units, self._spread_rules),
        ]
        """The maximum of each sum. It is negative if running pods already exceed the limit."""

    def _num_new(self, group: int) -> int:
        """Return the new pods of a group, from a number of pods per shape."""
        return self._job_pods[self._problem.shape_of[group]]

    def _running_units(self, group: int, tier: int) -> Counter[int]:
        """Return the running pods of a group per unit of a tier."""
        key = group, tier
        if key not in self._running:
            unit_of = self._problem.snapshot.levels.unit_of_node[tier]
            positions = list(self._problem.own_pods.positions_of[group])
            self._running[key] = Counter(unit_of[positions].tolist())
        return self._running[key]

    def _max_short_pods(self, rule: ShortSliceRule) -> int:
        running = len(self._problem.own_pods.positions_of[rule.group])
        return (running + self._num_new(rule.group)) % rule.size

    def _max_new_units(self, rule: SpreadRule) -> int:
        """Return how many units without a running pod of the group may be used."""
        if rule.most is None:
            return self._num_new(rule.group)
        return rule.most - len(self._running_units(rule.group, rule.tier))

    def _least_new_units(self, rule: SpreadRule) -> int:
        return max(rule.least - len(self._running_units(rule.group, rule.tier)), 0)

    def may_lie_in_one(self, tier: int) -> bool:
        """Return whether rules of higher tiers allow all pods in one unit of this tier."""
        problem, pods = self._problem, self._job_pods
        return (
            min(self.max_sums, default=0) >= 0
            and all(max_units > 0 for limited, max_units in problem.rules.limits if limited > tier)
            and all(
                rule.allows(
                    len(problem.own_pods.positions_of[rule.group])
                    + pods[problem.shape_of[rule.group]]
                )
                for rule in problem.rules.unit_rules
                if rule.tier > tier
            )
            and all(rule.least <= 1 for rule in self._spread_rules if rule.tier > tier)
            and not any(
                self._is_shared(rule, pods)
                for rule in problem.rules.exclusive_rules
                if rule.tier > tier
            )
        )

    def apply(
        self, tier: int, unit: int, pods: Sequence[int], sums: tuple[int, ...]
    ) -> tuple[int, ...] | None:
        """Return the sums with a unit added, or None if a rule forbids these pods in it.

        Args:
            tier: the tier of the unit.
            unit: its index.
            pods: new pods in it, per shape.
            sums: over the units inside it.
        """
        problem = self._problem
        for unit_rule in problem.rules.unit_rules:
            if unit_rule.tier == tier:
                num_running = self._running_units(unit_rule.group, tier)[unit]
                if not unit_rule.allows(num_running + pods[problem.shape_of[unit_rule.group]]):
                    return None
        for rule in problem.rules.exclusive_rules:
            if rule.tier == tier and self._is_shared(rule, pods, unit):
                return None
        added = tuple(map(add, sums, self._unit_sums(tier, unit, pods)))
        if any(map(gt, added, self.max_sums)):
            return None
        first = len(added) - len(self._spread_rules)
        # Without a maximum, all numbers of units above the minimum are equivalent.
        capped = (
            num_used if rule.most is not None else min(num_used, self._least_new_units(rule))
            for rule, num_used in zip(self._spread_rules, added[first:], strict=True)
        )
        return (*added[:first], *capped)

    def _unit_sums(self, tier: int, unit: int, pods: Sequence[int]) -> Iterator[int]:
        """Yield what a unit adds to each sum."""
        shape_of = self._problem.shape_of
        for limited_tier, _ in self._problem.rules.limits:
            yield int(limited_tier == tier and any(pods))
        for row in self._problem.rules.short_slice_rules:
            num_pods = self._running_units(row.group, row.tier)[unit] + pods[shape_of[row.group]]
            yield num_pods % row.size if row.tier == tier else 0
        for rule in self._spread_rules:
            is_new = rule.tier == tier and not self._running_units(rule.group, tier)[unit]
            yield int(is_new and pods[shape_of[rule.group]] > 0)

    def are_met(self, tier: int, sums: tuple[int, ...]) -> bool:
        """Return whether the sums of a whole job, in a unit of a tier, reach their minimums."""
        first = len(sums) - len(self._spread_rules)
        return all(
            rule.tier > tier or num_used >= self._least_new_units(rule)
            for rule, num_used in zip(self._spread_rules, sums[first:], strict=True)
        )

    def _is_shared(self, rule: ExclusiveRule, pods: Sequence[int], unit: int | None = None) -> bool:
        """Return whether both groups of a rule and other groups have pods in one unit.

        Without a unit, all running pods are in it.
        """
        is_used = [False, False]
        for group, shape in enumerate(self._problem.shape_of):
            running = self._problem.own_pods.positions_of[group]
            num_running = (
                len(running) if unit is None else self._running_units(group, rule.tier)[unit]
            )
            is_used[group in rule.groups] |= pods[shape] > 0 or num_running > 0
        return all(is_used)


class UnitState(NamedTuple):
    """The contribution of a unit."""

    complete_parts: tuple[int, ...]
    """Complete parts per type."""
    loose_pods: tuple[int, ...]
    """Pods per shape that wait for their part."""
    num_used: tuple[int, ...]
    """The sums of `TierRules`."""


class StateEncoding:
    """Packs the states of one job into integers.

    One operation then adds two states, or compares a state with its bound.
    """

    def __init__(self, contents: PartContents, empty: UnitState, max_used: Sequence[int]) -> None:
        """Lay out the fields; complete parts are in the highest ones, from `parts_shift` on."""
        self._contents, self._max_used = contents, tuple(max_used)
        self._lengths = [len(row) for row in empty]
        parts, pods = contents.max_above(empty.complete_parts, above=0)
        maxima = [*parts, *pods, *max_used]
        self._masks = [(1 << maximum.bit_length() + 1) - 1 for maximum in maxima]
        self._shifts: list[int] = []
        self.guards = shift = 0
        for mask in reversed(self._masks):
            self._shifts.insert(0, shift)
            shift += mask.bit_length() + 1
            self.guards |= 1 << shift - 1
        self.parts_shift = self._shifts[len(parts) - 1]
        self.bounds: dict[int, int] = {}

    def encode(self, state: UnitState) -> int:
        """Return a state as an integer."""
        counts = (*state.complete_parts, *state.loose_pods, *state.num_used)
        return sum(count << shift for count, shift in zip(counts, self._shifts, strict=True))

    def decode(self, packed: int) -> UnitState:
        """Return the state that an integer encodes."""
        fields = zip(self._shifts, self._masks, strict=True)
        counts = tuple(packed >> shift & mask for shift, mask in fields)
        done, loose, _ = self._lengths
        return UnitState(counts[:done], counts[done : done + loose], counts[done + loose :])

    def bound(self, packed: int) -> int:
        """Return the bound on states with these complete parts, with all guards set."""
        key = packed >> self.parts_shift
        if key not in self.bounds:
            parts, pods = self._contents.max_above(self.decode(packed).complete_parts, above=0)
            max_state = UnitState(tuple(parts), tuple(pods), self._max_used)
            self.bounds[key] = self.encode(max_state) | self.guards
        return self.bounds[key]
