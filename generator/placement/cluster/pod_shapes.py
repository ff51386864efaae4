"""What a node sees of the pods of a request: request, selector, tolerations, wishes.

Groups whose pods look alike share a shape. A group that is counted by itself, because of rules on
its pods per domain or of its traffic, has a shape of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from generator.placement.cluster.levels import Levels
from generator.placement.cluster.min_cover import Covering, make_covering
from generator.placement.cluster.snapshot import Ints, Mask, Snapshot
from generator.placement.cluster.tiers import height
from generator.placement.cluster.units import Units
from generator.placement.groups import Group
from generator.placement.request import PlacementRequest


@dataclass(frozen=True, eq=False)
class Shape:
    """What a node sees of a pod, and every domain with it."""

    request: Mapping[str, int]
    allowed: Mask
    """Per node: whether selector, taints, cordon and tree admit it."""
    rooms: tuple[Ints, ...]
    """Per tier and unit: pods of this shape that fit, each alone on its node; 0 if not allowed."""
    misses: Ints | None
    """Per node: wished labels that it lacks; None where nothing is wished."""
    _coverings: dict[tuple[int, int], Covering] = field(default_factory=dict, repr=False)
    """By tier and wider tier; a memo."""
    _units: dict[int, Units] = field(default_factory=dict, repr=False)
    """By tier; a memo."""

    @property
    def slots(self) -> Ints:
        """Per node: pods of this shape that fit."""
        return self.rooms[0]

    @cached_property
    def most(self) -> tuple[int, ...]:
        """Per tier: most pods that fit one unit."""
        return tuple(int(row.max(initial=0)) for row in self.rooms)

    @property
    def total(self) -> int:
        """Pods that fit the cluster."""
        return int(self.rooms[-1].sum())

    def covering(self, levels: Levels, inner: int, tier: int) -> Covering:
        """Return how few units of a tier inside those of a wider one hold so many pods."""
        known = self._coverings.get((inner, tier))
        if known is None:
            known = make_covering(levels, inner, tier, self.rooms[inner])
            self._coverings[inner, tier] = known
        return known

    def units(self, levels: Levels, tier: int) -> Units | None:
        """Return the units of a tier by what they hold; None where they are not looked at so."""
        known = self._units.get(tier) or Units.of(levels, self.rooms, tier)
        if known is not None:
            self._units[tier] = known
        return known

    def changed(self, levels: Levels, at: Ints, fits: Ints) -> Shape:
        """Return the shape once so many pods fit some nodes, named in order.

        Cost: O(tiers × nodes) to copy.
        """
        change = fits - self.slots[at]
        slots = self.slots.copy()
        slots[at] = fits
        rooms = [slots]
        for row, unit_of in zip(self.rooms[1:], levels.unit[1:], strict=True):
            changed = row.copy()
            np.add.at(changed, unit_of[at], change)
            rooms.append(changed)
        coverings: dict[tuple[int, int], Covering] = {}
        for (inner, tier), known in self._coverings.copy().items():
            touched = np.unique(levels.unit[inner][at]) if inner else at
            covering = known.changed(self.rooms[inner], rooms[inner], touched)
            if covering is not None:
                coverings[inner, tier] = covering
        units = {
            tier: again
            for tier, row in self._units.copy().items()
            if (again := row.changed(rooms, at)) is not None
        }
        return Shape(self.request, self.allowed, tuple(rooms), self.misses, coverings, units)


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
