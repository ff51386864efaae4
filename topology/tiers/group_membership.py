"""Which group holds a unit: where most of its links lead, told apart from a tie.

Also which groups are no homes of their own: a leaf that all pods share is set aside, one that
lost its units' majority joins the group that has it. Pure counting on links; ranks and tiers are
`tiers`' business.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from topology.tiers.switch_overlap import Weights

MIN_EVIDENCE_UNITS = 2
"""Units that must speak for an attachment: a single host on two leaves may as well be astray."""
_FEWEST_GROUPS = 3  # one that is shared, and two that share it

Switches = tuple[int, ...]
"""A group before it is one: its switches, ascending."""
Links = Mapping[int, Counter[int]]
"""Unit to its number of links per group, by the group's place in the list."""


@dataclass(frozen=True, slots=True)
class Tie:
    """A unit that no group holds more firmly than another does, or might."""

    unit: int
    """A host's device number, or a group's index."""
    groups: tuple[Switches, ...]
    """The switches of the groups that it hangs between."""
    counts: tuple[int, ...]
    """Links to each. The first has most; where no other has as many, the last are of switches
    that belong nowhere themselves and would make it a tie if they were of a rival."""


@dataclass(frozen=True, slots=True)
class UnitAssignment:
    """Where the units of a list of groups are at home."""

    group_of_unit: Mapping[int, int]
    """Unit to the place of the group that holds most of its links."""
    margin: Mapping[int, float]
    """Unit to how far that was from a tie, 0 to 1."""
    ties: tuple[Tie, ...]

    @property
    def units(self) -> dict[int, list[int]]:
        """Return group to its units."""
        units: dict[int, list[int]] = defaultdict(list)
        for unit, group in self.group_of_unit.items():
            units[group].append(unit)
        return units


def links_by_unit(groups: Sequence[Switches], weights: Weights) -> dict[int, Counter[int]]:
    """Return each unit's links per group. Cost: O(links)."""
    links: dict[int, Counter[int]] = defaultdict(Counter)
    for at, switches in enumerate(groups):
        for switch in switches:
            for unit, count in weights[switch].items():
                links[unit][at] += count
    return links


def assign_units(groups: Sequence[Switches], weights: Weights) -> UnitAssignment:
    """Return where each unit is at home, unless that is a tie or may be one. Cost: O(links)."""
    links = links_by_unit(groups, weights)
    ranked = {
        unit: sorted(counts.items(), key=lambda row: (-row[1], row[0]))
        for unit, counts in links.items()
    }
    best = {unit: rows[0][0] for unit, rows in ranked.items() if not _is_tied(rows)}
    idle = _find_idle_groups(groups, weights, best)
    home: dict[int, int] = {}
    margin: dict[int, float] = {}
    ties: list[Tie] = []
    for unit in sorted(links):
        rows = ranked[unit]
        rivals = rows[: _count_tied(rows)] if unit not in best else _find_possible_ties(rows, idle)
        if rivals:
            switches = tuple(groups[at] for at, _ in rivals)
            ties.append(Tie(unit, switches, tuple(count for _, count in rivals)))
            continue
        home[unit] = best[unit]
        most, second = rows[0][1], rows[1][1] if len(rows) > 1 else 0
        margin[unit] = (most - second) / (most + second)
    return UnitAssignment(home, margin, tuple(ties))


_Row = tuple[int, int]
"""A group and a unit's links to it."""


def _count_tied(rows: Sequence[_Row]) -> int:
    return sum(count == rows[0][1] for _, count in rows)


def _is_tied(rows: Sequence[_Row]) -> bool:
    return _count_tied(rows) > 1


def _find_idle_groups(
    groups: Sequence[Switches], weights: Weights, best: Mapping[int, int]
) -> dict[int, set[int]]:
    """Return the groups that no unit is at home in, and the groups that their units are in."""
    held = set(best.values())
    return {
        at: {best[unit] for switch in switches for unit in weights[switch] if unit in best}
        for at, switches in enumerate(groups)
        if at not in held
    }


def _find_possible_ties(rows: Sequence[_Row], idle: Mapping[int, set[int]]) -> list[_Row]:
    """Return the rows that would be a tie if an idle group were part of a rival; else nothing.

    A switch without a home of its own, with as many links here as there, is part of one of the
    groups that its units are in. Which one decides where a unit with few links belongs.
    """
    most = rows[0][1]
    for rival, count in rows[1:]:
        loose = [row for row in rows if row[0] != rival and rival in idle.get(row[0], ())]
        if rival not in idle and loose and count + sum(own for _, own in loose) >= most:
            return [rows[0], (rival, count), *loose]
    return []


def find_shared_groups(groups: Sequence[Switches], weights: Weights) -> set[int]:
    """Return groups that hosts of several others share: guests there, at home elsewhere.

    Two storage leaves next to pods of two leaves or more: most hosts of at least two groups have
    links there, no more than at home, so it is no rival to any of them. Where groups are guests
    of each other crosswise none is shared.
    """
    if len(groups) < _FEWEST_GROUPS:
        return set()
    own = Counter[int]()
    held = Counter[int]()
    guests: dict[int, Counter[int]] = defaultdict(Counter)
    for counts in links_by_unit(groups, weights).values():
        most = max(counts.values())
        best = [at for at, count in counts.items() if count == most]
        held.update(best)
        if len(best) == 1:
            own[best[0]] += 1
        for at, count in counts.items():
            home = _best_group_without(at, counts)
            if home is not None and counts[home] >= count:
                guests[at][home] += 1
    nested = {
        at: {o for o, count in found.items() if count >= MIN_EVIDENCE_UNITS and 2 * count > held[o]}
        for at, found in guests.items()
    }
    return {
        at
        for at, others in nested.items()
        if len(others) > 1
        and 2 * own[at] < sum(guests[at][other] for other in others)
        and all(nested.get(other, set()) <= {at} for other in others)
    }


def _best_group_without(at: int, counts: Mapping[int, int]) -> int | None:
    """Return the group with most links but one that is left out, None for a tie or without any."""
    others = {other: count for other, count in counts.items() if other != at}
    most = max(others.values(), default=0)
    best = [other for other, count in others.items() if count == most]
    return best[0] if len(best) == 1 else None


def absorb_minor_groups(
    groups: Iterable[Switches], weights: Weights, *, min_owners: int = 1
) -> list[Switches]:
    """Put groups that are home to less than half of their links into the group that is.

    A rail leaf that only some hosts of its group use overlaps the others by less than half, and
    so does a switch that lost many cables or has some in the wrong place, yet most of its links
    are theirs. One larger group must have a hold on half of the links and more than any other,
    so a leaf that several groups share (storage) attaches to none. Cost: O(links) a round; there
    are more rounds than one only where an attachment brings about another.

    Args:
        groups: the groups so far.
        weights: links downwards, per switch and unit.
        min_owners: units that must be at home in a group that is home to half of its links, for
            it to stand: a single host with two cables on one leaf makes no leaf group.
    """
    groups = list(groups)
    while True:
        links = links_by_unit(groups, weights)
        size = Counter[int]()
        for counts in links.values():
            size.update(counts)
        holds = _measure_ownership(links)
        target = {
            at: taker
            for at, hold in holds.items()
            if (taker := _find_absorber(at, hold, size, min_owners=min_owners)) is not None
        }
        moving = {at: taker for at, taker in target.items() if taker not in target}
        if not moving:
            return groups
        merged = {at: list(group) for at, group in enumerate(groups) if at not in moving}
        for at, taker in moving.items():
            merged[taker] += groups[at]
        groups = sorted(tuple(sorted(switches)) for switches in merged.values())


@dataclass(slots=True)
class _UnitOwnership:
    """Who holds the units that a group has links to."""

    own_links: int = 0
    """Links of units that are at home in the group itself."""
    num_own_units: int = 0
    """How many units these are."""
    rival_links: Counter[int] = field(default_factory=Counter)
    """Links of units that another group holds at least as firmly, by that group."""
    num_rival_units: Counter[int] = field(default_factory=Counter)
    """How many units these are."""


def _measure_ownership(links: Links) -> dict[int, _UnitOwnership]:
    holds: dict[int, _UnitOwnership] = defaultdict(_UnitOwnership)
    for counts in links.values():
        ranked = sorted(counts.values(), reverse=True)
        for at, mine in counts.items():
            most = ranked[mine == ranked[0]] if len(ranked) > 1 else 0
            hold = holds[at]
            if mine > most:
                hold.own_links += mine
                hold.num_own_units += 1
                continue
            for other, count in counts.items():
                if other != at and count == most:
                    hold.rival_links[other] += mine
                    hold.num_rival_units[other] += 1
    return holds


def _find_absorber(
    at: int, hold: _UnitOwnership, size: Mapping[int, int], *, min_owners: int
) -> int | None:
    """Return the larger group that holds, at least as firmly, the units of half of the links."""
    held = hold.rival_links
    ranked = sorted(held, key=lambda other: (-held[other], -size[other], other))
    is_home = 2 * hold.own_links > size[at] or (
        2 * hold.own_links == size[at] and hold.num_own_units >= min_owners
    )
    if not ranked or is_home or 2 * held[ranked[0]] < size[at]:
        return None
    taker = ranked[0]
    if hold.num_rival_units[taker] < MIN_EVIDENCE_UNITS or any(
        held[other] == held[taker] for other in ranked[1:]
    ):
        return None
    return taker if (size[taker], -taker) > (size[at], -at) else None
