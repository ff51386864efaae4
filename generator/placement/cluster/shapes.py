"""The shapes of the pods of a request: how many fit each node and each unit of every tier.

Groups whose pods look the same to a node share a shape: resources, selector, tolerations and
preferred labels. A group has its own shape if rules on its pods per domain, or its traffic, require
that it is counted separately.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from generator.placement.budget import Budget
from generator.placement.cluster.levels import BoolArray, IntArray, TreeLevels
from generator.placement.cluster.min_cover import MinCover
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.groups import GangGroup
from generator.placement.request import PlacementRequest


@dataclass(frozen=True, eq=False)
class PodShape:
    """Pods of one shape: their resources, and how many fit each node and unit."""

    request: Mapping[str, int]
    """The amounts that a pod takes of its node."""
    allowed: BoolArray
    """Per node: whether selector, taints, cordon and tree allow it."""
    slots_by_tier: tuple[IntArray, ...]
    """Per tier and unit: pods of this shape alone that fit its nodes; 0 if not allowed."""
    missing_labels: IntArray | None
    """Per node: preferred labels that it lacks; None if no label is preferred."""
    _min_covers: dict[tuple[int, int], MinCover] = field(default_factory=dict, repr=False)
    """By inner tier and wider tier; a cache."""

    @property
    def slots(self) -> IntArray:
        """Per node: pods of this shape that fit."""
        return self.slots_by_tier[0]

    @cached_property
    def max_slots(self) -> tuple[int, ...]:
        """Per tier: most pods that fit one unit."""
        return tuple(int(row.max(initial=0)) for row in self.slots_by_tier)

    @property
    def total_slots(self) -> int:
        """Pods that fit the cluster."""
        return int(self.slots_by_tier[-1].sum())

    def min_cover(self, levels: TreeLevels, inner: int, tier: int) -> MinCover:
        """Return the cover of units of a tier inside those of a wider tier; cached."""
        cached = self._min_covers.get((inner, tier))
        if cached is None:
            cached = MinCover.build(levels, inner, tier, self.slots_by_tier[inner])
            self._min_covers[inner, tier] = cached
        return cached


def sum_requests(shapes: Sequence[PodShape], counts: Sequence[int]) -> Counter[str]:
    """Return the amounts that these pods per shape request together."""
    total = Counter[str]()
    for shape, count in zip(shapes, counts, strict=True):
        for name, need in shape.request.items():
            total[name] += need * count
    return total


EXACT_FLOATS = 1 << 53
"""Below it, a sum of integers in 64-bit floats is exact."""


def build_shapes(
    snapshot: Snapshot, request: PlacementRequest, budget: Budget | None = None
) -> tuple[tuple[PodShape, ...], tuple[int, ...]]:
    """Return the distinct shapes in a fixed order, and the index of each group's shape.

    Cost: O(resources × nodes) per shape.

    Raises:
        BudgetExhausted: the budget ended.
    """
    own_shape_groups = _groups_with_own_shape(request, is_growth=request.gang in snapshot.running)
    keys = [
        _shape_key(group, own_shape=index if index in own_shape_groups else -1)
        for index, group in enumerate(request.groups)
    ]
    group_by_key = dict(zip(reversed(keys), reversed(request.groups), strict=True))
    distinct_keys = sorted(group_by_key)
    total_pods = sum(group.count for group in request.groups)
    shapes = []
    for key in distinct_keys:
        if budget is not None:
            budget.spend_on_arrays(snapshot.num_nodes)
        group = group_by_key[key]
        shapes.append(
            _build_shape(snapshot, group, total_pods=total_pods, uses_tiers=request.uses_tiers)
        )
    return tuple(shapes), tuple(distinct_keys.index(key) for key in keys)


def _groups_with_own_shape(request: PlacementRequest, *, is_growth: bool) -> frozenset[int]:
    """Return the groups whose pods must be counted separately from those of other groups."""
    paired_groups = {
        name for first, second, _ in _pair_weights(request) for name in (first, second)
    }
    has_exclusive = any(group.exclusive for group in request.groups) or any(
        group_set.exclusive for group_set in request.sets
    )
    return frozenset(
        index
        for index, group in enumerate(request.groups)
        if group.name in paired_groups
        or group.multiples
        or group.spread
        or has_exclusive
        or _has_unit_rules(group, is_growth=is_growth)
    )


def _has_unit_rules(group: GangGroup, *, is_growth: bool) -> bool:
    """Return whether slices bound the pods per unit, beyond what the tiers of parts require."""
    bound = [layer for layer in group.slices if layer.tier is not None]
    coarse = [layer for layer in group.slices[:-1] if layer.tier is not None]
    return bool(coarse) or any(layer.is_spread for layer in bound) or (is_growth and bool(bound))


def _pair_weights(request: PlacementRequest) -> tuple[tuple[str, str, int], ...]:
    """Return traffic and affinity as (group, group, weight); attraction is 1, repulsion -1."""
    rows = list(request.traffic)
    for weight, name_sets in ((1, request.roles.attract), (-1, request.roles.repel)):
        for names in name_sets:
            pairs = [(names[0], names[0])] if len(names) == 1 else _role_pairs(names)
            rows += [(first, second, weight) for first, second in pairs]
    return tuple(rows)


def traffic_pairs(
    request: PlacementRequest, shape_of: Sequence[int]
) -> tuple[tuple[int, int, int], ...]:
    """Return (shape, shape, weight) of groups that communicate with, or repel, each other."""
    shapes = {group.name: shape for group, shape in zip(request.groups, shape_of, strict=True)}
    rows = _pair_weights(request)
    return tuple((shapes[first], shapes[second], weight) for first, second, weight in rows)


def _role_pairs(names: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(first, second) for index, first in enumerate(names) for second in names[index + 1 :]]


def _shape_key(group: GangGroup, *, own_shape: int) -> tuple[object, ...]:
    tolerations = tuple(sorted(group.tolerations))
    tiers = tuple(sorted(_tiers_with_rules(group)))
    nodes = group.selector, group.affinity, tolerations, group.preferred_labels
    return (group.request, nodes, tiers, own_shape)


def _tiers_with_rules(group: GangGroup) -> set[str]:
    """Return the tiers that a node must have a domain of, because a rule counts pods in it."""
    tiers = {layer.tier for layer in group.slices if layer.tier is not None}
    return tiers | {tier for tier, _ in group.multiples} | {bound.tier for bound in group.spread}


def _build_shape(
    snapshot: Snapshot, group: GangGroup, *, total_pods: int, uses_tiers: bool
) -> PodShape:
    """Count the pods of a group; `total_pods` is the count if they request nothing."""
    allowed = np.logical_and.reduce(list(snapshot.allowed_by_cause(group).values()))
    if uses_tiers:
        allowed[snapshot.num_tree_nodes :] = False
    for tier in _tiers_with_rules(group):
        height = snapshot.levels.height_of(tier)
        if 0 < height < snapshot.levels.root:
            allowed &= (
                snapshot.levels.domain_of_unit[height][snapshot.levels.unit_of_node[height]] >= 0
            )
    request = snapshot.pod_needs(dict(group.request))
    misses: IntArray | None = None
    if group.preferred_labels:
        carried = [snapshot.has_label(key, (value,)) for key, value in group.preferred_labels]
        misses = np.full(snapshot.num_nodes, len(carried), dtype=np.int64) - np.sum(carried, axis=0)
    slots = snapshot.count_slots(request, unbounded=total_pods)
    slots_by_tier = snapshot.levels.sum_by_tier(np.where(allowed, slots, 0))
    return PodShape(request, allowed, tuple(slots_by_tier), misses)


def max_pods_in_one(
    snapshot: Snapshot, groups: Sequence[GangGroup], shapes: Sequence[PodShape], tier: int
) -> int:
    """Return an upper bound on the pods of all groups together in one domain of a tier.

    Two bounds apply. The first is the slots for a pod that takes, of every resource, the least that
    any group takes. The second follows from the sum of each resource, if the groups that take least
    of the resource are filled first. `shapes` has one entry per group.
    """
    unit_of, bounds = snapshot.levels.unit_of_node[tier], [sum(group.count for group in groups)]
    usable = np.logical_or.reduce([shape.allowed for shape in shapes])
    requests = [shape.request for shape in shapes]
    names = [name for name in snapshot.resources if any(row.get(name) for row in requests)]
    smallest = {name: min(row.get(name, 0) for row in requests) for name in names}
    if any(smallest.values()):
        slots = np.where(usable, snapshot.count_slots(smallest, unbounded=0), 0)
        bounds.append(int(np.bincount(unit_of, weights=slots).max(initial=0)))
    for name in names:
        free = np.maximum(snapshot.quantities(name, counts_free=True), 0)
        per_unit = np.bincount(unit_of, weights=np.where(usable, free, 0))
        quantity = float(per_unit.max(initial=0))
        # A larger sum may be rounded down: raise it a little, so that it stays an upper bound.
        quantity *= 1 if quantity < EXACT_FLOATS else 1 + 1e-9
        needs = [(row.get(name, 0), group) for row, group in zip(requests, groups, strict=True)]
        bounds.append(_pods_within(int(quantity), needs))
    return min(bounds)


def _pods_within(quantity: int, needs: Sequence[tuple[int, GangGroup]]) -> int:
    """Return the most pods that a quantity of a resource allows, given what a pod of each needs."""
    num_pods = 0
    for need, group in needs:
        if not group.is_optional:
            num_pods, quantity = num_pods + group.least, quantity - need * group.least
    for need, group in sorted(needs, key=lambda row: row[0]):
        num_more = group.count - (0 if group.is_optional else group.least)
        num_fitting = num_more if not need else min(num_more, max(quantity, 0) // need)
        num_pods, quantity = num_pods + num_fitting, quantity - need * num_fitting
    return num_pods if quantity >= 0 else 0
