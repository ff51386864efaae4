"""Cables between switches by the groups that they connect, as arrays: the evidence about tiers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topology.model.fabric import Flags, Index
from topology.model.pair_counts import PairCounts, count_pairs
from topology.planes.plane import Plane
from topology.tiers.tier_groups import TierGroups

NO_GROUP = -1
"""The group of a switch in no group, and the parent of a top."""


class Reach(NamedTuple):
    """The links from each group to the groups below it, one entry per group."""

    num_links: Index
    """Cables to the groups below."""
    shares: NDArray[np.float64]
    """Share of the pairs of a switch and a group below that have a cable; 0 without any.

    In a Clos network all pairs have one, and half of them can still be the design. Switches without
    hosts that reach less are not above the hosts, but between them, as in a torus."""


@dataclass(frozen=True, slots=True)
class DomainLinks:
    """Every pair of switches with cables, in both directions, and every group."""

    near: Index
    """The switch at the near end, ascending. This and the next four: one entry per direction."""
    far: Index
    """The switch at the far end, ascending for each near switch."""
    counts: Index
    """The number of cables."""
    near_group: Index
    """The group of the near switch, or NO_GROUP."""
    far_group: Index
    """The group of the far switch, or NO_GROUP."""
    parents: Index
    """The parent of each group. This and the next: one entry per group, and a last for NO_GROUP."""
    ranks: Index
    """The rank of each group."""
    reach: Reach
    """The links of each group downwards."""

    @property
    def is_up(self) -> Flags:
        """Whether an entry leads from a group to its parent."""
        is_placed = (self.near_group >= 0) & (self.far_group >= 0)
        is_up: Flags = is_placed & (self.parents[self.near_group] == self.far_group)
        return is_up

    @property
    def is_inside(self) -> Flags:
        """Whether an entry is inside one group; only the first of a pair's two entries counts."""
        is_inside: Flags = (
            (self.near_group >= 0) & (self.near_group == self.far_group) & self.is_first
        )
        return is_inside

    @property
    def is_first(self) -> Flags:
        """Whether an entry is the first of its pair's two."""
        is_first: Flags = self.near < self.far
        return is_first

    def tally(self, left: Index, right: Index, chosen: Flags) -> Mapping[int, Mapping[int, int]]:
        """Return the number of cables of chosen entries by left end, then right end; ascending."""
        return count_pairs(left[chosen], right[chosen], self.counts[chosen]).by_left

    def count(self, groups: Index, chosen: Flags) -> Index:
        """Return the number of cables of chosen entries, one entry per group."""
        link_sums = np.bincount(groups[chosen], self.counts[chosen], len(self.parents) - 1)
        return link_sums.astype(np.intp)


def find_domain_links(plane: Plane, grouping: TierGroups) -> DomainLinks:
    """Return the cables between the switches of a plane. Cost: O(pairs of switches)."""
    low, high, counts = plane.switch_edges.pairs_both_ways
    group_of = np.full(max(plane.switches, default=0) + 1, NO_GROUP)
    for group_index, group in enumerate(grouping.groups):
        group_of[list(group.switches)] = group_index
    group_parents = (
        NO_GROUP if group.parent is None else group.parent for group in grouping.groups
    )
    parents = np.array([*group_parents, NO_GROUP], np.intp)
    under, over = group_of[low], group_of[high]
    is_down = (under >= 0) & (over >= 0) & (parents[over] == under)
    return DomainLinks(
        near=low,
        far=high,
        counts=counts,
        near_group=under,
        far_group=over,
        parents=parents,
        ranks=np.array([*(group.rank for group in grouping.groups), 0], np.intp),
        reach=find_reach(count_pairs(low[is_down], over[is_down], counts[is_down]), parents),
    )


def find_reach(pair_counts: PairCounts, parents: Index) -> Reach:
    """Return the links of groups to the groups below. Cost: O(pairs).

    Args:
        pair_counts: cables by switch and group below.
        parents: the parent of each group, and a last entry for NO_GROUP.
    """
    size = len(parents) - 1
    above = parents[pair_counts.right]
    is_reached = np.zeros(size, np.bool_)
    is_reached[pair_counts.right] = True
    num_switches = np.bincount(above[np.diff(pair_counts.left, prepend=-1) > 0], minlength=size)
    num_units = np.bincount(parents[:-1][is_reached], minlength=size)
    shares = np.bincount(above, minlength=size) / np.maximum(1, num_switches * num_units)
    num_links = np.bincount(above, pair_counts.counts, size).astype(np.intp)
    return Reach(num_links, shares)
