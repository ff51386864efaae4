"""Measure a placement by the keys of the objective vector, and order the keys as a preset does.

The placement itself is measured, independently of the search that found it. See docs/adr.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from generator.placement.answer import NO_DETAILS
from generator.placement.cluster.levels import IntArray
from generator.placement.cluster.shapes import PodShape
from generator.placement.presets import Direction, ObjectiveKey, ObjectiveTerm
from generator.placement.problem.preemption import EvictionResult, evict_for
from generator.placement.problem.problem import Problem

PositionsPerGroup = tuple[tuple[int, ...], ...]
"""Per group the positions of the nodes of its placed pods, in index order."""


@dataclass(eq=False)
class Objective:
    """A measured placement: all keys, including those that the preset does not compare.

    A key is measured when it is first read. A key with several tiers has one value per tier.
    """

    problem: Problem
    pods: Sequence[Sequence[int]]
    """Per group the positions of its placed pods, in index order."""
    strategy: int
    """Index of the strategy that the placement satisfies."""
    _measured_keys: dict[ObjectiveKey, tuple[int, ...]] = field(default_factory=dict, repr=False)

    def vector(self, order: Iterable[ObjectiveTerm]) -> tuple[int, ...]:
        """Return the numbers to compare: smaller is better, and the first difference decides."""
        return tuple(
            -value if term.direction is Direction.MORE else value
            for term in order
            for value in self[term.key]
        )

    def __getitem__(self, key: ObjectiveKey) -> tuple[int, ...]:
        """Measure a key, or return its value if it was read before."""
        value = self._measured_keys.get(key)
        if value is None:
            value = self._measured_keys[key] = _MEASURES[key](self)
        return value

    @cached_property
    def positions(self) -> IntArray:
        """Positions of all placed pods."""
        return np.array([node for row in self.pods for node in row], dtype=np.int64)

    @cached_property
    def job_tier(self) -> int:
        """Tier of the job's domain."""
        held = [
            *filter(None, self.pods),
            *([self.problem.own_pods.positions] if self.problem.own_pods.positions else []),
        ]
        low, high = min(map(min, held)), max(map(max, held))
        return max(
            self.problem.snapshot.levels.common_tier(low, high), self.problem.lowest_job_tier
        )

    @cached_property
    def job_unit(self) -> int:
        """The job's domain: a unit of its tier."""
        first = next(row[0] for row in self.pods if row)
        return int(self.problem.snapshot.levels.unit_of_node[self.job_tier][first])

    @cached_property
    def histogram(self) -> Counter[int]:
        """Number of parts per tier."""
        return Counter(histogram_tiers(self.problem, self.pods))

    @cached_property
    def used_units(self) -> list[IntArray]:
        """Units used, per tier below the root."""
        return [
            np.unique(unit[self.positions])
            for unit in self.problem.snapshot.levels.unit_of_node[:-1]
        ]

    @cached_property
    def node_slots_left(self) -> IntArray:
        """Per node: slots of the scarcest shape that stay free."""
        return slots_left(self.problem, self.pods)

    @cached_property
    def eviction(self) -> EvictionResult | None:
        """What the placement evicts; None if nothing may be evicted."""
        evictable = self.problem.evictable
        if evictable is None:
            return None
        used = self.problem.resources_used(self.pods)
        return evict_for(self.problem.snapshot, evictable, used)

    def slots_left_in(self, tier: int, unit: int) -> int:
        """Return the slots that stay free in a unit."""
        levels = self.problem.snapshot.levels
        return int(self.node_slots_left[levels.starts[tier][unit] : levels.stops[tier][unit]].sum())


@dataclass(frozen=True, slots=True)
class PlacementCandidate:
    """A placement by node position."""

    positions: PositionsPerGroup
    objective: Objective
    is_proved: bool
    make_details: Callable[[], Mapping[str, Any]] = lambda: NO_DETAILS
    """Returns details that the preset's own rules computed, as the answer shows them."""


def _measure_existing(measures: Objective) -> tuple[int, ...]:
    """Return per tier below the root, coarsest first, how many pods are near a running pod."""
    tiers = reversed(range(measures.problem.root))
    return tuple(_num_near_running(measures.problem, measures.positions, tier) for tier in tiers)


def _measure_parent_surplus(measures: Objective) -> tuple[int, ...]:
    """Return the slots left in each unit above the job's domain, the finest first."""
    first, levels = int(measures.positions[0]), measures.problem.snapshot.levels
    tiers = range(measures.job_tier + 1, levels.root)
    return tuple(
        measures.slots_left_in(tier, int(levels.unit_of_node[tier][first])) for tier in tiers
    )


def _measure_islands(measures: Objective) -> tuple[int, ...]:
    """Return the number of top-level units used, and their slots of the scarcest shape.

    Zeros if the job fits below that tier, or need not spare islands.
    """
    top = measures.problem.root - 1
    if measures.job_tier < top or not measures.problem.spares_islands:
        return 0, 0
    slots = measures.problem.shapes[measures.problem.scarcest_shape].slots_by_tier[top]
    return len(measures.used_units[top]), int(slots[measures.used_units[top]].sum())


def _measure_fragmentation(measures: Objective) -> tuple[int, ...]:
    """Return per tier below the root, finest first, the slots left in the units used."""
    return tuple(
        sum(measures.slots_left_in(tier, int(unit)) for unit in units)
        for tier, units in enumerate(measures.used_units)
    )


_MEASURES: Mapping[ObjectiveKey, Callable[[Objective], tuple[int, ...]]] = MappingProxyType(
    {
        ObjectiveKey.PLACED: lambda row: (sum(map(len, row.pods)),),
        ObjectiveKey.STRATEGY: lambda row: (row.strategy,),
        ObjectiveKey.NODE_WEIGHTS: lambda row: _pods_per_weight(row.problem, row.positions),
        ObjectiveKey.EXISTING: _measure_existing,
        ObjectiveKey.JOB_TIER: lambda row: (row.job_tier,),
        ObjectiveKey.GROUP_TIER: lambda row: (max(row.histogram, default=0),),
        ObjectiveKey.HISTOGRAM: lambda row: tuple(
            row.histogram[tier] for tier in reversed(range(row.problem.root + 1))
        ),
        ObjectiveKey.PREFERRED_MISSES: lambda row: (
            _preferred_misses(row.problem, row.pods, row.job_tier),
        ),
        ObjectiveKey.NODE_MISSES: lambda row: (_node_misses(row.problem, row.pods),),
        ObjectiveKey.ISLANDS: _measure_islands,
        ObjectiveKey.DOMAINS: lambda row: tuple(len(units) for units in reversed(row.used_units)),
        ObjectiveKey.SORT: lambda row: tuple(
            int(rule[row.job_tier][row.job_unit]) for rule in row.problem.sort_columns
        ),
        ObjectiveKey.SURPLUS: lambda row: (row.slots_left_in(row.job_tier, row.job_unit),),
        ObjectiveKey.PARENT_SURPLUS: _measure_parent_surplus,
        ObjectiveKey.FRAGMENTATION: _measure_fragmentation,
        ObjectiveKey.TRAFFIC: lambda row: (_traffic(row.problem, row.pods),),
        ObjectiveKey.VICTIM_PRIORITIES: lambda row: (
            row.eviction.pods_by_priority if row.eviction else ()
        ),
        ObjectiveKey.VICTIM_GANGS: lambda row: (row.eviction.num_gangs,) if row.eviction else (),
        ObjectiveKey.VICTIM_PODS: lambda row: (
            (sum(row.eviction.pods_by_priority),) if row.eviction else ()
        ),
        ObjectiveKey.NAMES: lambda row: (
            int(row.problem.snapshot.levels.starts[row.job_tier][row.job_unit]),
        ),
    }
)


def _pods_per_weight(problem: Problem, placed: IntArray) -> tuple[int, ...]:
    """Return the placed pods per node weight, the heaviest first."""
    if problem.node_weights is None:
        return ()
    ranks = problem.node_weights.weight_index[placed]
    return tuple(np.bincount(ranks, minlength=len(problem.node_weights.distinct_weights)).tolist())


def _node_misses(problem: Problem, pods: Sequence[Sequence[int]]) -> int:
    """Return the preferred labels that nodes lack, summed over all placed pods."""
    shapes_of_groups = zip(pods, (problem.shapes[shape] for shape in problem.shape_of), strict=True)
    return sum(
        int(shape.missing_labels[list(positions)].sum())
        for positions, shape in shapes_of_groups
        if shape.missing_labels is not None
    )


def _traffic(problem: Problem, pods: Sequence[Sequence[int]]) -> int:
    """Return weight × tier over all pairs of pods whose groups communicate or repel each other.

    Counted as the pairs that each tier separates: a pair at tier t is separate at the t tiers
    below.
    """
    rows = zip(problem.shape_of, pods, strict=True)
    positions_of_shape = {shape: np.array(positions, dtype=np.int64) for shape, positions in rows}
    total = 0
    for first, second, weight in problem.traffic_pairs:
        for unit_of in problem.snapshot.levels.unit_of_node[:-1]:
            of_first = Counter(unit_of[positions_of_shape[first]].tolist())
            of_second = Counter(unit_of[positions_of_shape[second]].tolist())
            together = sum(num * of_second[unit] for unit, num in of_first.items())
            num_pairs = of_first.total() * of_second.total() - together
            total += weight * (num_pairs // 2 if first == second else num_pairs)
    return total


def part_tiers(problem: Problem, pods: Sequence[Sequence[int]]) -> list[int]:
    """Return the tier of each part; running pods count in whole groups and in indexed slices."""
    levels = problem.snapshot.levels
    tiers = []
    for index, positions in enumerate(pods):
        start = 0
        for size, running in problem.split_group(index, len(positions)):
            part = [*positions[start : start + size], *running]
            start += size
            tiers.append(levels.common_tier(min(part), max(part)))
    return tiers


def histogram_tiers(problem: Problem, pods: Sequence[Sequence[int]]) -> list[int]:
    """Return the tier that each part counts as: its own, but at least the tier of its slices."""
    floors = (
        problem.slice_tier_of(index)
        for index, positions in enumerate(pods)
        for _ in problem.split_group(index, len(positions))
    )
    return [max(pair) for pair in zip(part_tiers(problem, pods), floors, strict=True)]


def slots_left(problem: Problem, pods: Sequence[Sequence[int]]) -> IntArray:
    """Return per node the slots of the scarcest shape that the placed pods leave free."""
    shape = problem.shapes[problem.scarcest_shape]
    left = shape.slots.copy()
    if len(problem.shapes) == 1:
        np.subtract.at(left, [node for row in pods for node in row], 1)
        return left
    for node, used in problem.resources_used(pods).items():
        left[node] = slots_after_use(problem, shape, node, used)
    return left


def slots_after_use(problem: Problem, shape: PodShape, node: int, used: Mapping[str, int]) -> int:
    """Return how many pods of a shape fit a node after these resources are used."""
    if not shape.allowed[node]:
        return 0
    unbounded = int(shape.slots[node])
    left = problem.snapshot.count_slots(
        shape.request, unbounded=unbounded, nodes=slice(node, node + 1), used=used
    )
    return int(left[0])


def _num_near_running(problem: Problem, placed: IntArray, tier: int) -> int:
    unit_of = problem.snapshot.levels.unit_of_node[tier]
    return (
        int(np.isin(unit_of[placed], unit_of[list(problem.own_pods.positions)]).sum())
        if problem.own_pods.positions
        else 0
    )


def _preferred_misses(problem: Problem, pods: Sequence[Sequence[int]], job: int) -> int:
    """Return the number of missed preferred tiers of the job, its sets and its groups."""
    misses = sum(job > preferred for preferred in problem.preferred)
    tiers = iter(part_tiers(problem, pods))
    for index, positions in enumerate(pods):
        reached = [next(tiers) for _ in problem.split_group(index, len(positions))]
        misses += sum(
            tier > preferred for tier in reached for preferred in problem.preferred_tiers_of(index)
        )
    levels, snapshot = problem.snapshot.levels, problem.snapshot
    for set_index, group_set in enumerate(problem.request.sets):
        placed = [
            node for group in problem.request.groups_in_set(set_index) for node in pods[group]
        ]
        occupied = placed + problem.running_in_set(set_index)
        if placed and group_set.preferred:
            tier = levels.common_tier(min(occupied), max(occupied))
            misses += sum(
                tier > snapshot.levels.height_of(preferred) for preferred in group_set.preferred
            )
    return misses


def render_objective(problem: Problem, objective: Objective) -> dict[str, object]:
    """Return the keys that the preset compares, in its order, with tiers by name.

    Keys for features that the request does not use are left out.
    """
    groups = problem.request.groups
    is_used = {
        ObjectiveKey.ISLANDS: any(objective[ObjectiveKey.ISLANDS]),
        ObjectiveKey.SORT: bool(problem.sort_columns),
        ObjectiveKey.NODE_WEIGHTS: problem.node_weights is not None,
        ObjectiveKey.TRAFFIC: bool(problem.traffic_pairs),
        ObjectiveKey.NODE_MISSES: any(group.preferred_labels for group in groups),
    }
    return {
        key.value: _render_values(problem, key, objective[key])
        for key, _ in problem.objective_order
        if is_used.get(key, True)
    }


def _render_values(problem: Problem, key: ObjectiveKey, values: tuple[int, ...]) -> object:
    """Return a number, or a list, or numbers by tier or by priority."""
    tiers, evictable = problem.snapshot.levels.tiers, problem.evictable
    coarsest_first = tiers[::-1]
    match key:
        case ObjectiveKey.JOB_TIER | ObjectiveKey.GROUP_TIER:
            return tiers[values[0]]
        case ObjectiveKey.HISTOGRAM:
            rows = zip(coarsest_first, values, strict=True)
            return {name: count for name, count in rows if count}
        case ObjectiveKey.DOMAINS | ObjectiveKey.EXISTING | ObjectiveKey.FRAGMENTATION:
            is_finest_first = key is ObjectiveKey.FRAGMENTATION
            names = tiers[:-1] if is_finest_first else coarsest_first[1:]
            return dict(zip(names, values, strict=True))
        case ObjectiveKey.VICTIM_PRIORITIES if evictable is not None:
            by_priority = zip(evictable.priorities, values, strict=True)
            return {str(priority): count for priority, count in by_priority if count}
        case (
            ObjectiveKey.ISLANDS
            | ObjectiveKey.PARENT_SURPLUS
            | ObjectiveKey.SORT
            | ObjectiveKey.NODE_WEIGHTS
        ):
            return list(values)
    return values[0]
