"""Find out why a request has no placement, in the order of `ReasonKind`.

A refusal follows from the request and the tree, and a conflict from the running pods. The other
reasons are found by solving the problem again without one of its bounds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from generator.placement.answer import Reason, ReasonKind
from generator.placement.cluster.slot_cache import SlotCache
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.cluster.tiers import UnknownTier, tier_index
from generator.placement.problem.domain_capacity import GroupCapacity
from generator.placement.problem.problem import Problem, build_problem, without_running_pods
from generator.placement.problem.slices import all_slices
from generator.placement.request import GangGroup, PlacementRequest, SliceLayer
from generator.placement.solve.budget import Budget
from generator.placement.solve.solver import solve


def find_refusal(snapshot: Snapshot, request: PlacementRequest) -> Reason | None:
    """Return why this tree cannot satisfy the request at all; None if it might."""
    for tier in request.tiers:
        try:
            tier_index(snapshot, tier)
        except UnknownTier:
            return Reason(ReasonKind.NO_LEVEL, tier=tier)
    for group in request.groups:
        fault = _slice_reason(snapshot, group, is_growth=request.gang in snapshot.running)
        if fault is not None:
            return fault
    return None


def _slice_reason(snapshot: Snapshot, group: GangGroup, *, is_growth: bool) -> Reason | None:
    """Return the fault in the slices of a group: sizes that do not divide, or a tier too high."""
    parent_size = group.count
    for layer in group.slices:
        divides = is_growth or layer.has_short or parent_size % max(layer.size, 1) == 0
        if layer.size == 0 or not divides:
            return Reason(ReasonKind.BAD_SLICE, size=layer.size, count=parent_size)
        parent_size = layer.size
        tier = layer.tier
        if (
            tier
            and group.required
            and tier_index(snapshot, tier) > tier_index(snapshot, group.required)
        ):
            return Reason(ReasonKind.BAD_SLICE, tier=tier)
    return None


def no_domain_reason(problem: Problem) -> Reason | None:
    """Return the required tier that no node has a domain of; None if there is none."""
    for tier in _bound_tiers(problem.request):
        if not _has_domain(problem.snapshot, tier_index(problem.snapshot, tier)):
            return Reason(ReasonKind.NO_DOMAIN, tier=tier)
    return None


def _conflict_reason(problem: Problem) -> Reason | None:
    """Return the required tier that the gang's running pods already violate."""
    if problem.stray_tier is not None:
        return Reason(ReasonKind.CONFLICT, tier=problem.stray_tier)
    levels, request = problem.snapshot.levels, problem.request
    scopes = [(request.required, problem.running_positions)]
    scopes += [
        (group.required, running)
        for group, running in zip(request.groups, problem.running_positions_of, strict=True)
    ]
    scopes += [
        (piece.tier, piece.running_positions)
        for index, group in enumerate(request.groups)
        for piece in all_slices(problem.indexed_slices(index, max(group.least, 1)))
    ]
    for tier, running in scopes:
        if (
            tier
            and running
            and levels.common_tier(running[0], running[-1]) > tier_index(problem.snapshot, tier)
        ):
            return Reason(ReasonKind.CONFLICT, tier=tier)
    return None


def find_reason(problem: Problem, budget: Budget) -> Reason:
    """Return why a problem has no solution.

    Raises:
        BudgetExhausted: the budget ended first.
    """
    reason = no_domain_reason(problem) or _conflict_reason(problem)
    if reason is not None:
        return reason
    if problem.running_positions and solve(without_running_pods(problem), budget) is not None:
        return Reason(ReasonKind.STALE, tier=_bound_tier(problem))
    if problem.domain_limits and solve(replace(problem, domain_limits=()), budget) is not None:
        return Reason(ReasonKind.LIMIT, tier=problem.request.limits[0][0])
    causes = count_excluded_nodes(problem)
    if causes and solve(without_exclusions(problem), budget) is not None:
        return Reason(ReasonKind.EXCLUDED, excluded=causes)
    return _no_fit_reason(problem)


def without_exclusions(problem: Problem) -> Problem:
    """Return the problem with every node of the tree open to every pod."""
    snapshot = problem.snapshot
    open_snapshot = replace(
        snapshot,
        schedulable=np.ones(snapshot.num_nodes, dtype=np.bool_),
        taint_sets=(frozenset(),),
        taint_set_of=np.zeros(snapshot.num_nodes, dtype=np.int64),
        slot_cache=SlotCache(),
    )
    groups = tuple(replace(group, selector=()) for group in problem.request.groups)
    return build_problem(open_snapshot, replace(problem.request, groups=groups))


def count_excluded_nodes(problem: Problem) -> dict[str, int]:
    """Return the number of nodes that each cause excludes for some group; zero counts are left out.

    A node is counted once, under the first cause: unschedulable, taint, selector.
    """
    counts: dict[str, int] = {}
    snapshot = problem.snapshot
    remaining = np.ones(snapshot.num_nodes, dtype=np.bool_)
    causes = [("unschedulable", snapshot.schedulable)]
    causes += [
        ("taint", snapshot.has_tolerated_taints(group.tolerations))
        for group in problem.request.groups
    ]
    causes += [
        ("selector", snapshot.has_label(key, values))
        for group in problem.request.groups
        for key, values in group.selector
    ]
    for cause, allowed in causes:
        num_excluded = int((remaining & ~allowed).sum())
        if num_excluded:
            counts[cause] = counts.get(cause, 0) + num_excluded
        remaining &= allowed
    return counts


def _no_fit_reason(problem: Problem) -> Reason:
    tier = problem.highest_job_tier
    names = problem.snapshot.levels.tiers
    if len(problem.request.groups) > 1:
        return Reason(ReasonKind.NO_FIT, tier=names[tier])
    capacity = GroupCapacity(problem, 0, problem.shapes[0].slots_by_tier)
    needed = max(problem.min_pods, problem.request.groups[0].least)
    layer = _coarsest_layer(problem.request.groups[0])
    size, unit = (1, "pods") if layer is None else (layer.size, "slices")
    if layer is not None and int(capacity.slots_by_tier[tier].max()) >= needed:
        name = names[tier_index(problem.snapshot, layer.tier)]
    else:
        name = names[tier]
    fits = int(capacity.usable_slots[tier].max()) // size
    return Reason(ReasonKind.NO_FIT, tier=name, fits=fits, needed=needed // size, unit=unit)


def _coarsest_layer(group: GangGroup) -> SliceLayer | None:
    return next((layer for layer in group.slices if layer.tier is not None), None)


def _bound_tier(problem: Problem) -> str | None:
    """Return the tier that a single group's slices, or the job, must stay within."""
    groups = problem.request.groups
    layer = _coarsest_layer(groups[0]) if len(groups) == 1 else None
    if layer is not None:
        return layer.tier
    return problem.request.required or (groups[0].required if len(groups) == 1 else None)


def _bound_tiers(request: PlacementRequest) -> list[str]:
    tiers = [request.required, *(group.required for group in request.groups)]
    tiers += [layer.tier for group in request.groups for layer in group.slices]
    return [tier for tier in tiers if tier is not None]


def _has_domain(snapshot: Snapshot, tier: int) -> bool:
    if tier in {0, snapshot.levels.root}:
        return snapshot.num_tree_nodes > 0
    return bool((snapshot.levels.domain_of_unit[tier] >= 0).any())
