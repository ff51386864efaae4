"""Which switches of one rank serve the same units below: the rule that makes groups of them.

Two switches belong together when the units that they reach, weighted by links, overlap by more
than half. Exact equality would break at the first dead link, and counting units without their
links would let two swapped cables fuse pods.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

Weights = Mapping[int, Mapping[int, int]]
"""Switch to unit to number of links."""


class Side(Enum):
    """Of which of the two switches the overlap must be more than half."""

    BOTH = "both"
    """For leaves: a storage leaf shared by many groups must not join any of them."""
    SMALLER = "smaller"
    """Above: cores that lost many links must not split. The partners then have to agree too."""


@dataclass(slots=True)
class _Part:
    members: list[int]
    units: set[int]
    lightest: int
    """Fewest links of a member."""


@dataclass(slots=True)
class _Parts:
    weights: Weights
    side: Side
    totals: dict[int, int] = field(default_factory=dict)
    parts: dict[int, _Part] = field(default_factory=dict)
    by_unit: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))

    def add(self, switch: int) -> None:
        """Join a switch to every part of which one member matches it."""
        mine = self.weights[switch]
        near = {part for unit in mine for part in self.by_unit.get(unit, ())}
        matching = sorted(part for part in near if self._matches(switch, self.parts[part]))
        merged = _Part([switch], set(mine), self.totals[switch])
        for part in matching:
            old = self.parts.pop(part)
            merged.members += old.members
            merged.units |= old.units
            merged.lightest = min(merged.lightest, old.lightest)
            for unit in old.units:
                self.by_unit[unit].discard(part)
        self.parts[switch] = merged
        for unit in merged.units:
            self.by_unit[unit].add(switch)

    def _matches(self, switch: int, part: _Part) -> bool:
        mine, total = self.weights[switch], self.totals[switch]
        most = sum(count for unit, count in mine.items() if unit in part.units)
        least = total if self.side is Side.BOTH else min(total, part.lightest)
        if 2 * most <= least:
            return False  # no member can share enough
        return any(self._overlap(switch, member) for member in part.members)

    def _overlap(self, one: int, other: int) -> bool:
        mine, theirs = self.weights[one], self.weights[other]
        shared = [min(count, theirs[unit]) for unit, count in mine.items() if unit in theirs]
        totals = self.totals[one], self.totals[other]
        if self.side is Side.BOTH:
            return 2 * sum(shared) > max(totals)
        return 2 * sum(shared) > min(totals) and 2 * len(shared) > min(len(mine), len(theirs))


def join_switches(weights: Weights, side: Side) -> list[tuple[int, ...]]:
    """Return groups of switches, each ascending, in ascending order.

    The order of the input does not matter: the groups are the connected components of the
    overlap relation. Cost: about O(links) on a Clos, where the first comparison with a group
    nearly always matches; O(switches² · links) at worst.
    """
    parts = _Parts(weights, side)
    for switch in sorted(weights):
        parts.totals[switch] = sum(weights[switch].values())
        parts.add(switch)
    return sorted(tuple(sorted(part.members)) for part in parts.parts.values())
