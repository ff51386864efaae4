"""How many pods of a kind fit, by node, domain and tier."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from generator.placement.cluster.levels import NODE_TIER, IntArray, BoolArray
from generator.placement.cluster.snapshot import Snapshot, view_for
from generator.placement.groups import GangGroup


class PodCapacity(NamedTuple):
    """Pods that fit on each node, nodes in the order of the snapshot."""

    snapshot: Snapshot
    usable: BoolArray
    """Nodes that are neither cordoned nor excluded by selector or taint."""
    pods: IntArray
    """0 on all others."""


class DomainPodCapacity(NamedTuple):
    """Room in one domain."""

    name: str
    num_nodes: int
    num_usable: int
    pods: int


class TierPodCapacity(NamedTuple):
    """Room at one tier."""

    name: str
    num_domains: int
    pods: int
    max_pods: int
    """In one domain: the largest gang that the tier holds."""


def count_pod_capacity(snapshot: Snapshot, pod: GangGroup, *, priority: int) -> PodCapacity:
    """Return the room for pods like those of a group, which must ask for something.

    Cost: O(nodes × resources).
    """
    seen = view_for(snapshot, "", priority)
    usable = seen.schedulable & seen.has_tolerated_taints(pod.tolerations)
    for label, values in pod.selector:
        usable &= seen.has_label(label, values)
    return PodCapacity(
        seen, usable, np.where(usable, seen.count_slots(dict(pod.request), unbounded=0), 0)
    )


def count_domains(snapshot: Snapshot, height: int) -> int:
    """Return the number of domains of a tier; height 0 are the nodes."""
    return len(_find_domains(snapshot, height))


def count_domain_capacities(
    room: PodCapacity, height: int, *, start: int, max_count: int
) -> list[DomainPodCapacity]:
    """Return the room in some domains of a tier, in tree order; O(nodes) for the sums."""
    snapshot = room.snapshot
    levels = snapshot.levels
    which = _find_domains(snapshot, height)[start : start + max_count]
    if not len(which):
        return []
    starts, stops = levels.starts[height], levels.stops[height]
    usable = np.add.reduceat(room.usable.astype(np.int64), starts)[which]
    pods = np.add.reduceat(room.pods, starts)[which]
    sizes = stops[which] - starts[which]
    names = [_find_name(snapshot, height, at) for at in which.tolist()]
    return [
        DomainPodCapacity(*row)
        for row in zip(names, sizes.tolist(), usable.tolist(), pods.tolist(), strict=True)
    ]


def count_tier_capacities(room: PodCapacity) -> list[TierPodCapacity]:
    """Return the room at every tier, from nodes to the whole cluster."""
    levels = room.snapshot.levels
    found = []
    for height, name in enumerate(levels.tiers):
        starts, which = levels.starts[height], _find_domains(room.snapshot, height)
        pods = np.add.reduceat(room.pods, starts)[which] if len(which) else np.zeros(0, np.int64)
        found.append(TierPodCapacity(name, len(which), int(pods.sum()), int(pods.max(initial=0))))
    return found


def find_height(snapshot: Snapshot, tier: str) -> int | None:
    """Return the height of a tier by name or number, None where there is none of it."""
    tiers = snapshot.levels.tiers
    if tier in (NODE_TIER, tiers[-1]):
        return tiers.index(tier)
    return snapshot.tree.tier_of(tier)


def _find_domains(snapshot: Snapshot, height: int) -> IntArray:
    """Return the units of a tier that are domains of it, not nodes that lack one."""
    levels = snapshot.levels
    if height in (0, levels.root):
        return np.arange(len(levels.starts[height]), dtype=np.int64)
    return np.flatnonzero(levels.domain_of_unit[height] >= 0)


def _find_name(snapshot: Snapshot, height: int, unit: int) -> str:
    levels = snapshot.levels
    if height == 0:
        return snapshot.specs[unit].name
    if height == levels.root:
        return levels.tiers[-1]
    return snapshot.tree.domains[int(levels.domain_of_unit[height][unit])].name
