"""Which switches of one rank serve the same units below, and so form one group.

Two switches belong together if the units that they reach, weighted by links, overlap by more than
half. Exact equality would fail at the first dead link. Counting units without their links would let
two swapped cables fuse two pods.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

Weights = Mapping[int, Mapping[int, int]]
"""Switch to unit to number of links."""


class Side(Enum):
    """Which switches an overlap is compared with: it must be more than half of their links."""

    BOTH = "both"
    """Both switches. For leaves: a storage leaf shared by many groups must not join any of them."""
    SMALLER = "smaller"
    """The smaller switch. For higher ranks: cores that lost many links must not split. The share of
    common units is then checked too."""
    TOP = "top"
    """The smaller switch, at the highest rank. No cable leads from one island to another, so
    switches that share exactly half of their links and of their units are one group with swapped
    cables."""


MAX_COMPARED_MEMBERS = 9
"""Members of a group that a switch is compared with: the heaviest, which have least damage."""
FEW_UNITS = 2
"""Most units of a switch that can join a switch with a single unit."""
ALIKE_SHARE = 0.75
"""Share of common links from which two switches are one group although they are cabled to each
other, as the spines of a small network can be."""


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
    """Switch to its number of links downwards."""
    groups: dict[int, _OverlapGroup] = field(default_factory=dict)
    """Groups by the number of their first switch."""
    by_unit: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    """Unit to the groups that reach it."""

    def add(self, switch: int) -> None:
        """Add a switch to the group whose compared members it overlaps most, else to a new one.

        It has to overlap more than half of them. A switch whose cables were exchanged with another
        pod's overlaps its counterpart there, but not the majority. If one overlap were enough, the
        two pods would be fused.
        """
        votes = {
            group_number: self._overlap_share([switch], group_number)
            for group_number in self._find_candidates([switch])
        }
        best = max(sorted(votes), key=votes.__getitem__, default=None)
        if best is None or votes[best] <= 1 / 2:
            best = switch
            self.groups[best] = _OverlapGroup([], set())
        self.groups[best].members.append(switch)
        self.groups[best].units.update(self.weights[switch])
        for unit in self.weights[switch]:
            self.by_unit[unit].add(best)

    def merge_overlapping(self) -> None:
        """Merge groups whose compared members overlap, smallest first."""
        for group_number in sorted(
            self.groups, key=lambda number: (len(self.groups[number].members), number)
        ):
            group = self.groups[group_number]
            compared = group.members[:MAX_COMPARED_MEMBERS]
            votes = {
                other_group: self._overlap_share(compared, other_group)
                for other_group in self._find_candidates(compared) - {group_number}
            }
            best = max(sorted(votes), key=votes.__getitem__, default=None)
            if best is not None and votes[best] > 1 / 2:
                for unit in group.units:
                    self.by_unit[unit].discard(group_number)
                    self.by_unit[unit].add(best)
                self.groups[best].members += group.members
                self.groups[best].units |= group.units
                del self.groups[group_number]

    def _find_candidates(self, switches: Sequence[int]) -> set[int]:
        """Return the groups that may have a compared member that overlaps one of the switches.

        Switches overlap only if they share half of the links of the smaller one, so groups that
        reach fewer are skipped. Without this filter, each switch of a random graph would be
        compared with most others.
        """
        candidates: set[int] = set()
        for switch in switches:
            reached: dict[int, int] = defaultdict(int)
            for unit, count in self.weights[switch].items():
                for group_number in self.by_unit.get(unit, ()):
                    reached[group_number] += count
            candidates.update(
                group_number
                for group_number, num_links in reached.items()
                if 2 * num_links >= self._least_total(switch, group_number)
            )
        return candidates

    def _least_total(self, switch: int, group_number: int) -> int:
        """Return the links of the switch, or of a smaller member that it may be compared with."""
        if self.side is Side.BOTH:
            return self.totals[switch]
        members = self.groups[group_number].members[:MAX_COMPARED_MEMBERS]
        return min(self.totals[switch], *(self.totals[member] for member in members))

    def _overlap_share(self, candidates: Sequence[int], group_number: int) -> float:
        """Return the share of pairs of candidates and compared members that overlap.

        If the number of compared members is even, the heaviest counts twice to prevent a tie.
        """
        members = self.groups[group_number].members[:MAX_COMPARED_MEMBERS]
        is_even = len(members) % 2 == 0
        votes = 0
        for switch in candidates:
            overlaps = [self._do_overlap(switch, member) for member in members]
            votes += sum(overlaps) + (is_even and overlaps[0])
        return votes / (len(candidates) * (len(members) + is_even))

    def _do_overlap(self, switch: int, other_switch: int) -> bool:
        units, other_units = self.weights[switch], self.weights[other_switch]
        if units == other_units:
            return True  # the usual case, which every rule below accepts
        shared = units.keys() & other_units.keys()
        totals = (self.totals[switch], self.totals[other_switch])
        num_units = (len(units), len(other_units))
        has_single_links = totals[0] == num_units[0] or totals[1] == num_units[1]
        num_shared = (
            len(shared)
            if has_single_links
            else sum(min(units[unit], other_units[unit]) for unit in shared)
        )
        excess = 2 * num_shared - (max(totals) if self.side is Side.BOTH else min(totals))
        if excess < 0:
            return False
        # Cables exchanged inside a small pair leave exactly half of the links shared. Then the pair
        # is joined if most units are still on both switches.
        least_excess = 0 if self.side is Side.TOP else 1
        is_joined = (
            self._agree(num_units, len(shared))
            if excess
            else 2 * len(shared) - len(units.keys() | other_units.keys()) >= least_excess
        )
        is_apart = 2 * self.peers.get(switch, {}).get(other_switch, 0) >= min(totals)
        return is_joined and (not is_apart or num_shared >= ALIKE_SHARE * max(totals))

    def _agree(self, num_units: tuple[int, int], num_shared: int) -> bool:
        """Return whether two switches that overlap also share most of their units."""
        is_enough = min(num_units) > 1 or max(num_units) <= FEW_UNITS
        if self.side is Side.BOTH:
            # One host with many cables to two leaves is no majority of their hosts.
            return 2 * num_shared > max(num_units)
        return 2 * num_shared > min(num_units) and is_enough


def join_switches(
    weights: Weights, side: Side, peers: Weights | None = None
) -> list[tuple[int, ...]]:
    """Return groups of switches, each ascending, in ascending order.

    The order of the input does not matter: switches join heaviest first, then by number.
    Cost: O(links · MAX_COMPARED_MEMBERS) on a Clos.

    Args:
        weights: links downwards, per switch and unit.
        side: which switches an overlap is compared with.
        peers: links between the switches themselves, in both directions. Two switches with half as
            many links to each other as downwards are peers of different groups, as in a dragonfly+,
            unless they serve nearly the same units.
    """
    groups = _OverlapGroups(weights, side, peers or {})
    groups.totals = {switch: sum(units.values()) for switch, units in weights.items()}
    for switch in sorted(weights, key=lambda switch: (-groups.totals[switch], switch)):
        groups.add(switch)
    groups.merge_overlapping()
    return sorted(tuple(sorted(group.members)) for group in groups.groups.values())


def find_equal_switches(weights: Weights) -> list[tuple[int, ...]]:
    """Return groups of switches that reach the same units equally and share none with others.

    Most groups of an undamaged network are like this, and all rules agree about them. Each group is
    ascending if the input is. Cost: O(links).
    """
    first_by_unit: dict[int, int] = {}
    groups_by_first: dict[int, list[int]] = {}
    shared_units: set[int] = set()
    for switch, units in weights.items():
        first_of_unit = first_by_unit.get(next(iter(units), -1))
        if first_of_unit is not None and weights[first_of_unit] == units:
            groups_by_first[first_of_unit].append(switch)
            continue
        shared_units.update(unit for unit in units if unit in first_by_unit)
        first_by_unit.update((unit, switch) for unit in units if unit not in first_by_unit)
        groups_by_first[switch] = [switch]
    return [
        tuple(group)
        for first, group in groups_by_first.items()
        if shared_units.isdisjoint(weights[first])
    ]
