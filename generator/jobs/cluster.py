"""Free slots of a cluster, and the domains of its tree around a set of nodes.

Nodes are positions in tree order, so every domain is a range of positions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topology.model.tree import TopologyTree

Ints = NDArray[np.int64]


class UniformPods(NamedTuple):
    """The equal pods of a job."""

    num: int
    slots: int
    """Slots of each pod."""


class Tier(NamedTuple):
    """All domains of one tier."""

    name: str
    starts: Ints
    stops: Ints
    """Domain d has the nodes from `starts[d]` up to, not including, `stops[d]`."""
    domain_of: Ints
    """Per node, its domain or -1."""


def split_into_pods(gpus: int, slots: int) -> UniformPods:
    """Return the pods of a job: of equal size, the largest divisor of its GPUs that fits a node."""
    size = next(size for size in range(min(gpus, slots), 0, -1) if gpus % size == 0)
    return UniformPods(gpus // size, size)


class SlotCluster:
    """Equal nodes whose slots jobs take and return."""

    def __init__(self, tree: TopologyTree, slots: int) -> None:
        """Start with all slots free."""
        self.tree = tree
        self.slots = slots
        """Slots of each node."""
        self.free: Ints = np.full(len(tree.nodes), slots, dtype=np.int64)
        self.num_free = slots * len(tree.nodes)
        self.tiers = tuple(_build_tier(tree, number) for number in range(1, len(tree.tiers) + 1))
        """Tiers, lowest first."""

    @property
    def num_slots(self) -> int:
        """Number of slots of all nodes."""
        return self.slots * len(self.tree.nodes)

    def take_slots(self, nodes: Ints, slots: int) -> None:
        """Take slots on each node; a node may occur several times."""
        np.subtract.at(self.free, nodes, slots)
        self.num_free -= slots * len(nodes)

    def return_slots(self, nodes: Ints, slots: int) -> None:
        """Return slots on each node; a node may occur several times."""
        np.add.at(self.free, nodes, slots)
        self.num_free += slots * len(nodes)

    def count_fitting(self, slots: int) -> Ints:
        """Return the number of pods with this many slots that fit on each node."""
        return self.free // slots

    def find_height(self, nodes: Ints) -> int:
        """Return the tier of the lowest domain around nodes; 0 for a single node.

        Returns the highest tier plus one if no domain has all nodes.
        """
        low, high = int(nodes.min()), int(nodes.max())
        if low == high:
            return 0
        for height, tier in enumerate(self.tiers, 1):
            domain = int(tier.domain_of[low])
            if domain >= 0 and high < tier.stops[domain]:
                return height
        return len(self.tiers) + 1

    def tier_name(self, height: int) -> str:
        """Return the name of a height."""
        if height == 0:
            return "node"
        return "cluster" if height > len(self.tiers) else self.tiers[height - 1].name

    def count_leaves(self, nodes: Ints) -> int:
        """Return the number of lowest-tier domains of nodes; a node without one counts as one."""
        domains = self.tiers[0].domain_of[nodes]
        return len(np.unique(domains[domains >= 0])) + len(np.unique(nodes[domains < 0]))


def sum_by_domain(tier: Tier, fits: Ints) -> Ints:
    """Return the number of pods that fit in each domain of a tier; O(nodes + domains)."""
    sums = np.concatenate(([0], np.cumsum(fits)))
    fits_by_domain: Ints = sums[tier.stops] - sums[tier.starts]
    return fits_by_domain


def _build_tier(tree: TopologyTree, number: int) -> Tier:
    domains = [domain for domain in tree.domains if domain.tier == number]
    domain_of = np.full(len(tree.nodes), -1, dtype=np.int64)
    for index, domain in enumerate(domains):
        domain_of[domain.start : domain.stop] = index
    return Tier(
        tree.tiers[number - 1],
        np.array([domain.start for domain in domains], dtype=np.int64),
        np.array([domain.stop for domain in domains], dtype=np.int64),
        domain_of,
    )
