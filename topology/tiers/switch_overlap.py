"""Which switches of one rank serve the same units below: the rule that makes groups of them.

Two switches belong together when the units that they reach, weighted by links, overlap by more
than half. Exact equality would break at the first dead link, and counting units without their
links would let two swapped cables fuse pods.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
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


MAX_COMPARED_MEMBERS = 9
"""Members of a group that judge a newcomer: its heaviest, which damage has touched least."""
FEW_UNITS = 2
"""Of one switch's units, up to which one in common with a switch that has no other tells much."""
ALIKE_SHARE = 0.75
"""Share of links in common from which two switches are fellows although they are cabled together,
as the spines of a small network may be."""


@dataclass(slots=True)
class _OverlapGroup:
    members: list[int]
    """Heaviest first."""
    units: set[int]


@dataclass(slots=True)
class _OverlapGroups:
    weights: Weights
    side: Side
    peers: Weights
    totals: dict[int, int] = field(default_factory=dict)
    groups: dict[int, _OverlapGroup] = field(default_factory=dict)
    by_unit: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))

    def add(self, switch: int) -> None:
        """Put a switch into the part that most of whose jury it overlaps, else into its own.

        One switch whose cables were exchanged with another pod's overlaps its like there, but
        not the majority: single overlaps, taken together, would fuse the two pods.
        """
        near = {part for unit in self.weights[switch] for part in self.by_unit.get(unit, ())}
        votes = {part: self._overlap_share([switch], part) for part in near}
        best = max(sorted(votes), key=votes.__getitem__, default=None)
        if best is None or votes[best] <= 1 / 2:
            best = switch
            self.groups[best] = _OverlapGroup([], set())
        self.groups[best].members.append(switch)
        self.groups[best].units.update(self.weights[switch])
        for unit in self.weights[switch]:
            self.by_unit[unit].add(best)

    def merge_overlapping(self) -> None:
        """Merge parts whose juries overlap, until none do."""
        for part in sorted(self.groups, key=lambda at: (len(self.groups[at].members), at)):
            mine = self.groups[part]
            near = {other for unit in mine.units for other in self.by_unit[unit]} - {part}
            votes = {
                other: self._overlap_share(mine.members[:MAX_COMPARED_MEMBERS], other)
                for other in near
            }
            best = max(sorted(votes), key=votes.__getitem__, default=None)
            if best is not None and votes[best] > 1 / 2:
                for unit in mine.units:
                    self.by_unit[unit].discard(part)
                    self.by_unit[unit].add(best)
                self.groups[best].members += mine.members
                self.groups[best].units |= mine.units
                del self.groups[part]

    def _overlap_share(self, candidates: Sequence[int], part: int) -> float:
        """Return the share of pairs of candidates and jury members that overlap.

        In an even jury its heaviest member counts twice, so that there is no tie.
        """
        jury = self.groups[part].members[:MAX_COMPARED_MEMBERS]
        is_even = len(jury) % 2 == 0
        votes = 0
        for one in candidates:
            found = [self._do_overlap(one, other) for other in jury]
            votes += sum(found) + (is_even and found[0])
        return votes / (len(candidates) * (len(jury) + is_even))

    def _do_overlap(self, one: int, other: int) -> bool:
        mine, theirs = self.weights[one], self.weights[other]
        if mine == theirs:
            return True  # nearly always, and then every rule below says so
        shared = [min(count, theirs[unit]) for unit, count in mine.items() if unit in theirs]
        totals, num_shared = (self.totals[one], self.totals[other]), sum(shared)
        excess = 2 * num_shared - (max(totals) if self.side is Side.BOTH else min(totals))
        if excess < 0:
            return False
        partners = (len(mine), len(theirs))
        # Cables exchanged inside a small pair leave exactly half of the links shared; that most
        # units are still on both switches then decides.
        is_joined = (
            self._agree(partners, len(shared))
            if excess
            else 2 * len(shared) > len(mine.keys() | theirs.keys())
        )
        is_apart = 2 * self.peers.get(one, {}).get(other, 0) >= min(totals)
        return is_joined and (not is_apart or num_shared >= ALIKE_SHARE * max(totals))

    def _agree(self, partners: tuple[int, int], num_shared: int) -> bool:
        """Return whether two switches that overlap share most of their units, too."""
        is_enough = min(partners) > 1 or max(partners) <= FEW_UNITS
        return self.side is Side.BOTH or (2 * num_shared > min(partners) and is_enough)


def join_switches(
    weights: Weights, side: Side, peers: Weights | None = None
) -> list[tuple[int, ...]]:
    """Return groups of switches, each ascending, in ascending order.

    The order of the input does not matter: switches join heaviest first, by number where equal.
    Cost: O(links · JURY) on a Clos.

    Args:
        weights: links downwards, per switch and unit.
        side: of which switch the overlap must be more than half.
        peers: links between the switches themselves, both ways; two that have half as many to
            each other as down are peers of different groups, as in a dragonfly+, unless they
            serve nearly the same.
    """
    parts = _OverlapGroups(weights, side, peers or {})
    parts.totals = {switch: sum(units.values()) for switch, units in weights.items()}
    for switch in sorted(weights, key=lambda at: (-parts.totals[at], at)):
        parts.add(switch)
    parts.merge_overlapping()
    return sorted(tuple(sorted(part.members)) for part in parts.groups.values())


def find_equal_switches(weights: Weights) -> list[tuple[int, ...]]:
    """Return groups of switches that reach the same units, equally, and share none with others.

    So it is in most of a whole network, and about such groups all rules agree. Each is ascending
    where the input is. Cost: O(links).
    """
    first: dict[int, int] = {}
    alike: dict[int, list[int]] = {}
    odd: set[int] = set()
    for switch, units in weights.items():
        like = first.get(next(iter(units), -1))
        if like is not None and weights[like] == units:
            alike[like].append(switch)
            continue
        odd.update(unit for unit in units if unit in first)
        first.update((unit, switch) for unit in units if unit not in first)
        alike[switch] = [switch]
    return [tuple(group) for at, group in alike.items() if odd.isdisjoint(weights[at])]
