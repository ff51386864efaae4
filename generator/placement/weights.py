"""The additive part of a preset's vector as one integer, so that a search adds and compares it.

Every key and tier that grows with what is used has a digit, in the order of the preset; digits are
wide enough never to run over. Keys that the search settles beforehand (pods, strategy, tier of the
job) have none.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from generator.placement.capacity import Ints
from generator.placement.objective import slots_after
from generator.placement.presets import PRESETS, Direction, Key
from generator.placement.problem import PartType, Problem


class Weights:
    """The additive part of a preset's vector, packed: one base-2^b digit per key and tier."""

    def __init__(self, problem: Problem, num_pods: int) -> None:
        """Lay out the digits for a job of so many pods."""
        self._problem = problem
        levels = problem.snapshot.levels
        slots = problem.shapes[problem.largest].slots
        self._before = [_sums(slots, starts) for starts in levels.starts]
        bits = (2 * (int(slots.sum()) + num_pods) * (levels.root + 2) + 8).bit_length() + 1
        bits = max(bits, (2 * len(slots)).bit_length() + 2)
        self._digit: dict[tuple[Key, int], int] = {}
        order = [
            (term, tier)
            for term in PRESETS[problem.request.preset]
            for tier in _tiers_of(term.key, levels.root)
        ]
        for place, (term, tier) in enumerate(reversed(order)):
            sign = -1 if term.direction is Direction.MORE else 1
            self._digit[term.key, tier] = sign << (bits * place)
        self._own_units = [frozenset(int(unit[at]) for at in problem.own) for unit in levels.unit]
        self._per_lost = sum(
            self._of(key, tier)
            for key in (Key.SURPLUS, Key.PARENT_SURPLUS, Key.FRAGMENTATION)
            for tier in range(levels.root)
        )

    def _of(self, key: Key, tier: int) -> int:
        return self._digit.get((key, tier), 0)

    def need(self, counts: tuple[int, ...]) -> Counter[str]:
        """Return what so many pods per shape use."""
        need: Counter[str] = Counter()
        for shape, count in zip(self._problem.shapes, counts, strict=True):
            for name, quantity in shape.request.items():
                need[name] += quantity * count
        return need

    def of_node(self, at: int, counts: tuple[int, ...]) -> int:
        """Return what pods on a node cost: the slots of the largest shape that they take."""
        largest = self._problem.shapes[self._problem.largest]
        before = int(largest.slots[at])
        if not any(counts):
            return 0
        after = (
            before - sum(counts)
            if len(self._problem.shapes) == 1
            else slots_after(self._problem, largest, at, self.need(counts))
        )
        return (after - before) * self._per_lost

    def of_part(self, tier: int, kind: PartType) -> int:
        """Return what completing a part at a tier costs."""
        misses = sum(tier > wish for wish in kind.preferred)
        return self._of(Key.HISTOGRAM, max(tier, kind.floor)) + misses * self._of(
            Key.PREFERRED_MISSES, 0
        )

    def of_unit(self, tier: int, unit: int, pods: int) -> int:
        """Return what so many pods in a unit cost as such."""
        if pods == 0 or tier == self._problem.root:
            return 0
        cost = self._of(Key.DOMAINS, tier)
        cost += self._of(Key.FRAGMENTATION, tier) * int(self._before[tier][unit])
        if unit in self._own_units[tier]:
            cost += self._of(Key.EXISTING, tier) * pods
        return cost

    def of_domain(self, tier: int, unit: int) -> int:
        """Return what taking a unit as the job's domain costs: comparable between units of a tier.

        The units above it are used too, each once, whatever lies inside.
        """
        levels = self._problem.snapshot.levels
        at = int(levels.starts[tier][unit])
        cost = self._of(Key.NAMES, 0) * at
        cost += self._of(Key.SURPLUS, 0) * int(self._before[tier][unit])
        for above in range(tier + 1, levels.root):
            over = int(levels.unit[above][at])
            cost += self._of(Key.PARENT_SURPLUS, above) * int(self._before[above][over])
            cost += self._of(Key.FRAGMENTATION, above) * int(self._before[above][over])
        for same in range(1, tier + 1):
            cost += self._of(Key.PARENT_SURPLUS, same) * int(self._before[tier][unit])
        return cost


def _tiers_of(key: Key, root: int) -> tuple[int, ...]:
    """Return the tiers of a key, in the order in which they are compared; none if not additive."""
    if key in {Key.EXISTING, Key.DOMAINS}:
        return tuple(reversed(range(root)))
    if key is Key.HISTOGRAM:
        return tuple(reversed(range(root + 1)))
    if key is Key.PARENT_SURPLUS:
        return tuple(range(1, root))
    if key is Key.FRAGMENTATION:
        return tuple(range(root))
    return (0,) if key in {Key.PREFERRED_MISSES, Key.SURPLUS, Key.NAMES} else ()


def _sums(slots: Ints, starts: Ints) -> Ints:
    return np.add.reduceat(slots, starts) if len(slots) else slots
