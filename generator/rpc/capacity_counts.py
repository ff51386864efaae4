"""How many pods of a kind fit, by node, domain and tier."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from generator.placement.cluster.levels import NODE, Ints, Mask
from generator.placement.cluster.snapshot import Snapshot, seen_by
from generator.placement.groups import Group


class Room(NamedTuple):
    """Pods that fit on each node, nodes in the order of the snapshot."""

    snapshot: Snapshot
    usable: Mask
    """Nodes that are neither cordoned nor excluded by selector or taint."""
    pods: Ints
    """0 on all others."""


class Unit(NamedTuple):
    """Room in one domain."""

    name: str
    num_nodes: int
    num_usable: int
    pods: int


class TierRoom(NamedTuple):
    """Room at one tier."""

    name: str
    num_units: int
    pods: int
    most: int
    """In one domain: the largest gang that the tier holds."""


def room_for(snapshot: Snapshot, pod: Group, *, priority: int) -> Room:
    """Return the room for pods like those of a group, which must ask for something.

    Cost: O(nodes × resources).
    """
    seen = seen_by(snapshot, "", priority)
    usable = seen.schedulable & seen.tolerated(pod.tolerations)
    for label, values in pod.selector:
        usable &= seen.labelled(label, values)
    return Room(seen, usable, np.where(usable, seen.slots(dict(pod.request), most=0), 0))


def num_units(snapshot: Snapshot, height: int) -> int:
    """Return the number of domains of a tier; height 0 are the nodes."""
    return len(_domains(snapshot, height))


def units_at(room: Room, height: int, *, start: int, most: int) -> list[Unit]:
    """Return the room in some domains of a tier, in tree order; O(nodes) for the sums."""
    snapshot = room.snapshot
    levels = snapshot.levels
    which = _domains(snapshot, height)[start : start + most]
    if not len(which):
        return []
    starts, stops = levels.starts[height], levels.stops[height]
    usable = np.add.reduceat(room.usable.astype(np.int64), starts)[which]
    pods = np.add.reduceat(room.pods, starts)[which]
    sizes = stops[which] - starts[which]
    names = [_name(snapshot, height, at) for at in which.tolist()]
    return [
        Unit(*row)
        for row in zip(names, sizes.tolist(), usable.tolist(), pods.tolist(), strict=True)
    ]


def tiers_of(room: Room) -> list[TierRoom]:
    """Return the room at every tier, from nodes to the whole cluster."""
    levels = room.snapshot.levels
    found = []
    for height, name in enumerate(levels.tiers):
        starts, which = levels.starts[height], _domains(room.snapshot, height)
        pods = np.add.reduceat(room.pods, starts)[which] if len(which) else np.zeros(0, np.int64)
        found.append(TierRoom(name, len(which), int(pods.sum()), int(pods.max(initial=0))))
    return found


def height_of(snapshot: Snapshot, tier: str) -> int | None:
    """Return the height of a tier by name or number, None where there is none of it."""
    tiers = snapshot.levels.tiers
    if tier in (NODE, tiers[-1]):
        return tiers.index(tier)
    return snapshot.tree.tier_of(tier)


def _domains(snapshot: Snapshot, height: int) -> Ints:
    """Return the units of a tier that are domains of it, not nodes that lack one."""
    levels = snapshot.levels
    if height in (0, levels.root):
        return np.arange(len(levels.starts[height]), dtype=np.int64)
    return np.flatnonzero(levels.domain[height] >= 0)


def _name(snapshot: Snapshot, height: int, unit: int) -> str:
    levels = snapshot.levels
    if height == 0:
        return snapshot.specs[unit].name
    if height == levels.root:
        return levels.tiers[-1]
    return snapshot.tree.domains[int(levels.domain[height][unit])].name
