"""The plain case straight from what was counted: equal pods that fit one node, or one leaf.

Most gangs are so, and for them the rules of `optimal` come down to a few comparisons: the lowest
tier with room, the fewest nodes, the least room in the domain and in those around it, the least
left on the nodes used, the first name. The whole engine compares the same, but states a problem,
cuts parts and measures first, which takes many times as long. What is not plain is left to it:
wherever this file answers, it answers as the whole engine does.
"""

from __future__ import annotations

from collections.abc import Iterable

from generator.placement.capacity import Snapshot
from generator.placement.counting import cut_parts
from generator.placement.leaves import LEAF
from generator.placement.levels import Levels
from generator.placement.picking import MOST_SUMS, fewest_nodes, poured
from generator.placement.presets import Preset
from generator.placement.request import Group, PlacementRequest
from generator.placement.shapes import build_shapes
from generator.placement.tiers import height


def plain_pods(snapshot: Snapshot, request: PlacementRequest) -> tuple[int, ...] | None:
    """Return the positions of all pods at their best, None where the whole engine must be asked.

    Args:
        snapshot: the cluster as the gang sees it.
        request: that names no tier which the tree lacks.

    Cost: O(leaves + nodes of a leaf) on a kind of pods that was counted.
    """
    if not is_plain(snapshot, request):
        return None
    (group,) = request.groups
    ((shape,), _), levels = build_shapes(snapshot, request), snapshot.levels
    leaves = shape.leaves(levels)
    if leaves is None:
        return None
    node = leaves.node(group.count)
    if node is not None:
        return (node,) * group.count
    found = leaves.tightest(group.count)
    if not found or not may_span(snapshot, request):
        return None
    return in_parts(levels, group, least_left(found, group.count))


def is_plain(snapshot: Snapshot, request: PlacementRequest) -> bool:
    """Return whether nothing but tiers binds the pods of one group, of which none runs yet."""
    if request.preset is not Preset.OPTIMAL or len(request.groups) > 1 or request.sets:
        return False
    is_bound = request.strategies or request.limits or request.sort or request.traffic
    return (
        not (is_bound or any(request.roles) or request.options.spares_islands)
        and snapshot.levels.root > LEAF
        and snapshot.num_nodes > 0
        and request.gang not in snapshot.running
        and _is_plain_group(snapshot, request.groups[0])
    )


def _is_plain_group(snapshot: Snapshot, group: Group) -> bool:
    """Return whether pods are alike to all nodes, and slices, if any, only have to share a leaf."""
    if group.wishes or group.multiples or group.is_optional or not 0 < group.count <= MOST_SUMS:
        return False
    if not group.slices:
        return True
    layer = group.slices[-1]
    is_bound = layer.has_short or layer.is_spread or layer.is_indexed
    is_loose = layer.tier is None or height(snapshot, layer.tier) < LEAF
    return len(group.slices) == 1 and not (is_bound or is_loose or layer.least)


def may_span(snapshot: Snapshot, request: PlacementRequest) -> bool:
    """Return whether a plain gang may lie on several nodes."""
    tiers = (request.required, request.groups[0].required)
    return all(height(snapshot, tier) >= LEAF for tier in tiers if tier)


def least_left(leaves: Iterable[tuple[int, tuple[int, ...]]], num_pods: int) -> dict[int, int]:
    """Return pods per node in the first leaf where the fewest nodes leave least; in tree order.

    Args:
        leaves: per leaf its first node, and the pods that fit each of its nodes.
        num_pods: that each leaf holds.
    """
    best: dict[int, int] = {}
    left_in_best = -1
    tried = set[tuple[int, ...]]()
    for start, slots in leaves:
        if slots in tried:
            continue
        tried.add(slots)
        chosen = fewest_nodes(slots, num_pods, is_tight=True)
        left = sum(slots[at] for at in chosen) - num_pods
        if not best or left < left_in_best:
            pods = poured(slots, chosen, num_pods)
            best, left_in_best = {start + at: count for at, count in pods.items()}, left
        if not left:
            break
    return best


def in_parts(levels: Levels, group: Group, pods: dict[int, int]) -> tuple[int, ...]:
    """Return the nodes of pods in index order: slice by slice, these in tree order."""
    if not group.slices or len(pods) == 1:
        return tuple([at for at, count in pods.items() for _ in range(count)])
    parts = sorted(cut_parts(levels, pods, group.slices[-1].size))
    return tuple(at for part in parts for at in part)
