"""Limits the pods of a group on each node by a resource of which each pod takes one.

All code that counts resources then respects the limit, and needs no other rule for it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from generator.placement.cluster.levels import IntArray
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.groups import GangGroup
from generator.placement.request import PlacementRequest

MAX_VIEWS = 16
"""How many limited snapshots a snapshot caches; a full cache is cleared, without a lock."""


def limit_nodes(snapshot: Snapshot, request: PlacementRequest) -> tuple[Snapshot, PlacementRequest]:
    """Return a snapshot and a request with a resource for each `max_per_node` of a group.

    At least one group has this limit. Cost: O(resources × nodes) for a new limit.
    """
    limits = {
        _resource_name(group): (index, group.max_per_node)
        for index, group in enumerate(request.groups)
        if group.max_per_node is not None
    }
    groups = tuple(
        group
        if group.max_per_node is None
        else replace(
            group,
            request=tuple(sorted((*group.request, (_resource_name(group), 1)))),
            max_per_node=None,
        )
        for group in request.groups
    )
    is_growth = request.gang in snapshot.running
    key = (request.gang if is_growth else None, tuple(sorted(limits.items())))
    limited = snapshot.views.get(key)
    if limited is None:
        if len(snapshot.views) >= MAX_VIEWS:
            snapshot.views.clear()
        rows = {
            name: most - _count_running(snapshot, request, index)
            for name, (index, most) in limits.items()
        }
        limited = snapshot.views[key] = _with_resources(snapshot, rows)
    return limited, replace(request, groups=groups)


def _resource_name(group: GangGroup) -> str:
    return f"pods of {group.name} on a node"


def _count_running(snapshot: Snapshot, request: PlacementRequest, index: int) -> IntArray:
    """Return per node how many pods of a group run."""
    counts = np.zeros(snapshot.num_nodes, dtype=np.int64)
    gang = snapshot.running.get(request.gang)
    for pods in gang.pods if gang is not None else ():
        is_of_group = len(request.groups) == 1 or pods.group == request.groups[index].name
        if is_of_group and pods.node in snapshot.position_of:
            counts[snapshot.position_of[pods.node]] += pods.count
    return counts


def _with_resources(snapshot: Snapshot, rows: dict[str, IntArray]) -> Snapshot:
    """Return the snapshot with more resources."""
    free = dict(zip(snapshot.resources, snapshot.free, strict=True)) | rows
    resources = tuple(sorted(free))
    stacked = np.stack([free[name] for name in resources])
    stacked.setflags(write=False)
    capacities = {**snapshot._capacities, **rows}  # noqa: SLF001
    return replace(
        snapshot, resources=resources, free=stacked, _capacities=capacities, shape_cache={}
    )
