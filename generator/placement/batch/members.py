"""Turn the gangs of a sequentially placed batch into members that the local search may move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from generator.placement.answer import Placement, ReasonKind
from generator.placement.batch.free_index import SPAN_FACTOR, FreeIndex, PodNeed, min_units_needed
from generator.placement.batch.local_search import BatchMember
from generator.placement.batch.move import (
    GangPlacer,
    PackPlacer,
    SearchPlacer,
    build_place,
    is_packable,
)
from generator.placement.batch.pack_heuristic import PackItem
from generator.placement.batch.sequential import SequentialPlacement
from generator.placement.cluster.levels import IntArray
from generator.placement.cluster.shape import PodShape
from generator.placement.cluster.snapshot import Snapshot, view_for
from generator.placement.presets import Preset
from generator.placement.problem.objective import measure
from generator.placement.problem.problem import Problem, build_problem
from generator.placement.request import PlacementRequest

NODE_TRIAL_COST = 3
"""Cost of packing one group if spots are nodes, in groups packed by leaves."""
NO_GANG = ""
"""A name that no gang has, so that no running pods belong to it."""
RETRYABLE_REASONS = frozenset({ReasonKind.NO_FIT, ReasonKind.NO_DOMAIN, ReasonKind.LIMIT})
"""Reasons that may no longer hold after other gangs move."""

GroupPositions = tuple[tuple[int, ...], ...]
"""Per group positions of nodes."""


@dataclass(frozen=True, slots=True)
class _RequestClass:
    """The common values of gangs whose requests differ by name only."""

    problem: Problem
    """The request resolved against the snapshot before the batch."""
    final_shapes: tuple[PodShape, ...]
    """Per group, in the snapshot after all gangs are placed; empty: the gang must be searched."""
    reserved: IntArray | None
    """Quantities reserved for other gangs."""


class BatchMembers:
    """The members of one batch, and the index of free capacity that counts them."""

    def __init__(self, turn: SequentialPlacement, *, keeps_tiers: bool) -> None:
        """Build the members; with `keeps_tiers` no gang may move to a higher tier."""
        self._sequential, self._keeps_tiers = turn, keeps_tiers
        self._request_classes: dict[PlacementRequest, _RequestClass] = {}
        rows = list(zip(turn.requests, turn.placements, strict=True))
        looks = [None if self._is_fixed(*row) else self._request_class(row[0]) for row in rows]
        self.free_index = FreeIndex(
            turn.final_snapshot, _common_shape([look for look in looks if look])
        )
        priorities = sorted({request.priority for request in turn.requests}, reverse=True)
        self.members = [
            self._build_member(request, found, look, priorities.index(request.priority))
            for (request, found), look in zip(rows, looks, strict=True)
        ]
        """One per gang, in sequential order."""

    def _is_fixed(self, request: PlacementRequest, found: Placement) -> bool:
        """Return whether a gang stays where it is, or without a place."""
        return (
            request.preset is not Preset.OPTIMAL
            or bool(request.strategies)
            or request.gang in self._sequential.base_snapshot.running
            or bool(found.victims)
            or (found.reason is not None and found.reason.kind not in RETRYABLE_REASONS)
        )

    def _request_class(self, request: PlacementRequest) -> _RequestClass:
        nominated = self._sequential.base_snapshot.nominated
        key = request if nominated else replace(request, gang=NO_GANG, priority=0, deadline_s=None)
        if key not in self._request_classes:
            self._request_classes[key] = self._build_request_class(request)
        return self._request_classes[key]

    def _build_request_class(self, request: PlacementRequest) -> _RequestClass:
        turn, nameless = self._sequential, request.with_gang(NO_GANG)
        before = view_for(turn.base_snapshot, request.gang, request.priority)
        kept = (
            None
            if before.free is turn.base_snapshot.free
            else turn.base_snapshot.free - before.free
        )
        problem = build_problem(before, nameless)
        shapes: tuple[PodShape, ...] = ()
        if is_packable(problem):
            after = build_problem(
                view_for(turn.final_snapshot, request.gang, request.priority), nameless
            )
            shapes = tuple(after.shapes[at] for at in after.shape_of)
        return _RequestClass(problem, shapes, kept)

    def _build_member(
        self, request: PlacementRequest, found: Placement, look: _RequestClass | None, level: int
    ) -> BatchMember:
        if not found.is_feasible:
            mover = None if look is None else self._build_placer(request, look, None)
            return BatchMember(level, mover, None, 0)
        pods = placed_positions(self._sequential.final_snapshot, request, found)
        place = build_place(self.free_index, self._pod_needs(request), pods)
        if look is None:
            return BatchMember(level, None, place, place.span)
        least = _min_span(look, list(map(len, pods)))
        return BatchMember(level, self._build_placer(request, look, pods), place, least)

    def _pod_needs(self, request: PlacementRequest) -> tuple[PodNeed, ...]:
        return tuple(self.free_index.pod_need(dict(group.request)) for group in request.groups)

    def _build_placer(
        self, request: PlacementRequest, look: _RequestClass, pods: GroupPositions | None
    ) -> GangPlacer | None:
        least = [group.count if group.least == group.count else 0 for group in request.groups]
        counts = least if pods is None else [len(row) for row in pods]
        if look.final_shapes and all(counts):
            views = [self.free_index.add_view(shape, look.reserved) for shape in look.final_shapes]
            highest = look.problem.job_cap
            if self._keeps_tiers and pods is not None:
                highest = _tier_around(look, pods)
            cap = max(highest - 1 + self.free_index.leaf_tier, 0)
            price = NODE_TRIAL_COST * len(views) if self.free_index.leaf_tier else 1
            return PackPlacer(tuple(map(PackItem, views, counts)), cap, price)
        if self.free_index.leaf_tier == 0:
            return None  # a search needs nodes, and this index has leaves only
        worst = None if pods is None else measure(look.problem, pods, 0)
        nameless = request.with_gang(NO_GANG)
        return SearchPlacer(
            look.problem.snapshot, nameless, look.reserved, self._pod_needs(request), worst
        )


def placed_positions(
    snapshot: Snapshot, request: PlacementRequest, found: Placement
) -> GroupPositions:
    """Return per group the positions of the placed pods of an answer, in index order."""
    rows = (found.assignment[group.name] for group in request.groups)
    return tuple(
        tuple(snapshot.position_of[node] for node in row if node is not None) for row in rows
    )


def _common_shape(looks: Sequence[_RequestClass]) -> PodShape | None:
    """Return the shape of all gangs that may move; None if they differ or have bounds."""
    shapes = {look.final_shapes for look in looks}
    is_plain = len(shapes) == 1 and all(look.reserved is None for look in looks)
    only = next(iter(shapes), ())
    return only[0] if is_plain and len(only) == 1 else None


def _tier_around(look: _RequestClass, pods: GroupPositions) -> int:
    """Return the tier of the lowest unit around pods."""
    placed = [at for row in pods for at in row]
    return look.problem.snapshot.levels.common_tier(min(placed), max(placed))


def _min_span(look: _RequestClass, counts: Sequence[int]) -> int:
    """Return a lower bound on the span of these pods per group, on the cluster before the batch.

    It assumes that each group gets the largest units of each tier.
    """
    least, weight = 0, 1
    for tier in range(1, look.problem.root):
        shapes = (look.problem.shapes[at] for at in look.problem.shape_of)
        each = (
            min_units_needed(s.slots_by_tier[tier], n) for s, n in zip(shapes, counts, strict=True)
        )
        least += weight * max(1, *each)
        weight *= SPAN_FACTOR
    return least
