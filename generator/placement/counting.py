"""Exact placement of homogeneous jobs by counting: one shape, equal parts, nothing of it running.

Where K parts of s pods meet a unit with `slots` free, `slots // s` of them can lie inside, and
sums of that over a tier tell how many parts can be that close: no search is needed for
feasibility, tiers and histogram (`Counts`). The histogram is best exactly when every unit of the
tiers below the worst part holds all the whole parts it can, which bounds the pods of each unit from
below; `filling` then minimises what is left. Cost: O(tiers² × units) on arrays, no loop over
nodes but those of the domains tried.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from generator.placement.capacity import Ints
from generator.placement.effort import Effort
from generator.placement.filling import Bounds, Fill, Filling, fill
from generator.placement.found import Found
from generator.placement.levels import Levels
from generator.placement.parts import PartType, PlacedPart
from generator.placement.presets import Key
from generator.placement.problem import Problem
from topology.errors import InvariantError


def is_countable(problem: Problem, kinds: Collection[PartType]) -> bool:
    """Return whether counting decides a problem exactly."""
    is_free = not (problem.own or problem.rules or problem.limits or problem.pairs)
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
        """Count slots per unit, and whole parts per unit of every tier."""
        self._problem, self._kind, self._wanted, self._effort = problem, kind, wanted, effort
        self._levels = problem.snapshot.levels
        self._floor = min(kind.floor, kind.cap)
        self._slots = problem.shapes[0].rooms
        self._whole = [row // kind.size for row in self._slots]

    def best(self, tier: int, units: Ints) -> Found | None:
        """Return the best placement whose domain is one of these units of a tier."""
        fitting = units[self._near(min(self._kind.cap, tier), tier)[units] >= self._wanted]
        if not len(fitting):
            return None
        fitting = self._best_histograms(tier, fitting)
        worst = self._worst_tier(tier, int(fitting[0]))
        filling = Filling(self._levels, self._bounds(worst, tier), self._keys(), self._effort)
        best = self._best_filled(tier, fitting, filling)
        parts = cut_parts(self._levels, best.pods, self._kind.size)
        return Found([PlacedPart(self._kind, part) for part in parts], best.is_proved)

    def _near(self, inner: int, tier: int) -> Ints:
        """Return per unit of a tier how many parts can each lie in one unit of an inner tier."""
        starts = self._levels.starts
        if inner == tier:
            return self._whole[tier]
        first = np.searchsorted(starts[inner], starts[tier])
        return np.add.reduceat(self._whole[inner], first)

    def _best_histograms(self, tier: int, units: Ints) -> Ints:
        """Keep the units with the best histogram: most parts near, widest tier first."""
        for inner in reversed(range(self._floor, tier)):
            near = np.minimum(self._near(inner, tier)[units], self._wanted)
            units = units[near == near.max()]
        return units

    def _worst_tier(self, tier: int, unit: int) -> int:
        """Return the lowest tier at which all parts can lie, not below the floor."""
        return next(
            inner
            for inner in range(min(self._floor, tier), tier + 1)
            if self._near(inner, tier)[unit] >= self._wanted
        )

    def _bounds(self, worst: int, tier: int) -> Bounds:
        """Return least and most pods per unit, such that the histogram is the best one."""
        size = self._kind.size
        lows, highs = [], []
        for at in range(tier + 1):
            if at < worst:
                highs.append(self._slots[at])
                is_counted = at >= self._floor
                lows.append(self._whole[at] * size if is_counted else np.zeros_like(highs[-1]))
                continue
            highs.append(self._near(worst, at) * size)
            has_lows = worst > self._floor
            lows.append(self._near(worst - 1, at) * size if has_lows else np.zeros_like(highs[-1]))
        return Bounds(tuple(lows), tuple(highs), self._slots, worst, size)

    def _keys(self) -> frozenset[Key]:
        return frozenset(term.key for term in self._problem.order)

    def _best_filled(self, tier: int, units: Ints, filling: Filling) -> Fill:
        """Return the best filling, trying units in the order of a bound on their vector."""
        num_pods = self._wanted * self._kind.size
        columns = self._columns(tier, units, filling.bound(tier, units, num_pods))
        best: tuple[tuple[int, ...], Fill] | None = None
        is_proved = True
        for row in in_order(columns):
            bound = tuple(int(column[row]) for column in columns)
            if best is not None and best[0] <= bound:
                break
            unit = int(units[row])
            found = fill(filling, tier, unit, num_pods)
            is_proved &= found.is_proved
            inside = filling.measured(tier, unit, found.pods)
            vector = tuple(
                int(column[0]) for column in self._columns(tier, units[row : row + 1], inside)
            )
            if best is None or vector < best[0]:
                best = (vector, found)
        if best is None:
            raise InvariantError("no unit to fill")
        return Fill(best[1].pods, is_proved)

    def _columns(self, tier: int, units: Ints, inside: dict[Key, list[Ints]]) -> list[Ints]:
        """Return what the preset compares among units of a tier with one histogram.

        `inside` holds the columns of domains and fragmentation below the tier.
        """
        levels = self._levels
        starts = levels.starts[tier][units]
        above = [self._slots[at][levels.unit[at][starts]] for at in range(tier + 1, levels.root)]
        columns: dict[Key, list[Ints]] = {
            Key.SURPLUS: [self._slots[tier][units]],
            Key.PARENT_SURPLUS: above,
            Key.SORT: [rule[tier][units] for rule in self._problem.sort_columns],
            Key.NAMES: [starts],
        } | inside
        return [column for term in self._problem.order for column in columns.get(term.key, [])]


def in_order(columns: list[Ints]) -> Iterator[int]:
    """Yield rows by their columns, compared left to right; cheaper than sorting for the first few.

    Cost: O(rows) per row yielded.
    """
    left = np.arange(len(columns[0]))
    while len(left):
        rows = left
        for column in columns:
            values = column[rows]
            rows = rows[values == values.min()]
            if len(rows) == 1:
                break
        yield int(rows[0])
        left = left[left != rows[0]]


def cut_parts(levels: Levels, pods: dict[int, int], size: int) -> list[list[int]]:
    """Cut pods per node into whole parts, lowest tiers first; O(tiers × pods)."""
    parts: list[list[int]] = []
    waiting = {at: [at] * count for at, count in sorted(pods.items())}
    for unit_of in levels.unit:
        units: dict[int, list[int]] = {}
        for at, loose in waiting.items():
            units.setdefault(int(unit_of[at]), []).extend(loose)
        waiting = {}
        for loose in units.values():
            whole = len(loose) // size * size
            parts += [loose[k : k + size] for k in range(0, whole, size)]
            if len(loose) > whole:
                waiting[loose[whole]] = loose[whole:]
    return parts
