"""A greedy finder for problems that the exact search cannot solve in time: one part at a time.

The largest parts with the lowest tiers come first, each into the tightest unit of the lowest tier
that holds it. The result is never proved; every rule is checked before it is returned.

Slices that running pods have begun are completed first, those with the fewest missing pods before
others. Whole slices follow: the tightest domain of their tier that holds all remaining ones, or
else as many as fit into the largest domain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from generator.placement.budget import Budget
from generator.placement.cluster.levels import IntArray, UnitRef, units_inside
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
from generator.placement.problem.trial import Trial, TrialPods

STEPS_PER_PART = 8
"""Cost of placing one part, apart from the nodes that are compared."""
MAX_DOMAINS_TRIED = 8
"""Domains tried per tier, those with the fewest slots first."""


class GreedyFinder:
    """Finds a placement for one choice of pods per group."""

    def __init__(self, problem: Problem, parts: Sequence[RequestPart], budget: Budget) -> None:
        """Store the parts of the job; inner parts are inside their set."""
        self._problem, self.parts, self._budget = problem, parts, budget

    def find_best(self, tier: int, units: IntArray) -> PartPlacement | None:
        """Return a placement whose domain is one of these units of a tier.

        Raises:
            BudgetExhausted: the budget ended.
        """
        slots = self._problem.shapes[self._problem.scarcest_shape].slots_by_tier[tier][units]
        num_shapes = len(self._problem.shapes)
        for unit in units[np.argsort(slots, kind="stable")[:MAX_DOMAINS_TRIED]].tolist():
            self._budget.spend(len(self.parts))
            self._budget.spend_on_arrays(num_shapes * self._problem.snapshot.num_nodes // 10)
            attempt = _Attempt(self._problem, self._budget)
            placed = attempt.place_job(_hardest_first(self.parts), UnitRef(tier, unit))
            if placed is None:
                continue
            pods = assign_parts(len(self._problem.request.groups), self.parts, placed)
            if satisfies_rules(self._problem, pods):
                return PartPlacement(placed, is_proved=False)
        return None


def _hardest_first(parts: Sequence[RequestPart]) -> list[RequestPart]:
    return sorted(parts, key=lambda part: (part.part_type.max_tier, -part.part_type.size))


class _Attempt:
    """Parts of one job while they are placed in one domain after the other."""

    def __init__(self, problem: Problem, budget: Budget) -> None:
        self._problem, self._levels, self._budget = problem, problem.snapshot.levels, budget
        self._trial = Trial(problem)

    def _slots_by_tier(self, shape: int) -> Sequence[IntArray]:
        """Return the slots of a shape per tier and unit, without units of other groups."""
        group = self._problem.shape_of.index(shape)
        slots_by_tier = self._trial.slots_by_tier(group)
        for rule in self._problem.rules.exclusive_rules:
            unit_of = self._levels.unit_of_node[rule.tier]
            others = [
                node
                for other, node in self._used_nodes()
                if (other in rule.groups) is not (group in rule.groups)
            ]
            is_closed = np.isin(unit_of, unit_of[others])
            slots_by_tier = self._levels.sum_by_tier(np.where(is_closed, 0, slots_by_tier[0]))
        return slots_by_tier

    def _used_nodes(self) -> Iterator[tuple[int, int]]:
        """Yield (group, node) of pods that run or are placed; groups with rules differ by shape."""
        for group, nodes in enumerate(self._problem.own_pods.positions_of):
            yield from ((group, node) for node in nodes)
        yield from ((pods.group, pods.node) for pods in self._trial.pods)

    def place_job(self, parts: Sequence[RequestPart], place: UnitRef) -> list[PlacedPart] | None:
        """Place all parts of the job in a unit; groups with begun slices come first."""
        placed: list[PlacedPart] = []
        for group in sorted({part.group for part in parts if part.group >= 0}):
            layer = _find_begun_slices(self._problem, group)
            if layer is None or layer.tier >= place.tier:
                continue
            group_parts = [part for part in parts if part.group == group]
            nodes = self._complete_slices(layer, group_parts, place)
            if nodes is None:
                return None
            for part in group_parts:
                placed.append(PlacedPart(part.part_type, nodes[: part.part_type.size]))
                del nodes[: part.part_type.size]
            parts = [part for part in parts if part.group != group]
        found = self._place_parts(parts, place)
        return None if found is None else placed + found

    def _complete_slices(
        self, layer: _BegunSlices, parts: Sequence[RequestPart], place: UnitRef
    ) -> list[int] | None:
        """Return the nodes of a group's pods beside its running ones, in tree order."""
        shape, num_left = parts[0].part_type.shape, sum(part.part_type.size for part in parts)
        units = units_inside(self._levels, place, layer.tier)
        nodes: list[int] = []
        missing = layer.size - layer.excess_pods[units]
        for index in np.argsort(missing, kind="stable").tolist():
            unit, num_missing = UnitRef(layer.tier, int(units[index])), int(missing[index])
            room = int(self._slots_by_tier(shape)[layer.tier][unit.unit])
            if num_missing < layer.size and num_missing <= min(num_left, room):
                nodes += self._fill_nodes(shape, num_missing, unit)
                num_left -= num_missing
        while num_left:
            rounding = layer.size if num_left >= layer.size else 1
            slots = self._slots_by_tier(shape)[layer.tier][units] // rounding * rounding
            wanted = num_left // rounding * rounding
            count = min(wanted, int(slots.max()))
            if not count:
                return None
            chosen = _tightest(units, slots, count)
            nodes += self._fill_nodes(shape, count, UnitRef(layer.tier, chosen))
            num_left -= count
        return sorted(nodes)

    def _place_parts(self, parts: Iterable[RequestPart], place: UnitRef) -> list[PlacedPart] | None:
        """Place parts in a unit; None if one of them does not fit."""
        placed: list[PlacedPart] = []
        for part in parts:
            self._budget.spend(STEPS_PER_PART)
            self._budget.spend_on_arrays(len(units_inside(self._levels, place, 0)))
            place_it = self._place_set if part.members else self._place_part
            found = place_it(part, place)
            if found is None:
                return None
            placed.append(found)
        return placed

    def _place_set(self, part: RequestPart, place: UnitRef) -> PlacedPart | None:
        """Place a set in the tightest unit of the lowest tier that holds all of it."""
        for tier in range(min(part.part_type.max_tier, place.tier) + 1):
            units = self._units_for(part.part_type, tier, place)
            slots = self._slots_by_tier(self._problem.scarcest_shape)[tier][units]
            order = np.argsort(slots, kind="stable")
            for unit in units[order[slots[order] > 0]][:MAX_DOMAINS_TRIED].tolist():
                mark = self._trial.mark
                members = self._place_parts(_hardest_first(part.members), UnitRef(tier, unit))
                if members is not None:
                    return PlacedPart(part.part_type, [], tuple(members))
                self._trial.undo(mark)
        return None

    def _place_part(self, part: RequestPart, place: UnitRef) -> PlacedPart | None:
        """Place a part in the tightest unit of the lowest tier that holds it."""
        part_type = part.part_type
        for rule in self._problem.rules.spread_rules:
            if rule.group == part.group and rule.least > 1 and rule.tier < place.tier:
                return self._place_spread(part_type, rule, place)
        slots_by_tier = self._slots_by_tier(part_type.shape)
        for tier in range(min(part_type.max_tier, place.tier) + 1):
            units = self._units_for(part_type, tier, place)
            slots = slots_by_tier[tier][units]
            if slots.max(initial=0) >= part_type.size:
                chosen = UnitRef(tier, _tightest(units, slots, part_type.size))
                nodes = self._fill_nodes(part_type.shape, part_type.size, chosen)
                return PlacedPart(part_type, nodes)
        return None

    def _units_for(self, part_type: PartType, tier: int, place: UnitRef) -> IntArray:
        """Return the units of a tier inside a unit that contain the running pods of a part."""
        units = units_inside(self._levels, place, tier)
        for node in part_type.running_span or ():
            units = units[units == self._levels.unit_of_node[tier][node]]
        return units

    def _place_spread(
        self, part_type: PartType, rule: SpreadRule, place: UnitRef
    ) -> PlacedPart | None:
        """Place a part in the units with most slots: one pod in each of the fewest, then more."""
        units = units_inside(self._levels, place, rule.tier)
        slots = self._slots_by_tier(part_type.shape)[rule.tier][units]
        order = np.argsort(-slots, kind="stable")[: rule.most]
        room = dict(zip(units[order].tolist(), slots[order].tolist(), strict=True))
        counts = dict.fromkeys([unit for unit, slot in room.items() if slot][: rule.least], 1)
        num_left = part_type.size - len(counts)
        if len(counts) < rule.least or num_left < 0:
            return None
        for unit, num_slots in room.items():
            added = min(num_left, num_slots - counts.get(unit, 0))
            counts[unit], num_left = counts.get(unit, 0) + added, num_left - added
        if num_left:
            return None
        rows = [
            self._fill_nodes(part_type.shape, count, UnitRef(rule.tier, unit))
            for unit, count in counts.items()
        ]
        return PlacedPart(part_type, sorted(node for row in rows for node in row))

    def _fill_nodes(self, shape: int, num_pods: int, place: UnitRef) -> list[int]:
        """Place pods on the nodes of a unit, in units with more slots first per tier."""
        slots_by_tier, nodes = self._slots_by_tier(shape), units_inside(self._levels, place, 0)
        self._budget.spend_on_arrays(len(slots_by_tier) * len(nodes))
        units = [unit_of[nodes] for unit_of in self._levels.unit_of_node[: place.tier]]
        keys = [
            column for tier, row in enumerate(units) for column in (row, -slots_by_tier[tier][row])
        ]
        order = nodes[np.lexsort(keys)] if keys else nodes
        group, filled = self._problem.shape_of.index(shape), list[int]()
        for node, slots in zip(order.tolist(), slots_by_tier[0][order].tolist(), strict=True):
            count = min(slots, num_pods - len(filled))
            if count:  # else a full node beside a free one of the same unit, or the rest
                self._budget.spend(1 + len(self._problem.shapes) // 4)
                self._trial.put(TrialPods(group, node, count))
                filled += [node] * count
        return sorted(filled)


def _tightest(units: IntArray, slots: IntArray, num_pods: int) -> int:
    """Return the unit with the fewest slots that still holds all pods; the first of equal units.

    At least one unit must hold them.
    """
    return int(units[np.where(slots >= num_pods, slots, np.iinfo(np.int64).max).argmin()])


class _BegunSlices(NamedTuple):
    """A layer of slices in domains of a tier; slices may be incomplete."""

    tier: int
    size: int
    excess_pods: IntArray
    """Per unit of the tier: running pods beyond whole slices."""


def _find_begun_slices(problem: Problem, group: int) -> _BegunSlices | None:
    """Return the group's slices that its running pods may have begun; None if there are none.

    Only for a group with a single layer of slices, in a tier and not cut by index.
    """
    layers, running = problem.request.groups[group].slices, problem.own_pods.positions_of[group]
    if len(layers) != 1 or layers[0].tier is None or layers[0].is_indexed or not running:
        return None
    (layer,), levels = layers, problem.snapshot.levels
    tier = levels.height_of(layer.tier)
    num_running = np.bincount(
        levels.unit_of_node[tier][list(running)], minlength=len(levels.starts[tier])
    )
    return _BegunSlices(tier, layer.size, num_running % layer.size)
