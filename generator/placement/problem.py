"""A request met with a snapshot: tiers as heights, groups as parts, own running pods as anchors.

A *part* is what the objective gives a tier to: a group, or one slice of its last layer. A *shape*
is what a node sees of a pod: request, selector, tolerations. Parts of one type are
interchangeable, so the engine counts them instead of naming them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from generator.placement.capacity import Ints, Mask, Snapshot
from generator.placement.levels import CLUSTER, NODE
from generator.placement.request import Group, PlacementRequest, UnsupportedRequest


class UnknownTier(LookupError):  # noqa: N818 - reads as what it is; caught where it is answered
    """A tier that the tree lacks."""


@dataclass(frozen=True, eq=False)
class Shape:
    """What a node sees of a pod."""

    request: Mapping[str, int]
    allowed: Mask
    """Per node: whether selector, taints, cordon and tree admit it."""
    slots: Ints
    """Per node: pods of this shape that fit alone; 0 where not allowed."""


class PartType(NamedTuple):
    """Parts that cannot be told apart."""

    shape: int
    size: int
    cap: int
    """Highest tier at which such a part may lie."""
    anchors: tuple[int, int] | None
    """First and last position of the running pods that belong to it."""
    preferred: tuple[int, ...]
    """Tiers wished for it."""
    floor: int
    """Lowest tier that counts for it in the histogram."""
    owner: int
    """Index of the group where parts of several are told apart, else -1."""


class UnitRule(NamedTuple):
    """What the pods in one unit of a tier, running ones included, must keep (one group only)."""

    tier: int
    multiple: int
    most: int | None


@dataclass(frozen=True, eq=False)
class Problem:
    """A request with all that the engine needs of the snapshot."""

    snapshot: Snapshot
    request: PlacementRequest
    shapes: tuple[Shape, ...]
    shape_of: tuple[int, ...]
    """Per group."""
    largest: int
    """The shape of which the cluster holds the fewest: what surplus is counted in."""
    job_cap: int
    """Highest tier of the job."""
    preferred: tuple[int, ...]
    """Tiers wished for the whole job."""
    own: tuple[int, ...]
    """Positions of the gang's running pods, one entry per pod, sorted."""
    own_of: tuple[tuple[int, ...], ...]
    """The same per group."""
    rules: tuple[UnitRule, ...]
    limits: tuple[tuple[int, int], ...]
    """(tier, most units used)."""
    strategies: tuple[tuple[int, int], ...]
    """(highest tier of the job, of every part), in order; one entry where none is listed."""
    is_growth: bool
    """Whether the gang runs already, so that new pods may complete slices that run."""

    @property
    def root(self) -> int:
        """Height of `cluster`."""
        return self.snapshot.levels.root

    def part_sizes(self, group: int, count: int) -> tuple[int, ...]:
        """Return how many pods each part of a group has when `count` of it are placed."""
        layers = self.request.groups[group].slices
        size = layers[-1].size if layers else count
        whole, short = divmod(count, size) if count else (0, 0)
        return (size,) * whole + ((short,) if short else ())

    def part_types(self, counts: tuple[int, ...], part_cap: int) -> list[tuple[PartType, int]]:
        """Return (type, group) of every part when so many pods of each group are placed."""
        return [
            (self._part_type(group, size, part_cap), group)
            for group, count in enumerate(counts)
            for size in self.part_sizes(group, count)
        ]

    def _part_type(self, index: int, size: int, part_cap: int) -> PartType:
        group = self.request.groups[index]
        own = () if group.slices else self.own_of[index]
        return PartType(
            shape=self.shape_of[index],
            size=size,
            cap=min(part_cap, self._slice_cap(group, size), self._group_cap(group)),
            anchors=(min(own), max(own)) if own else None,
            preferred=self.wishes(index),
            floor=self.floor(index),
            owner=index if own else -1,
        )

    def _group_cap(self, group: Group) -> int:
        return height(self.snapshot, group.required) if group.required else self.root

    def _slice_cap(self, group: Group, size: int) -> int:
        """Return the tier that a slice must not leave.

        Beside running pods a slice of new ones may complete one that runs: then the rule on
        units says it all. So it does for the pods of a short slice, unless slices are indexed.
        """
        if not group.slices or group.slices[-1].tier is None or self.own:
            return self.root
        layer = group.slices[-1]
        is_free = size < layer.size and not layer.is_indexed
        return self.root if is_free else height(self.snapshot, layer.tier)

    def floor(self, group: int) -> int:
        """Return the tier that the slices of a group must keep, 0 without one.

        A slice that keeps it has what it asked for: closer together is worth no further domain.
        """
        layers = self.request.groups[group].slices
        return height(self.snapshot, layers[-1].tier) if layers and layers[-1].tier else 0

    def wishes(self, group: int) -> tuple[int, ...]:
        """Return the tiers preferred by one of several groups; an only group's are the job's."""
        if len(self.request.groups) == 1:
            return ()
        return tuple(height(self.snapshot, tier) for tier in self.request.groups[group].preferred)


def height(snapshot: Snapshot, tier: str | None) -> int:
    """Return the height of a tier by name, or by its integer in text form.

    Raises:
        UnknownTier: the tree has no such tier.
    """
    if tier == NODE:
        return 0
    if tier == CLUSTER:
        return snapshot.levels.root
    found = None if tier is None else snapshot.tree.tier_of(tier)
    if found is None:
        raise UnknownTier(tier)
    return found


def build_problem(snapshot: Snapshot, request: PlacementRequest) -> Problem:
    """Meet a request with a snapshot; O(shapes × resources × nodes).

    Raises:
        UnknownTier: the request names a tier that the tree lacks.
        UnsupportedRequest: it wants what is not done yet beside running pods of its own.
    """
    own, own_of = _own_positions(snapshot, request)
    _check_own(request, own_of)
    keys = [_shape_key(group) for group in request.groups]
    names = sorted(set(keys))
    most = sum(group.count for group in request.groups)
    shapes = tuple(
        _shape(snapshot, request, request.groups[keys.index(name)], most=most) for name in names
    )
    fewest = [int(shape.slots.sum()) for shape in shapes]
    return Problem(
        snapshot=snapshot,
        request=request,
        shapes=shapes,
        shape_of=tuple(names.index(key) for key in keys),
        largest=fewest.index(min(fewest)),
        job_cap=_job_cap(snapshot, request),
        preferred=_job_preferred(snapshot, request),
        own=own,
        own_of=own_of,
        rules=_unit_rules(snapshot, request, has_own=bool(own)),
        limits=tuple((height(snapshot, tier), most) for tier, most in request.limits),
        strategies=_strategies(snapshot, request),
        is_growth=bool(own),
    )


def without_anchors(problem: Problem) -> Problem:
    """Return the problem as if nothing of the gang ran and slices began with the new pods."""
    return replace(problem, own=(), own_of=((),) * len(problem.own_of), rules=())


def uses_tiers(request: PlacementRequest) -> bool:
    """Return whether a request speaks of tiers, so that nodes outside the tree are of no use."""
    of_groups = any(
        group.required or group.slices or group.preferred or group.multiples
        for group in request.groups
    )
    return of_groups or bool(
        request.required or request.preferred or request.strategies or request.limits
    )


def named_tiers(request: PlacementRequest) -> list[str]:
    """Return all tiers that a request names, in the order of its fields."""
    found = [*filter(None, [request.required]), *request.preferred]
    found += [tier for pair in request.strategies for tier in pair]
    found += [tier for tier, _ in request.limits]
    for group in request.groups:
        found += [*filter(None, [group.required]), *group.preferred]
        found += [layer.tier for layer in group.slices if layer.tier is not None]
        found += [tier for tier, _ in group.multiples]
    return found


def _shape_key(group: Group) -> tuple[object, ...]:
    tiers = tuple(sorted({layer.tier for layer in group.slices if layer.tier is not None}))
    multiples = tuple(tier for tier, _ in group.multiples)
    return (group.request, group.selector, tuple(sorted(group.tolerations)), tiers, multiples)


def _shape(snapshot: Snapshot, request: PlacementRequest, group: Group, *, most: int) -> Shape:
    allowed = snapshot.schedulable & snapshot.tolerated(group.tolerations)
    for key, values in group.selector:
        allowed &= snapshot.labelled(key, values)
    if uses_tiers(request):
        allowed[snapshot.num_in_tree :] = False
    bound = {layer.tier for layer in group.slices if layer.tier is not None}
    for tier in bound | {tier for tier, _ in group.multiples}:
        at = height(snapshot, tier)
        if 0 < at < snapshot.levels.root:
            allowed &= snapshot.levels.domain[at][snapshot.levels.unit[at]] >= 0
    slots = np.where(allowed, snapshot.slots(dict(group.request), most=most), 0)
    return Shape(dict(group.request), allowed, slots)


def _own_positions(
    snapshot: Snapshot, request: PlacementRequest
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Return where pods of the gang run: all of them, and those of each group."""
    gang = snapshot.running.get(request.gang)
    rows = [
        (snapshot.position[pods.node], pods.group)
        for pods in (gang.pods if gang else ())
        if pods.node in snapshot.position
        for _ in range(pods.count)
    ]
    own = tuple(sorted(at for at, _ in rows))
    if len(request.groups) == 1:
        return own, (own,)
    of_groups = (
        tuple(sorted(at for at, name in rows if name == group.name)) for group in request.groups
    )
    return own, tuple(of_groups)


def _check_own(request: PlacementRequest, own_of: tuple[tuple[int, ...], ...]) -> None:
    """Refuse slices that running pods would have to be counted into one by one."""
    for index, (group, own) in enumerate(zip(request.groups, own_of, strict=True)):
        bound = [layer for layer in group.slices if layer.tier is not None]
        is_hard = len(request.groups) > 1 or any(
            layer.has_short or layer.is_indexed for layer in bound
        )
        if own and bound and is_hard:
            path = f"groups[{index}].slices"
            raise UnsupportedRequest(path, "are not supported yet beside running pods of the group")


def _job_cap(snapshot: Snapshot, request: PlacementRequest) -> int:
    """Return the highest tier of the job that its required tiers and islands allow.

    Trees of a forest have nothing in common but the name `cluster`: only a request that says
    so is placed across them (docs/adr).
    """
    root = snapshot.levels.root
    named = {request.required, *(job for job, _ in request.strategies)}
    caps = [root if request.across_islands or CLUSTER in named else max(root - 1, 0)]
    caps += [height(snapshot, request.required)] if request.required else []
    if len(request.groups) == 1 and request.groups[0].required:
        caps.append(height(snapshot, request.groups[0].required))
    return min(caps)


def _job_preferred(snapshot: Snapshot, request: PlacementRequest) -> tuple[int, ...]:
    """Return the tiers wished for the job; those of an only group are the job's."""
    alone = request.groups[0].preferred if len(request.groups) == 1 else ()
    return tuple(height(snapshot, tier) for tier in (*request.preferred, *alone))


def _unit_rules(
    snapshot: Snapshot, request: PlacementRequest, *, has_own: bool
) -> tuple[UnitRule, ...]:
    if len(request.groups) > 1:
        return ()
    group = request.groups[0]
    rules = [UnitRule(height(snapshot, tier), many, None) for tier, many in group.multiples]
    for index, layer in enumerate(group.slices):
        if layer.tier is None:
            continue
        is_capped = index == len(group.slices) - 1 and not has_own
        multiple = 1 if layer.has_short or is_capped else layer.size
        most = layer.size if layer.is_spread else None
        if multiple > 1 or most is not None:
            rules.append(UnitRule(height(snapshot, layer.tier), multiple, most))
    return tuple(rules)


def _strategies(snapshot: Snapshot, request: PlacementRequest) -> tuple[tuple[int, int], ...]:
    root = snapshot.levels.root
    if not request.strategies:
        return ((root, root),)
    return tuple((height(snapshot, a), height(snapshot, b)) for a, b in request.strategies)
