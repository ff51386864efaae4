"""Pod shapes of a request: resources, selector, tolerations and preferred labels.

Groups whose pods look the same to a node share a shape. A group has its own shape if rules on its
pods per domain, or its traffic, require that it is counted separately.
"""

from __future__ import annotations

import numpy as np

from generator.placement.cluster.levels import IntArray
from generator.placement.cluster.shape import PodShape
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.cluster.tiers import tier_index
from generator.placement.groups import GangGroup
from generator.placement.request import PlacementRequest


def build_shapes(
    snapshot: Snapshot, request: PlacementRequest
) -> tuple[tuple[PodShape, ...], tuple[int, ...]]:
    """Return the distinct shapes in a fixed order, and the index of each group's shape.

    Cached shapes of the snapshot are reused. A shape from before some nodes changed is counted
    again on those nodes only. Cost: O(tiers × nodes) to copy, O(resources × nodes) for a new shape.
    """
    if len(request.groups) == 1:
        (group,) = request.groups
        key = _shape_key(group, own_shape=-1)
        return (_cached_shape(snapshot, group, key[:-1], (group.count, request.uses_tiers)),), (0,)
    own_shape_groups = _groups_with_own_shape(request, is_growth=request.gang in snapshot.running)
    keys = [
        _shape_key(group, own_shape=index if index in own_shape_groups else -1)
        for index, group in enumerate(request.groups)
    ]
    distinct_keys = sorted(set(keys))
    total_pods = sum(group.count for group in request.groups)
    shapes = tuple(
        _cached_shape(
            snapshot, request.groups[keys.index(key)], key[:-1], (total_pods, request.uses_tiers)
        )
        for key in distinct_keys
    )
    shape_index = {key: index for index, key in enumerate(distinct_keys)}
    return shapes, tuple(shape_index[key] for key in keys)


def _cached_shape(
    snapshot: Snapshot, group: GangGroup, key: tuple[object, ...], job: tuple[int, bool]
) -> PodShape:
    """Return the shape of a group by its key, the job's pods and the job's use of tiers."""
    total_pods, uses_tiers = job
    cache_key = (key, uses_tiers, None if any(need for _, need in group.request) else total_pods)
    cached = snapshot.slot_cache.get(cache_key)
    if cached is not None and not cached[1]:
        return cached[0]
    if cached is None:
        shape = _count_shape(snapshot, group, total_pods=total_pods, uses_tiers=uses_tiers)
    else:
        shape, nodes = cached[0], np.array(sorted(cached[1]))
        fits = np.where(
            shape.allowed[nodes],
            snapshot.count_slots(shape.request, unbounded=total_pods, nodes=nodes),
            0,
        )
        shape = shape.with_slots(snapshot.levels, nodes, fits)
    snapshot.slot_cache.store(cache_key, shape)
    return shape


def _groups_with_own_shape(request: PlacementRequest, *, is_growth: bool) -> frozenset[int]:
    """Return the groups whose pods must be counted separately from those of other groups."""
    paired_groups = {name for first, second, _ in pair_weights(request) for name in (first, second)}
    return frozenset(
        index
        for index, group in enumerate(request.groups)
        if group.name in paired_groups
        or group.multiples
        or _has_unit_rules(group, is_growth=is_growth)
    )


def _has_unit_rules(group: GangGroup, *, is_growth: bool) -> bool:
    """Return whether slices bound the pods per unit, beyond what the tiers of parts require."""
    bound = [layer for layer in group.slices if layer.tier is not None]
    coarse = [layer for layer in group.slices[:-1] if layer.tier is not None]
    return bool(coarse) or any(layer.is_spread for layer in bound) or (is_growth and bool(bound))


def pair_weights(request: PlacementRequest) -> tuple[tuple[str, str, int], ...]:
    """Return traffic and affinity as (group, group, weight); attraction is 1, repulsion -1."""
    rows = list(request.traffic)
    for weight, name_sets in ((1, request.roles.attract), (-1, request.roles.repel)):
        for names in name_sets:
            pairs = [(names[0], names[0])] if len(names) == 1 else _role_pairs(names)
            rows += [(first, second, weight) for first, second in pairs]
    return tuple(rows)


def _role_pairs(names: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(first, second) for index, first in enumerate(names) for second in names[index + 1 :]]


def _shape_key(group: GangGroup, *, own_shape: int) -> tuple[object, ...]:
    tiers = tuple(sorted({layer.tier for layer in group.slices if layer.tier is not None}))
    multiples = tuple(tier for tier, _ in group.multiples)
    tolerations = tuple(sorted(group.tolerations))
    return (group.request, group.selector, tolerations, group.wishes, tiers, multiples, own_shape)


def _count_shape(
    snapshot: Snapshot, group: GangGroup, *, total_pods: int, uses_tiers: bool
) -> PodShape:
    allowed = snapshot.schedulable & snapshot.has_tolerated_taints(group.tolerations)
    for key, values in group.selector:
        allowed &= snapshot.has_label(key, values)
    if uses_tiers:
        allowed[snapshot.num_tree_nodes :] = False
    bound = {layer.tier for layer in group.slices if layer.tier is not None}
    for tier in bound | {tier for tier, _ in group.multiples}:
        height = tier_index(snapshot, tier)
        if 0 < height < snapshot.levels.root:
            allowed &= (
                snapshot.levels.domain_of_unit[height][snapshot.levels.unit_of_node[height]] >= 0
            )
    slots = np.where(allowed, snapshot.count_slots(dict(group.request), unbounded=total_pods), 0)
    slots_by_tier = [slots]
    for first in snapshot.levels.first_child[1:]:
        slots_by_tier.append(
            np.add.reduceat(slots_by_tier[-1], first[:-1]) if len(slots) else slots
        )
    misses: IntArray | None = None
    if group.wishes:
        carried = [snapshot.has_label(key, (value,)) for key, value in group.wishes]
        misses = np.full(snapshot.num_nodes, len(carried), dtype=np.int64) - np.sum(carried, axis=0)
    return PodShape(dict(group.request), allowed, tuple(slots_by_tier), misses)
