"""A request met with a snapshot: tiers as heights, groups as parts, own running pods as anchors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from generator.placement.cluster.levels import CLUSTER, Ints
from generator.placement.cluster.pod_shapes import build_shapes, pair_weights
from generator.placement.cluster.shape import Shape
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.cluster.tiers import height
from generator.placement.presets import FEWEST_VICTIMS, PRESETS, VICTIMS, Key, Term
from generator.placement.problem.parts import Part, PartType, set_type
from generator.placement.problem.preemption import Evictable
from generator.placement.problem.running_pods import own_positions, stray_tier
from generator.placement.problem.slices import Piece, Ranked, cut, leaves
from generator.placement.problem.unit_rules import Remainder, UnitRule, remainders, unit_rules
from generator.placement.request import (
    Eviction,
    Group,
    PlacementRequest,
    Roles,
    SortRule,
)

NO_ROLES = Roles()


class NodeWeights(NamedTuple):
    """Which nodes a request likes less."""

    weights: tuple[int, ...]
    """Distinct ones, the heaviest first."""
    rank: Ints
    """Per node: index of its weight."""


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
    stray: str | None
    """A tier of slices of which a running pod has no domain: then nothing makes them whole."""
    ranked: tuple[Ranked, ...]
    """Per group: the running pods that tell their index."""
    rules: tuple[UnitRule, ...]
    remainders: tuple[Remainder, ...]
    limits: tuple[tuple[int, int], ...]
    """(tier, most units used)."""
    strategies: tuple[tuple[int, int], ...]
    """(highest tier of the job, of every part), in order; one entry where none is listed."""
    pairs: tuple[tuple[int, int, int], ...]
    """(shape, shape, weight) of groups that talk to, or repel, each other."""
    sort_columns: tuple[tuple[Ints, ...], ...]
    """Per user's rule and tier: the value of every unit, negated where more is better."""
    node_weights: NodeWeights | None
    """Weights that the request gives nodes, where the preset compares them."""
    eviction: Evictable | None
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
    def order(self) -> tuple[Term, ...]:
        """What is compared, the most important first."""
        rules = PRESETS[self.request.preset]
        row = rules.order
        if self.eviction is None:
            return row
        if self.eviction.policy is Eviction.FEWEST_VICTIMS:
            return (row[0], *FEWEST_VICTIMS, *row[1:])
        if rules.evicting:
            return rules.evicting
        if self.eviction.policy is Eviction.PER_DOMAIN:
            return (*row, *VICTIMS)
        return (*row[:-1], *VICTIMS, row[-1])

    def sort_column(self, rule: SortRule) -> tuple[Ints, ...]:
        """Return per tier what a rule sorts its units by."""
        return _sort_column(self.snapshot, rule)

    @property
    def uses_buckets(self) -> bool:
        """Whether pods are placed by buckets of roles, so far as tiers leave the choice."""
        is_open = self.eviction is None and not self.request.strategies
        return PRESETS[self.request.preset].has_buckets and is_open

    @property
    def lowest(self) -> int:
        """Lowest tier at which the domain of the job is chosen, not above the highest allowed."""
        caps = [self.job_cap, *(job for job, _ in self.strategies)]
        return min(PRESETS[self.request.preset].lowest, *caps)

    @property
    def is_closest_first(self) -> bool:
        """Whether strategies and tiers are compared before all else but the number of pods."""
        early = {Key.PLACED, Key.STRATEGY, Key.EXISTING}
        early |= {Key.NODE_WEIGHTS} if self.node_weights is None else set()
        first = next(term.key for term in self.order if term.key not in early)
        return first is Key.JOB_TIER

    def pieces(self, group: int, count: int) -> tuple[Piece, ...]:
        """Return the slices of so many pods where their indices say it, else nothing.

        Where all pods are new, order is enough: but for coarse slices, of which one may be short.
        """
        layers = self.request.groups[group].slices
        coarse = any(layer.is_indexed and layer.has_short for layer in layers[:-1])
        if not (coarse or (self.own and any(layer.is_indexed for layer in layers))):
            return ()
        return cut(layers, self.ranked[group], count)

    def cut_group(self, group: int, count: int) -> list[tuple[int, tuple[int, ...]]]:
        """Return the parts of a group when `count` of it are placed.

        Each as its new pods, and the positions of the running ones that belong to it.
        """
        pieces = self.pieces(group, count)
        if pieces:
            return [(piece.size, piece.own) for piece in leaves(pieces)]
        layers = self.request.groups[group].slices
        own = () if layers else self.own_of[group]
        size = layers[-1].size if layers else count
        whole, short = divmod(count, size) if count else (0, 0)
        return [(size, own)] * whole + ([(short, own)] if short else [])

    def parts(self, counts: tuple[int, ...], part_cap: int) -> list[Part]:
        """Return all parts when so many pods of each group are placed; sets around theirs."""
        of_sets: list[list[Part]] = []
        for row in self.request.sets:
            members = [part for at in row.sets for part in of_sets[at]]
            members += [part for at in row.groups for part in self._parts_of(at, counts, part_cap)]
            of_sets.append(self._in_set(len(of_sets), members))
        inner_sets = {at for row in self.request.sets for at in row.sets}
        inner = {at for row in self.request.sets for at in row.groups}
        found = [
            part
            for at in range(len(counts))
            if at not in inner
            for part in self._parts_of(at, counts, part_cap)
        ]
        for at, parts in enumerate(of_sets):
            found += [] if at in inner_sets else parts
        return found

    def _parts_of(self, group: int, counts: tuple[int, ...], part_cap: int) -> list[Part]:
        count, row = counts[group], self.request.groups[group]
        pieces = self.pieces(group, count)
        parts = self._of_pieces(group, pieces, part_cap) or [
            Part(self._part_type(group, size, part_cap), group)
            for size, _ in self.cut_group(group, count)
        ]
        if row.required is None or not row.slices or len(counts) == 1:
            return parts
        return self._around(parts, self._group_cap(row), self.own_of[group], group)

    def _of_pieces(self, group: int, pieces: tuple[Piece, ...], part_cap: int) -> list[Part]:
        """Return slices by index as parts, those of coarse layers as sets."""
        found: list[Part] = []
        for piece in pieces:
            cap = self.root if piece.tier is None else height(self.snapshot, piece.tier)
            if piece.pieces:
                inside = self._of_pieces(group, piece.pieces, part_cap)
                found += self._around(inside, cap, piece.own, group)
                continue
            kind = self._part_type(group, piece.size, min(part_cap, cap))
            owner = group if piece.own else -1
            found.append(Part(kind._replace(anchors=piece.anchors, owner=owner), group))
        return found

    def _around(self, parts: list[Part], cap: int, own: tuple[int, ...], group: int) -> list[Part]:
        """Return parts of a group, and its running pods, as one part within a tier."""
        if not parts or cap == self.root:
            return parts
        anchors = (own[0], own[-1]) if own else None
        owner = group if own else -1
        kind = set_type(parts, cap=cap, anchors=anchors, preferred=(), owner=owner)
        return [Part(kind, -1, tuple(parts))]

    def _in_set(self, at: int, members: list[Part]) -> list[Part]:
        """Return the parts as one part where the set bounds them, else as they are."""
        row = self.request.sets[at]
        if not members or not (row.required or row.preferred):
            return members
        own = self.own_in_set(at)
        kind = set_type(
            members,
            cap=height(self.snapshot, row.required) if row.required else self.root,
            anchors=(min(own), max(own)) if own else None,
            preferred=tuple(height(self.snapshot, tier) for tier in row.preferred),
            owner=at if own else -1,
        )
        return [Part(kind, -1, tuple(members))]

    def groups_in_set(self, at: int) -> list[int]:
        """Return all groups in a set, those of its inner sets included."""
        row = self.request.sets[at]
        return sorted([*row.groups, *(g for inner in row.sets for g in self.groups_in_set(inner))])

    def own_in_set(self, at: int) -> list[int]:
        """Return the positions of the running pods of a set, sorted."""
        return sorted(node for group in self.groups_in_set(at) for node in self.own_of[group])

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


def build_problem(
    snapshot: Snapshot, request: PlacementRequest, eviction: Evictable | None = None
) -> Problem:
    """Meet a request with a snapshot; O(shapes × resources × nodes).

    Args:
        snapshot: the cluster, without what may be evicted.
        request: what is asked for.
        eviction: what may be evicted; None: nothing.

    Raises:
        UnknownTier: the request names a tier that the tree lacks.
    """
    own, own_of, ranked = own_positions(snapshot, request)
    shapes, shape_of = build_shapes(snapshot, request)
    fewest = [shape.total for shape in shapes]
    return Problem(
        snapshot=snapshot,
        request=request,
        shapes=shapes,
        shape_of=shape_of,
        largest=fewest.index(min(fewest)),
        job_cap=_job_cap(snapshot, request),
        preferred=_job_preferred(snapshot, request),
        own=own,
        own_of=own_of,
        stray=stray_tier(snapshot, request, own_of),
        ranked=ranked,
        rules=unit_rules(snapshot, request, has_own=bool(own)),
        remainders=remainders(snapshot, request, has_own=bool(own)),
        limits=tuple((height(snapshot, tier), most) for tier, most in request.limits),
        strategies=_strategies(snapshot, request),
        pairs=_pairs(request, shape_of),
        sort_columns=tuple(_sort_column(snapshot, rule) for rule in request.sort),
        node_weights=_node_weights(snapshot, request),
        eviction=eviction,
        is_growth=bool(own),
    )


def _pairs(
    request: PlacementRequest, shape_of: tuple[int, ...]
) -> tuple[tuple[int, int, int], ...]:
    """Return (shape, shape, weight) of groups that talk to, or repel, each other."""
    if not request.traffic and request.roles == NO_ROLES:
        return ()
    names = [group.name for group in request.groups]
    shapes = dict(zip(names, shape_of, strict=True))
    return tuple(
        (shapes[first], shapes[second], weight) for first, second, weight in pair_weights(request)
    )


def _node_weights(snapshot: Snapshot, request: PlacementRequest) -> NodeWeights | None:
    given = dict(request.options.node_weights)
    if not given or all(term.key is not Key.NODE_WEIGHTS for term in PRESETS[request.preset].order):
        return None
    row = [given.get(spec.name, 0) for spec in snapshot.specs]
    weights = sorted(set(row), reverse=True)
    return NodeWeights(tuple(weights), np.array([weights.index(weight) for weight in row]))


def _sort_column(snapshot: Snapshot, rule: SortRule) -> tuple[Ints, ...]:
    """Return per tier what a rule sorts its units by; a resource that nobody has counts 0."""
    row = snapshot.quantities(rule.resource, counts_free=rule.counts_free)
    sign = -1 if rule.is_descending else 1
    return tuple(sign * np.add.reduceat(row, starts) for starts in snapshot.levels.starts)


def without_anchors(problem: Problem) -> Problem:
    """Return the problem as if nothing of the gang ran and slices began with the new pods."""
    nothing: tuple[tuple[()], ...] = ((),) * len(problem.own_of)
    alone = replace(problem, own=(), own_of=nothing, ranked=nothing, stray=None)
    return replace(alone, rules=(), remainders=())


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


def _strategies(snapshot: Snapshot, request: PlacementRequest) -> tuple[tuple[int, int], ...]:
    root = snapshot.levels.root
    if not request.strategies:
        return ((root, root),)
    return tuple((height(snapshot, a), height(snapshot, b)) for a, b in request.strategies)
