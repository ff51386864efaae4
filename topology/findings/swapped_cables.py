"""Cables in the wrong port, seen by symmetry: what most of a group's members do is what was meant.

A host link into another group than the host's own, a link from a leaf to another pod's spine, and
a NIC on the leaf of another rail are strays. Two strays that mirror each other are two cables
whose ends were exchanged, and exchanging them back mends both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from topology.findings.missing_links import find_missing_links
from topology.model.fabric import Fabric, columns_of
from topology.model.fabric_columns import Index, name_codes
from topology.model.facts import Finding, FindingKind, Severity
from topology.model.lazy_rows import rows_at
from topology.model.pair_counts import count_pairs
from topology.planes.cables import Edge
from topology.planes.plane import Plane
from topology.tiers.domain_links import DomainLinks
from topology.tiers.tier_groups import TierGroups

MIN_USUAL_PER_ODD = 8
"""Hosts of the usual kind per odd one, for the odd ones to be mistakes and not a design."""
GroupOrRail = int | str
"""Where a cable belongs or is: a group's index, or a rail's label."""


class MisplacedCable(NamedTuple):
    """A cable that is not where its fellows are."""

    edge: Edge
    """`a` is the lower device: host, or switch of the lower rank."""
    expected: GroupOrRail
    """Where its lower device belongs."""
    actual: GroupOrRail
    """Where its upper end is instead."""


@dataclass(frozen=True, slots=True)
class DeviceLayout:
    """Where every device belongs, derived once from the groups."""

    groups: GroupColumns
    rail_by_leaf: Mapping[int, str]
    """Leaf to its rail: the name that most of its hosts' ports there share; unknown is missing."""
    port_name_codes: Index
    """Per cable of a host the name of the host's port, as its place in `names`."""
    port_names: Sequence[str]


def find_asymmetries(
    fabric: Fabric, plane: Plane, *, grouping: TierGroups, domain_links: DomainLinks
) -> Iterator[Finding]:
    """Yield swapped-cable, wrong-rail and missing-link findings. Cost: O(links)."""
    columns = build_group_columns(fabric, grouping)
    layout = _derive_layout(fabric, plane, columns)
    host_strays = list(_find_misplaced_hosts(plane, columns))
    yield from _pair_swaps(
        fabric, host_strays, FindingKind.SWAPPED_CABLE, _score_by_rail(fabric, layout)
    )
    tied = {tie.unit for tie in grouping.host_ties}
    yield from _find_tied_swaps(fabric, plane, layout, tied)
    rail_strays = list(_find_misplaced_rails(plane, layout))
    yield from _pair_swaps(fabric, rail_strays, FindingKind.WRONG_RAIL, lambda _one, _other: 0)
    known = {stray.edge.a for stray in (*host_strays, *rail_strays)}
    yield from _find_doubled_cables(fabric, plane, known)
    up_strays = list(_find_misplaced_uplinks(plane, columns))
    if up_strays:  # else nobody counts all cables
        yield from _pair_swaps(fabric, up_strays, FindingKind.SWAPPED_CABLE, _score_by_gap(plane))
    astray = {stray.edge.a for stray in (*host_strays, *up_strays)}
    yield from find_missing_links(
        fabric, plane, grouping=grouping, domain_links=domain_links, misplaced=astray
    )


def _derive_layout(fabric: Fabric, plane: Plane, groups: GroupColumns) -> DeviceLayout:
    ends = plane.host_edges.columns
    own, texts = name_codes(columns_of(fabric).port_names, ends.a_port)
    home = groups.host_group[ends.a]
    is_home = (home != NO_GROUP) & (home == groups.switch_group[ends.b])
    rail: dict[int, str] = {}
    for switch, counts in count_pairs(ends.b[is_home], own[is_home]).by_left().items():
        count, usual = min((-count, texts[name]) for name, count in counts.items())
        if -2 * count > sum(counts.values()):
            rail[switch] = usual
    return DeviceLayout(groups, rail, own, texts)


def _find_misplaced_hosts(plane: Plane, groups: GroupColumns) -> Iterator[MisplacedCable]:
    a, b, _, _ = plane.host_edges.columns
    home, found = groups.host_group[a], groups.switch_group[b]
    places = np.flatnonzero((home != NO_GROUP) & (found != NO_GROUP) & (home != found)).tolist()
    for at, edge in zip(places, rows_at(plane.host_edges, places), strict=True):
        yield MisplacedCable(edge, int(home[at]), int(found[at]))


def _find_misplaced_rails(plane: Plane, layout: DeviceLayout) -> Iterator[MisplacedCable]:
    """Yield NICs on a leaf of their own group whose rail is another one that the group has."""
    groups, code = layout.groups, {name: at for at, name in enumerate(layout.port_names)}
    ends, there = plane.host_edges.columns, np.full(len(layout.groups.host_group), NO_GROUP)
    there[list(layout.rail_by_leaf)] = [code[name] for name in layout.rail_by_leaf.values()]
    home = groups.host_group[ends.a]
    is_home = (home != NO_GROUP) & (home == groups.switch_group[ends.b])
    is_other = is_home & (there[ends.b] != NO_GROUP) & (there[ends.b] != layout.port_name_codes)
    places = np.flatnonzero(is_other).tolist()
    rails: dict[int, set[str]] = defaultdict(set)
    for switch, rail in layout.rail_by_leaf.items() if places else ():
        rails[int(groups.switch_group[switch])].add(rail)
    for at, edge in zip(places, rows_at(plane.host_edges, places), strict=True):
        own, group = layout.port_names[layout.port_name_codes[at]], int(home[at])
        if own in rails[group]:
            yield MisplacedCable(edge, f"{group}:{own}", f"{group}:{layout.rail_by_leaf[edge.b]}")


def _find_misplaced_uplinks(plane: Plane, groups: GroupColumns) -> Iterator[MisplacedCable]:
    """Yield cables from a switch to another pod's switches of the rank above its own."""
    a, b, _, _ = plane.switch_edges.columns
    for low, high, is_turned in ((a, b, False), (b, a, True)):
        home, found = groups.parents[groups.switch_group[low]], groups.switch_group[high]
        is_astray = (home != NO_GROUP) & (found != NO_GROUP) & (home != found)
        places = np.flatnonzero(is_astray & (groups.ranks[home] == groups.ranks[found])).tolist()
        for at, edge in zip(places, rows_at(plane.switch_edges, places), strict=True):
            yield MisplacedCable(
                _reverse_edge(edge) if is_turned else edge, int(home[at]), int(found[at])
            )


def _reverse_edge(edge: Edge) -> Edge:
    return Edge(edge.b, edge.a, edge.b_port, edge.a_port)


PairScore = Callable[[MisplacedCable, MisplacedCable], int]
"""How badly two mirrored strays fit as one swap; 0 is perfect."""


def _score_by_rail(fabric: Fabric, layout: DeviceLayout) -> PairScore:
    """Two swapped host cables: each NIC's own rail is the one that the other NIC sits on."""

    def fit(one: MisplacedCable, other: MisplacedCable) -> int:
        return sum(
            layout.rail_by_leaf.get(far.edge.b) != fabric.ports[near.edge.a_port].name
            for near, far in ((one, other), (other, one))
        )

    return fit


def _score_by_gap(plane: Plane) -> PairScore:
    """Two swapped up-links: each switch lacks a cable to the one that the other has."""
    count = plane.switch_edges.pairs_both_ways.by_left()

    def fit(one: MisplacedCable, other: MisplacedCable) -> int:
        gaps = ((one.edge.a, other.edge.b), (other.edge.a, one.edge.b))
        return sum(count[low].get(high, 0) for low, high in gaps)

    return fit


def _pair_swaps(
    fabric: Fabric, strays: Iterable[MisplacedCable], kind: FindingKind, fit: PairScore
) -> Iterator[Finding]:
    """Pair strays that mirror each other, best fit first, and report pairs and the rest."""
    by_move: dict[tuple[GroupOrRail, GroupOrRail], list[MisplacedCable]] = defaultdict(list)
    for stray in strays:
        by_move[stray.expected, stray.actual].append(stray)
    for (home, found), here in sorted(by_move.items(), key=lambda row: str(row[0])):
        there = by_move.get((found, home), [])
        if there and _sort_key(home) > _sort_key(found):
            continue  # reported with its mirror
        pairs = _best_pairs(here, there, fit)
        for one, other in pairs:
            yield _swap_finding(fabric, kind, one, other)
        paired = {stray for pair in pairs for stray in pair}
        for stray in (*here, *there):
            if stray not in paired:
                yield _lone_finding(fabric, kind, stray)


def _sort_key(place: GroupOrRail) -> tuple[int, str]:
    """Return a place to be compared: groups by number, as they are in any part of a plane."""
    return (place, "") if isinstance(place, int) else (-1, place)


def _best_pairs(
    here: Sequence[MisplacedCable], there: Sequence[MisplacedCable], fit: PairScore
) -> list[tuple[MisplacedCable, MisplacedCable]]:
    ranked = sorted((fit(one, other), one, other) for one in here for other in there)
    used: set[MisplacedCable] = set()
    pairs = []
    for _, one, other in ranked:
        if one not in used and other not in used:
            pairs.append((one, other))
            used |= {one, other}
    return pairs


def _swap_finding(
    fabric: Fabric, kind: FindingKind, one: MisplacedCable, other: MisplacedCable
) -> Finding:
    ends = [
        fabric.port_name(port)
        for stray in (one, other)
        for port in (stray.edge.a_port, stray.edge.b_port)
    ]
    mend = (ends[1], ends[3])
    what = "on each other's rail" if kind is FindingKind.WRONG_RAIL else "exchanged"
    return Finding(
        kind=kind,
        device=ends[1].device,
        port=ends[1].port,
        severity=Severity.WARNING,
        message=(
            f"The cables of {ends[0].device} port {ends[0].port} and {ends[2].device} port "
            f"{ends[2].port} are {what}: exchange the plugs in {mend[0].device} port "
            f"{mend[0].port} and {mend[1].device} port {mend[1].port}."
        ),
        ports=tuple(sorted(ends)),
        swap=(mend,),
    )


def _lone_finding(fabric: Fabric, kind: FindingKind, stray: MisplacedCable) -> Finding:
    near, far = fabric.port_name(stray.edge.a_port), fabric.port_name(stray.edge.b_port)
    what = "on another rail than its fellows" if kind is FindingKind.WRONG_RAIL else "elsewhere"
    return Finding(
        kind=kind,
        device=far.device,
        port=far.port,
        severity=Severity.WARNING,
        message=(
            f"{near.device} port {near.port} is cabled to {far.device} port {far.port}, but by "
            f"its other links it belongs {what}. Move the cable back; the other cable of a swap "
            "is not visible."
        ),
        ports=(near, far),
    )


def _find_doubled_cables(fabric: Fabric, plane: Plane, known: set[int]) -> Iterator[Finding]:
    """Yield hosts with two cables to one leaf where hosts have one cable per leaf.

    Args:
        fabric: for names.
        plane: the plane's cables.
        known: hosts that have a finding about a misplaced cable already.
    """
    hosts, _, counts = plane.host_edges.pairs
    odd = np.unique(hosts[counts > 1])
    if not len(odd):
        return
    doubled: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    is_doubled = np.isin(plane.host_edges.columns.a, odd)
    for edge in rows_at(plane.host_edges, np.flatnonzero(is_doubled).tolist()):
        doubled[edge.a][edge.b] += [edge.a_port, edge.b_port]
    num_leaves = np.bincount(hosts)
    num_leaves[odd] = 0
    spread = np.count_nonzero(num_leaves > 1)
    for host, leaves in sorted(doubled.items()):
        if host not in known and spread >= MIN_USUAL_PER_ODD * len(doubled):
            leaf = max(leaves, key=lambda at: (len(leaves[at]), -at))
            names = fabric.devices[host].name, fabric.devices[leaf].name
            ends = [fabric.port_name(port) for port in leaves[leaf]]
            yield Finding(
                kind=FindingKind.WRONG_RAIL,
                device=names[1],
                port=None,
                severity=Severity.WARNING,
                message=(
                    f"{names[0]} has {len(ends) // 2} cables to {names[1]}, where its fellows "
                    "have one cable per leaf. Move all but one to the leaf's partners."
                ),
                ports=tuple(sorted(ends)),
            )


def _find_tied_swaps(
    fabric: Fabric, plane: Plane, layout: DeviceLayout, tied: set[int]
) -> Iterator[Finding]:
    """Yield the swap behind two undecided hosts that hang between the same two groups."""
    group_of = layout.groups.switch_group
    ends, links = plane.host_edges.columns, defaultdict[int, list[Edge]](list)
    is_tied = np.isin(ends.a, list(tied)) & (group_of[ends.b] != NO_GROUP)
    for edge in rows_at(plane.host_edges, np.flatnonzero(is_tied).tolist()):
        links[edge.a].append(edge)
    between: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for host, edges in sorted(links.items()):
        between[tuple(sorted({int(group_of[edge.b]) for edge in edges}))].append(host)
    fit = _score_by_rail(fabric, layout)
    for groups, hosts in sorted(between.items()):
        if len(groups) == len(hosts) == 2:  # noqa: PLR2004 - two hosts between two groups
            low, high = groups
            ones = [MisplacedCable(e, low, high) for e in links[hosts[0]] if group_of[e.b] == high]
            others = [MisplacedCable(e, high, low) for e in links[hosts[1]] if group_of[e.b] == low]
            for one, other in _best_pairs(ones, others, fit):
                yield _swap_finding(fabric, FindingKind.SWAPPED_CABLE, one, other)


NO_GROUP = -1
"""No group."""


class GroupColumns(NamedTuple):
    """By device or by group; NONE where there is no such group."""

    switch_group: Index
    """By device the group that it is a switch of."""
    host_group: Index
    """By device the group that it is a host of."""
    ranks: Index
    """By group its rank."""
    parents: Index
    """By group the one above it; the last entry, which NONE finds, is NONE."""


def build_group_columns(fabric: Fabric, grouping: TierGroups) -> GroupColumns:
    """Return the groups of a fabric's devices as arrays. Cost: O(devices)."""
    groups = grouping.groups
    home = {host: at for at, group in enumerate(groups) for host in group.hosts}
    size = len(fabric.devices)
    return GroupColumns(
        switch_group=_column(grouping.by_switch(), size),
        host_group=_column(home, size),
        ranks=np.array([*(group.rank for group in groups), NO_GROUP], np.intp),
        parents=np.array(
            [*(NO_GROUP if group.parent is None else group.parent for group in groups), NO_GROUP],
            np.intp,
        ),
    )


def _column(found: Mapping[int, int], size: int) -> Index:
    column = np.full(size, NO_GROUP)
    column[list(found)] = list(found.values())
    return column
