"""A greedy finder for problems that the exact search cannot solve in time: one part at a time.

The largest parts with the lowest tiers come first, each into the tightest unit of the lowest tier
that holds it. The result is never proved; every rule is checked before it is returned.

Slices that running pods have begun are completed first, those with the fewest missing pods before
others. Whole slices follow: the tightest domain of their tier that holds all remaining ones, or
else as many as fit into the largest domain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from generator.placement.budget import Budget
from generator.placement.cluster.capacity import FreeCapacity
from generator.placement.cluster.levels import BoolArray, IntArray
from generator.placement.problem.constraints import satisfies_rules
from generator.placement.problem.problem import Problem
from generator.placement.problem.request_parts import (
    PartPlacement,
    PartType,
    PlacedPart,
    RequestPart,
    assign_parts,
)
from generator.placement.problem.rules import SpreadRule

STEPS_PER_PART = 8
"""Cost of placing one part, apart from the nodes that are compared."""
MAX_DOMAINS_TRIED = 8
"""Domains tried per tier, those with the fewest slots first."""


class GreedyFinder:
    """Finds a placement for one choice of pods per group."""

    def __init__(self, problem: Problem, parts: Sequence[RequestPart], budget: Budget) -> None:
        """Store the parts of the job; inner parts are inside their set."""
        self._problem, self.parts, self._budget = problem, parts, budget
        self._hardest_first = _hardest_first(parts)

    def find_best(self, tier: int, units: IntArray) -> PartPlacement | None:
        """Return a placement whose domain is one of these units of a tier.

        Raises:
            BudgetExhausted: the budget ended.
        """
        slots = self._problem.shapes[self._problem.scarcest_shape].slots_by_tier[tier][units]
        num_shapes = len(self._problem.shapes)
        for unit in units[np.argsort(slots, kind="stable")[:MAX_DOMAINS_TRIED]]:
            self._budget.spend(len(self.parts))
            self._budget.spend_on_arrays(num_shapes * self._problem.snapshot.num_nodes // 10)
            domain = _GreedyDomain(self._problem, tier, int(unit), self._budget)
            placed = domain.place_job(self._hardest_first, tier, int(unit))
            if placed is not None and satisfies_rules(
                self._problem, self._assign_positions(placed)
            ):
                return PartPlacement(placed, is_proved=False)
        return None

    def _assign_positions(self, placed: list[PlacedPart]) -> tuple[tuple[int, ...], ...]:
        return assign_parts(len(self._problem.request.groups), self.parts, placed)


def _hardest_first(parts: Sequence[RequestPart]) -> list[RequestPart]:
    return sorted(parts, key=lambda part: (part.part_type.max_tier, -part.part_type.size))


class _GreedyDomain:
    """The free slots of one domain while parts are placed in it."""

    def __init__(self, problem: Problem, tier: int, unit: int, budget: Budget) -> None:
        levels = problem.snapshot.levels
        self._problem, self._levels, self._budget = problem, levels, budget
        self._start, self._stop = int(levels.starts[tier][unit]), int(levels.stops[tier][unit])
        self._free_slots = FreeCapacity(problem.snapshot, problem.shapes)
        self._placed: list[tuple[int, int]] = []
        """(group, node) per change of the free slots."""

    def _slots(self, shape: int) -> IntArray:
        """Return the slots of a shape per node of the domain, without units of other groups."""
        slots = self._free_slots.slots_by_tier(shape)[0][self._start : self._stop]
        for rule in self._problem.rules.exclusive_rules:
            unit_of = self._levels.unit_of_node[rule.tier]
            is_inside = self._problem.shape_of.index(shape) in rule.groups
            others = [
                node
                for group, node in self._placed_nodes()
                if (group in rule.groups) is not is_inside
            ]
            is_other = np.isin(unit_of[self._start : self._stop], unit_of[others])
            slots = np.where(is_other, 0, slots)
        return slots

    def _placed_nodes(self) -> Iterator[tuple[int, int]]:
        """Yield (group, node) of pods that run or are placed; groups with rules differ by shape."""
        for group, nodes in enumerate(self._problem.own_pods.positions_of):
            yield from ((group, node) for node in nodes)
        yield from self._placed

    def place_job(
        self, parts: Sequence[RequestPart], tier: int, unit: int
    ) -> list[PlacedPart] | None:
        """Place all parts of the job in a unit; groups with begun slices come first."""
        placed: list[PlacedPart] = []
        groups = {part.group for part in parts if part.group >= 0}
        for group in sorted(groups):
            layer = _find_partial_slices(self._problem, group)
            group_parts = [part for part in parts if part.group == group]
            if layer is None or layer.tier >= tier:
                continue
            found = self._complete_partial_slices(layer, group_parts, tier, unit)
            if found is None:
                return None
            placed += found
            parts = [part for part in parts if part.group != group]
        found = self.place_parts(parts, tier, unit)
        return None if found is None else placed + found

    def _complete_partial_slices(
        self, layer: _PartialSlices, parts: list[RequestPart], tier: int, unit: int
    ) -> list[PlacedPart] | None:
        """Place a group's pods beside its running ones, and cut them into parts in tree order."""
        first, starts = self._unit_starts(layer.tier, tier, unit)
        stops = np.append(starts[1:], self._stop - self._start)
        part_type = parts[0].part_type

        def room_of(units: IntArray) -> IntArray:
            sums = np.add.reduceat(self._slots(part_type.shape), starts)
            return np.asarray(sums[units - first])

        nodes: list[int] = []
        units = np.arange(first, first + len(starts))
        num_pods = sum(part.part_type.size for part in parts)
        for inner_unit, count in _complete_slices(layer, units, num_pods, room_of):
            node_range = int(starts[inner_unit - first]), int(stops[inner_unit - first])
            nodes += self._fill_nodes(part_type._replace(size=count), *node_range)
        if len(nodes) < num_pods:
            return None
        nodes.sort()
        placed = []
        for part in parts:
            placed.append(PlacedPart(part.part_type, nodes[: part.part_type.size]))
            del nodes[: part.part_type.size]
        return placed

    def place_parts(
        self, parts: Sequence[RequestPart], tier: int, unit: int
    ) -> list[PlacedPart] | None:
        """Place parts in a unit; None if one of them does not fit."""
        placed: list[PlacedPart] = []
        for part in parts:
            self._budget.spend(STEPS_PER_PART)
            self._budget.spend_on_arrays(self._stop - self._start)
            found = (
                self._place_set(part, tier, unit)
                if part.members
                else self._place_part(part, tier, unit)
            )
            if found is None:
                return None
            placed.append(found)
        return placed

    def _place_set(self, part: RequestPart, tier: int, unit: int) -> PlacedPart | None:
        """Place a set in the tightest unit of the lowest tier that holds all of it."""
        members = _hardest_first(part.members)
        stop = int(self._levels.stops[tier][unit]) - self._start
        for inner_tier in range(min(part.part_type.max_tier, tier) + 1):
            first, starts = self._unit_starts(inner_tier, tier, unit)
            slots = np.add.reduceat(self._slots(self._problem.scarcest_shape)[:stop], starts)
            order = np.argsort(slots, kind="stable")
            is_fitting = self._contains_running(part.part_type, inner_tier, first, len(slots)) & (
                slots > 0
            )
            for index in order[is_fitting[order]][:MAX_DOMAINS_TRIED]:
                mark = len(self._free_slots.changes)
                found = self.place_parts(members, inner_tier, first + int(index))
                if found is not None:
                    return PlacedPart(part.part_type, [], tuple(found))
                self._free_slots.undo(mark)
                del self._placed[mark:]
        return None

    def _unit_starts(self, inner_tier: int, tier: int, unit: int) -> tuple[int, IntArray]:
        """Return the first unit of a lower tier inside a unit, and where all of them start."""
        first_node, last_node = self._levels.starts[tier][unit], self._levels.stops[tier][unit]
        first = int(self._levels.unit_of_node[inner_tier][first_node])
        last = int(self._levels.unit_of_node[inner_tier][last_node - 1])
        return first, self._levels.starts[inner_tier][first : last + 1] - self._start

    def _contains_running(
        self, part_type: PartType, tier: int, first: int, count: int
    ) -> BoolArray:
        fits = np.ones(count, dtype=np.bool_)
        for position in part_type.running_span or ():
            fits &= np.arange(first, first + count) == self._levels.unit_of_node[tier][position]
        return fits

    def _place_part(self, part: RequestPart, tier: int, unit: int) -> PlacedPart | None:
        """Place a part in the tightest unit of the lowest tier that holds it."""
        part_type = part.part_type
        for rule in self._problem.rules.spread_rules:
            if rule.group == part.group and rule.least > 1 and rule.tier < tier:
                return self._place_spread(part, rule, tier, unit)
        stop = int(self._levels.stops[tier][unit]) - self._start
        slots = self._slots(part_type.shape)[:stop]
        for inner_tier in range(min(part_type.max_tier, tier) + 1):
            first, starts = self._unit_starts(inner_tier, tier, unit)
            unit_slots = np.add.reduceat(slots, starts)
            is_fitting = (unit_slots >= part_type.size) & self._contains_running(
                part_type, inner_tier, first, len(unit_slots)
            )
            if is_fitting.any():
                chosen = int(np.argmin(np.where(is_fitting, unit_slots, np.iinfo(np.int64).max)))
                stops = np.append(starts[1:], stop)
                nodes = self._fill_nodes(part_type, int(starts[chosen]), int(stops[chosen]))
                return PlacedPart(part_type, nodes)
        return None

    def _place_spread(
        self, part: RequestPart, rule: SpreadRule, tier: int, unit: int
    ) -> PlacedPart | None:
        """Place a part in the units with most slots: one pod in each of the fewest, then more."""
        part_type = part.part_type
        stop = int(self._levels.stops[tier][unit]) - self._start
        _, starts = self._unit_starts(rule.tier, tier, unit)
        stops = np.append(starts[1:], stop)
        unit_slots = np.add.reduceat(self._slots(part_type.shape)[:stop], starts)
        order = np.argsort(-unit_slots, kind="stable")[: rule.most]
        counts = dict.fromkeys(order[unit_slots[order] > 0][: rule.least].tolist(), 1)
        num_left = part_type.size - len(counts)
        if len(counts) < rule.least or num_left < 0:
            return None
        for index in order.tolist():
            added = min(num_left, int(unit_slots[index]) - counts.get(index, 0))
            counts[index], num_left = counts.get(index, 0) + added, num_left - added
        if num_left:
            return None
        nodes = [
            node
            for index, count in counts.items()
            for node in self._fill_nodes(
                part_type._replace(size=count), int(starts[index]), int(stops[index])
            )
        ]
        return PlacedPart(part_type, sorted(nodes))

    def _fullest_first(self, slots: IntArray, start: int, stop: int) -> IntArray:
        """Return the nodes of a range, grouped by unit, units with more slots first per tier."""
        self._budget.spend_on_arrays(len(self._levels.unit_of_node) * (stop - start))
        keys = []
        for unit_of in self._levels.unit_of_node:
            units = unit_of[self._start + start : self._start + stop]
            units = units - units[0]
            unit_slots = np.bincount(units, weights=slots[start:stop])
            keys += [units, -unit_slots[units]]
        return np.lexsort(keys) + start

    def _fill_nodes(self, part_type: PartType, start: int, stop: int) -> list[int]:
        slots = self._slots(part_type.shape)
        nodes: list[int] = []
        for offset in self._fullest_first(slots, start, stop):
            count = min(int(slots[offset]), part_type.size - len(nodes))
            if not count:
                continue  # a full node beside a free one of the same unit
            node = int(offset) + self._start
            nodes += [node] * count
            self._budget.spend(1 + len(self._problem.shapes) // 4)
            self._free_slots.take(part_type.shape, node, count)
            self._placed.append((self._problem.shape_of.index(part_type.shape), node))
        return sorted(nodes)


class _PartialSlices(NamedTuple):
    """A layer of slices in domains of a tier, some of which may be incomplete."""

    tier: int
    size: int
    excess_pods: IntArray
    """Per unit of the tier: running pods beyond whole slices."""


def _find_partial_slices(problem: Problem, group: int) -> _PartialSlices | None:
    """Return the group's slices that its running pods may have begun; None if there are none.

    Only for a group with a single layer of slices, in a tier and not cut by index.
    """
    layers = problem.request.groups[group].slices
    if len(layers) != 1 or layers[0].tier is None or layers[0].is_indexed:
        return None
    if not problem.own_pods.positions_of[group]:
        return None
    layer, levels = layers[0], problem.snapshot.levels
    tier = problem.snapshot.levels.height_of(layer.tier)
    running_units = levels.unit_of_node[tier][list(problem.own_pods.positions_of[group])]
    return _PartialSlices(
        tier,
        layer.size,
        np.bincount(running_units, minlength=len(levels.starts[tier])) % layer.size,
    )


def _complete_slices(
    layer: _PartialSlices, units: IntArray, num_pods: int, room_of: Callable[[IntArray], IntArray]
) -> Iterator[tuple[int, int]]:
    """Yield (unit, pods to place there) until all are placed; fewer if they do not fit.

    Args:
        layer: the layer of slices.
        units: units of its tier that may be used.
        num_pods: the number of new pods.
        room_of: returns the pods that units still hold; called again after each portion.
    """
    missing = layer.size - layer.excess_pods[units]
    for unit, num_missing in sorted(
        zip(units.tolist(), missing.tolist(), strict=True), key=_missing_pods_first
    ):
        slots = int(room_of(np.array([unit]))[0])
        if num_missing < layer.size and num_missing <= min(num_pods, slots):
            yield unit, num_missing
            num_pods -= num_missing
    while num_pods:
        usable_slots = room_of(units)
        rounding = layer.size if num_pods >= layer.size else 1
        usable_slots = usable_slots // rounding * rounding
        wanted_pods = num_pods // rounding * rounding
        is_enough = bool((usable_slots >= wanted_pods).any())
        index = int(
            np.where(usable_slots >= wanted_pods, -usable_slots, -usable_slots.max() - 1).argmax()
        )
        index = index if is_enough else int(usable_slots.argmax())
        num_placed = min(wanted_pods, int(usable_slots[index]))
        if not num_placed:
            return
        yield int(units[index]), num_placed
        num_pods -= num_placed


def _missing_pods_first(entry: tuple[int, int]) -> tuple[int, int]:
    unit, num_missing = entry
    return num_missing, unit
