"""Free slots of a cluster during a replay, and what its tree says of sets of nodes.

Nodes are positions in tree order, so every domain is a range of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topology.model.tree import TopologyTree

Ints = NDArray[np.int64]


class UniformPods(NamedTuple):
    """The equal pods that a job comes to."""

    num: int
    slots: int
    """Of each."""


class Tier(NamedTuple):
    """All domains of one tier."""

    name: str
    starts: Ints
    stops: Ints
    """Domain d holds the nodes from `starts[d]` to before `stops[d]`."""
    domain_of: Ints
    """Per node: its domain, or -1."""


def split_into_pods(gpus: int, slots: int) -> UniformPods:
    """Return a job's pods on nodes of so many slots: as large as a divisor of its GPUs allows."""
    size = next(size for size in range(min(gpus, slots), 0, -1) if gpus % size == 0)
    return UniformPods(gpus // size, size)


class SlotCluster:
    """Equal nodes; a job takes slots and gives them back."""

    def __init__(self, tree: TopologyTree, slots: int) -> None:
        """Begin with all slots free."""
        self.tree = tree
        self.slots = slots
        """Of each node."""
        self.free: Ints = np.full(len(tree.nodes), slots, dtype=np.int64)
        self.num_free = slots * len(tree.nodes)
        self.tiers = tuple(_build_tier(tree, at) for at in range(1, len(tree.tiers) + 1))
        """Bottom-up."""

    @property
    def num_slots(self) -> int:
        """Slots of all nodes."""
        return self.slots * len(self.tree.nodes)

    def take_slots(self, nodes: Ints, slots: int) -> None:
        """Give slots on each node away; a node may occur several times."""
        np.subtract.at(self.free, nodes, slots)
        self.num_free -= slots * len(nodes)

    def return_slots(self, nodes: Ints, slots: int) -> None:
        """Take slots back."""
        np.add.at(self.free, nodes, slots)
        self.num_free += slots * len(nodes)

    def count_fitting(self, slots: int) -> Ints:
        """Return per node how many pods of so many slots fit."""
        return self.free // slots

    def find_height(self, nodes: Ints) -> int:
        """Return the tier of the lowest domain around nodes: 0 of one node.

        One more than the highest where no domain holds them all.
        """
        low, high = int(nodes.min()), int(nodes.max())
        if low == high:
            return 0
        for at, tier in enumerate(self.tiers, 1):
            domain = int(tier.domain_of[low])
            if domain >= 0 and high < tier.stops[domain]:
                return at
        return len(self.tiers) + 1

    def tier_name(self, height: int) -> str:
        """Return the name of a height."""
        if height == 0:
            return "node"
        return "cluster" if height > len(self.tiers) else self.tiers[height - 1].name

    def count_leaves(self, nodes: Ints) -> int:
        """Return how many domains of the lowest tier nodes are in; those in none count alone."""
        found = self.tiers[0].domain_of[nodes]
        return len(np.unique(found[found >= 0])) + len(np.unique(nodes[found < 0]))


def sum_by_domain(tier: Tier, fits: Ints) -> Ints:
    """Return per domain of a tier how many pods fit; O(nodes + domains)."""
    sums = np.concatenate(([0], np.cumsum(fits)))
    found: Ints = sums[tier.stops] - sums[tier.starts]
    return found


def _build_tier(tree: TopologyTree, number: int) -> Tier:
    domains = [domain for domain in tree.domains if domain.tier == number]
    domain_of = np.full(len(tree.nodes), -1, dtype=np.int64)
    for at, domain in enumerate(domains):
        domain_of[domain.start : domain.stop] = at
    return Tier(
        tree.tiers[number - 1],
        np.array([domain.start for domain in domains], dtype=np.int64),
        np.array([domain.stop for domain in domains], dtype=np.int64),
        domain_of,
    )
