"""The one objective vector: what each key of a placement measures, and how presets compare it.

Measured on the placement itself, not taken from the search that found it. Docs: docs/adr.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from generator.placement.capacity import Ints
from generator.placement.presets import PRESETS, Direction, Key, Preset
from generator.placement.problem import Problem, Shape


@dataclass(frozen=True, slots=True)
class Objective:
    """A measured placement; a key with several tiers has one value per tier."""

    values: Mapping[Key, tuple[int, ...]]
    """All keys, whatever the preset compares."""

    def vector(self, preset: Preset) -> tuple[int, ...]:
        """Return the numbers that a preset compares: smaller is better, first difference wins."""
        return tuple(
            -value if term.direction is Direction.MORE else value
            for term in PRESETS[preset]
            for value in self.values[term.key]
        )


def measure(problem: Problem, pods: Sequence[Sequence[int]], strategy: int) -> Objective:
    """Return the objective of a placement.

    Args:
        problem: what was asked for.
        pods: per group the positions of its placed pods, in index order.
        strategy: index of the strategy that it keeps.
    """
    levels = problem.snapshot.levels
    placed = np.array([at for row in pods for at in row], dtype=np.int64)
    held = np.concatenate([placed, np.array(problem.own, dtype=np.int64)])
    job = levels.common(int(held.min()), int(held.max()))
    domain = int(levels.unit[job][held[0]])
    histogram = Counter(counted_tiers(problem, pods))
    left = slots_left(problem, pods)
    used = [np.unique(unit[placed]) for unit in levels.unit[:-1]]
    inner = range(levels.root)
    return Objective(
        {
            Key.PLACED: (len(placed),),
            Key.STRATEGY: (strategy,),
            Key.EXISTING: tuple(_beside_own(problem, placed, tier) for tier in reversed(inner)),
            Key.JOB_TIER: (job,),
            Key.GROUP_TIER: (max(histogram, default=0),),
            Key.HISTOGRAM: tuple(histogram[tier] for tier in reversed(range(levels.root + 1))),
            Key.PREFERRED_MISSES: (_misses(problem, pods, job),),
            Key.DOMAINS: tuple(len(used[tier]) for tier in reversed(inner)),
            Key.SURPLUS: (_left_in(problem, left, job, domain),),
            Key.PARENT_SURPLUS: tuple(
                _left_in(problem, left, tier, int(levels.unit[tier][held[0]]))
                for tier in range(job + 1, levels.root)
            ),
            Key.FRAGMENTATION: tuple(
                sum(_left_in(problem, left, tier, int(unit)) for unit in used[tier])
                for tier in inner
            ),
            Key.NAMES: (int(levels.starts[job][domain]),),
        }
    )


def part_tiers(problem: Problem, pods: Sequence[Sequence[int]]) -> list[int]:
    """Return the tier of every part; running pods count in a part that is a whole group."""
    levels = problem.snapshot.levels
    found = []
    for index, row in enumerate(pods):
        start = 0
        for size in problem.part_sizes(index, len(row)):
            part = list(row[start : start + size])
            start += size
            if not problem.request.groups[index].slices:
                part += problem.own_of[index]
            found.append(levels.common(min(part), max(part)))
    return found


def counted_tiers(problem: Problem, pods: Sequence[Sequence[int]]) -> list[int]:
    """Return what each part counts as: its tier, but not below the one that its slice must keep."""
    floors = (
        problem.floor(index)
        for index, row in enumerate(pods)
        for _ in problem.part_sizes(index, len(row))
    )
    return [max(pair) for pair in zip(part_tiers(problem, pods), floors, strict=True)]


def slots_left(problem: Problem, pods: Sequence[Sequence[int]]) -> Ints:
    """Return per node the slots of the largest shape that are left beside the placed pods."""
    shape = problem.shapes[problem.largest]
    left = shape.slots.copy()
    if len(problem.shapes) == 1:
        np.subtract.at(left, [at for row in pods for at in row], 1)
        return left
    taken: dict[int, Counter[str]] = {}
    for index, row in enumerate(pods):
        request = problem.shapes[problem.shape_of[index]].request
        for at in row:
            taken.setdefault(at, Counter()).update(request)
    for at, used in taken.items():
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
    """Return how many wished tiers are not kept, of the job and of each of several groups."""
    misses = sum(job > wish for wish in problem.preferred)
    tiers = iter(part_tiers(problem, pods))
    for index, row in enumerate(pods):
        reached = [next(tiers) for _ in problem.part_sizes(index, len(row))]
        misses += sum(tier > wish for tier in reached for wish in problem.wishes(index))
    return misses


def _left_in(problem: Problem, left: Ints, tier: int, unit: int) -> int:
    levels = problem.snapshot.levels
    return int(left[levels.starts[tier][unit] : levels.stops[tier][unit]].sum())


def render_objective(problem: Problem, objective: Objective) -> dict[str, object]:
    """Return the keys that the preset compares, in its order, tiers by name."""
    tiers = problem.snapshot.levels.tiers
    found: dict[str, object] = {}
    for term in PRESETS[problem.request.preset]:
        values = objective.values[term.key]
        if term.key in {Key.JOB_TIER, Key.GROUP_TIER}:
            found[term.key.value] = tiers[values[0]]
        elif term.key is Key.HISTOGRAM:
            rows = zip(reversed(tiers), values, strict=True)
            found[term.key.value] = {name: count for name, count in rows if count}
        elif term.key in {Key.DOMAINS, Key.EXISTING}:
            found[term.key.value] = dict(zip(reversed(tiers[:-1]), values, strict=True))
        elif term.key is Key.FRAGMENTATION:
            found[term.key.value] = dict(zip(tiers[:-1], values, strict=True))
        elif term.key is Key.PARENT_SURPLUS:
            found[term.key.value] = list(values)
        else:
            found[term.key.value] = values[0]
    return found
