"""Counts the pods of one kind that fit, by node, domain and tier."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from generator.placement.cluster.gang_view import view_for
from generator.placement.cluster.levels import NODE_TIER, BoolArray, IntArray
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.groups import GangGroup
from generator.rpc.toponaut.v1 import placement_pb2 as pb


class PodCapacity(NamedTuple):
    """Number of pods that fit on each node, in the order of the snapshot's nodes."""

    snapshot: Snapshot
    usable: BoolArray
    """Nodes that take pods, and that no selector or taint excludes."""
    pods: IntArray
    """0 on all other nodes."""


def count_pod_capacity(snapshot: Snapshot, pod: GangGroup, *, priority: int) -> PodCapacity:
    """Return the capacity for pods like those of a group, which must request some resource.

    Cost: O(nodes × resources).
    """
    no_gang = ""
    seen = view_for(snapshot, no_gang, priority)
    usable = np.logical_and.reduce(list(seen.allowed_by_cause(pod).values()))
    slots = seen.count_slots(seen.pod_needs(dict(pod.request)), unbounded=0)
    return PodCapacity(seen, usable, np.where(usable, slots, 0))


def count_domains(snapshot: Snapshot, height: int) -> int:
    """Return the number of domains of a tier; height 0 counts nodes."""
    return len(_find_domains(snapshot, height))


def count_domain_capacities(
    room: PodCapacity, height: int, *, start: int, max_count: int
) -> list[pb.DomainCapacity]:
    """Return the capacity of one page of a tier's domains, in tree order. Cost: O(nodes)."""
    snapshot = room.snapshot
    levels = snapshot.levels
    units = _find_domains(snapshot, height)[start : start + max_count]
    if not len(units):
        return []
    starts, stops = levels.starts[height], levels.stops[height]
    usable = np.add.reduceat(room.usable.astype(np.int64), starts)[units]
    pods = np.add.reduceat(room.pods, starts)[units]
    sizes = stops[units] - starts[units]
    names = [_find_name(snapshot, height, unit) for unit in units.tolist()]
    return [
        pb.DomainCapacity(domain=name, nodes=size, usable_nodes=num_usable, pods=num_pods)
        for name, size, num_usable, num_pods in zip(
            names, sizes.tolist(), usable.tolist(), pods.tolist(), strict=True
        )
    ]


def count_tier_capacities(room: PodCapacity) -> list[pb.TierCapacity]:
    """Return the capacity of every tier, from nodes to the whole cluster."""
    levels = room.snapshot.levels
    capacities = []
    for height, name in enumerate(levels.tiers):
        starts, units = levels.starts[height], _find_domains(room.snapshot, height)
        pods = np.add.reduceat(room.pods, starts)[units] if len(units) else np.zeros(0, np.int64)
        capacities.append(
            pb.TierCapacity(
                tier=name,
                domains=len(units),
                pods=int(pods.sum()),
                most_pods=int(pods.max(initial=0)),
            )
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
