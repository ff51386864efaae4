"""Which group a unit belongs to: the group with most of its links, unless that is a tie.

Also decides which groups own no units. A leaf that all pods share is set aside. A leaf that lost
the majority of its units joins the group that has it. Only counts links; `ranks` and `tier_groups`
decide about ranks and tiers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from topology.tiers.switch_overlap import Weights

MIN_EVIDENCE_UNITS = 2
"""Units needed to absorb a group: a single host on two leaves may be a misplaced cable."""
DIVIDED_SHARE = 0.25
"""Share of the links of a unit or a group from which the links between them are many."""
_FEWEST_GROUPS = 3  # a shared group and the two groups that share it

Switches = tuple[int, ...]
"""The switches of a candidate group, ascending."""
Links = Mapping[int, Counter[int]]
"""Unit to its number of links per group, by the group's index in the list."""


@dataclass(frozen=True, slots=True)
class Tie:
    """A unit with no clear majority: several groups have equally many of its links, or may have."""

    unit: int
    """A host's device number, or a group's index."""
    groups: tuple[Switches, ...]
    """The switches of the groups that it is tied between."""
    counts: tuple[int, ...]
    """Links to each group. The first has most. Where no other has as many, the last groups own no
    unit, and would make it a tie if they were part of a rival."""


@dataclass(frozen=True, slots=True)
class UnitAssignment:
    """The group that each unit belongs to, for a list of groups."""

    group_of_unit: Mapping[int, int]
    """Unit to the index of the group with most of its links."""
    margin: Mapping[int, float]
    """Unit to the distance of this decision from a tie, 0 to 1."""
    ties: tuple[Tie, ...]
    """The units without a group."""
    divided: tuple[Tie, ...]
    """The units with a group that have many links to another: a quarter of their own links, or of
    those of the other group together with other units of their group."""

    @property
    def units(self) -> dict[int, list[int]]:
        """Return the units of each group."""
        units: dict[int, list[int]] = defaultdict(list)
        for unit, group in self.group_of_unit.items():
            units[group].append(unit)
        return units


def links_by_unit(groups: Sequence[Switches], weights: Weights) -> dict[int, Counter[int]]:
    """Return each unit's links per group. Cost: O(links)."""
    links: dict[int, Counter[int]] = defaultdict(Counter)
    for group_index, switches in enumerate(groups):
        for switch in switches:
            for unit, count in weights[switch].items():
                links[unit][group_index] += count
    return links


def assign_units(groups: Sequence[Switches], weights: Weights) -> UnitAssignment:
    """Return the group of each unit, or a tie if there is or may be one. Cost: O(links)."""
    links = links_by_unit(groups, weights)
    ranked = {
        unit: sorted(counts.items(), key=lambda row: (-row[1], row[0]))
        for unit, counts in links.items()
    }
    best = {unit: rows[0][0] for unit, rows in ranked.items() if not _is_tied(rows)}
    idle = _find_idle_groups(groups, weights, best)
    group_of_unit: dict[int, int] = {}
    margin: dict[int, float] = {}
    ties: list[Tie] = []
    for unit in sorted(links):
        rows = ranked[unit]
        rivals = rows[: _count_tied(rows)] if unit not in best else _find_possible_ties(rows, idle)
        if rivals:
            ties.append(_build_tie(unit, groups, rivals))
            continue
        group_of_unit[unit] = best[unit]
        most, second = rows[0][1], rows[1][1] if len(rows) > 1 else 0
        margin[unit] = (most - second) / (most + second)
    divided = _find_divided_units(groups, ranked, group_of_unit)
    return UnitAssignment(group_of_unit, margin, tuple(ties), tuple(divided))


_Row = tuple[int, int]
"""A group, and the number of a unit's links to it."""


def _find_divided_units(
    groups: Sequence[Switches],
    ranked: Mapping[int, Sequence[_Row]],
    group_of_unit: Mapping[int, int],
) -> Iterator[Tie]:
    """Yield the units whose links to another group are many for the unit, or for that group."""
    totals = Counter[int]()
    foreign = Counter[_Row]()
    for unit, group in group_of_unit.items():
        for other_group, count in ranked[unit]:
            totals[other_group] += count
            foreign[other_group, group] += count if other_group != group else 0
    for unit, group in group_of_unit.items():
        rows = ranked[unit]
        least = DIVIDED_SHARE * sum(count for _, count in rows)
        large = [
            (other_group, count)
            for other_group, count in rows
            if other_group == group
            or count >= least
            or foreign[other_group, group] >= DIVIDED_SHARE * totals[other_group]
        ]
        if len(large) > 1:
            yield _build_tie(unit, groups, large)


def _build_tie(unit: int, groups: Sequence[Switches], rows: Sequence[_Row]) -> Tie:
    switches = tuple(groups[group_index] for group_index, _ in rows)
    return Tie(unit, switches, tuple(count for _, count in rows))


def _count_tied(rows: Sequence[_Row]) -> int:
    return sum(count == rows[0][1] for _, count in rows)


def _is_tied(rows: Sequence[_Row]) -> bool:
    return _count_tied(rows) > 1


def _find_idle_groups(
    groups: Sequence[Switches], weights: Weights, best: Mapping[int, int]
) -> dict[int, set[int]]:
    """Return the groups without own units, each with the groups that its units belong to."""
    used_groups = set(best.values())
    return {
        group_index: {best[unit] for switch in switches for unit in weights[switch] if unit in best}
        for group_index, switches in enumerate(groups)
        if group_index not in used_groups
    }


def _find_possible_ties(rows: Sequence[_Row], idle: Mapping[int, set[int]]) -> list[_Row]:
    """Return the rows of a unit that may tie, because an idle group may belong to a rival group.

    A group is idle if no unit belongs to it. Its switches are part of another group of its units,
    but their links do not show which. For a unit with few links, that choice decides the group of
    the unit.
    """
    most = rows[0][1]
    for rival, count in rows[1:]:
        loose = [row for row in rows if row[0] != rival and rival in idle.get(row[0], ())]
        if rival not in idle and loose and count + sum(own for _, own in loose) >= most:
            return [rows[0], (rival, count), *loose]
    return []


def find_shared_groups(groups: Sequence[Switches], weights: Weights) -> set[int]:
    """Return groups that hosts of several other groups share.

    Example: two storage leaves next to pods of two leaves or more. Most hosts of at least two
    groups have links to them, but not more than to their own group, so the storage leaves are not a
    rival of any pod. If groups share each other's hosts in both directions, none of them is shared.
    """
    if len(groups) < _FEWEST_GROUPS:
        return set()
    num_owned = Counter[int]()
    num_held = Counter[int]()
    guests: dict[int, Counter[int]] = defaultdict(Counter)
    for counts in links_by_unit(groups, weights).values():
        most = max(counts.values())
        best = [group_index for group_index, count in counts.items() if count == most]
        num_held.update(best)
        if len(best) == 1:
            num_owned[best[0]] += 1
        for group_index, count in counts.items():
            best_group = _best_group_without(group_index, counts)
            if best_group is not None and counts[best_group] >= count:
                guests[group_index][best_group] += 1
    nested = {
        group_index: {
            host_group
            for host_group, count in guest_counts.items()
            if count >= MIN_EVIDENCE_UNITS and 2 * count > num_held[host_group]
        }
        for group_index, guest_counts in guests.items()
    }
    shared = set[int]()
    for group_index, host_groups in nested.items():
        num_guests = sum(guests[group_index][host_group] for host_group in host_groups)
        has_mostly_guests = 2 * num_owned[group_index] < num_guests
        is_one_way = all(
            nested.get(host_group, set()) <= {group_index} for host_group in host_groups
        )
        if len(host_groups) > 1 and has_mostly_guests and is_one_way:
            shared.add(group_index)
    return shared


def _best_group_without(excluded: int, counts: Mapping[int, int]) -> int | None:
    """Return the group with most links, ignoring one group; None for a tie or without any."""
    counts_of_others = {
        group_index: count for group_index, count in counts.items() if group_index != excluded
    }
    most = max(counts_of_others.values(), default=0)
    best = [group_index for group_index, count in counts_of_others.items() if count == most]
    return best[0] if len(best) == 1 else None


def absorb_minor_groups(
    groups: Iterable[Switches], weights: Weights, *, min_owners: int = 1
) -> list[Switches]:
    """Merge each group that owns less than half of its links into the group that owns them.

    A rail leaf that only some hosts of its group use overlaps the other leaves by less than half,
    and so does a switch with many lost or misplaced cables. Most of its links are still those of
    the group's units. The absorbing group must be larger, own half of the links, and own more of
    them than any other group, so a leaf that several groups share (storage) joins none.

    Cost: O(links) a round. Another round is needed only if one merge causes another.

    Args:
        groups: the groups so far.
        weights: links downwards, per switch and unit.
        min_owners: units that a group must own if it owns exactly half of its links; with fewer it
            is merged. A single host with two cables on one leaf does not make a leaf group.
    """
    groups = list(groups)
    while True:
        links = links_by_unit(groups, weights)
        size = Counter[int]()
        for counts in links.values():
            size.update(counts)
        holds = _measure_ownership(links)
        absorber_of = {
            index: absorber
            for index, hold in holds.items()
            if (absorber := _find_absorber(index, hold, size, min_owners=min_owners)) is not None
        }
        moving = {
            index: absorber
            for index, absorber in absorber_of.items()
            if absorber not in absorber_of
        }
        if not moving:
            return groups
        merged = {index: list(group) for index, group in enumerate(groups) if index not in moving}
        for index, absorber in moving.items():
            merged[absorber] += groups[index]
        groups = sorted(tuple(sorted(switches)) for switches in merged.values())


@dataclass(slots=True)
class _UnitOwnership:
    """Which groups own the units that a group has links to."""

    own_links: int = 0
    """Links of units that the group itself owns."""
    num_own_units: int = 0
    """Number of these units."""
    rival_links: Counter[int] = field(default_factory=Counter)
    """Links of units of which another group has at least as many links, by that group."""
    num_rival_units: Counter[int] = field(default_factory=Counter)
    """Number of these units, by group."""


def _measure_ownership(links: Links) -> dict[int, _UnitOwnership]:
    holds: dict[int, _UnitOwnership] = defaultdict(_UnitOwnership)
    for counts in links.values():
        ranked = sorted(counts.values(), reverse=True)
        for group_index, num_links in counts.items():
            most = ranked[num_links == ranked[0]] if len(ranked) > 1 else 0
            hold = holds[group_index]
            if num_links > most:
                hold.own_links += num_links
                hold.num_own_units += 1
                continue
            for rival, count in counts.items():
                if rival != group_index and count == most:
                    hold.rival_links[rival] += num_links
                    hold.num_rival_units[rival] += 1
    return holds


def _find_absorber(
    group_index: int, hold: _UnitOwnership, size: Mapping[int, int], *, min_owners: int
) -> int | None:
    """Return the larger group that should absorb this group, or None.

    It owns units with at least half of this group's links, and no third group owns as many.
    """
    rival_links = hold.rival_links
    ranked = sorted(rival_links, key=lambda rival: (-rival_links[rival], -size[rival], rival))
    is_home = 2 * hold.own_links > size[group_index] or (
        2 * hold.own_links == size[group_index] and hold.num_own_units >= min_owners
    )
    if not ranked or is_home or 2 * rival_links[ranked[0]] < size[group_index]:
        return None
    absorber = ranked[0]
    if hold.num_rival_units[absorber] < MIN_EVIDENCE_UNITS or any(
        rival_links[rival] == rival_links[absorber] for rival in ranked[1:]
    ):
        return None
    return absorber if (size[absorber], -absorber) > (size[group_index], -group_index) else None
