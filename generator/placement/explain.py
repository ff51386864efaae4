"""Explain an answer: why a request does not fit, what would fit, and why domains were rejected.

A refusal follows from the request and the tree, and a conflict from the running pods. The other
reasons, in the order of `ReasonKind`, are found by solving the problem again without one of its
bounds: a request that is feasible without a bound is refused because of it. The same small changes
are the alternatives of an infeasible request, each verified by solving it. Verdicts say for each
domain of the chosen tier, and of the tier below it, whether it was chosen, rejected or too small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Final, NamedTuple

import numpy as np

from generator.placement.answer import (
    UNMET,
    WITHOUT,
    Alternative,
    DomainVerdict,
    Reason,
    ReasonKind,
    VerdictKind,
)
from generator.placement.budget import Budget, BudgetExhausted
from generator.placement.cluster.gang_view import reopen_view
from generator.placement.cluster.levels import CLUSTER_TIER, SEPARATOR, IntArray, UnknownTierError
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.groups import GangGroup, SliceLayer
from generator.placement.presets import ObjectiveKey
from generator.placement.problem.domain_capacity import GroupCapacity
from generator.placement.problem.objective import PlacementCandidate
from generator.placement.problem.problem import Problem, build_problem, without_running_pods
from generator.placement.problem.rules import all_slices
from generator.placement.quantities import render_quantity
from generator.placement.request import PlacementRequest
from generator.placement.solve.solver import solve
from topology.model.errors import list_some, show

MAX_SHOWN_DOMAINS = 16
"""Most domains that are listed per tier, the nearest misses first; one line counts the rest."""
MAX_SHOWN_RESOURCES = 12
MAX_FREED_NODES = 4
MAX_SHOWN_NAMES = 64
SLOTS: Final = "slots"


def find_refusal(snapshot: Snapshot, request: PlacementRequest) -> Reason | None:
    """Return why this tree cannot satisfy the request at all; None if it might."""
    for tier in request.tiers:
        try:
            snapshot.levels.height_of(tier)
        except UnknownTierError as error:
            known = snapshot.levels.known_names
            return Reason(
                ReasonKind.NO_LEVEL,
                tier=str(error.args[0]).partition(SEPARATOR)[0],
                known_tiers=known[:MAX_SHOWN_NAMES],
            )
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
            and snapshot.levels.height_of(tier) > snapshot.levels.height_of(group.required)
        ):
            return Reason(ReasonKind.BAD_SLICE, tier=tier)
    return None


def no_domain_reason(problem: Problem) -> Reason | None:
    """Return the reason that no node has a domain of a required tier; None if nodes have one."""
    for tier in _bound_tiers(problem.request):
        if not _has_domain(problem.snapshot, problem.snapshot.levels.height_of(tier)):
            return Reason(ReasonKind.NO_DOMAIN, tier=tier)
    return None


def _conflict_reason(problem: Problem) -> Reason | None:
    """Return the reason that running pods of the gang already violate a required tier, or None."""
    if problem.own_pods.stray_tier is not None:
        return Reason(ReasonKind.CONFLICT, tier=problem.own_pods.stray_tier)
    levels, request = problem.snapshot.levels, problem.request
    scopes = [(request.required, problem.own_pods.positions)]
    scopes += [
        (group.required, running)
        for group, running in zip(request.groups, problem.own_pods.positions_of, strict=True)
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
            and levels.common_tier(running[0], running[-1])
            > problem.snapshot.levels.height_of(tier)
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
    if problem.own_pods.positions and solve(without_running_pods(problem), budget) is not None:
        return Reason(ReasonKind.STALE, tier=_bound_tier(problem))
    for tier, _, without_limit in without_limits(problem):
        if solve(without_limit, budget) is not None:
            return Reason(ReasonKind.LIMIT, tier=tier)
    causes = count_excluded_nodes(problem)
    if causes and solve(without_exclusions(problem), budget) is not None:
        return Reason(ReasonKind.EXCLUDED, excluded=causes)
    return _no_fit_reason(problem)


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
        name = names[problem.snapshot.levels.height_of(layer.tier)]
    else:
        name = names[tier]
    fits = int(capacity.usable_slots[tier].max()) // size
    return Reason(ReasonKind.NO_FIT, tier=name, fits=fits, needed=-(-needed // size), unit=unit)


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


def judge_domains(
    problem: Problem, tier: int, candidate: PlacementCandidate | None
) -> tuple[DomainVerdict, ...]:
    """Return the verdicts for the domains of a tier, and of the tier below it.

    Args:
        problem: the request and the cluster.
        tier: the tier of the chosen domain, or the highest allowed tier if there is none.
        candidate: the placement; None if there is none.
    """
    if candidate is None:
        # A gang that may use one domain of a tier lies within it, as with a required tier.
        tier = min([tier, *(low for low, most in problem.rules.limits if most == 1)])
    chosen, num_pods = -1, problem.min_pods
    if candidate is not None:
        start = candidate.objective[ObjectiveKey.NAMES][0]
        chosen = int(problem.snapshot.levels.unit_of_node[tier][start])
        num_pods = candidate.objective[ObjectiveKey.PLACED][0]
    shortage = find_shortage(problem) if candidate is None else ""
    others = _name_constraints(problem) if candidate is None else ""
    used = _count_used(problem)
    demand = _Demand(num_pods, _unit_of_demand(problem), shortage, used, others)
    rows = _judge_tier(problem, tier, chosen, demand)
    if tier > 1:
        rows += _judge_tier(problem, tier - 1, -1, demand)
    return tuple(rows)


class _Demand(NamedTuple):
    """What a domain must have room for."""

    num_pods: int
    unit: str
    """The word for what a domain has room for: slots, if each pod takes one, else pods."""
    shortage: str
    """Why no node has room for a pod; empty if that is no matter of size."""
    used: IntArray | None
    """Per node: how many more pods would fit if nothing ran there; None: not counted."""
    others: str
    """What a placement must meet besides the room; empty if there is a placement."""


def _name_constraints(problem: Problem) -> str:
    """Return the fields of a request that may refuse a domain with enough room."""
    names = [change.removeprefix(WITHOUT) for _, change, _ in without_limits(problem)]
    if not names or len(problem.request.groups) > 1 or problem.request.groups[0].slices:
        names.append("the other constraints")
    return " and ".join(names)


def _unit_of_demand(problem: Problem) -> str:
    """Return the word for what a domain has room for: slots, if each pod takes one, else pods."""
    takes_one = all(group.request == ((SLOTS, 1),) for group in problem.request.groups)
    return SLOTS if takes_one else "pods"


def _count_used(problem: Problem) -> IntArray | None:
    """Return per node how many more pods would fit if nothing ran there; None for unequal pods.

    Cost: O(nodes × resources).
    """
    snapshot, shape = problem.snapshot, problem.shapes[0]
    needs = [(name, need) for name, need in shape.request.items() if need]
    if len(problem.shapes) > 1 or not needs:
        return None
    most = [snapshot.quantities(name, counts_free=False) // need for name, need in needs]
    fits = np.minimum(np.minimum.reduce(most), snapshot.max_node_slots)
    return np.asarray(np.where(shape.allowed, np.maximum(fits - shape.slots, 0), 0))


def find_shortage(problem: Problem) -> str:
    """Return a resource of which no node lists as much as a pod needs; empty if there is none.

    A node that lists no slots is one slot, which its first pod with devices takes. So a request in
    slots rarely fits nodes that list other resources, and the answer says what they list.

    Cost: O(nodes × resources).
    """
    snapshot = problem.snapshot
    listed = sorted({name for spec in snapshot.specs for name in spec.capacity} - {SLOTS})
    offered = list_some(map(show, listed), MAX_SHOWN_RESOURCES)
    for name, need in chain.from_iterable(group.request for group in problem.request.groups):
        largest = max(snapshot.quantities(name, counts_free=False), default=0)
        if name == SLOTS and listed and largest <= 1 and need:
            return f"nodes list no slots, and an unused node counts as one; they list {offered}"
        if largest < need and not largest:
            return f"no node lists {show(name)}; nodes list {offered or SLOTS}"
        if largest < need:
            needed, most = render_quantity(name, need), render_quantity(name, int(largest))
            return f"a pod needs {needed} {show(name)}, and the largest node lists {most}"
    return ""


def _judge_tier(problem: Problem, tier: int, chosen: int, demand: _Demand) -> list[DomainVerdict]:
    num_pods = demand.num_pods
    slots = problem.shapes[problem.scarcest_shape].slots_by_tier[tier]
    if 0 < tier < problem.root:
        # A node outside the tree is its own unit of every tier, and no domain.
        levels = problem.snapshot.levels
        num = int(np.searchsorted(levels.starts[tier], problem.snapshot.num_tree_nodes))
        slots = slots[: max(num, chosen + 1)]
    rank = np.arange(len(slots)) - np.minimum(slots, num_pods) * len(slots)
    nearest_first = np.argsort(rank)[: MAX_SHOWN_DOMAINS + 1].tolist()
    order = [chosen, *(unit for unit in nearest_first if unit != chosen)]
    shown = [unit for unit in order if unit >= 0][:MAX_SHOWN_DOMAINS]
    if len(slots) > 1 and _is_closed(problem, slots, demand):
        shown = []  # all rows would be equal
    rows = [
        _judge_chosen(problem, tier, unit, slots, demand)
        if unit == chosen
        else _judge_domain(problem, tier, unit, slots, demand, is_open=chosen >= 0)
        for unit in shown
    ]
    if len(slots) > len(shown):
        hidden_slots = np.delete(slots, shown)
        low, high = int(hidden_slots.min()), int(hidden_slots.max())
        room = str(low) if low == high else f"{low} to {high}"
        rows.append(
            DomainVerdict(
                f"{len(hidden_slots)} more" if shown else f"all {len(hidden_slots)}",
                VerdictKind.INFEASIBLE if chosen < 0 else VerdictKind.REJECTED,
                f"room for {room} of {num_pods} {demand.unit}",
            )
        )
    return rows


def _is_closed(problem: Problem, slots: IntArray, demand: _Demand) -> bool:
    """Return whether no pod may run on any node of a tier, even if all nodes were empty."""
    is_closed = not slots.any() and demand.used is not None and not demand.used.any()
    return is_closed and not demand.shortage and problem.snapshot.closed is None


def _judge_chosen(
    problem: Problem, tier: int, unit: int, slots: IntArray, demand: _Demand
) -> DomainVerdict:
    needs = f"{demand.num_pods} of {int(slots[unit])} {demand.unit}"
    return DomainVerdict(unit_name(problem, tier, unit), VerdictKind.CHOSEN, needs)


def _judge_domain(
    problem: Problem, tier: int, unit: int, slots: IntArray, demand: _Demand, *, is_open: bool
) -> DomainVerdict:
    """Return the verdict on a domain that is not chosen; `is_open`: another one is."""
    name, num_slots, num_pods = unit_name(problem, tier, unit), int(slots[unit]), demand.num_pods
    if num_slots < num_pods:
        more = demand.shortage or _describe_miss(problem, tier, unit, num_pods - num_slots, demand)
        num_closed = _count_closed_nodes(problem, tier, unit)
        more += f"; {num_closed} nodes are in exclusive domains" if num_closed else ""
        needs = f"{name}: {num_slots} of {num_pods} {demand.unit}; {more}"
        return DomainVerdict(name, VerdictKind.INFEASIBLE, needs)
    room = f"{name}: room for {num_slots} {demand.unit}, needs {num_pods}"
    if not is_open:
        needs = f"{room}, {UNMET}{demand.others}"
        return DomainVerdict(name, VerdictKind.INFEASIBLE, needs)
    return DomainVerdict(name, VerdictKind.REJECTED, f"{room}; ranks below the chosen domain")


def _describe_miss(problem: Problem, tier: int, unit: int, short: int, demand: _Demand) -> str:
    """Return how many pods have no room, and the fewest nodes to free for them, if these exist."""
    text = f"needs {short} more"
    if demand.used is None:
        return text
    levels = problem.snapshot.levels
    start, stop = int(levels.starts[tier][unit]), int(levels.stops[tier][unit])
    used = demand.used[start:stop]
    order = np.argsort(-used, kind="stable")
    num_nodes = int(np.searchsorted(np.cumsum(used[order]), short)) + 1
    if num_nodes > len(used):
        return text
    names = [show(problem.snapshot.specs[start + at].name) for at in sorted(order[:num_nodes])]
    room = f"room for {short} {'pod' if short == 1 else 'pods'}"
    return f"would fit if {room} were freed on {list_some(names, MAX_FREED_NODES)}"


def _count_closed_nodes(problem: Problem, tier: int, unit: int) -> int:
    """Return how many nodes of a unit the gang may not use because a domain is exclusive."""
    levels, closed = problem.snapshot.levels, problem.snapshot.closed
    start, stop = levels.starts[tier][unit], levels.stops[tier][unit]
    return 0 if closed is None else int(closed[start:stop].sum())


def unit_name(problem: Problem, tier: int, unit: int) -> str:
    """Return the name of a unit: its domain, its node, or `cluster`."""
    levels, snapshot = problem.snapshot.levels, problem.snapshot
    if tier == levels.root:
        return levels.tiers[tier]
    start, stop = int(levels.starts[tier][unit]), int(levels.stops[tier][unit])
    for inner_tier in range(tier, 0, -1):
        inner_unit = int(levels.unit_of_node[inner_tier][start])
        if (
            levels.domain_of_unit[inner_tier][inner_unit] >= 0
            and int(levels.stops[inner_tier][inner_unit]) == stop
        ):
            return show(
                snapshot.tree.domains[int(levels.domain_of_unit[inner_tier][inner_unit])].name
            )
    return show(snapshot.specs[start].name)


PLACED_MARK = "{placed}"
"""Placeholder in the text of a change: the number of pods that its solution places."""


def find_alternatives(problem: Problem, budget: Budget) -> tuple[Alternative, ...]:
    """Return changes that make the request feasible: the smallest of each kind, in fixed order.

    Changes that the budget cannot verify are left out.
    """
    alternatives: list[Alternative] = []
    try:
        for changes in _changes(problem):
            alternatives += islice(_feasible_changes(changes, budget), 1)
    except BudgetExhausted:
        pass
    return tuple(alternatives)


def _feasible_changes(
    changes: Iterator[tuple[str, Problem]], budget: Budget
) -> Iterator[Alternative]:
    """Yield the changes that make the request feasible."""
    for text, problem in changes:
        solution = solve(problem, budget)
        if solution is not None:
            yield _build_alternative(text, problem, solution)


def _changes(problem: Problem) -> Iterator[Iterator[tuple[str, Problem]]]:
    """Yield the kinds of changes, each as its steps from small to large."""
    yield _with_wider_tiers(problem)
    for _, change, without_limit in without_limits(problem):
        yield iter([(change, without_limit)])
    if count_excluded_nodes(problem):
        yield iter([(f"{WITHOUT}node exclusions", without_exclusions(problem))])
    yield _without_minimums(problem)


def without_limits(problem: Problem) -> Iterator[tuple[str, str, Problem]]:
    """Yield the kinds of bounds on domains: (first tier, text of the change, changed problem).

    Each problem lacks one kind of bound.
    """
    levels, request = problem.snapshot.levels, problem.request
    if problem.rules.limits:
        tier = levels.tiers[problem.rules.limits[0][0]]
        yield (
            tier,
            f"{WITHOUT}max_domains",
            replace(problem, rules=problem.rules._replace(limits=())),
        )
    if problem.rules.spread_rules:
        tier = levels.tiers[problem.rules.spread_rules[0].tier]
        yield (
            tier,
            f"{WITHOUT}spread",
            replace(problem, rules=problem.rules._replace(spread_rules=())),
        )
    if problem.rules.exclusive_rules or request.exclusive:
        tier = request.exclusive or levels.tiers[problem.rules.exclusive_rules[0].tier]
        yield tier, f"{WITHOUT}exclusive", _without_exclusive(problem)


def _without_exclusive(problem: Problem) -> Problem:
    """Return the problem of a gang that may share all its domains."""
    request = problem.request
    groups = tuple(replace(group, exclusive=None) for group in request.groups)
    sets = tuple(replace(group_set, exclusive=None) for group_set in request.sets)
    view = reopen_view(problem.snapshot, request.gang, request.priority)
    shared = replace(request, exclusive=None, groups=groups, sets=sets)
    return build_problem(view, shared, problem.evictable, budget=problem.budget)


def _without_minimums(problem: Problem) -> Iterator[tuple[str, Problem]]:
    """Yield the problem without any minimum: its solution places the most pods that fit."""
    request = problem.request
    needed = max(request.least, sum(group.least for group in request.groups))
    groups = tuple(replace(group, least=0) for group in request.groups)
    changed_request = replace(request, groups=groups, least=1)
    yield f"min {PLACED_MARK} instead of {needed}", replace(problem, request=changed_request)


def _with_wider_tiers(problem: Problem) -> Iterator[tuple[str, Problem]]:
    """Yield the problem once per higher tier, with that tier as the required one."""
    snapshot, job_tier = problem.snapshot, problem.highest_job_tier
    tiers, request = snapshot.levels.tiers, _without_tier_bounds(problem.request)
    for tier in tiers[job_tier + 1 :]:
        is_across = request.across_islands or tier == CLUSTER_TIER
        wider_request = replace(request, required=tier, across_islands=is_across)
        yield (
            f"required tier {tier} instead of {tiers[job_tier]}",
            build_problem(snapshot, wider_request, budget=problem.budget),
        )


def _without_tier_bounds(request: PlacementRequest) -> PlacementRequest:
    """Return a request without tier bounds on the job; a single group's required tier is one."""
    groups = request.groups
    if len(groups) == 1:
        groups = (replace(groups[0], required=None),)
    return replace(request, groups=groups, strategies=(), required=None)


def _build_alternative(change: str, problem: Problem, solution: PlacementCandidate) -> Alternative:
    values = solution.objective
    change = change.replace(PLACED_MARK, str(values[ObjectiveKey.PLACED][0]))
    tier = values[ObjectiveKey.JOB_TIER][0]
    return Alternative(change, problem.snapshot.levels.tiers[tier], is_feasible=True)


def without_exclusions(problem: Problem) -> Problem:
    """Return the problem with every node of the tree open to every pod."""
    snapshot = problem.snapshot
    open_snapshot = replace(
        snapshot,
        schedulable=np.ones(snapshot.num_nodes, dtype=np.bool_),
        closed=None,
        taint_sets=(frozenset(),),
        taint_set_of=np.zeros(snapshot.num_nodes, dtype=np.int64),
    )
    groups = tuple(replace(group, selector=(), affinity=()) for group in problem.request.groups)
    changed_request = replace(problem.request, groups=groups)
    return build_problem(open_snapshot, changed_request, budget=problem.budget)


def count_excluded_nodes(problem: Problem) -> dict[str, int]:
    """Return the number of nodes that each cause excludes for any group, without zero counts.

    A node is counted once, under its first cause: those of `Exclusion`, then in the order of
    `Snapshot.allowed_by_cause`.
    """
    counts = problem.snapshot.count_unschedulable()
    remaining = problem.snapshot.schedulable.copy()
    masks = [problem.snapshot.allowed_by_cause(group) for group in problem.request.groups]
    for cause, allowed in ((cause, row[cause]) for cause in masks[0] for row in masks):
        num_excluded = int((remaining & ~allowed).sum())
        if num_excluded:
            counts[cause] = counts.get(cause, 0) + num_excluded
        remaining &= allowed
    return counts
