"""Cables in the wrong port, found by symmetry: most members of a group are cabled as intended.

A cable is misplaced if it links a host to a group that is not the host's own, a leaf to the spine
of another pod, or a NIC to the leaf of another rail. Two misplaced cables that mirror each other
had their ends exchanged; exchanging them back repairs both.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from topology.findings.group_columns import NO_GROUP, GroupColumns, build_group_columns
from topology.findings.missing_links import find_missing_links
from topology.findings.port_cohorts import find_odd_uplinks
from topology.findings.usual_counts import (
    MIN_USUAL_PER_ODD,
    CountsByUsual,
    find_designed_host_links,
    find_most_frequent,
)
from topology.model.fabric import Fabric, columns_of
from topology.model.fabric_columns import Index, name_codes
from topology.model.facts import Finding, FindingKind, Severity
from topology.model.lazy_rows import rows_at
from topology.model.pair_counts import count_pairs
from topology.planes.cables import Edge
from topology.planes.plane import Plane
from topology.tiers.domain_links import DomainLinks
from topology.tiers.tier_groups import TierGroups

GroupOrRail = int | str
"""Place of a cable: the index of a group, or the label of a rail."""


class MisplacedCable(NamedTuple):
    """A cable that is not where its peers are."""

    edge: Edge
    """`a` is the lower device: a host, or the switch of the lower rank."""
    expected: GroupOrRail
    """Where the lower device belongs."""
    actual: GroupOrRail
    """Where the upper end is."""


@dataclass(frozen=True, slots=True)
class DeviceLayout:
    """Where every device belongs, derived once from the groups."""

    groups: GroupColumns
    rail_by_leaf: Mapping[int, str]
    """Leaf to its rail: the port name of most hosts there. A leaf of unknown rail is missing."""
    port_name_codes: Index
    """One entry per host cable: the name of the host's port, as an index into `port_names`."""
    port_names: Sequence[str]
    """The distinct names of host ports."""


def find_asymmetries(
    fabric: Fabric,
    plane: Plane,
    *,
    grouping: TierGroups,
    domain_links: DomainLinks,
    host_counts: CountsByUsual | None = None,
) -> Iterator[Finding]:
    """Yield swapped-cable, wrong-rail and missing-link findings. Cost: O(links).

    Args:
        fabric: the names.
        plane: the cables, of a whole plane or of a part of it.
        grouping: the groups of the plane.
        domain_links: the cables between the switches of the plane.
        host_counts: the numbers of links that hosts of the whole plane have by design, if known.
    """
    columns = build_group_columns(fabric, grouping)
    layout = _derive_layout(fabric, plane, columns)
    misplaced_hosts = _omit_design(list(_find_misplaced_hosts(plane, columns)), grouping)
    yield from _pair_swaps(
        fabric, misplaced_hosts, FindingKind.SWAPPED_CABLE, _score_by_rail(fabric, layout)
    )
    tied = {tie.unit for tie in grouping.host_ties}
    yield from _find_tied_swaps(fabric, plane, layout, tied)
    misplaced_rails = list(_find_misplaced_rails(plane, layout))
    yield from _pair_swaps(
        fabric, misplaced_rails, FindingKind.WRONG_RAIL, lambda _first, _second: 0
    )
    reported_hosts = {cable.edge.a for cable in (*misplaced_hosts, *misplaced_rails)}
    yield from _find_doubled_cables(fabric, plane, reported_hosts)
    misplaced_uplinks = list(_find_misplaced_uplinks(plane, columns))
    if misplaced_uplinks:  # without any, counting all cables is wasted
        yield from _pair_swaps(
            fabric, misplaced_uplinks, FindingKind.SWAPPED_CABLE, _score_by_gap(plane)
        )
    crossed = list(_find_crossed_uplinks(fabric, plane, columns))
    yield from _pair_swaps(fabric, crossed, FindingKind.SWAPPED_CABLE, _score_by_gap(plane))
    misplaced = {cable.edge.a for cable in (*misplaced_hosts, *misplaced_uplinks, *crossed)}
    if host_counts is None:
        host_counts = find_designed_host_links(plane, grouping)
    yield from find_missing_links(
        fabric,
        plane,
        grouping=grouping,
        domain_links=domain_links,
        misplaced=misplaced,
        host_counts=host_counts,
    )


def _derive_layout(fabric: Fabric, plane: Plane, groups: GroupColumns) -> DeviceLayout:
    ends = plane.host_edges.columns
    port_name_codes, port_names = name_codes(columns_of(fabric).port_names, ends.a_port)
    expected = groups.host_group[ends.a]
    is_home = (expected != NO_GROUP) & (expected == groups.switch_group[ends.b])
    rail: dict[int, str] = {}
    for switch, counts in count_pairs(ends.b[is_home], port_name_codes[is_home]).by_left.items():
        count, usual = min((-count, port_names[name]) for name, count in counts.items())
        if -2 * count > sum(counts.values()):
            rail[switch] = usual
    return DeviceLayout(groups, rail, port_name_codes, port_names)


def _find_misplaced_hosts(plane: Plane, groups: GroupColumns) -> Iterator[MisplacedCable]:
    a, b, _, _ = plane.host_edges.columns
    expected, actual = groups.host_group[a], groups.switch_group[b]
    cable_indices = np.flatnonzero(
        (expected != NO_GROUP) & (actual != NO_GROUP) & (expected != actual)
    ).tolist()
    for cable_index, edge in zip(
        cable_indices, rows_at(plane.host_edges, cable_indices), strict=True
    ):
        yield MisplacedCable(edge, int(expected[cable_index]), int(actual[cable_index]))


def _omit_design(cables: Sequence[MisplacedCable], grouping: TierGroups) -> list[MisplacedCable]:
    """Return the cables without those that many hosts of one group have to the same other group.

    Swapped cables lead both ways. If many lead one way, the cabling plan connects the two groups.
    """
    moves = Counter((cable.expected, cable.actual) for cable in cables)
    return [
        cable
        for cable in cables
        if (excess := moves[cable.expected, cable.actual] - moves[cable.actual, cable.expected]) < 2  # noqa: PLR2004 - one cable never shows a design
        or (1 + MIN_USUAL_PER_ODD) * excess <= len(grouping.groups[int(cable.expected)].hosts)
    ]


def _find_misplaced_rails(plane: Plane, layout: DeviceLayout) -> Iterator[MisplacedCable]:
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
    rails: dict[int, set[str]] = defaultdict(set)
    for switch, rail in layout.rail_by_leaf.items() if cable_indices else ():
        rails[int(groups.switch_group[switch])].add(rail)
    for cable_index, edge in zip(
        cable_indices, rows_at(plane.host_edges, cable_indices), strict=True
    ):
        own_rail, group = (
            layout.port_names[layout.port_name_codes[cable_index]],
            int(expected[cable_index]),
        )
        if own_rail in rails[group]:
            yield MisplacedCable(
                edge, f"{group}:{own_rail}", f"{group}:{layout.rail_by_leaf[edge.b]}"
            )


def _find_misplaced_uplinks(plane: Plane, groups: GroupColumns) -> Iterator[MisplacedCable]:
    """Yield cables from a switch to switches of another pod, on the rank of its own parent."""
    a, b, _, _ = plane.switch_edges.columns
    for low, high, is_turned in ((a, b, False), (b, a, True)):
        expected, actual = groups.parents[groups.switch_group[low]], groups.switch_group[high]
        is_misplaced = (expected != NO_GROUP) & (actual != NO_GROUP) & (expected != actual)
        cable_indices = np.flatnonzero(
            is_misplaced & (groups.ranks[expected] == groups.ranks[actual])
        ).tolist()
        for cable_index, edge in zip(
            cable_indices, rows_at(plane.switch_edges, cable_indices), strict=True
        ):
            yield MisplacedCable(
                _reverse_edge(edge) if is_turned else edge,
                int(expected[cable_index]),
                int(actual[cable_index]),
            )


def _find_crossed_uplinks(
    fabric: Fabric, plane: Plane, groups: GroupColumns
) -> Iterator[MisplacedCable]:
    """Yield cables to another switch of the right group: one switch too many, and one too few.

    A switch that has the usual number of cables to each switch above, at other ports than its
    peers, is cabled as somebody planned it. If it lacks one and has another too often, the cables
    in between are in two swaps or more.
    """
    counts = plane.switch_edges.pairs_both_ways.by_left

    @cache
    def find_usual(high: int) -> int:
        group = groups.switch_group[high]
        lows = (low for low in counts[high] if groups.parents[groups.switch_group[low]] == group)
        return find_most_frequent(Counter(counts[high][low] for low in lows))

    moves: dict[int, list[tuple[Edge, int]]] = defaultdict(list)
    for edge, expected in find_odd_uplinks(fabric, plane, groups):
        moves[edge.a].append((edge, expected))
    for low, own in moves.items():
        present = counts[low]
        lacking = {high for _, high in own if present.get(high, 0) < find_usual(high)}
        doubled = {edge.b for edge, _ in own if present[edge.b] > find_usual(edge.b)}
        steps = [(expected, edge.b) for edge, expected in own]
        after = _reach(lacking, steps)
        before = _reach(doubled, [(end, start) for start, end in steps])
        for edge, expected in own:
            if expected in after and edge.b in before:
                yield MisplacedCable(edge, f"switch {expected}", f"switch {edge.b}")


def _reach(starts: Collection[int], steps: Sequence[tuple[int, int]]) -> set[int]:
    """Return the switches that steps lead to, also one after another, and the starts."""
    found, num = {*starts}, -1
    while num != len(found):
        num = len(found)
        found |= {end for start, end in steps if start in found}
    return found


def _reverse_edge(edge: Edge) -> Edge:
    return Edge(edge.b, edge.a, edge.b_port, edge.a_port)


PairScore = Callable[[MisplacedCable, MisplacedCable], int]
"""How badly two misplaced cables fit as one swap; 0 is perfect."""


def _score_by_rail(fabric: Fabric, layout: DeviceLayout) -> PairScore:
    """Return the score of two host cables: each NIC should be on the rail of the other NIC."""

    def score(first: MisplacedCable, second: MisplacedCable) -> int:
        return sum(
            layout.rail_by_leaf.get(far.edge.b) != fabric.ports[near.edge.a_port].name
            for near, far in ((first, second), (second, first))
        )

    return score


def _score_by_gap(plane: Plane) -> PairScore:
    """Return the score of two up-links: each switch should lack the cable that the other has."""
    count = plane.switch_edges.pairs_both_ways.by_left

    def score(first: MisplacedCable, second: MisplacedCable) -> int:
        gaps = ((first.edge.a, second.edge.b), (second.edge.a, first.edge.b))
        return sum(count[low].get(high, 0) for low, high in gaps)

    return score


def _pair_swaps(
    fabric: Fabric, cables: Iterable[MisplacedCable], kind: FindingKind, score: PairScore
) -> Iterator[Finding]:
    """Pair misplaced cables that mirror each other, best fit first; yield pairs, then the rest."""
    by_move: dict[tuple[GroupOrRail, GroupOrRail], list[MisplacedCable]] = defaultdict(list)
    for cable in cables:
        by_move[cable.expected, cable.actual].append(cable)
    for (expected, actual), forward in sorted(by_move.items(), key=lambda row: str(row[0])):
        reverse = by_move.get((actual, expected), [])
        if reverse and _sort_key(expected) > _sort_key(actual):
            continue  # reported with its mirror
        pairs = _best_pairs(forward, reverse, score)
        for first, second in pairs:
            yield _swap_finding(fabric, kind, first, second)
        paired = {cable for pair in pairs for cable in pair}
        for cable in (*forward, *reverse):
            if cable not in paired:
                yield _lone_finding(fabric, kind, cable)


def _sort_key(place: GroupOrRail) -> tuple[int, str]:
    """Return a place as a sort key: groups by number, so that parts of a plane sort alike."""
    return (place, "") if isinstance(place, int) else (-1, place)


def _best_pairs(
    forward: Sequence[MisplacedCable], reverse: Sequence[MisplacedCable], score: PairScore
) -> list[tuple[MisplacedCable, MisplacedCable]]:
    ranked = sorted(
        (score(first, second), first, second) for first in forward for second in reverse
    )
    used: set[MisplacedCable] = set()
    pairs = []
    for _, first, second in ranked:
        if first not in used and second not in used:
            pairs.append((first, second))
            used |= {first, second}
    return pairs


def _swap_finding(
    fabric: Fabric, kind: FindingKind, first: MisplacedCable, second: MisplacedCable
) -> Finding:
    ends = [
        fabric.port_name(port)
        for cable in (first, second)
        for port in (cable.edge.a_port, cable.edge.b_port)
    ]
    swap = (ends[1], ends[3])
    problem = "on each other's rail" if kind is FindingKind.WRONG_RAIL else "swapped"
    return Finding(
        kind=kind,
        device=ends[1].device,
        port=ends[1].port,
        severity=Severity.WARNING,
        message=(
            f"The cables of {ends[0].device} port {ends[0].port} and {ends[2].device} port "
            f"{ends[2].port} are {problem}: exchange the plugs in {swap[0].device} port "
            f"{swap[0].port} and {swap[1].device} port {swap[1].port}."
        ),
        ports=tuple(sorted(ends)),
        swap=(swap,),
    )


def _lone_finding(fabric: Fabric, kind: FindingKind, cable: MisplacedCable) -> Finding:
    low_port, high_port = fabric.port_name(cable.edge.a_port), fabric.port_name(cable.edge.b_port)
    is_rail = kind is FindingKind.WRONG_RAIL
    reason = "its other links lead elsewhere"
    if isinstance(cable.expected, str):
        whose = "other hosts use" if is_rail else "its peers use"
        reason = f"{whose} this port on another {'rail' if is_rail else 'switch'}"
    return Finding(
        kind=kind,
        device=high_port.device,
        port=high_port.port,
        severity=Severity.WARNING,
        message=(
            f"{low_port.device} port {low_port.port} is cabled to {high_port.device} port "
            f"{high_port.port}, but {reason}. Move the cable back. The other cable of the swap is "
            "not visible."
        ),
        ports=(low_port, high_port),
    )


def _find_doubled_cables(
    fabric: Fabric, plane: Plane, reported_hosts: set[int]
) -> Iterator[Finding]:
    """Yield hosts with two cables to one leaf where hosts have one cable per leaf.

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
    for edge in rows_at(plane.host_edges, np.flatnonzero(is_doubled).tolist()):
        doubled[edge.a][edge.b] += [edge.a_port, edge.b_port]
    num_leaves = np.bincount(hosts)
    num_leaves[doubled_hosts] = 0
    spread = np.count_nonzero(num_leaves > 1)
    for host, leaves in sorted(doubled.items()):
        if host not in reported_hosts and spread >= MIN_USUAL_PER_ODD * len(doubled):
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
                ports=tuple(sorted(ends)),
            )


def _find_tied_swaps(
    fabric: Fabric, plane: Plane, layout: DeviceLayout, tied: set[int]
) -> Iterator[Finding]:
    """Yield the swap that explains two hosts undecided between the same two groups."""
    group_of = layout.groups.switch_group
    ends, edges_by_host = plane.host_edges.columns, defaultdict[int, list[Edge]](list)
    is_tied = np.isin(ends.a, list(tied)) & (group_of[ends.b] != NO_GROUP)
    for edge in rows_at(plane.host_edges, np.flatnonzero(is_tied).tolist()):
        edges_by_host[edge.a].append(edge)
    between: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for host, edges in sorted(edges_by_host.items()):
        between[tuple(sorted({int(group_of[edge.b]) for edge in edges}))].append(host)
    score = _score_by_rail(fabric, layout)
    for groups, hosts in sorted(between.items()):
        if len(groups) == len(hosts) == 2:  # noqa: PLR2004 - two hosts between two groups
            low, high = groups
            forward = [
                MisplacedCable(e, low, high)
                for e in edges_by_host[hosts[0]]
                if group_of[e.b] == high
            ]
            reverse = [
                MisplacedCable(e, high, low)
                for e in edges_by_host[hosts[1]]
                if group_of[e.b] == low
            ]
            for first, second in _best_pairs(forward, reverse, score):
                yield _swap_finding(fabric, FindingKind.SWAPPED_CABLE, first, second)
