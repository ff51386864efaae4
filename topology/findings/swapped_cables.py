"""Cables in the wrong port, found by symmetry: most members of a group are cabled as intended.

A cable is misplaced if it links a host to a group that is not the host's own, a leaf to the spine
of another pod, or a NIC to the leaf of another rail. Two misplaced cables that mirror each other
had their ends exchanged; exchanging them back repairs both.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache

import numpy as np

from topology.findings.missing_links import find_missing_links
from topology.findings.port_cohorts import (
    NO_GROUP,
    GroupColumns,
    build_group_columns,
    find_odd_uplinks,
)
from topology.findings.swap_pairs import (
    GroupOrRail,
    MisplacedCable,
    PairScore,
    UpperEnds,
    build_swap_finding,
    find_best_pairs,
    pair_swaps,
)
from topology.findings.usual_counts import (
    MIN_USUAL_PER_ODD,
    find_most_frequent,
)
from topology.model.fabric import Fabric, Index
from topology.model.facts import Finding, FindingKind, Impact, Severity
from topology.model.pair_counts import count_pairs
from topology.planes.cables import Edge
from topology.planes.plane import Plane
from topology.tiers.domain_links import DomainLinks
from topology.tiers.tier_groups import TierGroups


def find_asymmetries(
    fabric: Fabric,
    plane: Plane,
    *,
    grouping: TierGroups,
    domain_links: DomainLinks,
) -> Iterator[Finding]:
    """Yield swapped-cable, wrong-rail and missing-link findings. Cost: O(links).

    Args:
        fabric: the names.
        plane: the cables.
        grouping: the groups of the plane.
        domain_links: the cables between the switches of the plane.
    """
    groups = build_group_columns(fabric, grouping)
    layout, upper_ends = derive_layout(fabric, plane, groups), UpperEnds(fabric, plane, groups)
    host_score = score_host_cables(fabric, layout, upper_ends)
    moved_hosts = find_misplaced_hosts(fabric, plane, layout, grouping)
    wrong_rails = list(find_misplaced_rails(plane, layout))
    yield from pair_swaps(fabric, moved_hosts, FindingKind.SWAPPED_CABLE, host_score)
    yield from find_tied_swaps(fabric, plane, layout, grouping, upper_ends)
    yield from pair_swaps(fabric, wrong_rails, FindingKind.WRONG_RAIL, host_score)
    reported_hosts = {cable.edge.a for cable in (*moved_hosts, *wrong_rails)}
    yield from find_doubled_cables(fabric, plane, reported_hosts)
    uplink_score = build_uplink_score(upper_ends)
    misplaced_uplinks = find_misplaced_uplinks(plane, groups, upper_ends)
    crossed_uplinks = find_crossed_uplinks(fabric, plane, groups, upper_ends)
    for uplinks in (misplaced_uplinks, crossed_uplinks):
        yield from pair_swaps(fabric, uplinks, FindingKind.SWAPPED_CABLE, uplink_score)
    yield from find_missing_links(
        fabric,
        plane,
        grouping=grouping,
        domain_links=domain_links,
        misplaced={cable.edge.a for cable in (*moved_hosts, *misplaced_uplinks, *crossed_uplinks)},
    )


@dataclass(frozen=True, slots=True)
class DeviceLayout:
    """Where every device belongs, derived once from the groups."""

    groups: GroupColumns
    rail_by_leaf: Mapping[int, str]
    """Leaf to its rail: the port name of most hosts there. A leaf of unknown rail is missing."""
    rails_by_group: Mapping[int, AbstractSet[str]]
    """Group to the rails of its leaves."""
    port_name_codes: Index
    """For each host cable: the index of the host's port name in `port_names`."""
    port_names: Sequence[str]
    """The distinct names of host ports."""


def derive_layout(fabric: Fabric, plane: Plane, groups: GroupColumns) -> DeviceLayout:
    """Return where the devices of a plane belong. Cost: O(host cables log host cables)."""
    ends = plane.host_edges.columns
    port_name_codes, port_names = fabric.columns.port_names.code(ends.a_port)
    expected = groups.host_group[ends.a]
    is_home = (expected != NO_GROUP) & (expected == groups.switch_group[ends.b])
    rail: dict[int, str] = {}
    rails_by_group: dict[int, set[str]] = defaultdict(set)
    for switch, counts in count_pairs(ends.b[is_home], port_name_codes[is_home]).by_left.items():
        count, usual = min((-count, port_names[name]) for name, count in counts.items())
        if -2 * count > sum(counts.values()):
            rail[switch] = usual
            rails_by_group[int(groups.switch_group[switch])].add(usual)
    return DeviceLayout(groups, rail, rails_by_group, port_name_codes, port_names)


def find_misplaced_hosts(
    fabric: Fabric, plane: Plane, layout: DeviceLayout, grouping: TierGroups
) -> list[MisplacedCable]:
    """Return the cables of hosts to other groups, without those that the cabling plan leads there.

    Swapped cables lead in both directions. If cables of many hosts lead in one direction only, the
    plan connects the two groups. If only the other group has a leaf for the port, the cable has no
    place to move back to. An example of such a leaf is a storage switch that most hosts of the
    other group share.
    """
    cables = list(_find_foreign_cables(plane, layout.groups))
    moves = Counter((cable.expected, cable.actual) for cable in cables)

    def is_swap(cable: MisplacedCable) -> bool:
        home = int(cable.expected)
        excess = moves[home, cable.actual] - moves[cable.actual, home]
        if excess < 1:
            return True
        rail = layout.rail_by_leaf.get(cable.edge.b)
        is_on_own_rail = rail == fabric.ports[cable.edge.a_port].name
        if is_on_own_rail and rail not in layout.rails_by_group.get(home, ()):
            return False
        num_hosts = len(grouping.groups[home].hosts)
        is_rare = (1 + MIN_USUAL_PER_ODD) * excess <= num_hosts
        return is_rare or excess == 1  # one cable never shows a design

    return [cable for cable in cables if is_swap(cable)]


def _find_foreign_cables(plane: Plane, groups: GroupColumns) -> Iterator[MisplacedCable]:
    a, b, _, _ = plane.host_edges.columns
    expected, actual = groups.host_group[a], groups.switch_group[b]
    cable_indices = np.flatnonzero(
        (expected != NO_GROUP) & (actual != NO_GROUP) & (expected != actual)
    ).tolist()
    for cable_index, edge in zip(cable_indices, plane.host_edges.at(cable_indices), strict=True):
        yield MisplacedCable(edge, int(expected[cable_index]), int(actual[cable_index]))


def find_misplaced_rails(plane: Plane, layout: DeviceLayout) -> Iterator[MisplacedCable]:
    """Yield NICs on a leaf of another rail, if their group has a leaf of their own rail."""
    groups, ends = layout.groups, plane.host_edges.columns
    code_by_name = {name: code for code, name in enumerate(layout.port_names)}
    rail_codes = np.full(len(groups.host_group), NO_GROUP)
    rail_codes[list(layout.rail_by_leaf)] = [
        code_by_name[name] for name in layout.rail_by_leaf.values()
    ]
    expected = groups.host_group[ends.a]
    is_home = (expected != NO_GROUP) & (expected == groups.switch_group[ends.b])
    is_other = (
        is_home & (rail_codes[ends.b] != NO_GROUP) & (rail_codes[ends.b] != layout.port_name_codes)
    )
    cable_indices = np.flatnonzero(is_other).tolist()
    for cable_index, edge in zip(cable_indices, plane.host_edges.at(cable_indices), strict=True):
        own_rail, group = (
            layout.port_names[layout.port_name_codes[cable_index]],
            int(expected[cable_index]),
        )
        if own_rail in layout.rails_by_group.get(group, ()):
            yield MisplacedCable(
                edge, f"{group}:{own_rail}", f"{group}:{layout.rail_by_leaf[edge.b]}"
            )


def score_host_cables(fabric: Fabric, layout: DeviceLayout, upper_ends: UpperEnds) -> PairScore:
    """Return the score of two host cables: each NIC should be on the rail of the other NIC."""

    def score(first: MisplacedCable, second: MisplacedCable) -> tuple[int, ...] | None:
        num_unknown = 0
        for near, far in ((first, second), (second, first)):
            rail = layout.rail_by_leaf.get(far.edge.b)
            if rail is None:
                num_unknown += 1
            elif rail != fabric.ports[near.edge.a_port].name:
                return None
        return num_unknown, upper_ends.count_unsupported(first, second)

    return score


def find_doubled_cables(
    fabric: Fabric, plane: Plane, reported_hosts: set[int]
) -> Iterator[Finding]:
    """Yield hosts with two cables to one leaf although hosts have one cable per leaf.

    Args:
        fabric: the names.
        plane: the cables.
        reported_hosts: hosts that already have a finding about a misplaced cable.
    """
    hosts, _, counts = plane.host_edges.pairs
    doubled_hosts = np.unique(hosts[counts > 1])
    if not len(doubled_hosts):
        return
    doubled: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    is_doubled = np.isin(plane.host_edges.columns.a, doubled_hosts)
    for edge in plane.host_edges.at(np.flatnonzero(is_doubled).tolist()):
        doubled[edge.a][edge.b] += [edge.a_port, edge.b_port]
    num_leaves = np.bincount(hosts)
    has_several_leaves = num_leaves > 1
    has_several_leaves[doubled_hosts] = False
    num_usual_hosts = np.count_nonzero(has_several_leaves)
    if num_usual_hosts < MIN_USUAL_PER_ODD * len(doubled):
        return
    for host, leaves in sorted(doubled.items()):
        if host not in reported_hosts:
            leaf = max(leaves, key=lambda switch: (len(leaves[switch]), -switch))
            names = fabric.devices[host].name, fabric.devices[leaf].name
            ends = [fabric.port_name(port) for port in leaves[leaf]]
            yield Finding(
                kind=FindingKind.WRONG_RAIL,
                device=names[1],
                port=None,
                severity=Severity.WARNING,
                message=(
                    f"{names[0]} has {len(ends) // 2} cables to {names[1]}, but its peers have "
                    "one cable per leaf. Move all but one to the peers of that leaf."
                ),
                ports=tuple(ends),
                impact=Impact(cables=len(ends) // 2 - 1),
            )


def find_tied_swaps(
    fabric: Fabric, plane: Plane, layout: DeviceLayout, grouping: TierGroups, upper_ends: UpperEnds
) -> Iterator[Finding]:
    """Yield the swap that explains two hosts undecided between the same two groups.

    Either host may belong to either group; the exchange that fits best decides. If most hosts have
    one cable to a leaf, an exchange that gives a host two cables to it explains nothing.
    """
    host_score = score_host_cables(fabric, layout, upper_ends)
    _, leaves, counts = plane.host_edges.pairs
    num_hosts, num_doubled = np.bincount(leaves), np.bincount(leaves, counts > 1)

    def score(first: MisplacedCable, second: MisplacedCable) -> tuple[int, ...] | None:
        ends = [first.edge.b, second.edge.b]
        has_single_cables = (2 * num_doubled[ends] < num_hosts[ends]).all()
        if has_single_cables and upper_ends.count_present(first, second):
            return None
        return host_score(first, second)

    group_of, tied = layout.groups.switch_group, [tie.unit for tie in grouping.host_ties]
    ends, edges_by_host = plane.host_edges.columns, defaultdict[int, list[Edge]](list)
    is_tied = np.isin(ends.a, tied) & (group_of[ends.b] != NO_GROUP)
    for edge in plane.host_edges.at(np.flatnonzero(is_tied).tolist()):
        edges_by_host[edge.a].append(edge)
    between: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for host, edges in sorted(edges_by_host.items()):
        between[tuple(sorted({int(group_of[edge.b]) for edge in edges}))].append(host)

    def list_misplaced(host: int, expected: int, actual: int) -> list[MisplacedCable]:
        return [
            MisplacedCable(edge, expected, actual)
            for edge in edges_by_host[host]
            if group_of[edge.b] == actual
        ]

    def rank_pairs(pairs: Sequence[tuple[MisplacedCable, MisplacedCable]]) -> tuple[object, ...]:
        return -len(pairs), sorted(score(*pair) or () for pair in pairs)

    for places, hosts in sorted(between.items()):
        if len(places) == len(hosts) == 2:  # noqa: PLR2004 - two hosts between two groups
            choices = [
                find_best_pairs(
                    list_misplaced(hosts[0], home, other),
                    list_misplaced(hosts[1], other, home),
                    score,
                )
                for home, other in (places, places[::-1])
            ]
            best = min(choices, key=rank_pairs)
            for first, second in best:
                yield build_swap_finding(fabric, FindingKind.SWAPPED_CABLE, first, second)


def find_misplaced_uplinks(
    plane: Plane, groups: GroupColumns, upper_ends: UpperEnds
) -> list[MisplacedCable]:
    """Return cables to switches of another pod, without those of a switch that may belong there.

    The cables below a switch put it into its domain. If more of its cables above lead to another
    pod than to its own, it is undecided which cables are misplaced, so no exchange is proposed.
    """
    cables = list(_find_foreign_uplinks(plane, groups))
    moves = Counter((cable.edge.a, cable.actual) for cable in cables)

    @cache
    def count_home(low: int, expected: GroupOrRail) -> int:
        uppers = (switch for switch, _, _ in upper_ends.list_cables(low))
        return sum(groups.switch_group[upper] == expected for upper in uppers)

    return [
        cable
        for cable in cables
        if (num := moves[cable.edge.a, cable.actual]) == 1  # one cable suggests no domain
        or num <= count_home(cable.edge.a, cable.expected)
    ]


def _find_foreign_uplinks(plane: Plane, groups: GroupColumns) -> Iterator[MisplacedCable]:
    """Yield cables from a switch to switches of another pod, on the rank of its own parent."""
    a, b, _, _ = plane.switch_edges.columns
    for low, high, is_turned in ((a, b, False), (b, a, True)):
        expected, actual = groups.parents[groups.switch_group[low]], groups.switch_group[high]
        is_misplaced = (expected != NO_GROUP) & (actual != NO_GROUP) & (expected != actual)
        cable_indices = np.flatnonzero(
            is_misplaced & (groups.ranks[expected] == groups.ranks[actual])
        ).tolist()
        for cable_index, edge in zip(
            cable_indices, plane.switch_edges.at(cable_indices), strict=True
        ):
            yield MisplacedCable(
                Edge(edge.b, edge.a, edge.b_port, edge.a_port) if is_turned else edge,
                int(expected[cable_index]),
                int(actual[cable_index]),
            )


def find_crossed_uplinks(
    fabric: Fabric, plane: Plane, groups: GroupColumns, upper_ends: UpperEnds
) -> list[MisplacedCable]:
    """Return cables to another switch of the right pod, sorted."""
    odd = list(find_odd_uplinks(fabric, plane, groups))
    if not odd:  # without any, counting all cables is wasted
        return []
    return sorted(
        {
            *_find_miscounted_uplinks(plane, groups, odd),
            *_find_exchanged_uplinks(upper_ends, odd),
        }
    )


def _find_miscounted_uplinks(
    plane: Plane, groups: GroupColumns, odd: Sequence[tuple[Edge, int]]
) -> Iterator[MisplacedCable]:
    """Yield the misplaced up-links of switches with a wrong number of cables to switches above.

    Such a switch lacks a cable to one switch above and has one too many to another. An odd cable
    counts if a chain of moves leads through it from the lacking switch to the doubled one. A switch
    with the usual number to every switch above was cabled so on purpose; it yields nothing.

    Args:
        plane: the cables.
        groups: the groups of the plane.
        odd: cables at ports where most peers have another switch above, with that switch.
    """
    counts = plane.switch_edges.pairs_both_ways.by_left

    @cache
    def find_usual(high: int) -> int:
        group = groups.switch_group[high]
        lows = (low for low in counts[high] if groups.parents[groups.switch_group[low]] == group)
        return find_most_frequent(Counter(counts[high][low] for low in lows))

    moves: dict[int, list[tuple[Edge, int]]] = defaultdict(list)
    for edge, expected in odd:
        moves[edge.a].append((edge, expected))
    for low, own in moves.items():
        present = counts[low]
        lacking = {high for _, high in own if present.get(high, 0) < find_usual(high)}
        doubled = {edge.b for edge, _ in own if present[edge.b] > find_usual(edge.b)}
        steps = [(expected, edge.b) for edge, expected in own]
        reached_from_lacking = _reach(lacking, steps)
        leads_to_doubled = _reach(doubled, [(end, start) for start, end in steps])
        for edge, expected in own:
            if expected in reached_from_lacking and edge.b in leads_to_doubled:
                yield _misplaced_uplink(edge, expected)


def _find_exchanged_uplinks(
    upper_ends: UpperEnds, odd: Sequence[tuple[Edge, int]]
) -> Iterator[MisplacedCable]:
    """Yield the cables of two switches that use each other's usual ports above.

    The ports at both ends show these cables, even if several swaps leave a switch with the usual
    number of cables to each switch above.
    """
    by_move: dict[tuple[int, int], list[MisplacedCable]] = defaultdict(list)
    for edge, expected in odd:
        by_move[expected, edge.b].append(_misplaced_uplink(edge, expected))
    for (expected, actual), cables in by_move.items():
        for cable in cables:
            reverse = by_move.get((actual, expected), ())
            others = (other for other in reverse if other.edge.a != cable.edge.a)
            if any(upper_ends.are_exchanged(cable, other) for other in others):
                yield cable


def _misplaced_uplink(edge: Edge, expected: int) -> MisplacedCable:
    return MisplacedCable(edge, f"switch {expected}", f"switch {edge.b}")


def _reach(starts: Collection[int], steps: Sequence[tuple[int, int]]) -> set[int]:
    """Return the starts, and every switch that one or more steps lead to from them."""
    found, num = {*starts}, -1
    while num != len(found):
        num = len(found)
        found |= {end for start, end in steps if start in found}
    return found


def build_uplink_score(upper_ends: UpperEnds) -> PairScore:
    """Return a function that scores two up-links as one swap; lower is better.

    Each switch should lack the cable that the other has. None if the ports refute the swap.
    """

    def score(first: MisplacedCable, second: MisplacedCable) -> tuple[int, ...] | None:
        if upper_ends.are_refuted(first, second):
            return None
        return (
            upper_ends.count_unsupported(first, second),
            upper_ends.count_present(first, second),
        )

    return score
