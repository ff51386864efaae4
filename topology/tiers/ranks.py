"""Ranks of switches: how many cables away from the hosts a switch stands.

Rank 1 switches carry hosts. Judged on the full fabric, also by hosts that are not cluster nodes,
and by majorities: a stray host does not make a spine a leaf, a stray cable no core a spine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from topology.model.fabric_columns import Flags, Index
from topology.model.pair_counts import PairCounts
from topology.planes.plane import Plane

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

    @property
    def by_rank(self) -> Mapping[int, list[int]]:
        """The switches of each rank, ascending. Cost: O(switches)."""
        switches: dict[int, list[int]] = defaultdict(list)
        for switch, rank in sorted(self.rank.items()):
            switches[rank].append(switch)
        return switches

    @property
    def highest(self) -> int:
        """The highest rank, 0 without any."""
        return max(self.rank.values(), default=0)


def rank_switches(plane: Plane) -> Ranks:
    """Return the ranks of a plane's switches. Cost: O(pairs of switches) per rank."""
    around = plane.switch_edges.pairs_both_ways
    ranks = np.zeros(max(plane.switches, default=0) + 1, np.intp)
    ranks[mark_leaves(plane)] = 1
    level = 1
    while (is_next := _are_next(ranks, level, around)).any():
        level += 1
        ranks[is_next] = level
    ranked = np.flatnonzero(ranks)
    rank = dict(zip(ranked.tolist(), ranks[ranked].tolist(), strict=True))
    return Ranks(rank, _find_hosts_on_spines(plane, ranks == 1))


def update_ranks(last: Ranks, plane: Plane) -> Ranks | None:
    """Return what `rank_switches` does where other hosts alone came to the same leaves, else None.

    Args:
        last: the ranks of a plane with the same switches and cables between them.
        plane: as it is now.
    """
    is_leaf = mark_leaves(plane)
    if np.flatnonzero(is_leaf).tolist() != last.by_rank[1]:
        return None
    return Ranks(last.rank, _find_hosts_on_spines(plane, is_leaf))


def _find_hosts_on_spines(plane: Plane, is_leaf: Flags) -> tuple[tuple[int, int], ...]:
    hosts, switches, _ = plane.host_edges.pairs
    astray = ~is_leaf[switches]
    return tuple(zip(hosts[astray].tolist(), switches[astray].tolist(), strict=True))


def mark_leaves(plane: Plane) -> Flags:
    """Tell the switches that carry hosts as their purpose. Cost: O(links).

    A leaf has hosts on half of its links, or half as many as its fellows (the typical host's
    leaf). A switch with fewer is a leaf only if most of its cables lead to no leaf: the last
    leaf of a row, with one host and all its up-links, next to a spine with one stray host.
    """
    around = plane.switch_edges.pairs_both_ways
    size = max(plane.switches, default=0) + 1
    num_hosts = np.bincount(plane.host_edges.columns.b, minlength=size)
    num_links = around.count_to(np.ones(size, np.bool_))
    is_busy = (num_hosts >= num_links) | (2 * num_hosts >= _typical_num_hosts(num_hosts))
    is_leaf = (num_hosts > 0) & is_busy
    is_left = (num_hosts > 0) & ~is_leaf
    if is_left.any():
        is_leaf |= is_left & (2 * around.count_to(is_leaf) < num_links)
    return is_leaf


def _typical_num_hosts(num_hosts: Index) -> int:
    """Return how many hosts the leaf of the median host has."""
    counts = np.sort(num_hosts)
    seen = np.cumsum(counts)
    return int(counts[np.searchsorted(seen, seen[-1] / 2)])


def _are_next(ranks: Index, level: int, around: PairCounts) -> Flags:
    """Tell which switches have no rank yet and stand on the given one.

    A switch with few links down (a core reached by one swapped cable) waits when most of its
    links lead to switches that stand there firmly: it is above those, unless such switches are
    cabled to each other anyhow.

    Args:
        ranks: by switch; 0 without one.
        level: the highest rank so far.
        around: cables between switches.
    """
    num_links = around.count_to(np.ones(len(ranks), np.bool_))
    num_down = np.where(ranks > 0, 0, around.count_to(ranks == level))
    is_near = num_down > 0
    is_firm = is_near & (num_down >= STRONG_SHARE * num_links)
    if not is_firm.any():
        return is_near
    is_waiting = is_near & ~is_firm & (2 * around.count_to(is_firm) > num_links)
    is_peering = is_waiting.any() and _are_peers(is_firm, ranks > 0, around)
    return is_near if is_peering else is_near & ~is_waiting


def _are_peers(is_firm: Flags, is_ranked: Flags, around: PairCounts) -> bool:
    """Return whether switches of the new rank are cabled to each other as a rule.

    So they are in a dragonfly+, where a spine has nothing above it: one with many global links
    and few leaves is no core, but the spine of a small group.
    """
    own = around.where(is_firm[around.left])
    among = own.counts[is_firm[own.right]].sum() / 2
    down = own.counts[is_ranked[own.right]].sum()
    on = own.counts.sum() - down - 2 * among
    return bool(among > PEER_SHARE * on)
