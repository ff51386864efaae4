"""The plain case straight from what was counted: equal pods in a node, a leaf, or whole nodes.

Most gangs are so, and for them the rules of `optimal` come down to a few comparisons: the lowest
tier with room, the fewest nodes, the least room in the domain and in those around it, the least
left on the nodes used, the first name. The whole engine compares the same, but states a problem,
cuts parts and measures first, which takes many times as long. What is not plain is left to it:
wherever this file answers, it answers as the whole engine does.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from generator.placement.cluster.levels import IntArray, TreeLevels
from generator.placement.cluster.pod_shapes import build_shapes
from generator.placement.cluster.shape import PodShape
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.cluster.subset_sum import choose_fewest_nodes, fill_in_order
from generator.placement.cluster.tiers import tier_index
from generator.placement.cluster.units import LEAF_TIER, UnitSlots
from generator.placement.presets import Preset
from generator.placement.request import GangGroup, PlacementRequest
from generator.placement.solve.homogeneous import cut_parts


def place_uniform_gang(snapshot: Snapshot, request: PlacementRequest) -> tuple[int, ...] | None:
    """Return the positions of all pods at their best, None where the whole engine must be asked.

    Args:
        snapshot: the cluster as the gang sees it.
        request: that names no tier which the tree lacks.

    Cost: O(kinds of leaves + nodes of a leaf + pods) on a kind of pods that was counted.
    """
    if not is_uniform_gang(snapshot, request):
        return None
    (group,) = request.groups
    ((shape,), _), levels = build_shapes(snapshot, request), snapshot.levels
    leaves = shape.unit_index(levels, LEAF_TIER)
    if leaves is None:
        return None
    node = leaves.tightest_child(group.count)
    if node is not None:
        return (node,) * group.count
    found = leaves.tightest_units(group.count)
    if not may_span(snapshot, request, LEAF_TIER if found else LEAF_TIER + 1):
        return None
    if found:
        pods = fill_tightest(found, group.count)
        return None if pods is None else nodes_in_index_order(levels, group, pods)
    return (
        _place_beyond_leaf(levels, shape, group.count)
        if leaves.is_uniform and not group.slices
        else None
    )


def _place_beyond_leaf(
    levels: TreeLevels, shape: PodShape, num_pods: int
) -> tuple[int, ...] | None:
    """Return the same for pods that fit no leaf, of which every node holds as many or none.

    So the fewest nodes are the same in every domain, and leave as much.
    """
    domains = shape.unit_index(levels, LEAF_TIER + 1) if levels.root > LEAF_TIER + 1 else None
    found = () if domains is None else domains.tightest_units(num_pods)
    pods = fill_tightest(found, num_pods)
    nodes = [_first_nodes(levels, shape, leaf, count) for leaf, count in (pods or {}).items()]
    return tuple(np.concatenate(nodes).tolist()) if nodes else None


def _first_nodes(levels: TreeLevels, shape: PodShape, leaf: int, num_pods: int) -> IntArray:
    """Return the node of each of so many pods in a leaf, of which every node holds as many."""
    nodes = levels.children(LEAF_TIER, leaf)
    slots = shape.slots[nodes.start : nodes.stop]
    return (nodes.start + slots.nonzero()[0]).repeat(shape.max_slots[0])[:num_pods]


def is_uniform_gang(snapshot: Snapshot, request: PlacementRequest) -> bool:
    """Return whether nothing but tiers binds the pods of one group, of which none runs yet."""
    if request.preset is not Preset.OPTIMAL or len(request.groups) > 1 or request.sets:
        return False
    is_bound = request.strategies or request.limits or request.sort or request.traffic
    return (
        not (is_bound or any(request.roles) or request.options.spares_islands)
        and snapshot.levels.root > LEAF_TIER
        and snapshot.num_nodes > 0
        and request.gang not in snapshot.running
        and _is_uniform_group(snapshot, request.groups[0])
    )


def _is_uniform_group(snapshot: Snapshot, group: GangGroup) -> bool:
    """Return whether pods are alike to all nodes, and slices, if any, only have to share a leaf."""
    if group.wishes or group.multiples or group.is_optional or group.count < 1:
        return False
    if not group.slices:
        return True
    layer = group.slices[-1]
    is_bound = layer.has_short or layer.is_spread or layer.is_indexed
    is_loose = layer.tier is None or tier_index(snapshot, layer.tier) < LEAF_TIER
    return len(group.slices) == 1 and not (is_bound or is_loose or layer.least)


def may_span(snapshot: Snapshot, request: PlacementRequest, tier: int) -> bool:
    """Return whether a plain gang may lie in a domain of a tier."""
    tiers = (request.required, request.groups[0].required)
    return all(tier_index(snapshot, bound) >= tier for bound in tiers if bound)


def fill_tightest(units: Iterable[UnitSlots], num_pods: int) -> dict[int, int] | None:
    """Return pods per child in the first unit where the fewest leave least; in tree order.

    None where the whole engine must be asked.

    Args:
        units: that hold so many pods.
        num_pods: of the gang.
    """
    best: dict[int, int] = {}
    left_in_best = -1
    for first, rooms, rows in units:
        chosen = choose_fewest_nodes(rooms, rows, num_pods, is_tight=True)
        if chosen is None:
            return None
        left = sum([rooms[at] for at in chosen]) - num_pods
        if not best or left < left_in_best:
            pods = fill_in_order(rooms, chosen, num_pods)
            best, left_in_best = {first + at: count for at, count in pods.items()}, left
        if not left:
            break
    return best


def nodes_in_index_order(
    levels: TreeLevels, group: GangGroup, pods: dict[int, int]
) -> tuple[int, ...]:
    """Return the nodes of pods in index order: slice by slice, these in tree order."""
    if not group.slices or len(pods) == 1:
        return tuple([at for at, count in pods.items() for _ in range(count)])
    parts = sorted(cut_parts(levels, pods, group.slices[-1].size))
    return tuple(at for part in parts for at in part)
