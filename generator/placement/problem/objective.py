"""Measure a placement by the keys of the objective vector, and order the keys as a preset does.

The placement itself is measured, independently of the search that found it. See docs/adr.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np

from generator.placement.cluster.levels import IntArray
from generator.placement.cluster.shape import PodShape
from generator.placement.cluster.tiers import tier_index
from generator.placement.presets import Direction, ObjectiveKey, ObjectiveTerm
from generator.placement.problem.preemption import EvictionResult, evict_for
from generator.placement.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class Objective:
    """A measured placement; a key with several tiers has one value per tier."""

    values: Mapping[ObjectiveKey, tuple[int, ...]]
    """All keys, including those that the preset does not compare."""

    def vector(self, order: Iterable[ObjectiveTerm]) -> tuple[int, ...]:
        """Return the numbers to compare: smaller is better, and the first difference decides."""
        return tuple(
            -value if term.direction is Direction.MORE else value
            for term in order
            for value in self.values[term.key]
        )


def measure(problem: Problem, pods: Sequence[Sequence[int]], strategy: int) -> Objective:
    """Return the objective of a placement.

    Args:
        problem: the request and the cluster.
        pods: per group the positions of its placed pods, in index order.
        strategy: index of the strategy that the placement satisfies.
    """
    return Objective(_LazyMeasures(problem, pods, strategy))


class _LazyMeasures(Mapping[ObjectiveKey, tuple[int, ...]]):
    """The values of one placement, each measured when it is first read."""

    def __init__(self, problem: Problem, pods: Sequence[Sequence[int]], strategy: int) -> None:
        self.problem, self.pods = problem, pods
        self._measured_keys: dict[ObjectiveKey, tuple[int, ...]] = {
            ObjectiveKey.STRATEGY: (strategy,)
        }

    def __getitem__(self, key: ObjectiveKey) -> tuple[int, ...]:
        found = self._measured_keys.get(key)
        if found is None:
            found = self._measured_keys[key] = _MEASURES[key](self)
        return found

    def __iter__(self) -> Iterator[ObjectiveKey]:
        return iter(ObjectiveKey)

    def __len__(self) -> int:
        return len(ObjectiveKey)

    @cached_property
    def positions(self) -> IntArray:
        """Positions of all placed pods."""
        return np.array([at for row in self.pods for at in row], dtype=np.int64)

    @cached_property
    def job_tier(self) -> int:
        """Tier of the job's domain."""
        held = [
            *filter(None, self.pods),
            *([self.problem.running_positions] if self.problem.running_positions else []),
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
        """The eviction; None if nothing may be evicted."""
        return eviction_of(self.problem, self.pods)

    def slots_left_in(self, tier: int, unit: int) -> int:
        """Return the slots that stay free in a unit."""
        levels = self.problem.snapshot.levels
        return int(self.node_slots_left[levels.starts[tier][unit] : levels.stops[tier][unit]].sum())


def _existing(row: _LazyMeasures) -> tuple[int, ...]:
    tiers = reversed(range(row.problem.root))
    return tuple(_num_near_running(row.problem, row.positions, tier) for tier in tiers)


def _parent_surplus(row: _LazyMeasures) -> tuple[int, ...]:
    first, levels = int(row.positions[0]), row.problem.snapshot.levels
    tiers = range(row.job_tier + 1, levels.root)
    return tuple(row.slots_left_in(tier, int(levels.unit_of_node[tier][first])) for tier in tiers)


def _islands(row: _LazyMeasures) -> tuple[int, ...]:
    top = row.problem.root - 1
    if row.job_tier < top or not row.problem.spares_islands:
        return 0, 0
    rooms = row.problem.shapes[row.problem.scarcest_shape].slots_by_tier[top]
    return len(row.used_units[top]), int(rooms[row.used_units[top]].sum())


def _fragmentation(row: _LazyMeasures) -> tuple[int, ...]:
    return tuple(
        sum(row.slots_left_in(tier, int(unit)) for unit in units)
        for tier, units in enumerate(row.used_units)
    )


_MEASURES: Mapping[ObjectiveKey, Callable[[_LazyMeasures], tuple[int, ...]]] = MappingProxyType(
    {
        ObjectiveKey.PLACED: lambda row: (sum(map(len, row.pods)),),
        ObjectiveKey.NODE_WEIGHTS: lambda row: _pods_per_weight(row.problem, row.positions),
        ObjectiveKey.EXISTING: _existing,
        ObjectiveKey.JOB_TIER: lambda row: (row.job_tier,),
        ObjectiveKey.GROUP_TIER: lambda row: (max(row.histogram, default=0),),
        ObjectiveKey.HISTOGRAM: lambda row: tuple(
            row.histogram[tier] for tier in reversed(range(row.problem.root + 1))
        ),
        ObjectiveKey.PREFERRED_MISSES: lambda row: (
            _preferred_misses(row.problem, row.pods, row.job_tier),
        ),
        ObjectiveKey.NODE_MISSES: lambda row: (_node_misses(row.problem, row.pods),),
        ObjectiveKey.ISLANDS: _islands,
        ObjectiveKey.DOMAINS: lambda row: tuple(len(units) for units in reversed(row.used_units)),
        ObjectiveKey.SORT: lambda row: tuple(
            int(rule[row.job_tier][row.job_unit]) for rule in row.problem.sort_columns
        ),
        ObjectiveKey.SURPLUS: lambda row: (row.slots_left_in(row.job_tier, row.job_unit),),
        ObjectiveKey.PARENT_SURPLUS: _parent_surplus,
        ObjectiveKey.FRAGMENTATION: _fragmentation,
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


def eviction_of(problem: Problem, pods: Sequence[Sequence[int]]) -> EvictionResult | None:
    """Return what a placement evicts; None if nothing may be evicted."""
    if problem.evictable is None:
        return None
    return evict_for(problem.snapshot, problem.evictable, _resources_used(problem, pods))


def _resources_used(problem: Problem, pods: Sequence[Sequence[int]]) -> dict[int, Counter[str]]:
    """Return the resources that the placed pods use, per node."""
    taken: dict[int, Counter[str]] = {}
    for index, row in enumerate(pods):
        request = problem.shapes[problem.shape_of[index]].request
        for at in row:
            taken.setdefault(at, Counter()).update(request)
    return taken


def _pods_per_weight(problem: Problem, placed: IntArray) -> tuple[int, ...]:
    """Return the placed pods per node weight, the heaviest first."""
    if problem.node_weights is None:
        return ()
    ranks = problem.node_weights.weight_index[placed]
    return tuple(np.bincount(ranks, minlength=len(problem.node_weights.weights)).tolist())


def _node_misses(problem: Problem, pods: Sequence[Sequence[int]]) -> int:
    """Return the preferred labels that nodes lack, summed over all placed pods."""
    rows = zip(pods, (problem.shapes[shape] for shape in problem.shape_of), strict=True)
    return sum(
        int(shape.missing_labels[list(row)].sum())
        for row, shape in rows
        if shape.missing_labels is not None
    )


def _traffic(problem: Problem, pods: Sequence[Sequence[int]]) -> int:
    """Return weight × tier over all pairs of pods whose groups communicate or repel each other.

    Counted as the pairs that each tier separates: a pair at tier t is separate at the t tiers
    below.
    """
    levels = problem.snapshot.levels
    rows = zip(problem.shape_of, pods, strict=True)
    at_of = {shape: np.array(row, dtype=np.int64) for shape, row in rows}
    total = 0
    for first, second, weight in problem.traffic_pairs:
        for unit_of in levels.unit_of_node[:-1]:
            units, counts = np.unique(unit_of[at_of[first]], return_counts=True)
            together = _pairs_together(
                unit_of[at_of[second]], units, counts, is_same_shape=first == second
            )
            a, b = len(at_of[first]), len(at_of[second])
            total += weight * ((a * (a - 1) // 2 if first == second else a * b) - together)
    return total


def _pairs_together(
    others: IntArray, units: IntArray, counts: IntArray, *, is_same_shape: bool
) -> int:
    if is_same_shape:
        return int((counts * (counts - 1) // 2).sum())
    number = dict(zip(units.tolist(), counts.tolist(), strict=True))
    return sum(number.get(unit, 0) for unit in others.tolist())


def part_tiers(problem: Problem, pods: Sequence[Sequence[int]]) -> list[int]:
    """Return the tier of each part; running pods count in whole groups and in indexed slices."""
    levels = problem.snapshot.levels
    found = []
    for index, row in enumerate(pods):
        start = 0
        for size, own in problem.split_group(index, len(row)):
            part = [*row[start : start + size], *own]
            start += size
            found.append(levels.common_tier(min(part), max(part)))
    return found


def histogram_tiers(problem: Problem, pods: Sequence[Sequence[int]]) -> list[int]:
    """Return the tier that each part counts as: its own, but at least the tier of its slices."""
    floors = (
        problem.slice_tier_of(index)
        for index, row in enumerate(pods)
        for _ in problem.split_group(index, len(row))
    )
    return [max(pair) for pair in zip(part_tiers(problem, pods), floors, strict=True)]


def slots_left(problem: Problem, pods: Sequence[Sequence[int]]) -> IntArray:
    """Return per node the slots of the scarcest shape that the placed pods leave free."""
    shape = problem.shapes[problem.scarcest_shape]
    left = shape.slots.copy()
    if len(problem.shapes) == 1:
        np.subtract.at(left, [at for row in pods for at in row], 1)
        return left
    for at, used in _resources_used(problem, pods).items():
        left[at] = slots_after_use(problem, shape, at, used)
    return left


def slots_after_use(problem: Problem, shape: PodShape, at: int, used: Mapping[str, int]) -> int:
    """Return how many pods of a shape fit a node after these resources are used."""
    snapshot = problem.snapshot
    if not shape.allowed[at]:
        return 0
    rooms = [
        (int(snapshot.free[snapshot.resources.index(name), at]) - used.get(name, 0)) // need
        for name, need in shape.request.items()
        if need and name in snapshot.resources
    ]
    unbounded = all(need == 0 for need in shape.request.values())
    return max(0, min(rooms, default=int(shape.slots[at]) if unbounded else 0))


def _num_near_running(problem: Problem, placed: IntArray, tier: int) -> int:
    unit = problem.snapshot.levels.unit_of_node[tier]
    return (
        int(np.isin(unit[placed], unit[list(problem.running_positions)]).sum())
        if problem.running_positions
        else 0
    )


def _preferred_misses(problem: Problem, pods: Sequence[Sequence[int]], job: int) -> int:
    """Return how many preferred tiers are missed, over the job, sets and groups."""
    misses = sum(job > wish for wish in problem.preferred)
    tiers = iter(part_tiers(problem, pods))
    for index, row in enumerate(pods):
        reached = [next(tiers) for _ in problem.split_group(index, len(row))]
        misses += sum(tier > wish for tier in reached for wish in problem.preferred_tiers_of(index))
    levels, snapshot = problem.snapshot.levels, problem.snapshot
    for at, row_of in enumerate(problem.request.sets):
        placed = [node for group in problem.groups_in_set(at) for node in pods[group]]
        held = placed + problem.running_in_set(at)
        if placed and row_of.preferred:
            tier = levels.common_tier(min(held), max(held))
            misses += sum(tier > tier_index(snapshot, wish) for wish in row_of.preferred)
    return misses


def _irrelevant_keys(problem: Problem, objective: Objective) -> frozenset[ObjectiveKey]:
    """Return the keys for features that the request does not use."""
    unasked = set()
    if not any(objective.values[ObjectiveKey.ISLANDS]):
        unasked.add(ObjectiveKey.ISLANDS)
    if not problem.sort_columns:
        unasked.add(ObjectiveKey.SORT)
    if problem.node_weights is None:
        unasked.add(ObjectiveKey.NODE_WEIGHTS)
    if not problem.traffic_pairs:
        unasked.add(ObjectiveKey.TRAFFIC)
    if not any(group.wishes for group in problem.request.groups):
        unasked.add(ObjectiveKey.NODE_MISSES)
    return frozenset(unasked)


def render_objective(problem: Problem, objective: Objective) -> dict[str, object]:
    """Return the keys that the preset compares, in its order, with tiers by name."""
    tiers = problem.snapshot.levels.tiers
    found: dict[str, object] = {}
    unasked = _irrelevant_keys(problem, objective)
    for term in problem.objective_order:
        values = objective.values[term.key]
        if term.key in unasked:
            continue
        if term.key in {ObjectiveKey.JOB_TIER, ObjectiveKey.GROUP_TIER}:
            found[term.key.value] = tiers[values[0]]
        elif term.key is ObjectiveKey.HISTOGRAM:
            rows = zip(reversed(tiers), values, strict=True)
            found[term.key.value] = {name: count for name, count in rows if count}
        elif term.key in {ObjectiveKey.DOMAINS, ObjectiveKey.EXISTING}:
            found[term.key.value] = dict(zip(reversed(tiers[:-1]), values, strict=True))
        elif term.key is ObjectiveKey.FRAGMENTATION:
            found[term.key.value] = dict(zip(tiers[:-1], values, strict=True))
        elif term.key is ObjectiveKey.VICTIM_PRIORITIES and problem.evictable is not None:
            rows_of = zip(problem.evictable.priorities, values, strict=True)
            found[term.key.value] = {str(priority): count for priority, count in rows_of if count}
        elif term.key in {
            ObjectiveKey.ISLANDS,
            ObjectiveKey.PARENT_SURPLUS,
            ObjectiveKey.SORT,
            ObjectiveKey.NODE_WEIGHTS,
        }:
            found[term.key.value] = list(values)
        else:
            found[term.key.value] = values[0]
    return found
