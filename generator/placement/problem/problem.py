"""A request met with a snapshot: tiers as heights, groups as parts, own running pods as anchors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from generator.placement.cluster.levels import CLUSTER_TIER, IntArray
from generator.placement.cluster.pod_shapes import build_shapes, pair_weights
from generator.placement.cluster.shape import PodShape
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.cluster.tiers import tier_index
from generator.placement.presets import (
    FEWEST_VICTIMS_TERMS,
    PRESETS,
    VICTIM_TERMS,
    ObjectiveKey,
    ObjectiveTerm,
)
from generator.placement.problem.parts import RequestPart, PartType, build_set_type
from generator.placement.problem.preemption import EvictablePods
from generator.placement.problem.running_pods import find_running_positions, find_stray_tier
from generator.placement.problem.slices import SlicePods, IndexedPods, cut_slices, innermost_slices
from generator.placement.problem.unit_rules import (
    ShortSliceRule,
    UnitRule,
    build_short_slice_rules,
    build_unit_rules,
)
from generator.placement.request import (
    EvictionPolicy,
    GangGroup,
    PlacementRequest,
    RoleAffinity,
    SortRule,
)

NO_AFFINITY = RoleAffinity()


class NodeWeights(NamedTuple):
    """Which nodes a request likes less."""

    weights: tuple[int, ...]
    """Distinct ones, the heaviest first."""
    weight_index: IntArray
    """Per node: index of its weight."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A request with all that the engine needs of the snapshot."""

    snapshot: Snapshot
    request: PlacementRequest
    shapes: tuple[PodShape, ...]
    shape_of: tuple[int, ...]
    """Per group."""
    scarcest_shape: int
    """The shape of which the cluster holds the fewest: what surplus is counted in."""
    job_cap: int
    """Highest tier of the job."""
    preferred: tuple[int, ...]
    """Tiers wished for the whole job."""
    running_positions: tuple[int, ...]
    """Positions of the gang's running pods, one entry per pod, sorted."""
    running_positions_of: tuple[tuple[int, ...], ...]
    """The same per group."""
    stray_tier: str | None
    """A tier of slices of which a running pod has no domain: then nothing makes them whole."""
    indexed_pods: tuple[IndexedPods, ...]
    """Per group: the running pods that tell their index."""
    unit_rules: tuple[UnitRule, ...]
    short_slice_rules: tuple[ShortSliceRule, ...]
    domain_limits: tuple[tuple[int, int], ...]
    """(tier, most units used)."""
    strategies: tuple[tuple[int, int], ...]
    """(highest tier of the job, of every part), in order; one entry where none is listed."""
    traffic_pairs: tuple[tuple[int, int, int], ...]
    """(shape, shape, weight) of groups that talk to, or repel, each other."""
    sort_columns: tuple[tuple[IntArray, ...], ...]
    """Per user's rule and tier: the value of every unit, negated where more is better."""
    node_weights: NodeWeights | None
    """Weights that the request gives nodes, where the preset compares them."""
    evictable: EvictablePods | None
    """What may give way; then the snapshot is the one without it."""
    is_growth: bool
    """Whether the gang runs already, so that new pods may complete slices that run."""

    @property
    def root(self) -> int:
        """Height of `cluster`."""
        return self.snapshot.levels.root

    @property
    def spares_islands(self) -> bool:
        """Whether a job leaves islands whole rather than the domains in them."""
        return self.request.options.spares_islands and self.root > 1

    @property
    def objective_order(self) -> tuple[ObjectiveTerm, ...]:
        """What is compared, the most important first."""
        rules = PRESETS[self.request.preset]
        row = rules.order
        if self.evictable is None:
            return row
        if self.evictable.policy is EvictionPolicy.FEWEST_VICTIMS:
            return (row[0], *FEWEST_VICTIMS_TERMS, *row[1:])
        if rules.eviction_order:
            return rules.eviction_order
        if self.evictable.policy is EvictionPolicy.PER_DOMAIN:
            return (*row, *VICTIM_TERMS)
        return (*row[:-1], *VICTIM_TERMS, row[-1])

    def sort_column(self, rule: SortRule) -> tuple[IntArray, ...]:
        """Return per tier what a rule sorts its units by."""
        return _sort_column(self.snapshot, rule)

    @property
    def uses_buckets(self) -> bool:
        """Whether pods are placed by buckets of roles, so far as tiers leave the choice."""
        is_open = self.evictable is None and not self.request.strategies
        return PRESETS[self.request.preset].uses_task_buckets and is_open

    @property
    def lowest_job_tier(self) -> int:
        """Lowest tier at which the domain of the job is chosen, not above the highest allowed."""
        caps = [self.job_cap, *(job for job, _ in self.strategies)]
        return min(PRESETS[self.request.preset].lowest_job_tier, *caps)

    @property
    def compares_tiers_first(self) -> bool:
        """Whether strategies and tiers are compared before all else but the number of pods."""
        early = {ObjectiveKey.PLACED, ObjectiveKey.STRATEGY, ObjectiveKey.EXISTING}
        early |= {ObjectiveKey.NODE_WEIGHTS} if self.node_weights is None else set()
        first = next(term.key for term in self.objective_order if term.key not in early)
        return first is ObjectiveKey.JOB_TIER

    def indexed_slices(self, group: int, count: int) -> tuple[SlicePods, ...]:
        """Return the slices of so many pods where their indices say it, else nothing.

        Where all pods are new, order is enough: but for coarse slices, of which one may be short.
        """
        layers = self.request.groups[group].slices
        coarse = any(layer.is_indexed and layer.has_short for layer in layers[:-1])
        if not (coarse or (self.running_positions and any(layer.is_indexed for layer in layers))):
            return ()
        return cut_slices(layers, self.indexed_pods[group], count)

    def split_group(self, group: int, count: int) -> list[tuple[int, tuple[int, ...]]]:
        """Return the parts of a group when `count` of it are placed.

        Each as its new pods, and the positions of the running ones that belong to it.
        """
        pieces = self.indexed_slices(group, count)
        if pieces:
            return [(piece.size, piece.running_positions) for piece in innermost_slices(pieces)]
        layers = self.request.groups[group].slices
        own = () if layers else self.running_positions_of[group]
        size = layers[-1].size if layers else count
        whole, short = divmod(count, size) if count else (0, 0)
        return [(size, own)] * whole + ([(short, own)] if short else [])

    def parts(self, counts: tuple[int, ...], max_part_tier: int) -> list[RequestPart]:
        """Return all parts when so many pods of each group are placed; sets around theirs."""
        of_sets: list[list[RequestPart]] = []
        for row in self.request.sets:
            members = [part for at in row.sets for part in of_sets[at]]
            members += [
                part for at in row.groups for part in self._parts_of(at, counts, max_part_tier)
            ]
            of_sets.append(self._wrap_set(len(of_sets), members))
        inner_sets = {at for row in self.request.sets for at in row.sets}
        inner = {at for row in self.request.sets for at in row.groups}
        found = [
            part
            for at in range(len(counts))
            if at not in inner
            for part in self._parts_of(at, counts, max_part_tier)
        ]
        for at, parts in enumerate(of_sets):
            found += [] if at in inner_sets else parts
        return found

    def _parts_of(self, group: int, counts: tuple[int, ...], part_cap: int) -> list[RequestPart]:
        count, row = counts[group], self.request.groups[group]
        pieces = self.indexed_slices(group, count)
        parts = self._parts_of_slices(group, pieces, part_cap) or [
            RequestPart(self._part_type(group, size, part_cap), group)
            for size, _ in self.split_group(group, count)
        ]
        if row.required is None or not row.slices or len(counts) == 1:
            return parts
        return self._wrap_in_tier(
            parts, self._group_cap(row), self.running_positions_of[group], group
        )

    def _parts_of_slices(
        self, group: int, pieces: tuple[SlicePods, ...], part_cap: int
    ) -> list[RequestPart]:
        """Return slices by index as parts, those of coarse layers as sets."""
        found: list[RequestPart] = []
        for piece in pieces:
            cap = self.root if piece.tier is None else tier_index(self.snapshot, piece.tier)
            if piece.inner_slices:
                inside = self._parts_of_slices(group, piece.inner_slices, part_cap)
                found += self._wrap_in_tier(inside, cap, piece.running_positions, group)
                continue
            kind = self._part_type(group, piece.size, min(part_cap, cap))
            owner = group if piece.running_positions else -1
            found.append(
                RequestPart(kind._replace(running_span=piece.running_span, owner=owner), group)
            )
        return found

    def _wrap_in_tier(
        self, parts: list[RequestPart], cap: int, own: tuple[int, ...], group: int
    ) -> list[RequestPart]:
        """Return parts of a group, and its running pods, as one part within a tier."""
        if not parts or cap == self.root:
            return parts
        anchors = (own[0], own[-1]) if own else None
        owner = group if own else -1
        kind = build_set_type(parts, max_tier=cap, running_span=anchors, preferred=(), owner=owner)
        return [RequestPart(kind, -1, tuple(parts))]

    def _wrap_set(self, at: int, members: list[RequestPart]) -> list[RequestPart]:
        """Return the parts as one part where the set bounds them, else as they are."""
        row = self.request.sets[at]
        if not members or not (row.required or row.preferred):
            return members
        own = self.running_in_set(at)
        kind = build_set_type(
            members,
            max_tier=tier_index(self.snapshot, row.required) if row.required else self.root,
            running_span=(min(own), max(own)) if own else None,
            preferred=tuple(tier_index(self.snapshot, tier) for tier in row.preferred),
            owner=at if own else -1,
        )
        return [RequestPart(kind, -1, tuple(members))]

    def groups_in_set(self, at: int) -> list[int]:
        """Return all groups in a set, those of its inner sets included."""
        row = self.request.sets[at]
        return sorted([*row.groups, *(g for inner in row.sets for g in self.groups_in_set(inner))])

    def running_in_set(self, at: int) -> list[int]:
        """Return the positions of the running pods of a set, sorted."""
        return sorted(
            node for group in self.groups_in_set(at) for node in self.running_positions_of[group]
        )

    def _part_type(self, index: int, size: int, part_cap: int) -> PartType:
        group = self.request.groups[index]
        own = () if group.slices else self.running_positions_of[index]
        return PartType(
            shape=self.shape_of[index],
            size=size,
            max_tier=min(part_cap, self._slice_cap(group, size), self._group_cap(group)),
            running_span=(min(own), max(own)) if own else None,
            preferred=self.preferred_tiers_of(index),
            histogram_floor=self.slice_tier_of(index),
            owner=index if own else -1,
        )

    def _group_cap(self, group: GangGroup) -> int:
        return tier_index(self.snapshot, group.required) if group.required else self.root

    def _slice_cap(self, group: GangGroup, size: int) -> int:
        """Return the tier that a slice must not leave.

        Beside running pods a slice of new ones may complete one that runs: then the rule on
        units says it all. So it does for the pods of a short slice, unless slices are indexed.
        """
        if not group.slices or group.slices[-1].tier is None or self.running_positions:
            return self.root
        layer = group.slices[-1]
        is_free = size < layer.size and not layer.is_indexed
        return self.root if is_free else tier_index(self.snapshot, layer.tier)

    def slice_tier_of(self, group: int) -> int:
        """Return the tier that the slices of a group must keep, 0 without one.

        A slice that keeps it has what it asked for: closer together is worth no further domain.
        """
        layers = self.request.groups[group].slices
        return tier_index(self.snapshot, layers[-1].tier) if layers and layers[-1].tier else 0

    def preferred_tiers_of(self, group: int) -> tuple[int, ...]:
        """Return the tiers preferred by one of several groups; an only group's are the job's."""
        if len(self.request.groups) == 1:
            return ()
        return tuple(
            tier_index(self.snapshot, tier) for tier in self.request.groups[group].preferred
        )


def build_problem(
    snapshot: Snapshot, request: PlacementRequest, evictable: EvictablePods | None = None
) -> Problem:
    """Meet a request with a snapshot; O(shapes × resources × nodes).

    Args:
        snapshot: the cluster, without what may be evicted.
        request: what is asked for.
        eviction: what may be evicted; None: nothing.

    Raises:
        UnknownTier: the request names a tier that the tree lacks.
    """
    own, own_of, ranked = find_running_positions(snapshot, request)
    shapes, shape_of = build_shapes(snapshot, request)
    fewest = [shape.total_slots for shape in shapes]
    return Problem(
        snapshot=snapshot,
        request=request,
        shapes=shapes,
        shape_of=shape_of,
        scarcest_shape=fewest.index(min(fewest)),
        job_cap=_job_cap(snapshot, request),
        preferred=_job_preferred(snapshot, request),
        running_positions=own,
        running_positions_of=own_of,
        stray_tier=find_stray_tier(snapshot, request, own_of),
        indexed_pods=ranked,
        unit_rules=build_unit_rules(snapshot, request, is_growth=bool(own)),
        short_slice_rules=build_short_slice_rules(snapshot, request, is_growth=bool(own)),
        domain_limits=tuple((tier_index(snapshot, tier), most) for tier, most in request.limits),
        strategies=_strategies(snapshot, request),
        traffic_pairs=_traffic_pairs(request, shape_of),
        sort_columns=tuple(_sort_column(snapshot, rule) for rule in request.sort),
        node_weights=_node_weights(snapshot, request),
        evictable=evictable,
        is_growth=bool(own),
    )


def _traffic_pairs(
    request: PlacementRequest, shape_of: tuple[int, ...]
) -> tuple[tuple[int, int, int], ...]:
    """Return (shape, shape, weight) of groups that talk to, or repel, each other."""
    if not request.traffic and request.roles == NO_AFFINITY:
        return ()
    names = [group.name for group in request.groups]
    shapes = dict(zip(names, shape_of, strict=True))
    return tuple(
        (shapes[first], shapes[second], weight) for first, second, weight in pair_weights(request)
    )


def _node_weights(snapshot: Snapshot, request: PlacementRequest) -> NodeWeights | None:
    given = dict(request.options.node_weights)
    if not given or all(
        term.key is not ObjectiveKey.NODE_WEIGHTS for term in PRESETS[request.preset].order
    ):
        return None
    row = [given.get(spec.name, 0) for spec in snapshot.specs]
    weights = sorted(set(row), reverse=True)
    return NodeWeights(tuple(weights), np.array([weights.index(weight) for weight in row]))


def _sort_column(snapshot: Snapshot, rule: SortRule) -> tuple[IntArray, ...]:
    """Return per tier what a rule sorts its units by; a resource that nobody has counts 0."""
    row = snapshot.quantities(rule.resource, counts_free=rule.counts_free)
    sign = -1 if rule.is_descending else 1
    return tuple(sign * np.add.reduceat(row, starts) for starts in snapshot.levels.starts)


def without_running_pods(problem: Problem) -> Problem:
    """Return the problem as if nothing of the gang ran and slices began with the new pods."""
    nothing: tuple[tuple[()], ...] = ((),) * len(problem.running_positions_of)
    alone = replace(
        problem,
        running_positions=(),
        running_positions_of=nothing,
        indexed_pods=nothing,
        stray_tier=None,
    )
    return replace(alone, unit_rules=(), short_slice_rules=())


def _job_cap(snapshot: Snapshot, request: PlacementRequest) -> int:
    """Return the highest tier of the job that its required tiers and islands allow.

    Trees of a forest have nothing in common but the name `cluster`: only a request that says
    so is placed across them (docs/adr).
    """
    root = snapshot.levels.root
    named = {request.required, *(job for job, _ in request.strategies)}
    caps = [root if request.across_islands or CLUSTER_TIER in named else max(root - 1, 0)]
    caps += [tier_index(snapshot, request.required)] if request.required else []
    if len(request.groups) == 1 and request.groups[0].required:
        caps.append(tier_index(snapshot, request.groups[0].required))
    return min(caps)


def _job_preferred(snapshot: Snapshot, request: PlacementRequest) -> tuple[int, ...]:
    """Return the tiers wished for the job; those of an only group are the job's."""
    alone = request.groups[0].preferred if len(request.groups) == 1 else ()
    return tuple(tier_index(snapshot, tier) for tier in (*request.preferred, *alone))


def _strategies(snapshot: Snapshot, request: PlacementRequest) -> tuple[tuple[int, int], ...]:
    root = snapshot.levels.root
    if not request.strategies:
        return ((root, root),)
    return tuple((tier_index(snapshot, a), tier_index(snapshot, b)) for a, b in request.strategies)
