"""A good placement where the exact search would take too long: one part after the other.

Largest parts with the tightest bounds first, each into the fullest unit of the lowest tier that
holds it. Never proved; every rule is checked before it is handed out.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from generator.placement.capacity import Ints
from generator.placement.found import Found
from generator.placement.objective import slots_after
from generator.placement.problem import PartType, Problem

TRIED = 8
"""Domains tried per tier, the fullest first."""


class Rough:
    """Finds some placement of one choice of pods per group."""

    def __init__(self, problem: Problem, types: list[PartType], wanted: list[int]) -> None:
        """Take the distinct part types, and how many parts of each are wanted."""
        self._problem = problem
        rows = zip(types, wanted, strict=True)
        self._parts = [
            kind
            for kind, count in sorted(rows, key=lambda row: (row[0].cap, -row[0].size))
            for _ in range(count)
        ]

    def best(self, tier: int, units: Ints) -> Found | None:
        """Return a placement whose domain is one of these units of a tier."""
        slots = self._problem.shapes[self._problem.largest].slots
        room = np.add.reduceat(slots, self._problem.snapshot.levels.starts[tier])[units]
        for unit in units[np.argsort(room, kind="stable")[:TRIED]]:
            found = self._placed(tier, int(unit))
            if found is not None and self._keeps_rules(found):
                return Found(found, is_proved=False)
        return None

    def _placed(self, tier: int, unit: int) -> list[tuple[PartType, list[int]]] | None:
        """Return the parts in a unit, None where one of them finds no room."""
        left = _Left(self._problem, tier, unit)
        parts = []
        for kind in self._parts:
            nodes = left.take(kind, tier)
            if nodes is None:
                return None
            parts.append((kind, nodes))
        return parts

    def _keeps_rules(self, parts: list[tuple[PartType, list[int]]]) -> bool:
        problem, levels = self._problem, self._problem.snapshot.levels
        placed = [at for _, nodes in parts for at in nodes]
        for at, most in problem.limits:
            if len(set(levels.unit[at][placed].tolist())) > most:
                return False
        for rule in problem.rules:
            counts = Counter(levels.unit[rule.tier][[*placed, *problem.own]].tolist())
            if any(n % rule.multiple or n > (rule.most or n) for n in counts.values()):
                return False
        return True


class _Left:
    """What is left of one domain while parts are put into it."""

    def __init__(self, problem: Problem, tier: int, unit: int) -> None:
        levels = problem.snapshot.levels
        self._problem, self._levels = problem, levels
        self._start, self._stop = int(levels.starts[tier][unit]), int(levels.stops[tier][unit])
        self._slots = [shape.slots[self._start : self._stop].copy() for shape in problem.shapes]
        self._used: dict[int, Counter[str]] = {}

    def take(self, kind: PartType, tier: int) -> list[int] | None:
        """Put a part into the fullest unit of the lowest tier that holds it."""
        slots = self._slots[kind.shape]
        for at in range(min(kind.cap, tier) + 1):
            first = int(self._levels.unit[at][self._start])
            last = int(self._levels.unit[at][self._stop - 1])
            starts = self._levels.starts[at][first : last + 1] - self._start
            room = np.add.reduceat(slots, starts)
            fits = room >= kind.size
            for anchor in kind.anchors or ():
                fits &= np.arange(first, last + 1) == self._levels.unit[at][anchor]
            if fits.any():
                chosen = int(np.argmin(np.where(fits, room, np.iinfo(np.int64).max)))
                stops = np.append(starts[1:], self._stop - self._start)
                return self._fill(kind, int(starts[chosen]), int(stops[chosen]))
        return None

    def _fullest_first(self, slots: Ints, start: int, stop: int) -> Ints:
        """Return the nodes of a range, those of the fullest units of every tier together."""
        keys = []
        for unit_of in self._levels.unit:
            units = unit_of[self._start + start : self._start + stop]
            units = units - units[0]
            room = np.bincount(units, weights=slots[start:stop])
            keys += [units, -room[units]]
        return np.lexsort(keys) + start

    def _fill(self, kind: PartType, start: int, stop: int) -> list[int]:
        slots = self._slots[kind.shape]
        nodes: list[int] = []
        for offset in self._fullest_first(slots, start, stop):
            count = min(int(slots[offset]), kind.size - len(nodes))
            if not count:
                continue  # a full node beside a free one of the same unit
            at = int(offset) + self._start
            nodes += [at] * count
            used = self._used.setdefault(at, Counter())
            for name, need in self._problem.shapes[kind.shape].request.items():
                used[name] += need * count
            for row, shape in zip(self._slots, self._problem.shapes, strict=True):
                row[offset] = slots_after(self._problem, shape, at, used)
        return sorted(nodes)
