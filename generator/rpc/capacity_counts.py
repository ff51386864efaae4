"""Counts the pods of one kind that fit, by node, domain and tier."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from generator.placement.cluster.gang_view import view_for
from generator.placement.cluster.levels import NODE_TIER, BoolArray, IntArray
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.groups import GangGroup


class PodCapacity(NamedTuple):
    """Number of pods that fit on each node, in the order of the snapshot's nodes."""

    snapshot: Snapshot
    usable: BoolArray
    """Nodes that take pods, and that no selector or taint excludes."""
    pods: IntArray
    """0 on all other nodes."""


class DomainPodCapacity(NamedTuple):
    """Free capacity of one domain."""

    name: str
    num_nodes: int
    num_usable: int
    pods: int


class TierPodCapacity(NamedTuple):
    """Free capacity of one tier."""

    name: str
    num_domains: int
    pods: int
    max_pods: int
    """Of the domain with most room: the largest gang that fits in one domain of the tier."""


def count_pod_capacity(snapshot: Snapshot, pod: GangGroup, *, priority: int) -> PodCapacity:
    """Return the capacity for pods like those of a group, which must request some resource.

    Cost: O(nodes × resources).
    """
    view = view_for(snapshot, "", priority)
    usable = np.logical_and.reduce(list(view.node_masks(pod).values()))
    slots = view.count_slots(view.pod_needs(dict(pod.request)), unbounded=0)
    return PodCapacity(view, usable, np.where(usable, slots, 0))


def count_domains(snapshot: Snapshot, height: int) -> int:
    """Return the number of domains of a tier; height 0 counts nodes."""
    return len(_find_domains(snapshot, height))


def count_domain_capacities(
    room: PodCapacity, height: int, *, start: int, max_count: int
) -> list[DomainPodCapacity]:
    """Return the capacity of some domains of a tier, in tree order; O(nodes) for the sums."""
    snapshot = room.snapshot
    levels = snapshot.levels
    which = _find_domains(snapshot, height)[start : start + max_count]
    if not len(which):
        return []
    starts, stops = levels.starts[height], levels.stops[height]
    usable = np.add.reduceat(room.usable.astype(np.int64), starts)[which]
    pods = np.add.reduceat(room.pods, starts)[which]
    sizes = stops[which] - starts[which]
    names = [_find_name(snapshot, height, index) for index in which.tolist()]
    return [
        DomainPodCapacity(*row)
        for row in zip(names, sizes.tolist(), usable.tolist(), pods.tolist(), strict=True)
    ]


def count_tier_capacities(room: PodCapacity) -> list[TierPodCapacity]:
    """Return the capacity of every tier, from nodes to the whole cluster."""
    levels = room.snapshot.levels
    capacities = []
    for height, name in enumerate(levels.tiers):
        starts, which = levels.starts[height], _find_domains(room.snapshot, height)
        pods = np.add.reduceat(room.pods, starts)[which] if len(which) else np.zeros(0, np.int64)
        capacities.append(
            TierPodCapacity(name, len(which), int(pods.sum()), int(pods.max(initial=0)))
        )
    return capacities


def find_height(snapshot: Snapshot, tier: str) -> int | None:
    """Return the height of a tier by name or number, None if the tree has no such tier."""
    tiers = snapshot.levels.tiers
    if tier in (NODE_TIER, tiers[-1]):
        return tiers.index(tier)
    return snapshot.tree.tier_of(tier)


def _find_domains(snapshot: Snapshot, height: int) -> IntArray:
    """Return the units of a tier that are domains, without nodes that are in no domain of it."""
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
