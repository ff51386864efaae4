"""The additive part of a preset's vector as one integer, so that a search adds and compares it.

Every key and tier that grows with what is used has a digit, in the order of the preset; digits are
wide enough never to run over. Keys that the search settles beforehand (pods, strategy, tier of the
job) have none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from generator.placement.cluster.levels import Ints, least
from generator.placement.presets import Direction, Key
from generator.placement.problem.objective import slots_after
from generator.placement.problem.parts import PartType
from generator.placement.problem.problem import Problem

SINGLE = frozenset(
    {
        Key.PREFERRED_MISSES,
        Key.NODE_MISSES,
        Key.SURPLUS,
        Key.TRAFFIC,
        Key.VICTIM_PODS,
        Key.NAMES,
    }
)
"""Additive keys of one value."""


class Weights:
    """The additive part of a preset's vector, packed: one base-2^b digit per key and tier."""

    def __init__(self, problem: Problem, num_pods: int) -> None:
        """Lay out the digits for a job of so many pods."""
        self._problem = problem
        levels = problem.snapshot.levels
        largest = problem.shapes[problem.largest]
        self._before = largest.rooms
        bits = (2 * (largest.total + num_pods) * (levels.root + 2) + 8).bit_length() + 1
        bits = max(bits, (2 * len(largest.slots)).bit_length() + 2, _pair_bits(problem, num_pods))
        self._digit: dict[tuple[Key, int], int] = {}
        order = [(term, tier) for term in problem.order for tier in _tiers_of(problem, term.key)]
        for place, (term, tier) in enumerate(reversed(order)):
            sign = -1 if term.direction is Direction.MORE else 1
            self._digit[term.key, tier] = sign << (bits * place)
        self._own_units = [frozenset(int(unit[at]) for at in problem.own) for unit in levels.unit]
        self._per_lost = sum(
            self._of(key, tier)
            for key in (Key.SURPLUS, Key.PARENT_SURPLUS, Key.FRAGMENTATION)
            for tier in range(levels.root)
        )

    def _of(self, key: Key, tier: int) -> int:
        return self._digit.get((key, tier), 0)

    def need(self, counts: tuple[int, ...]) -> Counter[str]:
        """Return what so many pods per shape use."""
        need: Counter[str] = Counter()
        for shape, count in zip(self._problem.shapes, counts, strict=True):
            for name, quantity in shape.request.items():
                need[name] += quantity * count
        return need

    def of_node(self, at: int, counts: tuple[int, ...]) -> int:
        """Return what pods on a node cost: the slots of the largest shape that they take."""
        largest = self._problem.shapes[self._problem.largest]
        before = int(largest.slots[at])
        if not any(counts):
            return 0
        misses = sum(
            count * int(shape.misses[at])
            for shape, count in zip(self._problem.shapes, counts, strict=True)
            if shape.misses is not None
        )
        after = (
            before - sum(counts)
            if len(self._problem.shapes) == 1
            else slots_after(self._problem, largest, at, self.need(counts))
        )
        cost = (after - before) * self._per_lost + misses * self._of(Key.NODE_MISSES, 0)
        if self._problem.node_weights is not None:
            rank = int(self._problem.node_weights.rank[at])
            cost += sum(counts) * self._of(Key.NODE_WEIGHTS, rank)
        return cost + self._of_victims(at, counts)

    def _of_victims(self, at: int, counts: tuple[int, ...]) -> int:
        """Return what those cost who make room for pods on a node."""
        eviction = self._problem.eviction
        if eviction is None:
            return 0
        return sum(
            victim.pods
            * (
                self._of(Key.VICTIM_PRIORITIES, eviction.priorities.index(victim.priority))
                + self._of(Key.VICTIM_PODS, 0)
            )
            for victim in eviction.least(at, self.need(counts))
        )

    def of_part(self, tier: int, kind: PartType) -> int:
        """Return what completing a part at a tier costs."""
        misses = sum(tier > wish for wish in kind.preferred)
        if kind.members:
            return misses * self._of(Key.PREFERRED_MISSES, 0)
        return self._of(Key.HISTOGRAM, max(tier, kind.floor)) + misses * self._of(
            Key.PREFERRED_MISSES, 0
        )

    def of_unit(self, tier: int, unit: int, pods: Sequence[int]) -> int:
        """Return what so many pods per shape in a unit cost as such."""
        num_pods = sum(pods)
        if num_pods == 0 or tier == self._problem.root:
            return 0
        cost = self._of(Key.DOMAINS, tier) + self.of_room(tier, unit)
        cost += self._of(Key.ISLANDS, 0) if self._is_island(tier) else 0
        if unit in self._own_units[tier]:
            cost += self._of(Key.EXISTING, tier) * num_pods
        for first, second, weight in self._problem.pairs:
            together = (
                pods[first] * (pods[first] - 1) // 2
                if first == second
                else pods[first] * pods[second]
            )
            cost -= self._of(Key.TRAFFIC, 0) * weight * together
        return cost

    def of_room(self, tier: int, unit: int) -> int:
        """Return what the room of a unit costs once pods are in it."""
        room = int(self._before[tier][unit])
        return room * sum(self._digits_of_room(tier))

    def _digits_of_room(self, tier: int) -> Iterator[int]:
        yield self._of(Key.FRAGMENTATION, tier)
        if self._is_island(tier):
            yield self._of(Key.ISLANDS, 1)

    def _is_island(self, tier: int) -> bool:
        """Return whether units of a tier are top domains that are to be spared."""
        return tier == self._problem.root - 1 and self._problem.spares_islands

    def cheapest_domain(self, tier: int, units: Ints) -> tuple[int, int]:
        """Return the least cost of taking one of some units as the job's domain, and that unit.

        What their room costs counts, what is inside them does not. Among equals the first. Costs
        are comparable between units of a tier. Cost: O(units) per digit, of which the highest
        mostly decide.
        """
        terms = [row for row in self._terms_of_domain(tier, units) if row[0]]
        left = np.arange(len(units))
        for digit, column in sorted(terms, key=lambda row: -abs(row[0])):
            left = least(left, column[left] if digit > 0 else -column[left])
        at = int(left[0])
        return sum(digit * int(column[at]) for digit, column in terms), int(units[at])

    def _terms_of_domain(self, tier: int, units: Ints) -> Iterator[tuple[int, Ints]]:
        """Yield what units cost as the job's domain: by digit, the value of each of them.

        The units above it are used too, each once, whatever lies inside.
        """
        levels, inside = self._problem.snapshot.levels, self._before[tier][units]
        starts = levels.starts[tier][units]
        yield self._of(Key.NAMES, 0), starts
        yield self._of(Key.SURPLUS, 0), inside
        for digit in self._digits_of_room(tier):
            yield digit, inside
        for index, column in enumerate(self._problem.sort_columns):
            yield self._of(Key.SORT, index), column[tier][units]
        for above in range(tier + 1, levels.root):
            over = self._before[above][levels.unit[above][starts]]
            yield self._of(Key.PARENT_SURPLUS, above), over
            yield self._of(Key.FRAGMENTATION, above), over
        for same in range(1, tier + 1):
            yield self._of(Key.PARENT_SURPLUS, same), inside


def _tiers_of(problem: Problem, key: Key) -> Iterable[int]:
    """Return the tiers of a key, in the order in which they are compared; none if not additive."""
    root, eviction, weights = problem.root, problem.eviction, problem.node_weights
    several = {
        Key.EXISTING: reversed(range(root)),
        Key.ISLANDS: range(2),
        Key.DOMAINS: reversed(range(root)),
        Key.HISTOGRAM: reversed(range(root + 1)),
        Key.PARENT_SURPLUS: range(1, root),
        Key.FRAGMENTATION: range(root),
        Key.NODE_WEIGHTS: range(len(weights.weights) if weights else 0),
        Key.SORT: range(len(problem.sort_columns)),
        Key.VICTIM_PRIORITIES: range(len(eviction.priorities) if eviction else 0),
    }
    return several.get(key, range(1) if key in SINGLE else range(0))


def _pair_bits(problem: Problem, num_pods: int) -> int:
    """Return the width of a digit that holds what pairs, sorted columns and wishes add up to."""
    traffic = sum(abs(weight) for _, _, weight in problem.pairs) * num_pods**2 * (problem.root + 1)
    ordered = max((int(abs(row).max()) for rule in problem.sort_columns for row in rule), default=0)
    wishes = num_pods * max((len(group.wishes) for group in problem.request.groups), default=0)
    gone = 0
    if problem.eviction is not None:
        gone = sum(victim.pods for row in problem.eviction.of_node.values() for victim in row)
    return (2 * max(traffic, ordered, wishes, gone)).bit_length() + 2
