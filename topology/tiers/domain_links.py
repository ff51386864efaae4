"""Cables between switches by the domains that they join, as arrays: what tiers are judged by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topology.model.fabric_columns import Flags, Index
from topology.model.pair_counts import PairCounts, count_pairs
from topology.planes.plane import Plane
from topology.tiers.tier_groups import TierGroups

NO_GROUP = -1
"""Group of a switch that is in none, and parent of a top."""


class Reach(NamedTuple):
    """What the switches of each group reach of the groups below it, one entry per group."""

    num_links: Index
    shares: NDArray[np.float64]
    """Of the pairs of a switch and a group below, those that are a cable apart; 0 without any.

    In a Clos network all are; half are still a design. Where switches without hosts of their own
    reach less, they are as good as anywhere: between the hosts of a torus, not above them."""


@dataclass(frozen=True, slots=True)
class DomainLinks:
    """Every pair of switches with cables, both ways, and every group."""

    near: Index
    """The switch at the near end, one entry per way, ascending; so are the next four."""
    far: Index
    """The switch at the far end, ascending for each near one."""
    counts: Index
    """How many cables it has."""
    near_group: Index
    """The group of the near end."""
    far_group: Index
    """The group of the far end."""
    parents: Index
    """One entry per group, and one more for NOWHERE; so is the next."""
    ranks: Index
    reach: Reach

    @property
    def is_up(self) -> Flags:
        """Whether a way leads from a group to the one above it."""
        is_placed = (self.near_group >= 0) & (self.far_group >= 0)
        is_up: Flags = is_placed & (self.parents[self.near_group] == self.far_group)
        return is_up

    @property
    def is_inside(self) -> Flags:
        """Whether a way stays in one group; of a pair's two ways the first counts."""
        is_inside: Flags = (
            (self.near_group >= 0) & (self.near_group == self.far_group) & self.is_first
        )
        return is_inside

    @property
    def is_first(self) -> Flags:
        """Whether a way is the first of its pair's two."""
        is_first: Flags = self.near < self.far
        return is_first

    def tally(self, ones: Index, others: Index, chosen: Flags) -> Mapping[int, Mapping[int, int]]:
        """Return one to other to the number of cables of chosen ways; ascending."""
        return count_pairs(ones[chosen], others[chosen], self.counts[chosen]).by_left()

    def count(self, groups: Index, chosen: Flags) -> Index:
        """Return by group the number of cables of chosen ways."""
        found = np.bincount(groups[chosen], self.counts[chosen], len(self.parents) - 1)
        return found.astype(np.intp)


def find_domain_links(plane: Plane, grouping: TierGroups) -> DomainLinks:
    """Return the ways of a plane's cables. Cost: O(pairs of switches)."""
    low, high, counts = plane.switch_edges.pairs_both_ways
    group_of = np.full(max(plane.switches, default=0) + 1, NO_GROUP)
    for at, group in enumerate(grouping.groups):
        group_of[list(group.switches)] = at
    tops = (NO_GROUP if group.parent is None else group.parent for group in grouping.groups)
    parents = np.array([*tops, NO_GROUP], np.intp)
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


def find_reach(found: PairCounts, parents: Index) -> Reach:
    """Return what groups reach. Cost: O(pairs).

    Args:
        found: switches, and the groups below that each has cables to.
        parents: by group the one above it, and a last entry that counts for none.
    """
    size = len(parents) - 1
    above = parents[found.right]
    is_reached = np.zeros(size, np.bool_)
    is_reached[found.right] = True
    num_switches = np.bincount(above[np.diff(found.left, prepend=-1) > 0], minlength=size)
    num_units = np.bincount(parents[:-1][is_reached], minlength=size)
    shares = np.bincount(above, minlength=size) / np.maximum(1, num_switches * num_units)
    num_links = np.bincount(above, found.counts, size).astype(np.intp)
    return Reach(num_links, shares)
