"""Ranks of switches: the distance in cables between a switch and the hosts.

Rank 1 switches carry hosts. Ranks are derived from the full fabric, including hosts that are not
cluster nodes, and by majorities: a misplaced host does not turn a spine into a leaf, and a
misplaced cable does not turn a core into a spine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from topology.model.fabric import Flags, Index
from topology.model.pair_counts import PairCounts
from topology.planes.plane import Plane

STRONG_SHARE = 0.25
"""Share of its switch links from which a switch is firmly above a rank; half in a full Clos."""
ROUNDING = 1e-6
"""Above the rounding error of a sum of shares, and below any share that matters."""
PEER_SHARE = 0.125
"""Ratio of links among switches of one rank to their links upwards, above which they are peers.
Between two MLAG spines there is one cable for eight or more."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """The rank of every switch, and the hosts on switches that are not leaves."""

    rank: Mapping[int, int]
    """Switch to rank, from 1. Switches without a path to hosts are missing."""
    hosts_on_spines: tuple[tuple[int, int], ...]
    """(host, switch), sorted."""

    @property
    def by_rank(self) -> Mapping[int, list[int]]:
        """The switches of each rank, ascending. Cost: O(switches log switches)."""
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
    switch_pairs = plane.switch_edges.pairs_both_ways
    ranks = np.zeros(max(plane.switches, default=0) + 1, np.intp)
    ranks[mark_leaves(plane)] = 1
    level = 1
    while (is_next := _are_next(ranks, level, switch_pairs)).any():
        level += 1
        ranks[is_next] = level
    ranked = np.flatnonzero(ranks)
    rank = dict(zip(ranked.tolist(), ranks[ranked].tolist(), strict=True))
    return Ranks(rank, _find_hosts_on_spines(plane, ranks == 1))


def _find_hosts_on_spines(plane: Plane, is_leaf: Flags) -> tuple[tuple[int, int], ...]:
    hosts, switches, _ = plane.host_edges.pairs
    is_misplaced = ~is_leaf[switches]
    return tuple(zip(hosts[is_misplaced].tolist(), switches[is_misplaced].tolist(), strict=True))


def mark_leaves(plane: Plane) -> Flags:
    """Return which switches are leaves, by switch number. Cost: O(links).

    A leaf has hosts on half of its links, or half as many hosts as its peers (the leaf of the
    typical host). A switch with fewer hosts is a leaf only if most of its cables lead to switches
    that are not leaves; with one host, three quarters of them. This distinguishes the last leaf of
    a row, with one host and all its up-links, from a spine with one misplaced host. A host that is
    alone on more switches than any other host has makes none of them a leaf.
    """
    switch_pairs = plane.switch_edges.pairs_both_ways
    size = max(plane.switches, default=0) + 1
    # Hosts are counted, not their cables: one host may report any number of cables to a spine.
    pairs = plane.host_edges.pairs
    num_hosts = np.bincount(pairs.right, minlength=size)
    num_links = switch_pairs.count_to(np.ones(size, np.bool_))
    is_busy = (num_hosts >= num_links) | (2 * num_hosts >= _typical_num_hosts(pairs, num_hosts))
    is_leaf = (num_hosts > 0) & is_busy
    is_unclear = (num_hosts > 0) & ~is_leaf
    if is_unclear.any():
        num_to_leaves = switch_pairs.count_to(is_leaf)
        leads_up = np.where(
            num_hosts > 1, 2 * num_to_leaves < num_links, 4 * num_to_leaves <= num_links
        )
        is_flooded = _mark_flooded(pairs, is_unclear & (num_hosts == 1))
        is_leaf |= is_unclear & leads_up & ~is_flooded
    return is_leaf


def _mark_flooded(pairs: PairCounts, is_lone: Flags) -> Flags:
    """Mark the switches whose only host is alone on more switches than any other host is on.

    Such a host reports cables to spines and cores. Its cables do not make them leaves.

    Args:
        pairs: hosts and switches that share cables.
        is_lone: the switches with one host, by switch number.
    """
    degrees = np.bincount(pairs.left)
    usual = np.sort(degrees)[-2:].min()  # the second highest: one host does not change it
    is_chosen = is_lone[pairs.right]
    num_lone = np.bincount(pairs.left[is_chosen], minlength=len(degrees))
    is_flooded = np.zeros_like(is_lone)
    is_flooded[pairs.right[is_chosen & (num_lone[pairs.left] > max(int(usual), 1))]] = True
    return is_flooded


def _typical_num_hosts(pairs: PairCounts, num_hosts: Index) -> int:
    """Return the number of hosts on the leaf of the median host.

    A host on several switches counts for each of them in part, and so once in all.

    Args:
        pairs: hosts and switches that share cables.
        num_hosts: the number of hosts on each switch.
    """
    if not len(pairs.left):
        return 0
    counts = num_hosts[pairs.right]
    weights = 1 / np.bincount(pairs.left)[pairs.left]
    order = np.argsort(counts, kind="stable")
    cumulative_hosts = np.cumsum(weights[order])
    middle = int(np.searchsorted(cumulative_hosts, cumulative_hosts[-1] / 2 - ROUNDING))
    return int(counts[order][min(middle, len(order) - 1)])


def _are_next(ranks: Index, level: int, switch_pairs: PairCounts) -> Flags:
    """Mark the switches without a rank that are directly above the given rank.

    A switch with few links down, such as a core that a swapped cable reaches, waits for a later
    rank if most of its links lead to switches that are firmly above this rank: it is above those
    switches. It does not wait if such switches are cabled to each other by design.

    Args:
        ranks: the rank of each switch; 0 without one.
        level: the highest rank so far.
        switch_pairs: cables between switches.
    """
    num_links = switch_pairs.count_to(np.ones(len(ranks), np.bool_))
    num_down = np.where(ranks > 0, 0, switch_pairs.count_to(ranks == level))
    is_near = num_down > 0
    is_firm = is_near & (num_down >= STRONG_SHARE * num_links)
    if not is_firm.any():
        return is_near
    is_waiting = is_near & ~is_firm & (2 * switch_pairs.count_to(is_firm) > num_links)
    is_peering = is_waiting.any() and _are_peers(is_firm, ranks > 0, switch_pairs)
    return is_near if is_peering else is_near & ~is_waiting


def _are_peers(is_firm: Flags, is_ranked: Flags, switch_pairs: PairCounts) -> bool:
    """Return whether switches of the new rank are cabled to each other by design.

    They are in a dragonfly+, where no switch is above the spines: a spine with many global links
    and few leaves is not a core, but the spine of a small group.
    """
    firm_pairs = switch_pairs.where(is_firm[switch_pairs.left])
    num_among = firm_pairs.counts[is_firm[firm_pairs.right]].sum() / 2
    num_down = firm_pairs.counts[is_ranked[firm_pairs.right]].sum()
    num_up = firm_pairs.counts.sum() - num_down - 2 * num_among
    return bool(num_among > PEER_SHARE * num_up)
