"""The tree as ranges of nodes: at every tier the nodes are divided into contiguous units.

Tier 0 is the nodes, and the last tier is the virtual root `cluster`. If a node has no domain of a
tier, its unit there is its unit of the tier below: a missing level costs nothing and connects no
nodes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import NamedTuple

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


SEPARATOR = "|"
"""Between names of one tier in a request: the first that the tree knows counts."""
EACH = "&"
"""Between tiers of which a domain must satisfy each: the lowest counts."""
AT_MOST = "<="
"""Before the tier number of a HyperNode: the highest tier up to this number."""
_BOUND = re.compile(rf"{AT_MOST}([0-9]{{1,9}})", re.ASCII)
_MAX_NAMES_READ = 256
"""Unknown names whose labels are compared with the tree; the cache is then cleared."""


class UnitRef(NamedTuple):
    """A unit of a tier."""

    tier: int
    unit: int


class UnknownTierError(LookupError):
    """The tree lacks a tier that a request names."""


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
    tree: TopologyTree
    labels: Sequence[Mapping[str, str]]
    """The labels of each node, tree nodes first."""
    _heights: dict[str, int | None] = field(default_factory=dict, repr=False)
    """Heights of label keys read so far; a cache of `labels`."""

    @property
    def root(self) -> int:
        """Height of `cluster`."""
        return len(self.tiers) - 1

    def height_of(self, tier: str | None) -> int:
        """Return the height of a tier.

        A tier is given by its name, by another name that the tree knows, by its integer in text
        form, by a label key whose values divide the nodes as the tier does, or as `<=N`: the
        highest tier that Volcano numbers N or lower. Of several names with `|` between them the
        first that is known counts; of several tiers with `&` between them, the lowest.

        Raises:
            UnknownTierError: the tree has no such tier.
        """
        return min(self._height_of_first(part) for part in (tier or "").split(EACH))

    def _height_of_first(self, names: str) -> int:
        for name in names.split(SEPARATOR):
            height = self._find_height(name.strip())
            if height is not None:
                return height
        raise UnknownTierError(names)

    @property
    def known_names(self) -> tuple[str, ...]:
        """All names of the tiers, lowest first."""
        other_names = self.tree.origin.other_names or ((),) * len(self.tree.tiers)
        rows = ((name, *others) for name, others in zip(self.tree.tiers, other_names, strict=True))
        return (NODE_TIER, *chain.from_iterable(rows), CLUSTER_TIER)

    def _find_height(self, name: str) -> int | None:
        if name in self.tiers:
            return self.tiers.index(name)
        if name.startswith(AT_MOST):
            bound = _BOUND.fullmatch(name)
            within = self.tree.highest_tier_within(int(bound[1])) if bound else 0
            return self.root if within is None else within or None
        height = self.tree.tier_of(name)
        return self._find_label_height(name) if height is None else height

    def _find_label_height(self, key: str) -> int | None:
        """Return the height of the lowest tier whose domains match a label; None if none does.

        They match if exactly the nodes with one value share a domain. A label with one
        value on all nodes, in the tree or not, means the cluster if no lower tier matches.
        """
        with suppress(KeyError):  # another thread may clear the cache at any moment
            return self._heights[key]
        num_nodes = len(self.tree.nodes)
        values = [labels.get(key) for labels in self.labels]
        in_tree = values[:num_nodes]
        height = None if None in in_tree else self._match_values(in_tree)
        if height is None and None not in values and len(set(values)) == 1:
            height = self.root
        if len(self._heights) >= _MAX_NAMES_READ:
            self._heights.clear()
        self._heights[key] = height
        return height

    def _match_values(self, values: Sequence[str | None]) -> int | None:
        num_values = len(set(values))
        for tier in range(self.root):
            units = self.unit_of_node[tier][: len(values)].tolist()
            pairs = len(set(zip(values, units, strict=True)))
            if values and pairs == num_values == len(set(units)):
                return tier
        return None

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


def units_inside(levels: TreeLevels, place: UnitRef, tier: int) -> IntArray:
    """Return the units of a lower tier inside a unit."""
    first_node = levels.starts[place.tier][place.unit]
    last_node = levels.stops[place.tier][place.unit] - 1
    unit_of = levels.unit_of_node[tier]
    return np.arange(unit_of[first_node], unit_of[last_node] + 1, dtype=np.int64)


def units_with_min(units: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the units with the smallest value, in order."""
    return units[values == values[values.argmin()]] if len(units) > 1 else units


def build_levels(tree: TopologyTree, labels: Sequence[Mapping[str, str]]) -> TreeLevels:
    """Divide the nodes into units; O(tiers × (nodes + domains)).

    Args:
        tree: the tree.
        labels: the labels of each node, tree nodes first.
    """
    num_nodes = len(labels)
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
        tree=tree,
        labels=labels,
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
