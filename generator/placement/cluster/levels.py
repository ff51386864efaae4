"""The tree as ranges of nodes: at every tier the nodes are divided into contiguous units.

Tier 0 is the nodes, and the last tier is the virtual root `cluster`. If a node has no domain of a
tier, its unit there is its unit of the tier below: a missing level costs nothing and connects no
nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from topology.model.tree import TopologyTree

IntArray = NDArray[np.int64]


BoolArray = NDArray[np.bool_]


FloatArray = NDArray[np.float64]


NODE_TIER = "node"
LEAF_TIER = 1
"""Height of the lowest tier of domains."""
CLUSTER_TIER = "cluster"


class UnknownTier(LookupError):  # noqa: N818 - reads as what it is; caught where it is answered
    """A tier that the tree lacks."""


@dataclass(frozen=True, eq=False)
class TreeLevels:
    """Units per tier; unit u of tier t covers the nodes `starts[t][u]` to `stops[t][u]`."""

    tiers: tuple[str, ...]
    """Names from `node` to `cluster`; the index of a tier is its height."""
    starts: tuple[NDArray[np.int64], ...]
    stops: tuple[NDArray[np.int64], ...]
    unit_of_node: tuple[NDArray[np.int64], ...]
    """Per tier: the unit of each node."""
    first_child: tuple[NDArray[np.int64], ...]
    """Per tier: children of u are the units `first_child[t][u]` to `first_child[t][u + 1]`."""
    domain_of_unit: tuple[NDArray[np.int64], ...]
    """Per tier: index into the tree's domains; -1 if the unit is not a domain of that tier."""

    @property
    def root(self) -> int:
        """Height of `cluster`."""
        return len(self.tiers) - 1

    def height_of(self, tier: str | None) -> int:
        """Return the height of a tier by name, or by its integer in text form.

        Raises:
            UnknownTier: the tree has no such tier.
        """
        if tier in self.tiers:
            return self.tiers.index(tier)
        numbers = {str(height): height for height in range(1, self.root)}
        height = numbers.get((tier or "").lstrip("0"))
        if height is None:
            raise UnknownTier(tier)
        return height

    def children(self, tier: int, unit: int) -> range:
        """Return the units one tier below a unit."""
        first = self.first_child[tier]
        return range(int(first[unit]), int(first[unit + 1]))

    def sum_by_tier(
        self, per_node: IntArray, adjust: Callable[[IntArray, int], IntArray] | None = None
    ) -> list[IntArray]:
        """Return the sums of values per tier and unit, the nodes first; O(nodes).

        Args:
            per_node: the values.
            adjust: changes the sums of a tier before they are added up further.
        """
        sums = [per_node if adjust is None else adjust(per_node, 0)]
        for tier, first in enumerate(self.first_child[1:], start=1):
            total = np.add.reduceat(sums[-1], first[:-1]) if len(per_node) else per_node
            sums.append(total if adjust is None else adjust(total, tier))
        return sums

    def content_key(self, values: IntArray, tier: int, unit: int) -> bytes:
        """Return a key that is equal for units with the same tree and the same values per node.

        The order of the nodes of a leaf does not matter.
        """
        start, stop = self.starts[tier][unit], self.stops[tier][unit]
        if tier == LEAF_TIER:
            return np.sort(values[start:stop]).tobytes()
        rows = [values[start:stop].tobytes()]
        for inner in range(1, tier):
            unit_of = self.unit_of_node[inner]
            first, last = unit_of[start], unit_of[stop - 1] + 1
            rows.append((self.starts[inner][first:last] - start).tobytes())
        return b"|".join(rows)

    def common_tier(self, low: int, high: int) -> int:
        """Return the height of the lowest unit that holds two nodes, and so all nodes between."""
        return next(tier for tier, unit in enumerate(self.unit_of_node) if unit[low] == unit[high])


def units_with_min(units: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the units with the smallest value, in order."""
    return units[values == values[values.argmin()]] if len(units) > 1 else units


def build_levels(tree: TopologyTree, num_nodes: int) -> TreeLevels:
    """Divide `num_nodes` nodes, tree nodes first, into units; O(tiers × (nodes + domains))."""
    is_start = np.ones(num_nodes, dtype=np.bool_)
    starts = [np.arange(num_nodes, dtype=np.int64)]
    domain = [np.full(num_nodes, -1, dtype=np.int64)]
    for tier in range(1, len(tree.tiers) + 1):
        domain_at_start = np.full(num_nodes, -1, dtype=np.int64)
        for index, tree_domain in enumerate(tree.domains):
            if tree_domain.tier == tier and tree_domain.start < tree_domain.stop:
                is_start[tree_domain.start + 1 : tree_domain.stop] = False
                domain_at_start[tree_domain.start] = index
        starts.append(np.flatnonzero(is_start))
        domain.append(domain_at_start[starts[-1]])
    starts.append(np.zeros(min(num_nodes, 1), dtype=np.int64))
    domain.append(np.full(len(starts[-1]), -1, dtype=np.int64))
    return TreeLevels(
        tiers=(NODE_TIER, *tree.tiers, CLUSTER_TIER),
        starts=tuple(starts),
        stops=tuple(np.append(row[1:], num_nodes) for row in starts),
        unit_of_node=tuple(_unit_per_node(row, num_nodes) for row in starts),
        first_child=tuple(_first_children(starts)),
        domain_of_unit=tuple(domain),
    )


def _unit_per_node(starts: NDArray[np.int64], num_nodes: int) -> NDArray[np.int64]:
    marks = np.zeros(num_nodes, dtype=np.int64)
    marks[starts] = 1
    return np.cumsum(marks) - 1


def _first_children(starts: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Return per tier where the children of each unit start, then the end of the last unit's."""
    children = [np.zeros(len(starts[0]) + 1, dtype=np.int64)]
    for below, row in pairwise(starts):
        children.append(np.append(np.searchsorted(below, row), len(below)))
    return children
