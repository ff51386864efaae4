"""The cluster as one gang sees it.

It lacks the nominated capacity and the exclusive domains of others. Each limit on the pods of a
group on a node is a resource of which each pod takes one, so that all code that counts resources
respects it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from generator.placement.cluster.levels import BoolArray, IntArray, UnknownTierError
from generator.placement.cluster.nodes import RunningGang
from generator.placement.cluster.snapshot import Snapshot, free_after
from generator.placement.groups import GangGroup
from generator.placement.request import PlacementRequest

MAX_VIEWS = 16
"""Views that a snapshot caches; the cache is then cleared, which needs no lock."""
_HOST_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})
"""Resources that system pods use on every node, in addition to huge pages."""


def view_for(
    snapshot: Snapshot, gang: str, priority: int, *, exclusive: str | None = None
) -> Snapshot:
    """Return the snapshot that a gang sees: without the capacity nominated for other gangs.

    Nominations of lower priority, and the gang's own, do not count. Nodes in exclusive domains of
    other gangs are closed, and so are the domains that others use if the gang wants its own to be
    exclusive. Without any of these it is the snapshot itself.

    Args:
        snapshot: the cluster.
        gang: name of the gang.
        priority: its priority.
        exclusive: the tier at which the gang shares its domains with no other gang.
    """
    binding_nominations = _binding_nominations(snapshot, gang, priority)
    own = gang if gang in snapshot.running else None
    is_closed = (
        exclusive is not None
        or not snapshot.exclusive_gangs <= {gang}
        or any(nomination.exclusive for nomination in binding_nominations.values())
    )
    if not binding_nominations and not is_closed:
        return snapshot
    key = tuple(binding_nominations), (own, exclusive) if is_closed else None
    view = snapshot.views.get(key)
    if view is None:
        if len(snapshot.views) >= MAX_VIEWS:
            snapshot.views.clear()
        view = snapshot
        if binding_nominations:
            view = _with_nominations_running(snapshot, binding_nominations.values())
        if is_closed:
            closed = _find_closed_nodes(view, gang, priority, exclusive=exclusive)
            view = replace(view, closed=closed)
        snapshot.views[key] = view
    return view


def _with_nominations_running(snapshot: Snapshot, gangs: Iterable[RunningGang]) -> Snapshot:
    """Return the snapshot as if nominated gangs ran."""
    return replace(snapshot, free=free_after(snapshot, gangs, sign=-1))


def reopen_view(view: Snapshot, gang: str, priority: int) -> Snapshot:
    """Return the view of a gang that can share domains with other gangs."""
    closed = _find_closed_nodes(view, gang, priority, exclusive=None)
    return replace(view, closed=closed)


def _binding_nominations(snapshot: Snapshot, gang: str, priority: int) -> dict[str, RunningGang]:
    """Return the nominations whose capacity a gang may not use."""
    return {
        name: nomination
        for name, nomination in snapshot.nominated.items()
        if nomination.gang != gang and nomination.priority >= priority
    }


def _find_closed_nodes(
    snapshot: Snapshot, gang: str, priority: int, *, exclusive: str | None
) -> BoolArray:
    """Return which nodes a gang may not use because a domain is exclusive.

    Args:
        snapshot: the cluster, without the capacity that is nominated for others.
        gang: name of the gang.
        priority: its priority.
        exclusive: the tier at which the gang shares its domains with no other gang; a node without
            a domain of this tier is a domain by itself.

    Cost: O(resources × nodes + pods of other gangs).
    """
    closed = np.zeros(snapshot.num_nodes, dtype=np.bool_)
    used = np.zeros(snapshot.num_nodes, dtype=np.bool_)
    others = [row for name, row in snapshot.running.items() if name != gang]
    for other in (*others, *_binding_nominations(snapshot, gang, priority).values()):
        nodes = _positions(snapshot, other)
        used[nodes] = True
        if other.exclusive is not None:
            closed |= _nodes_sharing_domain(snapshot, nodes, other.exclusive)
    if exclusive is None:
        return closed
    used |= _has_used_devices(snapshot, snapshot.running.get(gang))
    return closed | _nodes_sharing_domain(snapshot, np.flatnonzero(used).tolist(), exclusive)


def _positions(snapshot: Snapshot, gang: RunningGang) -> list[int]:
    nodes = (snapshot.position_of.get(pods.node) for pods in gang.pods)
    return [node for node in nodes if node is not None]


def _nodes_sharing_domain(snapshot: Snapshot, nodes: list[int], tier: str) -> BoolArray:
    """Return which nodes share a domain of a tier with the given nodes.

    If the tree no longer has the tier, only the given nodes.
    """
    try:
        unit_of = snapshot.levels.unit_of_node[snapshot.levels.height_of(tier)]
    except UnknownTierError:
        unit_of = snapshot.levels.unit_of_node[0]
    is_used = np.zeros(int(unit_of.max(initial=-1)) + 1, dtype=np.bool_)
    is_used[unit_of[nodes]] = True
    return np.asarray(is_used[unit_of])


def _has_used_devices(snapshot: Snapshot, own: RunningGang | None) -> BoolArray:
    """Return which nodes have slots or devices that other pods use."""
    used = np.zeros(snapshot.num_nodes, dtype=np.bool_)
    for row, name in enumerate(snapshot.resources):
        if name in _HOST_RESOURCES or name.startswith("hugepages-"):
            continue
        in_use = snapshot.quantities(name, counts_free=False) - snapshot.free[row]
        for pods in own.pods if own else ():
            if pods.node in snapshot.position_of:
                own_use = pods.request.get(name, 0) * pods.count
                in_use[snapshot.position_of[pods.node]] -= own_use
        used |= in_use > 0
    return used


def limit_nodes(snapshot: Snapshot, request: PlacementRequest) -> tuple[Snapshot, PlacementRequest]:
    """Return a snapshot and a request with a resource for each `max_per_node` of a group.

    At least one group has this limit. Cost: O(resources × nodes).
    """
    groups, free_by_name = [], {}
    for index, group in enumerate(request.groups):
        if group.max_per_node is None:
            groups.append(group)
            continue
        name = _resource_name(group)
        needs = tuple(sorted((*group.request, (name, 1))))
        groups.append(replace(group, request=needs, max_per_node=None))
        free_by_name[name] = group.max_per_node - _count_running(snapshot, request, index)
    return _with_resources(snapshot, free_by_name), replace(request, groups=tuple(groups))


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
    return replace(snapshot, resources=resources, free=stacked, _capacities=capacities)
