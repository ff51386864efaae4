"""The one objective vector: what each key of a placement measures, and how presets compare it.

Measured on the placement itself, not taken from the search that found it. Docs: docs/adr.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np

from generator.placement.cluster.levels import Ints
from generator.placement.cluster.shape import Shape
from generator.placement.cluster.tiers import height
from generator.placement.presets import Direction, Key, Term
from generator.placement.problem.preemption import Broken, broken_by
from generator.placement.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class Objective:
    """A measured placement; a key with several tiers has one value per tier."""

    values: Mapping[Key, tuple[int, ...]]
    """All keys, whatever the preset compares."""

    def vector(self, order: Iterable[Term]) -> tuple[int, ...]:
        """Return the numbers that are compared: smaller is better, first difference wins."""
        return tuple(
            -value if term.direction is Direction.MORE else value
            for term in order
            for value in self.values[term.key]
        )


def measure(problem: Problem, pods: Sequence[Sequence[int]], strategy: int) -> Objective:
    """Return the objective of a placement.

    Args:
        problem: what was asked for.
        pods: per group the positions of its placed pods, in index order.
        strategy: index of the strategy that it keeps.
    """
    return Objective(_Measured(problem, pods, strategy))


class _Measured(Mapping[Key, tuple[int, ...]]):
    """The values of one placement, each measured when it is first asked for."""

    def __init__(self, problem: Problem, pods: Sequence[Sequence[int]], strategy: int) -> None:
        self.problem, self.pods = problem, pods
        self._known: dict[Key, tuple[int, ...]] = {Key.STRATEGY: (strategy,)}

    def __getitem__(self, key: Key) -> tuple[int, ...]:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _MEASURES[key](self)
        return found

    def __iter__(self) -> Iterator[Key]:
        return iter(Key)

    def __len__(self) -> int:
        return len(Key)

    @cached_property
    def placed(self) -> Ints:
        """Positions of all placed pods."""
        return np.array([at for row in self.pods for at in row], dtype=np.int64)

    @cached_property
    def job(self) -> int:
        """Tier of the job's domain."""
        held = [*filter(None, self.pods), *([self.problem.own] if self.problem.own else [])]
        low, high = min(map(min, held)), max(map(max, held))
        return max(self.problem.snapshot.levels.common(low, high), self.problem.lowest)

    @cached_property
    def domain(self) -> int:
        """The job's domain, a unit of its tier."""
        first = next(row[0] for row in self.pods if row)
        return int(self.problem.snapshot.levels.unit[self.job][first])

    @cached_property
    def histogram(self) -> Counter[int]:
        """Parts by tier."""
        return Counter(counted_tiers(self.problem, self.pods))

    @cached_property
    def used(self) -> list[Ints]:
        """Units used, per tier below the root."""
        return [np.unique(unit[self.placed]) for unit in self.problem.snapshot.levels.unit[:-1]]

    @cached_property
    def left(self) -> Ints:
        """Slots of the largest shape left per node."""
        return slots_left(self.problem, self.pods)

    @cached_property
    def victims(self) -> Broken | None:
        """What is evicted."""
        return broken(self.problem, self.pods)

    def left_in(self, tier: int, unit: int) -> int:
        """Return the slots left in a unit."""
        levels = self.problem.snapshot.levels
        return int(self.left[levels.starts[tier][unit] : levels.stops[tier][unit]].sum())


def _existing(row: _Measured) -> tuple[int, ...]:
    tiers = reversed(range(row.problem.root))
    return tuple(_beside_own(row.problem, row.placed, tier) for tier in tiers)


def _parent_surplus(row: _Measured) -> tuple[int, ...]:
    first, levels = int(row.placed[0]), row.problem.snapshot.levels
    tiers = range(row.job + 1, levels.root)
    return tuple(row.left_in(tier, int(levels.unit[tier][first])) for tier in tiers)


def _islands(row: _Measured) -> tuple[int, ...]:
    top = row.problem.root - 1
    if row.job < top or not row.problem.spares_islands:
        return 0, 0
    rooms = row.problem.shapes[row.problem.largest].rooms[top]
    return len(row.used[top]), int(rooms[row.used[top]].sum())


def _fragmentation(row: _Measured) -> tuple[int, ...]:
    return tuple(
        sum(row.left_in(tier, int(unit)) for unit in units) for tier, units in enumerate(row.used)
    )


_MEASURES: Mapping[Key, Callable[[_Measured], tuple[int, ...]]] = MappingProxyType(
    {
        Key.PLACED: lambda row: (sum(map(len, row.pods)),),
        Key.NODE_WEIGHTS: lambda row: _per_weight(row.problem, row.placed),
        Key.EXISTING: _existing,
        Key.JOB_TIER: lambda row: (row.job,),
        Key.GROUP_TIER: lambda row: (max(row.histogram, default=0),),
        Key.HISTOGRAM: lambda row: tuple(
            row.histogram[tier] for tier in reversed(range(row.problem.root + 1))
        ),
        Key.PREFERRED_MISSES: lambda row: (_misses(row.problem, row.pods, row.job),),
        Key.NODE_MISSES: lambda row: (_node_misses(row.problem, row.pods),),
        Key.ISLANDS: _islands,
        Key.DOMAINS: lambda row: tuple(len(units) for units in reversed(row.used)),
        Key.SORT: lambda row: tuple(
            int(rule[row.job][row.domain]) for rule in row.problem.sort_columns
        ),
        Key.SURPLUS: lambda row: (row.left_in(row.job, row.domain),),
        Key.PARENT_SURPLUS: _parent_surplus,
        Key.FRAGMENTATION: _fragmentation,
        Key.TRAFFIC: lambda row: (_traffic(row.problem, row.pods),),
        Key.VICTIM_PRIORITIES: lambda row: row.victims.pods if row.victims else (),
        Key.VICTIM_GANGS: lambda row: (row.victims.num_gangs,) if row.victims else (),
        Key.VICTIM_PODS: lambda row: (sum(row.victims.pods),) if row.victims else (),
        Key.NAMES: lambda row: (int(row.problem.snapshot.levels.starts[row.job][row.domain]),),
    }
)


def broken(problem: Problem, pods: Sequence[Sequence[int]]) -> Broken | None:
    """Return what a placement evicts, None where nothing may be evicted."""
    if problem.eviction is None:
        return None
    return broken_by(problem.snapshot, problem.eviction, _taken(problem, pods))


def _taken(problem: Problem, pods: Sequence[Sequence[int]]) -> dict[int, Counter[str]]:
    """Return what the placed pods take of each of their nodes."""
    taken: dict[int, Counter[str]] = {}
    for index, row in enumerate(pods):
        request = problem.shapes[problem.shape_of[index]].request
        for at in row:
            taken.setdefault(at, Counter()).update(request)
    return taken


def _per_weight(problem: Problem, placed: Ints) -> tuple[int, ...]:
    """Return the placed pods per node weight, the heaviest first."""
    if problem.node_weights is None:
        return ()
    ranks = problem.node_weights.rank[placed]
    return tuple(np.bincount(ranks, minlength=len(problem.node_weights.weights)).tolist())


def _node_misses(problem: Problem, pods: Sequence[Sequence[int]]) -> int:
    """Return the wished labels that nodes lack, over all placed pods."""
    rows = zip(pods, (problem.shapes[shape] for shape in problem.shape_of), strict=True)
    return sum(
        int(shape.misses[list(row)].sum()) for row, shape in rows if shape.misses is not None
    )


def _traffic(problem: Problem, pods: Sequence[Sequence[int]]) -> int:
    """Return weight × tier over all pairs of pods whose groups talk, or repel each other.

    Counted as the pairs that each tier parts: a pair at tier t is apart at the t tiers below.
    """
    levels = problem.snapshot.levels
    rows = zip(problem.shape_of, pods, strict=True)
    at_of = {shape: np.array(row, dtype=np.int64) for shape, row in rows}
    total = 0
    for first, second, weight in problem.pairs:
        for unit_of in levels.unit[:-1]:
            units, counts = np.unique(unit_of[at_of[first]], return_counts=True)
            together = _pairs_together(unit_of[at_of[second]], units, counts, same=first == second)
            a, b = len(at_of[first]), len(at_of[second])
            total += weight * ((a * (a - 1) // 2 if first == second else a * b) - together)
    return total


def _pairs_together(others: Ints, units: Ints, counts: Ints, *, same: bool) -> int:
    if same:
        return int((counts * (counts - 1) // 2).sum())
    number = dict(zip(units.tolist(), counts.tolist(), strict=True))
    return sum(number.get(unit, 0) for unit in others.tolist())


def part_tiers(problem: Problem, pods: Sequence[Sequence[int]]) -> list[int]:
    """Return the tier of every part; running pods count in whole groups, and by index."""
    levels = problem.snapshot.levels
    found = []
    for index, row in enumerate(pods):
        start = 0
        for size, own in problem.cut_group(index, len(row)):
            part = [*row[start : start + size], *own]
            start += size
            found.append(levels.common(min(part), max(part)))
    return found


def counted_tiers(problem: Problem, pods: Sequence[Sequence[int]]) -> list[int]:
    """Return what each part counts as: its tier, but not below the one that its slice must keep."""
    floors = (
        problem.floor(index)
        for index, row in enumerate(pods)
        for _ in problem.cut_group(index, len(row))
    )
    return [max(pair) for pair in zip(part_tiers(problem, pods), floors, strict=True)]


def slots_left(problem: Problem, pods: Sequence[Sequence[int]]) -> Ints:
    """Return per node the slots of the largest shape that are left beside the placed pods."""
    shape = problem.shapes[problem.largest]
    left = shape.slots.copy()
    if len(problem.shapes) == 1:
        np.subtract.at(left, [at for row in pods for at in row], 1)
        return left
    for at, used in _taken(problem, pods).items():
        left[at] = slots_after(problem, shape, at, used)
    return left


def slots_after(problem: Problem, shape: Shape, at: int, used: Mapping[str, int]) -> int:
    """Return how many pods of a shape fit a node once so much of it is used."""
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


def _beside_own(problem: Problem, placed: Ints, tier: int) -> int:
    unit = problem.snapshot.levels.unit[tier]
    return int(np.isin(unit[placed], unit[list(problem.own)]).sum()) if problem.own else 0


def _misses(problem: Problem, pods: Sequence[Sequence[int]], job: int) -> int:
    """Return how many wished tiers are not kept, of the job, of sets and of several groups."""
    misses = sum(job > wish for wish in problem.preferred)
    tiers = iter(part_tiers(problem, pods))
    for index, row in enumerate(pods):
        reached = [next(tiers) for _ in problem.cut_group(index, len(row))]
        misses += sum(tier > wish for tier in reached for wish in problem.wishes(index))
    levels, snapshot = problem.snapshot.levels, problem.snapshot
    for at, row_of in enumerate(problem.request.sets):
        placed = [node for group in problem.groups_in_set(at) for node in pods[group]]
        held = placed + problem.own_in_set(at)
        if placed and row_of.preferred:
            tier = levels.common(min(held), max(held))
            misses += sum(tier > height(snapshot, wish) for wish in row_of.preferred)
    return misses


def _unasked(problem: Problem, objective: Objective) -> frozenset[Key]:
    """Return keys that measure what the request does not speak of, or what did not happen."""
    unasked = set()
    if not any(objective.values[Key.ISLANDS]):
        unasked.add(Key.ISLANDS)
    if not problem.sort_columns:
        unasked.add(Key.SORT)
    if problem.node_weights is None:
        unasked.add(Key.NODE_WEIGHTS)
    if not problem.pairs:
        unasked.add(Key.TRAFFIC)
    if not any(group.wishes for group in problem.request.groups):
        unasked.add(Key.NODE_MISSES)
    return frozenset(unasked)


def render_objective(problem: Problem, objective: Objective) -> dict[str, object]:
    """Return the keys that the preset compares, in its order, tiers by name."""
    tiers = problem.snapshot.levels.tiers
    found: dict[str, object] = {}
    unasked = _unasked(problem, objective)
    for term in problem.order:
        values = objective.values[term.key]
        if term.key in unasked:
            continue
        if term.key in {Key.JOB_TIER, Key.GROUP_TIER}:
            found[term.key.value] = tiers[values[0]]
        elif term.key is Key.HISTOGRAM:
            rows = zip(reversed(tiers), values, strict=True)
            found[term.key.value] = {name: count for name, count in rows if count}
        elif term.key in {Key.DOMAINS, Key.EXISTING}:
            found[term.key.value] = dict(zip(reversed(tiers[:-1]), values, strict=True))
        elif term.key is Key.FRAGMENTATION:
            found[term.key.value] = dict(zip(tiers[:-1], values, strict=True))
        elif term.key is Key.VICTIM_PRIORITIES and problem.eviction is not None:
            rows_of = zip(problem.eviction.priorities, values, strict=True)
            found[term.key.value] = {str(priority): count for priority, count in rows_of if count}
        elif term.key in {Key.ISLANDS, Key.PARENT_SURPLUS, Key.SORT, Key.NODE_WEIGHTS}:
            found[term.key.value] = list(values)
        else:
            found[term.key.value] = values[0]
    return found
