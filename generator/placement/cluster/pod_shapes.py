"""What a node sees of the pods of a request: request, selector, tolerations, wishes.

Groups whose pods look alike share a shape. A group that is counted by itself, because of rules on
its pods per domain or of its traffic, has a shape of its own.
"""

from __future__ import annotations

import numpy as np

from generator.placement.cluster.levels import Ints
from generator.placement.cluster.shape import Shape
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.cluster.tiers import height
from generator.placement.groups import Group
from generator.placement.request import PlacementRequest


def build_shapes(
    snapshot: Snapshot, request: PlacementRequest
) -> tuple[tuple[Shape, ...], tuple[int, ...]]:
    """Return the distinct shapes in fixed order, and the index of each group's shape.

    Shapes that the snapshot knows are taken, those that it knew before some nodes changed are
    counted there. Cost: O(tiers × nodes) to copy, O(resources × nodes) for what is new.
    """
    if len(request.groups) == 1:
        (group,) = request.groups
        key = _key(group, apart=-1)
        return (_known_shape(snapshot, group, key[:-1], (group.count, request.uses_tiers)),), (0,)
    apart = _counted_apart(request, grows=request.gang in snapshot.running)
    keys = [_key(group, apart=at if at in apart else -1) for at, group in enumerate(request.groups)]
    names = sorted(set(keys))
    most = sum(group.count for group in request.groups)
    shapes = tuple(
        _known_shape(
            snapshot, request.groups[keys.index(name)], name[:-1], (most, request.uses_tiers)
        )
        for name in names
    )
    index = {name: at for at, name in enumerate(names)}
    return shapes, tuple(index[key] for key in keys)


def _known_shape(
    snapshot: Snapshot, group: Group, key: tuple[object, ...], job: tuple[int, bool]
) -> Shape:
    """Return the shape of a group: all of its key, and pods and use of tiers of the job, decide."""
    most, uses = job
    kind = (key, uses, None if any(need for _, need in group.request) else most)
    known = snapshot.counted.get(kind)
    if known is not None and not known[1]:
        return known[0]
    if known is None:
        shape = _shape(snapshot, group, most=most, uses=uses)
    else:
        shape, at = known[0], np.array(sorted(known[1]))
        fits = np.where(shape.allowed[at], snapshot.slots(shape.request, most=most, at=at), 0)
        shape = shape.changed(snapshot.levels, at, fits)
    snapshot.counted.keep(kind, shape)
    return shape


def _counted_apart(request: PlacementRequest, *, grows: bool) -> frozenset[int]:
    """Return the groups whose pods must be told apart from those of others."""
    named = {name for first, second, _ in pair_weights(request) for name in (first, second)}
    return frozenset(
        at
        for at, group in enumerate(request.groups)
        if group.name in named or group.multiples or _has_unit_rules(group, grows=grows)
    )


def _has_unit_rules(group: Group, *, grows: bool) -> bool:
    """Return whether slices bind the pods per unit, beyond what the tiers of parts say."""
    bound = [layer for layer in group.slices if layer.tier is not None]
    coarse = [layer for layer in group.slices[:-1] if layer.tier is not None]
    return bool(coarse) or any(layer.is_spread for layer in bound) or (grows and bool(bound))


def pair_weights(request: PlacementRequest) -> tuple[tuple[str, str, int], ...]:
    """Return traffic and affinity as (group, group, weight): attraction is 1, repulsion -1."""
    rows = list(request.traffic)
    for weight, name_sets in ((1, request.roles.attract), (-1, request.roles.repel)):
        for names in name_sets:
            pairs = [(names[0], names[0])] if len(names) == 1 else _pairs(names)
            rows += [(first, second, weight) for first, second in pairs]
    return tuple(rows)


def _pairs(names: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(first, second) for at, first in enumerate(names) for second in names[at + 1 :]]


def _key(group: Group, *, apart: int) -> tuple[object, ...]:
    tiers = tuple(sorted({layer.tier for layer in group.slices if layer.tier is not None}))
    multiples = tuple(tier for tier, _ in group.multiples)
    tolerations = tuple(sorted(group.tolerations))
    return (group.request, group.selector, tolerations, group.wishes, tiers, multiples, apart)


def _shape(snapshot: Snapshot, group: Group, *, most: int, uses: bool) -> Shape:
    allowed = snapshot.schedulable & snapshot.tolerated(group.tolerations)
    for key, values in group.selector:
        allowed &= snapshot.labelled(key, values)
    if uses:
        allowed[snapshot.num_in_tree :] = False
    bound = {layer.tier for layer in group.slices if layer.tier is not None}
    for tier in bound | {tier for tier, _ in group.multiples}:
        at = height(snapshot, tier)
        if 0 < at < snapshot.levels.root:
            allowed &= snapshot.levels.domain[at][snapshot.levels.unit[at]] >= 0
    slots = np.where(allowed, snapshot.slots(dict(group.request), most=most), 0)
    rooms = [slots]
    for first in snapshot.levels.first_child[1:]:
        rooms.append(np.add.reduceat(rooms[-1], first[:-1]) if len(slots) else slots)
    misses: Ints | None = None
    if group.wishes:
        kept = [snapshot.labelled(key, (value,)) for key, value in group.wishes]
        misses = np.full(snapshot.num_nodes, len(kept), dtype=np.int64) - np.sum(kept, axis=0)
    return Shape(dict(group.request), allowed, tuple(rooms), misses)
