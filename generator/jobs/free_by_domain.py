"""Free capacity by domain: what a cluster counts, what of it is free, and how many pods fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np

from generator.jobs.cluster import Ints
from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import Snapshot

_SLOTS: Final = "slots"
GPU_RESOURCES: Final = frozenset({"nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915"})
"""Resources that count whole GPUs."""


class CountedResource(NamedTuple):
    """The resource by which free capacity is counted."""

    name: str
    per_node: int
    """How much most nodes have; 0 if no node has any."""


class DomainCapacity(NamedTuple):
    """What is free in one domain."""

    tier: str
    domain: str
    num_nodes: int
    free: int
    """Units of the resource."""
    free_nodes: int
    """Nodes on which all of it is free."""
    num_places: int
    """How many gangs of the asked size fit, one beside the other."""


def choose_resource(snapshot: Snapshot) -> CountedResource:
    """Return GPUs if there are any, else the device that most nodes have, else slots."""
    counts: dict[str, Counter[int]] = {}
    for spec in snapshot.specs[: snapshot.num_tree_nodes]:
        for name, quantity in spec.capacity.items():
            if "/" in name or name == _SLOTS:
                counts.setdefault(name, Counter())[quantity] += quantity > 0
    ranked = sorted(counts, key=lambda name: ("gpu" not in name, -counts[name].total(), name))
    if not ranked:
        return CountedResource(_SLOTS, 0)
    quantity = max(counts[ranked[0]], key=lambda value: (counts[ranked[0]][value], value))
    return CountedResource(ranked[0], int(quantity))


def count_gpus(specs: Iterable[NodeSpec]) -> dict[str, int] | None:
    """Return the GPUs of each node; None if no node lists any."""
    gpus = {
        spec.name: sum(num for name, num in spec.capacity.items() if name in GPU_RESOURCES)
        for spec in specs
    }
    return gpus if any(gpus.values()) else None


def list_free(snapshot: Snapshot, resource: str) -> Ints:
    """Return the free amount of the resource on each node of the tree; 0 where no pod may start."""
    num = snapshot.num_tree_nodes
    if resource not in snapshot.resources:
        return np.zeros(num, dtype=np.int64)
    free = np.maximum(snapshot.free[snapshot.resources.index(resource), :num], 0)
    return np.where(snapshot.schedulable[:num], free, 0).astype(np.int64)


def measure_domains(
    snapshot: Snapshot, resource: CountedResource, size: int
) -> Iterator[DomainCapacity]:
    """Yield the free capacity of each domain, in the order of the tree.

    Args:
        snapshot: the cluster; its free capacity excludes what runs.
        resource: the resource that is counted.
        size: units of one gang; a gang above a whole node takes whole nodes.
    """
    tree = snapshot.tree
    free = list_free(snapshot, resource.name)
    whole = free >= resource.per_node if resource.per_node else np.zeros(len(free), np.bool_)
    pods = free // min(size, resource.per_node) if resource.per_node else np.zeros_like(free)
    nodes_of_gang = -(-size // resource.per_node) if resource.per_node else 1
    for domain in tree.domains:
        rows = slice(domain.start, domain.stop)
        yield DomainCapacity(
            tier=tree.tiers[domain.tier - 1],
            domain=domain.name,
            num_nodes=domain.stop - domain.start,
            free=int(free[rows].sum()),
            free_nodes=int(whole[rows].sum()),
            num_places=int(pods[rows].sum()) // nodes_of_gang,
        )
