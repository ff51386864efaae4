"""Cables between switches by the domains that they join, as arrays: what tiers are judged by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from topology.fabric_columns import Flags, Index
from topology.plane_cables import count_pairs, edge_columns
from topology.planes import Plane
from topology.tiers import Grouping

NOWHERE = -1
"""Group of a switch that is in none, and parent of a top."""


@dataclass(frozen=True, slots=True)
class Ways:
    """Every cable both ways, and every group."""

    low: Index
    """The switch at the near end, one entry per way; so are the next four."""
    high: Index
    """The switch at the far end."""
    under: Index
    """The group of the near end."""
    over: Index
    """The group of the far end."""
    edge: Index
    """The cable, by its place in the plane."""
    parents: Index
    """One entry per group, and one more for NOWHERE; so is the next."""
    ranks: Index

    @property
    def is_up(self) -> Flags:
        """Whether a way leads from a group to the one above it."""
        is_placed = (self.under >= 0) & (self.over >= 0)
        is_up: Flags = is_placed & (self.parents[self.under] == self.over)
        return is_up

    @property
    def is_inside(self) -> Flags:
        """Whether a cable stays in one group; of its two ways the first counts."""
        is_inside: Flags = (self.under >= 0) & (self.under == self.over) & self.is_first
        return is_inside

    @property
    def is_first(self) -> Flags:
        """Whether a way is the first of its cable's two."""
        is_first: Flags = np.arange(len(self.low)) * 2 < len(self.low)
        return is_first

    def tally(self, ones: Index, others: Index, chosen: Flags) -> Mapping[int, Mapping[int, int]]:
        """Return one to other to the number of chosen ways; ascending."""
        return count_pairs(ones[chosen], others[chosen])


def find_ways(plane: Plane, grouping: Grouping) -> Ways:
    """Return the ways of a plane's cables. Cost: O(links)."""
    a, b, _, _ = edge_columns(plane.switch_edges)
    group_of = np.full(max(plane.switches, default=0) + 1, NOWHERE)
    for at, group in enumerate(grouping.groups):
        group_of[list(group.switches)] = at
    low, high = np.concatenate([a, b]), np.concatenate([b, a])
    tops = (NOWHERE if group.parent is None else group.parent for group in grouping.groups)
    return Ways(
        low=low,
        high=high,
        under=group_of[low],
        over=group_of[high],
        edge=np.tile(np.arange(len(a)), 2),
        parents=np.array([*tops, NOWHERE], np.intp),
        ranks=np.array([*(group.rank for group in grouping.groups), 0], np.intp),
    )
