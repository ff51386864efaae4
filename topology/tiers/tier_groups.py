"""The switches and hosts of a plane as groups, tier by tier, tolerant of damage.

Groups are built upwards from the units below (at first the hosts). Switches that serve the same
units are one group, and each unit goes to the group with most of its links. A tie is reported,
never guessed. A group without units is set aside. All of this uses the full fabric; which hosts are
cluster nodes is decided later.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from topology.model.fabric import Flags, Index
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
"""Share of the links of the group below up to which a lone top is not a tier, but a leaf without
hosts. A top no wider than one domain below is not a tier either, but spines without leaves."""


@dataclass(frozen=True, slots=True)
class TierGroup:
    """Switches of one rank that serve the same units; becomes a domain."""

    rank: int
    """Rank of the switches, from 1."""
    switches: tuple[int, ...]
    """Device numbers, ascending; empty above peers that are cabled to each other."""
    hosts: tuple[int, ...]
    """The hosts of the group; rank 1 only."""
    margin: float
    """Distance of the closest decision about a unit from a tie, 0 to 1."""
    parent: int | None = None
    """Index of the group above, None for a top."""


@dataclass(frozen=True, slots=True)
class TierGroups:
    """All groups of a plane."""

    groups: tuple[TierGroup, ...]
    """Sorted by rank, then by switches; the index of a group is its number."""
    set_aside: tuple[tuple[int, tuple[int, ...]], ...]
    """(rank, switches) of groups without units, and of a thin top that adds no path: a leaf without
    hosts seems to be above the spines that it is cabled to."""
    host_ties: tuple[Tie, ...]
    """Hosts without a group."""
    divided_hosts: tuple[Tie, ...]
    """Hosts that have many links to another group than theirs."""
    group_ties: tuple[Tie, ...]
    """Groups without a parent because of a tie."""

    def by_switch(self) -> dict[int, int]:
        """Return the group index of each switch; switches that are set aside are missing."""
        return {
            switch: group_index
            for group_index, group in enumerate(self.groups)
            for switch in group.switches
        }


@dataclass(slots=True)
class _GroupDraft:
    groups: list[TierGroup] = field(default_factory=list)
    num_links: list[int] = field(default_factory=list)
    """Links downwards, one entry per group."""
    widest: list[int] = field(default_factory=list)
    """Most links to any one of several lower units, one entry per group."""
    below: dict[int, list[int]] = field(default_factory=dict)
    """Root group to its own switches and all switches below it."""
    set_aside: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    host_ties: list[Tie] = field(default_factory=list)
    divided_hosts: list[Tie] = field(default_factory=list)
    group_ties: list[Tie] = field(default_factory=list)

    def add_group(self, group: TierGroup, *, num_links: int = 0, widest: int = 0) -> int:
        """Add a group; return its number."""
        self.groups.append(group)
        self.num_links.append(num_links)
        self.widest.append(widest)
        return len(self.groups) - 1


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
        divided_hosts=tuple(draft.divided_hosts),
        group_ties=tuple(draft.group_ties),
    )


def _group_leaves(draft: _GroupDraft, plane: Plane, ranks: Ranks) -> None:
    a, b, _, _ = plane.host_edges.columns
    is_leaf = np.isin(b, ranks.by_rank[1])
    weights = count_pairs(b[is_leaf], a[is_leaf]).by_left
    certain, undecided_weights = _split_plain_groups(weights)
    joined = join_switches(undecided_weights, Side.BOTH)
    shared = find_shared_groups(joined, undecided_weights)
    draft.set_aside += [(1, joined[group_index]) for group_index in sorted(shared)]
    groups = [switches for group_index, switches in enumerate(joined) if group_index not in shared]
    groups = absorb_minor_groups(groups, undecided_weights, min_owners=MIN_EVIDENCE_UNITS)
    assignment = assign_units(groups, undecided_weights)
    for switches, hosts, margin in sorted([*certain, *_find_candidates(groups, assignment)]):
        if not hosts:
            draft.set_aside.append((1, switches))
            continue
        group = TierGroup(1, switches, hosts, margin)
        number = draft.add_group(group, num_links=_count_links(switches, weights))
        draft.below[number] = list(switches)
    draft.host_ties += assignment.ties
    draft.divided_hosts += assignment.divided


class _CandidateGroup(NamedTuple):
    """Switches that become one group if they own any unit."""

    switches: tuple[int, ...]
    units: tuple[int, ...]
    """Ascending."""
    margin: float


def _split_plain_groups(weights: Weights) -> tuple[list[_CandidateGroup], Weights]:
    """Return the groups that are certain, and the weights of the switches that need the rules."""
    equal_groups = find_equal_switches(weights)
    plain_switches = {switch for switches in equal_groups for switch in switches}
    undecided_weights = {
        switch: units for switch, units in weights.items() if switch not in plain_switches
    }
    return [
        _CandidateGroup(group, tuple(sorted(weights[group[0]])), 1.0) for group in equal_groups
    ], undecided_weights


def _find_candidates(
    groups: Sequence[tuple[int, ...]], assignment: UnitAssignment
) -> Iterator[_CandidateGroup]:
    units = assignment.units
    for group_index, switches in enumerate(groups):
        unit_numbers = tuple(sorted(units.get(group_index, ())))
        yield _CandidateGroup(
            switches,
            unit_numbers,
            min((assignment.margin[unit] for unit in unit_numbers), default=1.0),
        )


def _group_rank(draft: _GroupDraft, plane: Plane, ranks: Ranks, rank: int) -> None:
    """Group the switches of a rank above the leaves; their units are the root groups below."""
    uppers, lowers, counts = plane.switch_edges.pairs_both_ways
    roots = _find_roots(draft, lowers)
    is_up = _mark_rank(ranks, rank, uppers) & (roots >= 0)
    weights = count_pairs(uppers[is_up], roots[is_up], counts[is_up]).by_left
    draft.set_aside += [
        (rank, (switch,)) for switch in ranks.by_rank[rank] if switch not in weights
    ]
    certain, undecided_weights = _split_plain_groups(weights)
    peer_links = _peer_links(plane, undecided_weights)
    side = Side.TOP if rank == ranks.highest else Side.SMALLER
    joined = join_switches(undecided_weights, side, peer_links)
    groups = absorb_minor_groups(joined, undecided_weights)
    assignment = assign_units(groups, undecided_weights)
    candidates = sorted([*certain, *_find_candidates(groups, assignment)])
    num_peer_links_by_root = _count_peer_links(draft, plane, ranks, rank - 1)
    for switches, units, margin in candidates:
        num_links = _count_links(switches, weights)
        is_lone = rank > SPINE_RANK and len(candidates) == 1 and len(units) == 1
        is_thin = is_lone and _is_thin(draft, units[0], num_links)
        if not units or is_thin or _is_bypassed(units, num_links, num_peer_links_by_root):
            draft.set_aside.append((rank, switches))
            continue
        group = TierGroup(rank, switches, (), margin)
        widest = _max_links(switches, units, weights)
        _set_parent(draft, draft.add_group(group, num_links=num_links, widest=widest), units)
    draft.group_ties += assignment.ties


def _peer_links(plane: Plane, switches: Collection[int]) -> Weights:
    """Return the links between these switches, in both directions."""
    switch_pairs = plane.switch_edges.pairs_both_ways
    if not switches:
        return {}
    chosen = list(switches)
    return switch_pairs.where(
        np.isin(switch_pairs.left, chosen) & np.isin(switch_pairs.right, chosen)
    ).by_left


def _count_peer_links(draft: _GroupDraft, plane: Plane, ranks: Ranks, rank: int) -> Counter[int]:
    """Return the links of each root to other roots, between switches of one rank."""
    left, right, counts = plane.switch_edges.pairs_both_ways
    is_peer = _mark_rank(ranks, rank, left) & _mark_rank(ranks, rank, right)
    roots, peer_roots = _find_roots(draft, left[is_peer]), _find_roots(draft, right[is_peer])
    is_between = (roots >= 0) & (peer_roots >= 0) & (roots != peer_roots)
    num_links = np.bincount(roots[is_between], counts[is_peer][is_between]).astype(np.intp)
    return Counter(dict(enumerate(num_links.tolist())))


def _mark_rank(ranks: Ranks, rank: int, switches: Index) -> Flags:
    """Mark the switches that have a rank, one flag per entry."""
    is_of_rank = np.zeros(int(switches.max(initial=0)) + 1, np.bool_)
    rank_switches = np.array(ranks.by_rank[rank], np.intp)
    is_of_rank[rank_switches[rank_switches < len(is_of_rank)]] = True
    return is_of_rank[switches]


def _find_roots(draft: _GroupDraft, switches: Index) -> Index:
    """Return the root group above each switch; -1 if there is none."""
    highest = max((max(below) for below in draft.below.values()), default=0)
    root_of = np.full(max(highest, int(switches.max(initial=0))) + 1, -1)
    for root, below in draft.below.items():
        root_of[below] = root
    return root_of[switches]


def _is_bypassed(
    units: Sequence[int], num_links: int, num_peer_links_by_root: Mapping[int, int]
) -> bool:
    """Return whether the units of a group are connected mainly by cables between themselves.

    A tier is the main path between the units below it. If it is not, the units are peers, as the
    groups of a dragonfly+ are, and the group is one of their spines that lost its leaves.
    """
    num_across = sum(num_peer_links_by_root[unit] for unit in units)
    return 2 * num_links < num_across or (len(units) == 1 and 2 * num_across >= num_links)


def _is_thin(draft: _GroupDraft, below: int, num_links: int) -> bool:
    return num_links <= max(draft.widest[below], THIN_SHARE * draft.num_links[below])


def _max_links(switches: Sequence[int], units: Sequence[int], weights: Weights) -> int:
    """Return the most links to one of several units; 0 if there is only one unit."""
    if len(units) == 1:
        return 0
    first = weights[switches[0]]
    if all(weights[switch] == first for switch in switches):  # the usual case
        return len(switches) * max(first[unit] for unit in units)
    return max(sum(weights[switch].get(unit, 0) for switch in switches) for unit in units)


def _join_peers(draft: _GroupDraft, plane: Plane, ranks: Ranks) -> None:
    """Add a group without switches above roots that are connected by switches of equal rank.

    A dragonfly+ then has the tiers leaf, group and all, and a full mesh of leaves has leaf and all.
    """
    peers_by_root: dict[int, set[int]] = defaultdict(set)
    low, high, _ = plane.switch_edges.pairs_both_ways
    left_roots, right_roots = _find_roots(draft, low), _find_roots(draft, high)
    is_between = (left_roots >= 0) & (right_roots >= 0) & (left_roots != right_roots)
    ends = zip(
        *(column[is_between].tolist() for column in (low, high, left_roots, right_roots)),
        strict=True,
    )
    for switch, peer, root, peer_root in ends:
        if ranks.rank.get(switch) == ranks.rank.get(peer):
            peers_by_root[root].add(peer_root)
    while peers_by_root:
        joined: set[int] = set()
        frontier = [min(peers_by_root)]
        while frontier:
            next_root = frontier.pop()
            joined.add(next_root)
            frontier.extend(peers_by_root.pop(next_root, set()) - joined)
        number = draft.add_group(TierGroup(ranks.highest + 1, (), (), 1.0))
        _set_parent(draft, number, sorted(joined))


def _count_links(switches: Iterable[int], weights: Weights) -> int:
    return sum(sum(weights[switch].values()) for switch in switches)


def _set_parent(draft: _GroupDraft, number: int, units: Iterable[int]) -> None:
    """Set a group as the parent and new root of these units."""
    for unit in units:
        draft.groups[unit] = replace(draft.groups[unit], parent=number)
    switches = [switch for unit in units for switch in draft.below.pop(unit)]
    draft.below[number] = [*switches, *draft.groups[number].switches]
