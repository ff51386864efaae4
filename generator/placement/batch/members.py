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

    def __init__(self, sequential: SequentialPlacement, *, keeps_tiers: bool) -> None:
        """Build the members; with `keeps_tiers` no gang may move to a higher tier."""
        self._sequential, self._keeps_tiers = sequential, keeps_tiers
        self._request_classes: dict[PlacementRequest, _RequestClass] = {}
        pairs = list(zip(sequential.requests, sequential.placements, strict=True))
        request_classes = [
            None if self._is_fixed(*pair) else self._request_class(pair[0]) for pair in pairs
        ]
        self.free_index = FreeIndex(
            sequential.final_snapshot,
            _common_shape([request_class for request_class in request_classes if request_class]),
        )
        priorities = sorted({request.priority for request in sequential.requests}, reverse=True)
        self.members = [
            self._build_member(
                request, placement, request_class, priorities.index(request.priority)
            )
            for (request, placement), request_class in zip(pairs, request_classes, strict=True)
        ]
        """One per gang, in sequential order."""

    def _is_fixed(self, request: PlacementRequest, placement: Placement) -> bool:
        """Return whether a gang stays where it is, or without a place."""
        return (
            request.preset is not Preset.OPTIMAL
            or bool(request.strategies)
            or request.gang in self._sequential.base_snapshot.running
            or bool(placement.victims)
            or (placement.reason is not None and placement.reason.kind not in RETRYABLE_REASONS)
        )

    def _request_class(self, request: PlacementRequest) -> _RequestClass:
        nominated = self._sequential.base_snapshot.nominated
        key = request if nominated else replace(request, gang=NO_GANG, priority=0, deadline_s=None)
        if key not in self._request_classes:
            self._request_classes[key] = self._build_request_class(request)
        return self._request_classes[key]

    def _build_request_class(self, request: PlacementRequest) -> _RequestClass:
        sequential, nameless = self._sequential, request.with_gang(NO_GANG)
        before = view_for(sequential.base_snapshot, request.gang, request.priority)
        reserved = (
            None
            if before.free is sequential.base_snapshot.free
            else sequential.base_snapshot.free - before.free
        )
        problem = build_problem(before, nameless)
        shapes: tuple[PodShape, ...] = ()
        if is_packable(problem):
            after = build_problem(
                view_for(sequential.final_snapshot, request.gang, request.priority), nameless
            )
            shapes = tuple(after.shapes[shape_index] for shape_index in after.shape_of)
        return _RequestClass(problem, shapes, reserved)

    def _build_member(
        self,
        request: PlacementRequest,
        placement: Placement,
        request_class: _RequestClass | None,
        priority_rank: int,
    ) -> BatchMember:
        if not placement.is_feasible:
            placer = (
                None if request_class is None else self._build_placer(request, request_class, None)
            )
            return BatchMember(priority_rank, placer, None, 0)
        pods = placed_positions(self._sequential.final_snapshot, request, placement)
        place = build_place(self.free_index, self._pod_needs(request), pods)
        if request_class is None:
            return BatchMember(priority_rank, None, place, place.span)
        min_span = _min_span(request_class, list(map(len, pods)))
        return BatchMember(
            priority_rank, self._build_placer(request, request_class, pods), place, min_span
        )

    def _pod_needs(self, request: PlacementRequest) -> tuple[PodNeed, ...]:
        return tuple(self.free_index.pod_need(dict(group.request)) for group in request.groups)

    def _build_placer(
        self, request: PlacementRequest, request_class: _RequestClass, pods: GroupPositions | None
    ) -> GangPlacer | None:
        full_counts = [group.count if group.least == group.count else 0 for group in request.groups]
        counts = full_counts if pods is None else [len(positions) for positions in pods]
        if request_class.final_shapes and all(counts):
            views = [
                self.free_index.add_view(shape, request_class.reserved)
                for shape in request_class.final_shapes
            ]
            max_tier = request_class.problem.job_cap
            if self._keeps_tiers and pods is not None:
                max_tier = _tier_around(request_class, pods)
            max_spot_tier = max(max_tier - 1 + self.free_index.leaf_tier, 0)
            trial_cost = NODE_TRIAL_COST * len(views) if self.free_index.leaf_tier else 1
            return PackPlacer(tuple(map(PackItem, views, counts)), max_spot_tier, trial_cost)
        if self.free_index.leaf_tier == 0:
            return None  # a search needs nodes, and this index has leaves only
        current_objective = None if pods is None else measure(request_class.problem, pods, 0)
        nameless = request.with_gang(NO_GANG)
        return SearchPlacer(
            request_class.problem.snapshot,
            nameless,
            request_class.reserved,
            self._pod_needs(request),
            current_objective,
        )


def placed_positions(
    snapshot: Snapshot, request: PlacementRequest, placement: Placement
) -> GroupPositions:
    """Return per group the positions of the placed pods of an answer, in index order."""
    nodes_by_group = (placement.assignment[group.name] for group in request.groups)
    return tuple(
        tuple(snapshot.position_of[node] for node in nodes if node is not None)
        for nodes in nodes_by_group
    )


def _common_shape(request_classes: Sequence[_RequestClass]) -> PodShape | None:
    """Return the shape of all gangs that may move; None if they differ or have bounds."""
    shapes = {request_class.final_shapes for request_class in request_classes}
    is_plain = len(shapes) == 1 and all(
        request_class.reserved is None for request_class in request_classes
    )
    single_shapes = next(iter(shapes), ())
    return single_shapes[0] if is_plain and len(single_shapes) == 1 else None


def _tier_around(request_class: _RequestClass, pods: GroupPositions) -> int:
    """Return the tier of the lowest unit around pods."""
    placed = [node for positions in pods for node in positions]
    return request_class.problem.snapshot.levels.common_tier(min(placed), max(placed))


def _min_span(request_class: _RequestClass, counts: Sequence[int]) -> int:
    """Return a lower bound on the span of these pods per group, on the cluster before the batch.

    It assumes that each group gets the largest units of each tier.
    """
    min_span, weight = 0, 1
    for tier in range(1, request_class.problem.root):
        shapes = (
            request_class.problem.shapes[shape_index]
            for shape_index in request_class.problem.shape_of
        )
        min_units = (
            min_units_needed(shape.slots_by_tier[tier], count)
            for shape, count in zip(shapes, counts, strict=True)
        )
        min_span += weight * max(1, *min_units)
        weight *= SPAN_FACTOR
    return min_span
