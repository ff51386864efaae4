"""A plane's switches and hosts to groups, tier by tier, tolerant of damage.

From the units below upwards (first: hosts) switches that serve the same units are one group, and
each unit goes to the group that holds most of its links. A tie is said, never guessed. A group
without units of its own is set aside. Judged on the full fabric; what is a cluster node is
decided afterwards.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from topology.model.fabric_columns import Flags, Index
from topology.model.pair_counts import count_pairs
from topology.planes.plane import Plane
from topology.tiers.group_membership import (
    MIN_EVIDENCE_UNITS,
    Tie,
    UnitAssignment,
    absorb_minor_groups,
    assign_units,
    find_shared_groups,
)
from topology.tiers.ranks import Ranks
from topology.tiers.switch_overlap import Side, Weights, find_equal_switches, join_switches

SPINE_RANK = 2
THIN_SHARE = 0.25
"""Share of the links below it under which a lone top is a leaf without hosts, not a tier. One no
wider than a domain below is such a domain's spines without leaves."""


@dataclass(frozen=True, slots=True)
class TierGroup:
    """Switches of one rank that serve the same units: what becomes a domain."""

    rank: int
    switches: tuple[int, ...]
    """Device numbers, ascending; none above peers that are cabled to each other."""
    hosts: tuple[int, ...]
    """Hosts at home here; rank 1 only."""
    margin: float
    """How far its units' decisions were from a tie, 0 to 1; the closest one counts."""
    parent: int | None = None
    """Index of the group above."""


@dataclass(frozen=True, slots=True)
class TierGroups:
    """All groups of a plane."""

    groups: tuple[TierGroup, ...]
    """By rank, then by switches; a group's index is its number."""
    set_aside: tuple[tuple[int, tuple[int, ...]], ...]
    """(rank, switches) of groups that have no unit of their own, and of a thin top that joins
    nothing: a leaf without hosts stands above the spines that it is cabled to."""
    host_ties: tuple[Tie, ...]
    group_ties: tuple[Tie, ...]

    def by_switch(self) -> dict[int, int]:
        """Return switch to the index of its group; a switch that is set aside is missing."""
        return {switch: at for at, group in enumerate(self.groups) for switch in group.switches}


@dataclass(slots=True)
class _GroupDraft:
    groups: list[TierGroup] = field(default_factory=list)
    num_links: list[int] = field(default_factory=list)
    """Links downwards, one entry per group."""
    widest: list[int] = field(default_factory=list)
    """Most links to one lower unit of several, one entry per group."""
    below: dict[int, list[int]] = field(default_factory=dict)
    """Root group to the switches of it and below it."""
    set_aside: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    host_ties: list[Tie] = field(default_factory=list)
    group_ties: list[Tie] = field(default_factory=list)


def group_switches(plane: Plane, ranks: Ranks) -> TierGroups:
    """Return the groups of every rank. Cost: O(links) per rank on a Clos."""
    draft = _GroupDraft()
    _group_leaves(draft, plane, ranks)
    for rank in range(2, ranks.highest + 1):
        _group_rank(draft, plane, ranks, rank)
    _join_peers(draft, plane, ranks)
    return TierGroups(
        groups=tuple(draft.groups),
        set_aside=tuple(draft.set_aside),
        host_ties=tuple(draft.host_ties),
        group_ties=tuple(draft.group_ties),
    )


def _group_leaves(draft: _GroupDraft, plane: Plane, ranks: Ranks) -> None:
    a, b, _, _ = plane.host_edges.columns
    is_leaf = np.isin(b, ranks.by_rank[1])
    weights = count_pairs(b[is_leaf], a[is_leaf]).by_left()
    alike, rest = _split_plain_groups(weights)
    joined = join_switches(rest, Side.BOTH)
    shared = find_shared_groups(joined, rest)
    draft.set_aside += [(1, joined[at]) for at in sorted(shared)]
    groups = [switches for at, switches in enumerate(joined) if at not in shared]
    groups = absorb_minor_groups(groups, rest, min_owners=MIN_EVIDENCE_UNITS)
    homes = assign_units(groups, rest)
    for switches, hosts, margin in sorted([*alike, *_find_candidates(groups, homes)]):
        if not hosts:
            draft.set_aside.append((1, switches))
            continue
        draft.below[len(draft.groups)] = list(switches)
        draft.groups.append(TierGroup(1, switches, hosts, margin))
        draft.num_links.append(_count_links(switches, weights))
        draft.widest.append(0)
    draft.host_ties += homes.ties


class _CandidateGroup(NamedTuple):
    """Switches that are one group, if they hold any unit."""

    switches: tuple[int, ...]
    units: tuple[int, ...]
    """Ascending."""
    margin: float


def _split_plain_groups(weights: Weights) -> tuple[list[_CandidateGroup], Weights]:
    """Return the groups that are plain to see, and the switches that rules have to judge."""
    alike = find_equal_switches(weights)
    known = {switch for switches in alike for switch in switches}
    rest = {switch: units for switch, units in weights.items() if switch not in known}
    return [_CandidateGroup(one, tuple(sorted(weights[one[0]])), 1.0) for one in alike], rest


def _find_candidates(
    groups: Sequence[tuple[int, ...]], homes: UnitAssignment
) -> Iterator[_CandidateGroup]:
    units = homes.units
    for at, switches in enumerate(groups):
        own = tuple(sorted(units.get(at, ())))
        yield _CandidateGroup(switches, own, min((homes.margin[unit] for unit in own), default=1.0))


def _group_rank(draft: _GroupDraft, plane: Plane, ranks: Ranks, rank: int) -> None:
    uppers, lowers, counts = plane.switch_edges.pairs_both_ways
    roots = _find_roots(draft, lowers)
    is_up = _mark_rank(ranks, rank, uppers) & (roots >= 0)
    weights = count_pairs(uppers[is_up], roots[is_up], counts[is_up]).by_left()
    alike, rest = _split_plain_groups(weights)
    groups = absorb_minor_groups(join_switches(rest, Side.SMALLER, _peer_links(plane, rest)), rest)
    homes = assign_units(groups, rest)
    held = sorted([*alike, *_find_candidates(groups, homes)])
    peers = _count_peer_links(draft, plane, ranks, rank - 1)
    draft.set_aside += [(rank, (at,)) for at in ranks.by_rank[rank] if at not in weights]
    for switches, units, margin in held:
        num_links = _count_links(switches, weights)
        is_lone = rank > SPINE_RANK and len(held) == 1 and len(units) == 1
        is_thin = is_lone and _is_thin(draft, units[0], num_links)
        if not units or is_thin or _is_bypassed(units, num_links, peers):
            draft.set_aside.append((rank, switches))
            continue
        number = len(draft.groups)
        draft.groups.append(TierGroup(rank, switches, (), margin))
        draft.num_links.append(num_links)
        draft.widest.append(_max_links(switches, units, weights))
        _set_parent(draft, number, units)
    draft.group_ties += homes.ties


def _peer_links(plane: Plane, switches: Collection[int]) -> Weights:
    """Return the links between some switches, both ways."""
    around = plane.switch_edges.pairs_both_ways
    if not switches:
        return {}
    chosen = list(switches)
    return around.where(np.isin(around.left, chosen) & np.isin(around.right, chosen)).by_left()


def _count_peer_links(draft: _GroupDraft, plane: Plane, ranks: Ranks, rank: int) -> Counter[int]:
    """Return for each root its links to other roots between switches of a rank."""
    ones, others, counts = plane.switch_edges.pairs_both_ways
    is_peer = _mark_rank(ranks, rank, ones) & _mark_rank(ranks, rank, others)
    roots, far = _find_roots(draft, ones[is_peer]), _find_roots(draft, others[is_peer])
    is_between = (roots >= 0) & (far >= 0) & (roots != far)
    num_links = np.bincount(roots[is_between], counts[is_peer][is_between]).astype(np.intp)
    return Counter(dict(enumerate(num_links.tolist())))


def _mark_rank(ranks: Ranks, rank: int, switches: Index) -> Flags:
    """Tell which switches have a rank."""
    is_of_rank = np.zeros(int(switches.max(initial=0)) + 1, np.bool_)
    own = np.array(ranks.by_rank[rank], np.intp)
    is_of_rank[own[own < len(is_of_rank)]] = True
    return is_of_rank[switches]


def _find_roots(draft: _GroupDraft, switches: Index) -> Index:
    """Return the root group above each switch, -1 where there is none."""
    highest = max((max(below) for below in draft.below.values()), default=0)
    root_of = np.full(max(highest, int(switches.max(initial=0))) + 1, -1)
    for root, below in draft.below.items():
        root_of[below] = root
    return root_of[switches]


def _is_bypassed(units: Sequence[int], num_links: int, peers: Mapping[int, int]) -> bool:
    """Return whether what a group joins is joined without it: by cables between the units.

    A tier is the main way between what it joins. Else these are peers, as the groups of a
    dragonfly+, and it is a spine of theirs that lost its leaves.
    """
    across = sum(peers[unit] for unit in units)
    return 2 * num_links < across or (len(units) == 1 and 2 * across >= num_links)


def _is_thin(draft: _GroupDraft, below: int, num_links: int) -> bool:
    return num_links <= max(draft.widest[below], THIN_SHARE * draft.num_links[below])


def _max_links(switches: Sequence[int], units: Sequence[int], weights: Weights) -> int:
    """Return the most links to one of several units, 0 where there is but one."""
    if len(units) == 1:
        return 0
    first = weights[switches[0]]
    if all(weights[switch] == first for switch in switches):  # nearly always
        return len(switches) * max(first[unit] for unit in units)
    return max(sum(weights[switch].get(unit, 0) for switch in switches) for unit in units)


def _join_peers(draft: _GroupDraft, plane: Plane, ranks: Ranks) -> None:
    """Put a group without switches above roots that switches of equal rank join.

    So a dragonfly+ is leaf, group, all, and a full mesh of leaves is leaf and all.
    """
    around: dict[int, set[int]] = defaultdict(set)
    low, high, _ = plane.switch_edges.pairs_both_ways
    ones, others = _find_roots(draft, low), _find_roots(draft, high)
    is_between = (ones >= 0) & (others >= 0) & (ones != others)
    ends = zip(*(column[is_between].tolist() for column in (low, high, ones, others)), strict=True)
    for switch, peer, one, other in ends:
        if ranks.rank.get(switch) == ranks.rank.get(peer):
            around[one].add(other)
    while around:
        joined: set[int] = set()
        frontier = [min(around)]
        while frontier:
            root = frontier.pop()
            joined.add(root)
            frontier.extend(around.pop(root, set()) - joined)
        draft.groups.append(TierGroup(ranks.highest + 1, (), (), 1.0))
        draft.num_links.append(0)
        draft.widest.append(0)
        _set_parent(draft, len(draft.groups) - 1, sorted(joined))


def _count_links(switches: Iterable[int], weights: Weights) -> int:
    return sum(sum(weights[switch].values()) for switch in switches)


def _set_parent(draft: _GroupDraft, number: int, units: Iterable[int]) -> None:
    """Make a group the root above some units."""
    for unit in units:
        draft.groups[unit] = replace(draft.groups[unit], parent=number)
    switches = [switch for unit in units for switch in draft.below.pop(unit)]
    draft.below[number] = [*switches, *draft.groups[number].switches]
