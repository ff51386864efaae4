"""How many pods of one group every domain holds, and in which order a preset sorts domains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generator.placement.cluster.levels import Ints
from generator.placement.presets import By, Climb, Sort
from generator.placement.problem.problem import Problem
from generator.placement.request import SortRule

DEFAULT_RULE = SortRule("cpu", counts_free=False, is_descending=False)
NONE_FITS = -1
"""Pods beside a leader in a domain where no leader fits."""


class Rooms:
    """Counts per tier and unit for one group, as the leftover stands."""

    def __init__(
        self, problem: Problem, group: int, rooms: Sequence[Ints], leader: Ints | None = None
    ) -> None:
        """Count whole pods per node and roll them up.

        Args:
            problem: what is asked for.
            group: index of the group.
            rooms: pods of it that fit, per tier and unit; or those of nodes alone.
            leader: of a group with a leader, pods of it that fit each node beside one leader,
                `NONE_FITS` where no leader fits.
        """
        self.problem, self.group = problem, group
        levels = problem.snapshot.levels
        self._steps = _steps(problem, group)
        self.slots = list(rooms)
        for first in levels.first_child[len(rooms) :]:
            self.slots.append(np.add.reduceat(self.slots[-1], first[:-1]))
        self.fits = list(self.slots)
        if self._steps:
            self.fits = [self._whole(rooms[0], 0)]
            for tier, first in enumerate(levels.first_child[1:], start=1):
                below = np.add.reduceat(self.fits[-1], first[:-1])
                self.fits.append(self._whole(below, tier))
        self.led = self.fits if leader is None else self._led(leader)
        self.has_leader = leader is not None
        self._is_shared = True

    def _whole(self, counts: Ints, tier: int) -> Ints:
        """Return counts cut down to what multiples and slices of a tier allow."""
        for at, multiple, most in self._steps:
            if at == tier:
                counts = counts // multiple * multiple
                counts = counts if most is None else np.minimum(counts, most)
        return counts

    def _led(self, leader: Ints) -> list[Ints]:
        """Return what fits beside the leader, who goes where it costs the fewest pods."""
        levels = self.problem.snapshot.levels
        found = [np.where(leader < 0, NONE_FITS, self._whole(np.maximum(leader, 0), 0))]
        far = np.iinfo(np.int64).max // 2
        for tier in range(1, levels.root + 1):
            below, first = self.fits[tier - 1], levels.first_child[tier][:-1]
            cost = np.where(found[-1] < 0, far, below - found[-1])
            least = np.minimum.reduceat(cost, first)
            left = self._whole(np.add.reduceat(below, first) - np.minimum(least, far), tier)
            found.append(np.where(least >= far, NONE_FITS, np.maximum(left, 0)))
        return found

    def take(self, at: int, count: int) -> None:
        """Take pods off a node, and off all domains around it."""
        levels = self.problem.snapshot.levels
        if self._is_shared:
            self.slots = [row.copy() for row in self.slots]
            self.fits[:] = [row.copy() for row in self.fits]
            self._is_shared = False
        for tier in range(levels.root + 1):
            unit = int(levels.unit[tier][at])
            self.slots[tier][unit] -= count
            inner = self.slots[0][at : at + 1] if tier == 0 else self._below(tier, unit)
            self.fits[tier][unit] = self._whole(inner, tier)[0]

    def _below(self, tier: int, unit: int) -> Ints:
        span = self.problem.snapshot.levels.children(tier, unit)
        return np.array([self.fits[tier - 1][span.start : span.stop].sum()])

    def most_wished(self, tier: int, units: Ints) -> Ints:
        """Keep the units of a tier with most room on wished nodes."""
        values = self._unwished(tier)[units]
        best: Ints = units[values == values.min(initial=0)]
        return best

    @property
    def slice_size(self) -> int:
        """Pods of a slice that shares a domain, 1 without one."""
        return max((multiple for _, multiple, _ in self._steps), default=1)

    @property
    def slice_tier(self) -> int:
        """Highest tier that has a rule on pods per domain, 0 without one."""
        return max((tier for tier, _, _ in self._steps), default=0)

    def sorted_units(self, units: Ints, tier: int, order: Sequence[Sort], num_pods: int) -> Ints:
        """Return units of a tier in an order; O(units × tiers)."""
        columns = [
            column for sort in order for column in self._columns(units, tier, sort, num_pods)
        ]
        return units[np.lexsort((units, *reversed(columns)))]

    def _columns(self, units: Ints, tier: int, sort: Sort, num_pods: int) -> list[Ints]:
        """Return what units are compared by, the most important column first."""
        levels = self.problem.snapshot.levels
        own = self._values(tier, sort.by, num_pods)
        rows = [[column[units] for column in own]]
        above = range(tier + 1, levels.root) if sort.climb is not Climb.NO else range(0)
        starts = levels.starts[tier][units]
        for at in above:
            over = levels.unit[at][starts]
            rows.append([column[over] for column in self._values(at, sort.by, num_pods)])
        if sort.climb is Climb.BEFORE:
            rows.reverse()
        return [column for row in rows for column in row]

    def _values(self, tier: int, by: By, num_pods: int) -> list[Ints]:
        """Return what all units of a tier are compared by, smaller first."""
        if by is By.TIGHT:
            return [self.led[tier], self.slots[tier]]
        if by is By.ROOMY:
            return [-self.led[tier], self.slots[tier]]
        if by is By.RULES:
            return [column[tier] for column in self._rules()]
        return [self._value(tier, by, num_pods)]

    def _value(self, tier: int, by: By, num_pods: int) -> Ints:
        problem, levels = self.problem, self.problem.snapshot.levels
        index = np.arange(len(levels.starts[tier]))
        if by is By.TIGHT_FOR_GANG:
            return np.add.reduceat(np.minimum(self.fits[0], num_pods), levels.starts[tier])
        if by is By.RUNNING:
            return -np.bincount(levels.unit[tier][list(problem.own)], minlength=len(index))
        if by is By.WISHED:
            return self._unwished(tier)
        if by is By.TEXT:
            return text_ranks(problem, tier)
        return index if by is By.FIRST else -index

    def _unwished(self, tier: int) -> Ints:
        """Return the negated room on nodes that carry all wished labels."""
        shape = self.problem.shapes[self.problem.shape_of[self.group]]
        if shape.misses is None:
            return np.zeros(len(self.fits[tier]), dtype=np.int64)
        most = len(self.problem.request.groups[self.group].wishes)
        kept = (most - shape.misses) * (self.slots[0] > 0)
        return -np.add.reduceat(kept, self.problem.snapshot.levels.starts[tier])

    def _rules(self) -> tuple[tuple[Ints, ...], ...]:
        columns = self.problem.sort_columns
        return columns or (self.problem.sort_column(DEFAULT_RULE),)


def _steps(problem: Problem, group: int) -> list[tuple[int, int, int | None]]:
    """Return (tier, multiple, most) of all rules on the pods of a group per domain."""
    found = [(rule.tier, rule.multiple, rule.most) for rule in problem.rules if rule.group == group]
    layers = problem.request.groups[group].slices
    if layers and layers[-1].tier is not None and not problem.own:
        found.append((problem.floor(group), layers[-1].size, None))
    return found


def inside(problem: Problem, tier: int, unit: int, below: int) -> Ints:
    """Return the units of a lower tier in a unit."""
    levels = problem.snapshot.levels
    low, high = levels.starts[tier][unit], levels.stops[tier][unit]
    return np.arange(levels.unit[below][low], levels.unit[below][high - 1] + 1, dtype=np.int64)


def text_ranks(problem: Problem, tier: int) -> Ints:
    """Return the rank of every unit when names are compared as text, from the top tier down.

    Cost: O(units × log) once per tree.
    """
    levels, snapshot = problem.snapshot.levels, problem.snapshot
    if tier in snapshot.text_ranks:
        return snapshot.text_ranks[tier]
    starts = levels.starts[tier]
    paths = [
        (
            *(
                _name(problem, at, int(levels.unit[at][start]))
                for at in range(levels.root - 1, 0, -1)
                if at >= tier
            ),
            snapshot.specs[int(start)].name if tier == 0 else "",
        )
        for start in starts
    ]
    order = sorted(range(len(paths)), key=lambda unit: (paths[unit], unit))
    ranks = np.empty(len(paths), dtype=np.int64)
    ranks[order] = np.arange(len(paths))
    snapshot.text_ranks[tier] = ranks
    return ranks


def _name(problem: Problem, tier: int, unit: int) -> str:
    """Return the name of a domain, or of the first node where a unit is none."""
    levels, snapshot = problem.snapshot.levels, problem.snapshot
    domain = int(levels.domain[tier][unit])
    if domain >= 0:
        return snapshot.tree.domains[domain].name
    return snapshot.specs[int(levels.starts[tier][unit])].name
