"""Ranks of switches: how many cables away from the hosts a switch stands.

Rank 1 switches carry hosts. Judged on the full fabric, also by hosts that are not cluster nodes,
and by majorities: a stray host does not make a spine a leaf, a stray cable no core a spine.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from topology.plane_cables import count_pairs, edge_columns
from topology.planes import Plane

STRONG_SHARE = 0.25
"""Share of its switch links that ties a switch to the rank below; half in a full Clos."""
PEER_SHARE = 0.125
"""Links among switches of one rank, by those that lead on from them, above which they are peers.
The cable between two MLAG spines is one for eight or more."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """The rank of every switch, and the hosts that sit on a switch that is no leaf."""

    rank: Mapping[int, int]
    """Switch to rank, from 1; switches that no rank reaches are missing."""
    hosts_on_spines: tuple[tuple[int, int], ...]
    """(host, switch), sorted."""

    def of_rank(self, rank: int) -> list[int]:
        """Return the switches of a rank, ascending."""
        return sorted(switch for switch, found in self.rank.items() if found == rank)

    @property
    def highest(self) -> int:
        """The highest rank, 0 without any."""
        return max(self.rank.values(), default=0)


def rank_switches(plane: Plane) -> Ranks:
    """Return the ranks of a plane's switches. Cost: O(links) per rank."""
    around = _around(plane)
    rank = dict.fromkeys(find_leaves(plane, around), 1)
    level = 1
    while found := _next_rank(rank, level, around):
        level += 1
        rank.update(dict.fromkeys(found, level))
    a, b, _, _ = edge_columns(plane.host_edges)
    on_spines = ~np.isin(b, [switch for switch, found in rank.items() if found == 1])
    strays = sorted(set(zip(a[on_spines].tolist(), b[on_spines].tolist(), strict=True)))
    return Ranks(rank, tuple(strays))


def _around(plane: Plane) -> dict[int, dict[int, int]]:
    """Return switch to switch to number of cables, both ways."""
    a, b, _, _ = edge_columns(plane.switch_edges)
    around = count_pairs(np.concatenate([a, b]), np.concatenate([b, a]))
    return defaultdict(dict, around)


def find_leaves(plane: Plane, around: Mapping[int, Mapping[int, int]] | None = None) -> set[int]:
    """Return the switches that carry hosts as their purpose. Cost: O(links).

    A leaf has hosts on half of its links, or half as many as its fellows (the typical host's
    leaf). A switch with fewer is a leaf only if most of its cables lead to no leaf: the last
    leaf of a row, with one host and all its up-links, next to a spine with one stray host.

    Args:
        plane: the cables.
        around: its cables between switches, where they are counted already.
    """
    around = _around(plane) if around is None else around
    hosts = Counter(edge_columns(plane.host_edges).b.tolist())
    counts = sorted(hosts.values())
    typical = _weighted_median(counts)
    leaves = {
        switch
        for switch, num_hosts in hosts.items()
        if num_hosts >= sum(around.get(switch, {}).values()) or 2 * num_hosts >= typical
    }
    doubtful = sorted(set(hosts) - leaves)
    return leaves | {
        switch
        for switch in doubtful
        if 2 * sum(count for peer, count in around[switch].items() if peer in leaves)
        < sum(around[switch].values())
    }


def _weighted_median(counts: list[int]) -> int:
    """Return how many hosts the leaf of the median host has."""
    half = sum(counts) / 2
    seen = 0
    for count in counts:
        seen += count
        if seen >= half:
            return count
    return 0


def _next_rank(
    rank: Mapping[int, int], level: int, around: Mapping[int, Mapping[int, int]]
) -> set[int]:
    """Return the unranked switches that stand on the given rank.

    A switch with few links down (a core reached by one swapped cable) waits when most of its
    links lead to switches that stand there firmly: it is above those, unless such switches are
    cabled to each other anyhow.
    """
    near: dict[int, int] = defaultdict(int)
    for switch, found in rank.items():
        if found == level:
            for peer, count in around.get(switch, {}).items():
                if peer not in rank:
                    near[peer] += count
    firm = {
        switch
        for switch, count in near.items()
        if count >= STRONG_SHARE * sum(around[switch].values())
    }
    if not firm:
        return set(near)
    waiting = {
        switch
        for switch in near.keys() - firm
        if 2 * _num_links(switch, firm, around) > sum(around[switch].values())
    }
    is_peering = waiting and _are_peers(firm, rank, around)
    return set(near) if is_peering else near.keys() - waiting


def _num_links(
    switch: int, others: Collection[int], around: Mapping[int, Mapping[int, int]]
) -> int:
    return sum(count for peer, count in around[switch].items() if peer in others)


def _are_peers(
    firm: Collection[int], rank: Mapping[int, int], around: Mapping[int, Mapping[int, int]]
) -> bool:
    """Return whether switches of the new rank are cabled to each other as a rule.

    So they are in a dragonfly+, where a spine has nothing above it: one with many global links
    and few leaves is no core, but the spine of a small group.
    """
    among = sum(_num_links(switch, firm, around) for switch in firm) / 2
    down = sum(_num_links(switch, rank, around) for switch in firm)
    on = sum(sum(around[switch].values()) for switch in firm) - down - 2 * among
    return among > PEER_SHARE * on
