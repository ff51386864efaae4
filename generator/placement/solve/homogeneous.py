"""Exact placement of homogeneous jobs by counting: one shape, equal parts, nothing of it running.

Where K parts of s pods meet a unit with `slots` free, `slots // s` of them can lie inside, and
sums of that over a tier tell how many parts can be that close: no search is needed for
feasibility, tiers and histogram (`Counts`). The histogram is best exactly when every unit of the
tiers below the worst part holds all the whole parts it can, which bounds the pods of each unit from
below; `filling` then minimises what is left. Cost: O(tiers² × units) on arrays, no loop over
nodes but those of the domains tried.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from generator.placement.cluster.levels import Ints, Levels
from generator.placement.cluster.min_cover import make_covering
from generator.placement.cluster.units import LEAF
from generator.placement.presets import Key
from generator.placement.problem.parts import PartType, PlacedPart
from generator.placement.problem.problem import Problem
from generator.placement.solve.bounds import Bounds
from generator.placement.solve.budget import Effort
from generator.placement.solve.domain_dp import Fill, Filling, contents, fill
from generator.placement.solve.part_placement import Found

Column = Callable[[Ints], Ints]
"""Returns what some units of one tier are compared by."""


def is_countable(problem: Problem, kinds: Collection[PartType]) -> bool:
    """Return whether counting decides a problem exactly."""
    bounds = (problem.own, problem.rules, problem.remainders, problem.limits, problem.pairs)
    is_free = not any(bounds)
    is_plain = (
        is_free
        and problem.shapes[0].misses is None
        and problem.eviction is None
        and problem.node_weights is None
    )
    return (
        is_plain
        and len(kinds) == 1
        and len(problem.shapes) == 1
        and not any(kind.members for kind in kinds)
    )


class Counting:
    """The counts of one homogeneous job, and the choice among domains."""

    def __init__(self, problem: Problem, kind: PartType, wanted: int, effort: Effort) -> None:
        """Take so many parts of a type; nothing is counted yet."""
        self._problem, self._kind, self._wanted, self._effort = problem, kind, wanted, effort
        self._levels, self._shape = problem.snapshot.levels, problem.shapes[0]
        self._num_pods = wanted * kind.size
        self._floor = min(kind.floor, kind.cap)

    def best(self, tier: int, units: Ints) -> Found | None:
        """Return the best placement whose domain is one of these units of a tier."""
        fitting = units[self._near(min(self._kind.cap, tier), tier, units) >= self._wanted]
        if not len(fitting):
            return None
        fitting = self._best_histograms(tier, fitting)
        bounds = self._bounds(self._worst_tier(tier, fitting[:1]), tier)
        keys = {term.key for term in self._problem.order}
        keys -= set() if self._problem.spares_islands else {Key.ISLANDS}
        filling = Filling(self._levels, bounds, self._effort, keys=keys)
        best = self._best_filled(tier, fitting, filling)
        if self._wanted == 1:
            parts = [[at for at, count in sorted(best.pods.items()) for _ in range(count)]]
        else:
            parts = cut_parts(self._levels, best.pods, self._kind.size)
        return Found([PlacedPart(self._kind, part) for part in parts], best.is_proved)

    def _has_whole(self, tier: int) -> bool:
        """Return whether any unit of a tier holds a whole part."""
        return self._shape.most[tier] >= self._kind.size

    def _near(self, inner: int, tier: int, units: Ints | slice = slice(None)) -> Ints:
        """Return how many parts can each lie in one unit of an inner tier, per unit of a tier."""
        if inner == tier:
            return self._shape.rooms[tier][units] // self._kind.size
        first = np.searchsorted(self._levels.starts[inner], self._levels.starts[tier])
        whole = self._shape.rooms[inner] // self._kind.size
        return np.asarray(np.add.reduceat(whole, first)[units])

    def _best_histograms(self, tier: int, units: Ints) -> Ints:
        """Keep the units with the best histogram: most parts near, widest tier first."""
        for inner in reversed(range(self._floor, tier)):
            if len(units) == 1 or not self._has_whole(inner):
                break
            near = np.minimum(self._near(inner, tier, units), self._wanted)
            units = units[near == near.max()]
        return units

    def _worst_tier(self, tier: int, unit: Ints) -> int:
        """Return the lowest tier at which all parts can lie, not below the floor."""
        return next(
            inner
            for inner in range(min(self._floor, tier), tier + 1)
            if self._has_whole(inner) and self._near(inner, tier, unit)[0] >= self._wanted
        )

    def _bounds(self, worst: int, tier: int) -> Bounds:
        """Return least and most pods per unit, such that the histogram is the best one."""
        size, rooms = self._kind.size, self._shape.rooms
        lows: list[Ints | None] = []
        highs: list[Ints] = []
        for at in range(tier):
            near = at if at < worst else worst - 1
            is_counted = near >= self._floor and self._has_whole(near)
            lows.append(self._near(near, at) * size if is_counted else None)
            highs.append(rooms[at] if at < worst else self._near(worst, at) * size)
        return Bounds(tuple(lows), tuple(highs), rooms, worst, size)

    def _best_filled(self, tier: int, units: Ints, filling: Filling) -> Fill:
        """Return the best filling, trying units in the order of a bound on their vector.

        Of units that are alike inside only the first is filled.
        """
        rivals = in_order(self._columns(tier, self._least_inside(tier, filling.bounds)), units)
        first, _ = next(rivals)
        if tier == 0 or len(units) == 1:
            return fill(filling, tier, first, self._num_pods)
        best = self._filled(tier, first, filling)
        is_proved, tried = best.fill.is_proved, {self._inside(tier, first)}
        for unit, bound in rivals:
            if best.vector[: len(bound)] < bound:
                break
            inside = self._inside(tier, unit)
            if inside in tried:
                continue
            tried.add(inside)
            other = self._filled(tier, unit, filling)
            is_proved &= other.fill.is_proved
            best = min(best, other, key=attrgetter("vector"))
        return Fill(best.fill.pods, is_proved)

    def _filled(self, tier: int, unit: int, filling: Filling) -> _Filled:
        found = fill(filling, tier, unit, self._num_pods)
        return _Filled(self._vector(tier, unit, *filling.used(tier, found.pods)), found)

    def _vector(self, tier: int, unit: int, used: list[int], left: list[int]) -> list[int]:
        """Return what the preset compares of a unit of which so much is used and left inside."""
        levels, rooms = self._levels, self._shape.rooms
        start = levels.starts[tier][unit]
        around = [int(rooms[at][levels.unit[at][start]]) for at in range(tier, levels.root)]
        values: dict[Key, Sequence[int]] = {
            Key.DOMAINS: used[::-1],
            Key.SORT: [int(rule[tier][unit]) for rule in self._problem.sort_columns],
            Key.SURPLUS: [int(rooms[tier][unit])],
            Key.PARENT_SURPLUS: around[1:],
            Key.FRAGMENTATION: [*left, *around],
            Key.NAMES: [unit],
        }
        return [value for term in self._problem.order for value in values.get(term.key, ())]

    def _least_inside(self, tier: int, bounds: Bounds) -> dict[Key, list[Column]]:
        """Return what nothing inside a unit of a tier can be below."""
        inner = reversed(range(tier))
        return {
            Key.DOMAINS: [partial(self._fewest, bounds, below, tier) for below in inner],
            Key.FRAGMENTATION: [np.zeros_like] * tier,
        }

    def _inside(self, tier: int, unit: int) -> bytes:
        """Return what units have in common of which pods use as much, and leave as much, inside."""
        leaves = self._shape.units(self._levels, LEAF) if tier == LEAF + 1 else None
        if leaves is None:
            return contents(self._levels, self._shape.slots, tier, unit)
        children = self._levels.children(tier, unit)
        return np.sort(leaves.kind_of[children.start : children.stop]).tobytes()

    def _columns(self, tier: int, inside: Mapping[Key, list[Column]]) -> list[Column]:
        """Return what the preset compares among units of a tier with one histogram.

        `inside` holds the columns of domains and fragmentation below the tier.
        """
        root = self._levels.root
        around = [partial(self._around, tier, outer) for outer in range(tier, root)]
        is_island = self._problem.spares_islands and tier == root - 1
        columns: dict[Key, list[Column]] = {
            Key.ISLANDS: [self._shape.rooms[tier].__getitem__] if is_island else [],
            Key.DOMAINS: inside[Key.DOMAINS],
            Key.SORT: [rule[tier].__getitem__ for rule in self._problem.sort_columns],
            Key.SURPLUS: [self._shape.rooms[tier].__getitem__],
            Key.PARENT_SURPLUS: [*around[1:]],
            Key.FRAGMENTATION: [*inside[Key.FRAGMENTATION], *around],
            Key.NAMES: [np.asarray],
        }
        return [column for term in self._problem.order for column in columns.get(term.key, ())]

    def _fewest(self, bounds: Bounds, inner: int, tier: int, units: Ints) -> Ints:
        """Return the fewest units of an inner tier that can be used in units of a tier."""
        if inner < bounds.worst:
            covering = self._shape.covering(self._levels, inner, tier)
        else:
            covering = make_covering(self._levels, inner, tier, bounds.high[inner])
        fewest = covering.fewest(units, self._num_pods)
        low = bounds.low[inner]
        if low is None:
            return fewest
        first = np.searchsorted(self._levels.starts[inner], self._levels.starts[tier])
        return np.maximum(fewest, np.add.reduceat(low > 0, first, dtype=np.int64)[units])

    def _around(self, tier: int, outer: int, units: Ints) -> Ints:
        """Return the slots of the units of an outer tier around those of a tier."""
        starts = self._levels.starts[tier][units]
        return self._shape.rooms[outer][self._levels.unit[outer][starts]]


class _Filled(NamedTuple):
    """A filled unit, and the numbers that it is compared by."""

    vector: list[int]
    fill: Fill


def in_order(columns: Sequence[Column], units: Ints) -> Iterator[tuple[int, list[int]]]:
    """Yield units by their columns, compared left to right, with the values that told them apart.

    A column is worked out only for units that tie on all before it. Cost: O(units) for the first.
    """
    if len(units) == 1 or not columns:
        yield from ((unit, []) for unit in units.tolist())
        return
    values = columns[0](units)
    while len(units):
        least = values.min()
        is_least = values == least
        for unit, others in in_order(columns[1:], units[is_least]):
            yield unit, [int(least), *others]
        units, values = units[~is_least], values[~is_least]


def cut_parts(levels: Levels, pods: dict[int, int], size: int) -> list[list[int]]:
    """Cut pods per node into whole parts, lowest tiers first; O(tiers × pods)."""
    parts: list[list[int]] = []
    waiting = {at: [at] * count for at, count in sorted(pods.items())}
    for unit_of in levels.unit:
        units: dict[int, list[int]] = {}
        for unit, loose in zip(unit_of[list(waiting)].tolist(), waiting.values(), strict=True):
            units.setdefault(unit, []).extend(loose)
        waiting = {}
        for loose in units.values():
            whole = len(loose) // size * size
            parts += [loose[k : k + size] for k in range(0, whole, size)]
            if len(loose) > whole:
                waiting[loose[whole]] = loose[whole:]
        if not waiting:
            break
    return parts
