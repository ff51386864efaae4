"""A good placement where the exact search would take too long: one part after the other.

Largest parts with the tightest bounds first, each into the fullest unit of the lowest tier that
holds it. Never proved; every rule is checked before it is handed out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generator.placement.cluster.levels import Ints, Mask
from generator.placement.problem.constraints import keeps_rules
from generator.placement.problem.free_capacity import Leftover
from generator.placement.problem.partial_slices import Begun, begun, portions
from generator.placement.problem.parts import Part, PartType, PlacedPart, assemble
from generator.placement.problem.problem import Problem
from generator.placement.solve.part_placement import Found

TRIED = 8
"""Domains tried per tier, the fullest first."""


class Rough:
    """Finds some placement of one choice of pods per group."""

    def __init__(self, problem: Problem, parts: Sequence[Part]) -> None:
        """Take the parts of the job, those of sets inside their set."""
        self._problem = problem
        self._parts = _hardest_first(parts)

    def best(self, tier: int, units: Ints) -> Found | None:
        """Return a placement whose domain is one of these units of a tier."""
        room = self._problem.shapes[self._problem.largest].rooms[tier][units]
        for unit in units[np.argsort(room, kind="stable")[:TRIED]]:
            left = _Left(self._problem, tier, int(unit))
            found = left.take_job(self._parts, tier, int(unit))
            if found is not None and keeps_rules(self._problem, self._pods(found)):
                return Found(found, is_proved=False)
        return None

    def _pods(self, placed: list[PlacedPart]) -> tuple[tuple[int, ...], ...]:
        return assemble(len(self._problem.request.groups), self._parts, placed)


def _hardest_first(parts: Sequence[Part]) -> list[Part]:
    return sorted(parts, key=lambda part: (part.kind.cap, -part.kind.size))


class _Left:
    """What is left of one domain while parts are put into it."""

    def __init__(self, problem: Problem, tier: int, unit: int) -> None:
        levels = problem.snapshot.levels
        self._problem, self._levels = problem, levels
        self._start, self._stop = int(levels.starts[tier][unit]), int(levels.stops[tier][unit])
        self._left = Leftover(problem)

    def _slots(self, shape: int) -> Ints:
        return self._left.slots[shape][self._start : self._stop]

    def take_job(self, parts: Sequence[Part], tier: int, unit: int) -> list[PlacedPart] | None:
        """Put all parts of the job into a unit: those first that go on with what is begun."""
        placed: list[PlacedPart] = []
        groups = {part.group for part in parts if part.group >= 0}
        for group in sorted(groups):
            layer = begun(self._problem, group)
            mine = [part for part in parts if part.group == group]
            if layer is None or layer.tier >= tier:
                continue
            found = self._go_on(layer, mine, tier, unit)
            if found is None:
                return None
            placed += found
            parts = [part for part in parts if part.group != group]
        found = self.take_all(parts, tier, unit)
        return None if found is None else placed + found

    def _go_on(
        self, layer: Begun, parts: list[Part], tier: int, unit: int
    ) -> list[PlacedPart] | None:
        """Put the pods of a group beside those that run, and cut them into parts in tree order."""
        first, starts = self._units(layer.tier, tier, unit)
        stops = np.append(starts[1:], self._stop - self._start)
        kind = parts[0].kind

        def room_of(units: Ints) -> Ints:
            sums = np.add.reduceat(self._slots(kind.shape), starts)
            return np.asarray(sums[units - first])

        nodes: list[int] = []
        units = np.arange(first, first + len(starts))
        num_pods = sum(part.kind.size for part in parts)
        for at, count in portions(layer, units, num_pods, room_of):
            span = int(starts[at - first]), int(stops[at - first])
            nodes += self._fill(kind._replace(size=count), *span)
        if len(nodes) < num_pods:
            return None
        nodes.sort()
        found = []
        for part in parts:
            found.append(PlacedPart(part.kind, nodes[: part.kind.size]))
            del nodes[: part.kind.size]
        return found

    def take_all(self, parts: Sequence[Part], tier: int, unit: int) -> list[PlacedPart] | None:
        """Put parts into a unit, None where one of them finds no room."""
        placed: list[PlacedPart] = []
        for part in parts:
            found = (
                self._take_set(part, tier, unit) if part.members else self._take(part, tier, unit)
            )
            if found is None:
                return None
            placed.append(found)
        return placed

    def _take_set(self, part: Part, tier: int, unit: int) -> PlacedPart | None:
        """Put a set into the fullest unit of the lowest tier that holds all of it."""
        members = _hardest_first(part.members)
        stop = int(self._levels.stops[tier][unit]) - self._start
        for at in range(min(part.kind.cap, tier) + 1):
            first, starts = self._units(at, tier, unit)
            room = np.add.reduceat(self._slots(self._problem.largest)[:stop], starts)
            order = np.argsort(room, kind="stable")
            fits = self._beside_anchors(part.kind, at, first, len(room)) & (room > 0)
            for index in order[fits[order]][:TRIED]:
                before = self._left.copy()
                found = self.take_all(members, at, first + int(index))
                if found is not None:
                    return PlacedPart(part.kind, [], tuple(found))
                self._left.reset(before)
        return None

    def _units(self, at: int, tier: int, unit: int) -> tuple[int, Ints]:
        """Return the first unit of a lower tier inside a unit, and where all of them start."""
        low, high = self._levels.starts[tier][unit], self._levels.stops[tier][unit]
        first = int(self._levels.unit[at][low])
        last = int(self._levels.unit[at][high - 1])
        return first, self._levels.starts[at][first : last + 1] - self._start

    def _beside_anchors(self, kind: PartType, at: int, first: int, count: int) -> Mask:
        fits = np.ones(count, dtype=np.bool_)
        for anchor in kind.anchors or ():
            fits &= np.arange(first, first + count) == self._levels.unit[at][anchor]
        return fits

    def _take(self, part: Part, tier: int, unit: int) -> PlacedPart | None:
        """Put a part into the fullest unit of the lowest tier that holds it."""
        kind = part.kind
        stop = int(self._levels.stops[tier][unit]) - self._start
        slots = self._slots(kind.shape)[:stop]
        for at in range(min(kind.cap, tier) + 1):
            first, starts = self._units(at, tier, unit)
            room = np.add.reduceat(slots, starts)
            fits = (room >= kind.size) & self._beside_anchors(kind, at, first, len(room))
            if fits.any():
                chosen = int(np.argmin(np.where(fits, room, np.iinfo(np.int64).max)))
                stops = np.append(starts[1:], stop)
                nodes = self._fill(kind, int(starts[chosen]), int(stops[chosen]))
                return PlacedPart(kind, nodes)
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
        slots = self._slots(kind.shape)
        nodes: list[int] = []
        for offset in self._fullest_first(slots, start, stop):
            count = min(int(slots[offset]), kind.size - len(nodes))
            if not count:
                continue  # a full node beside a free one of the same unit
            at = int(offset) + self._start
            nodes += [at] * count
            self._left.take(kind.shape, at, count)
        return sorted(nodes)
