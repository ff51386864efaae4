"""The gangs of a batch: where they are so far, and how the local search may move them.

Gangs whose only bound is their common tier are packed: tier by tier from the top into the fewest
units that hold the pods, and among such sets into the one with the fewest slots left. A *rank*
skips the best domains, so that the search can try domains that are as good for this gang and better
for the next. All other gangs are searched as if they were requested alone, and never lose a tier or
a preference that they had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from generator.placement.answer import Placement, ReasonKind
from generator.placement.batch.local_search import BatchMember, GangPlace, GangPlacer
from generator.placement.budget import Budget, BudgetExhausted
from generator.placement.cluster.free_capacity import FreeCapacity, NodeUse, PodNeed
from generator.placement.cluster.gang_view import view_for
from generator.placement.cluster.levels import LEAF_TIER, IntArray
from generator.placement.cluster.min_cover import choose_fewest_bins, fill_in_order
from generator.placement.cluster.shapes import PodShape
from generator.placement.cluster.snapshot import Snapshot, with_running, without_running
from generator.placement.engine import as_running_gang
from generator.placement.presets import ObjectiveKey, Preset
from generator.placement.problem.objective import Objective, PositionsPerGroup
from generator.placement.problem.problem import Problem, build_problem
from generator.placement.request import PlacementRequest
from generator.placement.solve.solver import solve

SPAN_FACTOR = 8
"""A domain counts as this many of the tier below."""
SEARCH_STEPS = 20_000
"""Step budget of one search by the engine."""
SEARCH_TRIAL_COST = 100
"""Cost of such a search in a batch's budget, in packed groups."""
NO_GANG = ""
"""A name that no gang has, so that no running pods belong to it."""
RETRYABLE_REASONS = frozenset({ReasonKind.NO_FIT, ReasonKind.NO_DOMAIN, ReasonKind.LIMIT})
"""Reasons that may no longer hold after other gangs move."""
PROTECTED_KEYS = frozenset(
    {
        ObjectiveKey.PLACED,
        ObjectiveKey.STRATEGY,
        ObjectiveKey.JOB_TIER,
        ObjectiveKey.GROUP_TIER,
        ObjectiveKey.HISTOGRAM,
        ObjectiveKey.PREFERRED_MISSES,
        ObjectiveKey.NODE_MISSES,
    }
)
"""Keys that a search must not make worse; domains are part of the batch's span instead."""


class PlacedGangs:
    """The gangs of a batch that are placed so far, and the cluster with them."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Begin with no gang placed."""
        self.base_snapshot = snapshot
        """Without the pods that the batch evicts, and without the gangs of the batch."""
        self.requests: list[PlacementRequest] = []
        """The requests in the order in which they were placed."""
        self.placements: list[Placement] = []
        self._snapshot = snapshot
        self._waiting: list[tuple[PlacementRequest, Placement]] = []

    def add(self, request: PlacementRequest, placement: Placement) -> None:
        """Add the answer to a request; a gang that is placed starts after its victims end."""
        self.requests.append(request)
        self.placements.append(placement)
        if placement.victims:
            names, priority = placement.victims, request.priority
            self.base_snapshot = without_victims(self.base_snapshot, names, priority=priority)
            self._snapshot = without_victims(self.snapshot, names, priority=priority)
        if placement.is_feasible:
            self._waiting.append((request, placement))

    def move(self, placements: Mapping[int, Placement]) -> None:
        """Replace the answers of the gangs with these indexes."""
        names = [self.requests[index].gang for index in placements]
        self._snapshot = without_running(self.snapshot, *names)
        for index, placement in placements.items():
            self.placements[index] = placement
            self._waiting.append((self.requests[index], placement))

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot with all placed gangs; O(nodes + gangs since the last read)."""
        if self._waiting:
            gangs = [as_running_gang(request, placement) for request, placement in self._waiting]
            self._snapshot, self._waiting = with_running(self._snapshot, *gangs), []
        return self._snapshot

    @property
    def is_within_leaves(self) -> bool:
        """Whether each gang is placed in one domain of the lowest tier."""
        lowest = self.base_snapshot.levels.tiers[:2]
        return all(found.is_feasible and found.tier in lowest for found in self.placements)


def without_victims(snapshot: Snapshot, victims: Sequence[str], *, priority: int) -> Snapshot:
    """Return the snapshot after victims, `gang` or `gang@node`, are evicted.

    Args:
        snapshot: the cluster where they run.
        victims: the names of the victims.
        priority: priority of the gang that evicts them; distinguishes a gang with an @ in its name
            from the pods of another gang on a node.
    """
    for victim in victims:
        gang, _, node = victim.rpartition("@")
        victim_gang = snapshot.running.get(victim)
        if victim_gang is not None and victim_gang.preemptible and victim_gang.priority < priority:
            snapshot = without_running(snapshot, victim)
        elif gang in snapshot.running:
            running_gang = snapshot.running[gang]
            remaining_pods = tuple(
                gang_pods for gang_pods in running_gang.pods if gang_pods.node != node
            )
            snapshot = with_running(
                without_running(snapshot, gang), replace(running_gang, pods=remaining_pods)
            )
    return snapshot


class BatchMembers:
    """The members of one batch, and the capacity that all of them leave free."""

    def __init__(
        self, placed: PlacedGangs, budget: Budget, *, keeps_tiers: bool, num_settled: int = 0
    ) -> None:
        """Build the members.

        Args:
            placed: the gangs so far.
            budget: the budget of the batch; it ends the search for a member too.
            keeps_tiers: whether no gang may move to a higher tier.
            num_settled: the first gangs, which must not get a worse place for the others.
        """
        self._placed, self._budget, self._keeps_tiers = placed, budget, keeps_tiers
        lowest = min(request.priority for request in placed.requests)
        # A gang of a higher priority may keep capacity that is reserved for others, not move there.
        self.free = FreeCapacity(view_for(placed.snapshot, NO_GANG, lowest))
        self._shape_indexes: dict[tuple[object, ...], int] = {}
        self._has_exclusive = any(request.exclusive for request in placed.requests)
        self._classes: dict[PlacementRequest, tuple[Problem, tuple[int, ...]]] = {}
        priorities = sorted({request.priority for request in placed.requests}, reverse=True)
        self.members = [
            self._build_member(request, placement, priorities.index(request.priority))
            for request, placement in zip(placed.requests, placed.placements, strict=True)
        ]
        """One per gang, in the order in which they were placed."""
        for member in self.members[:num_settled]:
            member.is_settled = True

    def _is_fixed(self, request: PlacementRequest, placement: Placement) -> bool:
        """Return whether a gang stays where it is, or without a place."""
        return (
            self._has_exclusive
            or request.preset is not Preset.OPTIMAL
            or bool(request.strategies)
            or request.limits_nodes
            or request.gang in self._placed.base_snapshot.running
            or bool(placement.victims)
            or (placement.reason is not None and placement.reason.kind not in RETRYABLE_REASONS)
        )

    def _build_member(
        self, request: PlacementRequest, placement: Placement, priority_rank: int
    ) -> BatchMember:
        self._budget.check_cancellation()
        pods = None
        if placement.is_feasible:
            pods = _placed_positions(self._placed.snapshot, request, placement)
        needs = tuple(self.free.pod_need(dict(group.request)) for group in request.groups)
        place = None if pods is None else build_place(self.free, needs, pods)
        if self._is_fixed(request, placement):
            return BatchMember(priority_rank, None, place, 0 if place is None else place.span)
        problem, shapes = self._resolve(request)
        min_span = 0 if pods is None else _min_span(problem, [*map(len, pods)])
        full_counts = [group.count if group.least == group.count else 0 for group in request.groups]
        counts = full_counts if pods is None else [*map(len, pods)]
        if not shapes or not all(counts):
            objective = None if pods is None else Objective(problem, pods, 0)
            placer: GangPlacer = _SearchPlacer(problem, needs, objective, self._budget)
            return BatchMember(priority_rank, placer, place, min_span)
        max_tier = problem.job_cap
        if self._keeps_tiers and place is not None:
            placed = [use.node for use in place.uses]
            max_tier = problem.snapshot.levels.common_tier(min(placed), max(placed))
        placer = _PackPlacer(tuple(map(PackItem, shapes, counts)), needs, max_tier)
        return BatchMember(priority_rank, placer, place, min_span)

    def _resolve(self, request: PlacementRequest) -> tuple[Problem, tuple[int, ...]]:
        """Return a request as a problem before the batch, and its shapes in the free capacity.

        Without shapes the gang must be searched. Gangs whose requests differ only by name share
        both.
        """
        base, final = self._placed.base_snapshot, self._placed.snapshot
        nameless = replace(request, gang=NO_GANG)
        key = request if base.nominated else replace(nameless, priority=0, deadline_s=None)
        if key not in self._classes:
            problem = build_problem(view_for(base, request.gang, request.priority), nameless)
            shapes: tuple[int, ...] = ()
            if _is_packable(problem):
                view = view_for(final, request.gang, request.priority)
                after = build_problem(view, nameless)
                shapes = tuple(self._shape_index(after.shapes[at]) for at in after.shape_of)
            self._classes[key] = problem, shapes
        return self._classes[key]

    def _shape_index(self, shape: PodShape) -> int:
        key = self.free.pod_need(shape.request), shape.allowed.tobytes()
        if key not in self._shape_indexes:
            self._shape_indexes[key] = self.free.add_shape(shape)
        return self._shape_indexes[key]


def build_place(free: FreeCapacity, needs: Sequence[PodNeed], pods: PositionsPerGroup) -> GangPlace:
    """Return the place of pods, given what a pod needs and the nodes per group."""
    uses: Counter[tuple[int, PodNeed]] = Counter()
    for need, positions in zip(needs, pods, strict=True):
        uses.update((node, need) for node in positions)
    node_uses = tuple(NodeUse(node, need, num_pods) for (node, need), num_pods in uses.items())
    return GangPlace(pods, node_uses, _span(free, [use.node for use in node_uses]))


def _span(free: FreeCapacity, nodes: list[int]) -> int:
    """Return the domains around nodes, each counted as `SPAN_FACTOR` of the tier below."""
    span, weight = 0, 1
    for unit_of in free.levels.unit_of_node[1:-1]:
        span += weight * len(set(unit_of[nodes].tolist()))
        weight *= SPAN_FACTOR
    return span


@dataclass(frozen=True, slots=True)
class _PackPlacer:
    """Places a gang whose only bound is the common tier of its pods."""

    items: tuple[PackItem, ...]
    """Per group."""
    needs: tuple[PodNeed, ...]
    max_tier: int

    @property
    def trial_cost(self) -> int:
        return len(self.items)

    def place(self, free: FreeCapacity, rank: int) -> GangPlace | None:
        packed = pack(free, self.items, max_tier=self.max_tier, rank=rank)
        if packed is None:
            return None
        pods = tuple(
            tuple(node for node in sorted(nodes) for _ in range(nodes[node])) for nodes in packed
        )
        return build_place(free, self.needs, pods)


@dataclass(frozen=True, slots=True)
class _SearchPlacer:
    """Places any other gang by the engine's search."""

    problem: Problem
    """The request before the batch, without a gang, so that no running pods belong to it."""
    needs: tuple[PodNeed, ...]
    current_objective: Objective | None
    """Objective of the gang's current place; None if it is not placed."""
    budget: Budget
    """The budget of the batch."""
    trial_cost: int = SEARCH_TRIAL_COST

    def place(self, free: FreeCapacity, rank: int) -> GangPlace | None:
        """Search for the best place; every rank gets the same place."""
        del rank
        snapshot = replace(self.problem.snapshot, free=free.free_array())
        problem = build_problem(snapshot, self.problem.request)
        try:
            candidate = solve(problem, self.budget.limited_to(SEARCH_STEPS))
        except BudgetExhausted:
            return None
        if candidate is None or self._is_worse(problem, candidate.objective):
            return None
        return build_place(free, self.needs, candidate.positions)

    def _is_worse(self, problem: Problem, objective: Objective) -> bool:
        if self.current_objective is None:
            return False
        order = [term for term in problem.objective_order if term.key in PROTECTED_KEYS]
        return objective.vector(order) > self.current_objective.vector(order)


def _is_packable(problem: Problem) -> bool:
    """Return whether the only bound on the pods of a gang is their common tier."""
    request, snapshot = problem.request, problem.snapshot
    if problem.own_pods.positions or problem.has_domain_rules or problem.traffic_pairs:
        return False
    if request.strategies or request.sort or request.sets or problem.node_weights:
        return False
    for group in request.groups:
        needed = [name for name, need in group.request if need]
        if not needed or not all(name in snapshot.resources for name in needed):
            return False
        if group.slices or group.preferred_labels:
            return False
        if len(request.groups) > 1 and (group.required or group.preferred):
            return False
    return True


def _placed_positions(
    snapshot: Snapshot, request: PlacementRequest, placement: Placement
) -> PositionsPerGroup:
    """Return per group the positions of the placed pods of an answer, in index order."""
    nodes_by_group = (placement.assignment[group.name] for group in request.groups)
    return tuple(
        tuple(snapshot.position_of[node] for node in nodes if node is not None)
        for nodes in nodes_by_group
    )


def _min_span(problem: Problem, counts: Sequence[int]) -> int:
    """Return a lower bound on the span of these pods per group, on the cluster before the batch.

    It assumes that each group gets the largest units of each tier.
    """
    min_span, weight = 0, 1
    levels, cluster = problem.snapshot.levels, np.zeros(1, dtype=np.int64)
    shapes = [problem.shapes[shape] for shape in problem.shape_of]
    for tier in range(1, problem.root):
        covers = [shape.min_cover(levels, tier, problem.root) for shape in shapes]
        fewest = [
            int(cover.min_units(cluster, num_pods)[0])
            for cover, num_pods in zip(covers, counts, strict=True)
        ]
        min_span += weight * max(1, *fewest)
        weight *= SPAN_FACTOR
    return min_span


MAX_UNITS_COMPARED = 8
"""Domains of a tier whose contents are compared."""


class PackItem(NamedTuple):
    """Equal pods that are to be placed."""

    shape: int
    """Index of their shape in the free capacity."""
    num_pods: int


class _UnitFill(NamedTuple):
    """A unit in which all items may lie; smaller ones come first."""

    units_used: tuple[int, ...]
    """Units that the first item needs, per tier from below the domain down to the leaves."""
    slots: int
    unit: int
    leaves: tuple[int, ...]
    """The leaves that the first item needs."""


def pack(
    free: FreeCapacity, items: Sequence[PackItem], *, max_tier: int, rank: int = 0
) -> tuple[dict[int, int], ...] | None:
    """Return pods per node of items that share a domain; None if none is found.

    The domain is in the lowest tier that has one. Of several domains, the one with the fewest inner
    domains in use is taken, then the tightest, then the first. `rank` skips that many domains, but
    not the last. The scarcest item goes first, into leaves that also hold the other items. These
    are placed beside it where possible.
    """
    totals = [int(free.slots_by_tier(item.shape)[-1].sum()) for item in items]
    order = sorted(range(len(items)), key=lambda index: (totals[index], index))
    scarcest_first = [items[index] for index in order]
    for tier in range(max_tier + 1):
        units = _units_with_capacity(free, scarcest_first, tier)
        skipped = min(rank, max(len(units) - 1, 0))
        if tier > LEAF_TIER:
            compared = units[:MAX_UNITS_COMPARED]
            domains = sorted(_domain(free, scarcest_first, tier, unit) for unit in compared)
            domains = domains[min(skipped, len(domains) - 1) :]
        else:
            domains = [
                _UnitFill((), 0, unit, (unit,)) for unit in units[skipped:][:MAX_UNITS_COMPARED]
            ]
        for domain in domains:
            placed = _pack_in_domain(free, scarcest_first, tier, domain)
            if placed is not None:
                return tuple(placed[order.index(index)] for index in range(len(items)))
    return None


def _units_with_capacity(free: FreeCapacity, items: Sequence[PackItem], tier: int) -> list[int]:
    """Return the units of a tier that hold each item, those with the fewest slots first."""
    slots = [free.slots_by_tier(item.shape)[tier] for item in items]
    holds_all = slots[0] >= items[0].num_pods
    for item_slots, item in zip(slots[1:], items[1:], strict=True):
        holds_all &= item_slots >= item.num_pods
    units = holds_all.nonzero()[0]
    tightest_first: list[int] = units[slots[0][units].argsort(kind="stable")].tolist()
    return tightest_first


def _domain(free: FreeCapacity, items: Sequence[PackItem], tier: int, unit: int) -> _UnitFill:
    """Return how few inner units of a unit hold all items, counted in pods of the first item."""
    slots = free.slots_by_tier(items[0].shape)
    num_pods = _equivalent_pods(free, items, tier, unit)
    chosen, units_used = [unit], []
    for upper in range(tier, LEAF_TIER, -1):
        children = _children(free, upper, chosen)
        chosen = fewest_bins(slots[upper - 1], children, num_pods)
        units_used.append(len(chosen))
    return _UnitFill(tuple(units_used), int(slots[tier][unit]), unit, tuple(chosen))


def _equivalent_pods(free: FreeCapacity, items: Sequence[PackItem], tier: int, unit: int) -> int:
    """Return the pods of the first item that use as much as all items, if they fit."""
    unit_slots = [int(free.slots_by_tier(item.shape)[tier][unit]) for item in items]
    all_items = sum(
        -(-item.num_pods * unit_slots[0] // slots)
        for item, slots in zip(items, unit_slots, strict=True)
    )
    return max(items[0].num_pods, min(all_items, unit_slots[0]))


def _children(free: FreeCapacity, tier: int, units: Iterable[int]) -> list[int]:
    return [child for unit in units for child in free.levels.children(tier, unit)]


def _pack_in_domain(
    free: FreeCapacity, items: Sequence[PackItem], tier: int, domain: _UnitFill
) -> list[dict[int, int]] | None:
    """Return pods per node of all items in one domain; the first item decides the leaves."""
    if tier == 0 and len(items) == 1:
        return [{domain.unit: items[0].num_pods}]
    mark, leaves, placed = len(free.changes), list(domain.leaves), list[dict[int, int]]()
    for item in items:
        if tier > LEAF_TIER and not _add_leaves(free, item, tier, (domain.unit, leaves)):
            break
        nodes = _children(free, LEAF_TIER, leaves) if tier else [domain.unit]
        slots = free.slots_by_tier(item.shape)[0]
        if int(slots[nodes].sum()) < item.num_pods:
            break
        chosen = fewest_bins(slots, nodes, item.num_pods)
        placed.append(fill_in_order(slots, chosen, item.num_pods))
        if len(items) > 1:
            for node, num_pods in placed[-1].items():
                free.take(item.shape, node, num_pods)
    free.undo(mark)
    return placed if len(placed) == len(items) else None


def _add_leaves(
    free: FreeCapacity, item: PackItem, tier: int, unit_and_leaves: tuple[int, list[int]]
) -> bool:
    """Add the fewest leaves of a unit in which an item has room beside the leaves so far."""
    unit, leaves = unit_and_leaves
    slots = free.slots_by_tier(item.shape)[LEAF_TIER]
    missing = item.num_pods - int(slots[leaves].sum())
    if missing <= 0:
        return True
    others = [unit]
    for upper in range(tier, LEAF_TIER, -1):
        others = _children(free, upper, others)
    others = [leaf for leaf in others if leaf not in leaves]
    if int(slots[others].sum()) < missing:
        return False
    leaves += fewest_bins(slots, others, missing)
    return True


def fewest_bins(slots: IntArray, bins: Sequence[int], num_pods: int) -> list[int]:
    """Return the fewest of these bins that hold the pods; all bins together must hold them.

    Of such sets it is the one with the fewest slots left, unless that takes too long to find: then
    only the last bin is tight. Ascending.
    """
    filled = [
        (index, number) for index, number in zip(bins, slots[bins].tolist(), strict=True) if number
    ]
    numbers = [number for _, number in filled]
    chosen = choose_fewest_bins(numbers, num_pods, is_tight=True)
    if chosen is None:
        chosen = _largest_bins(numbers, num_pods)
    return [filled[index][0] for index in chosen]


def _largest_bins(slots: Sequence[int], num_pods: int) -> list[int]:
    """Return the fewest bins: the largest ones, and the smallest one that holds the rest."""
    by_size = sorted(range(len(slots)), key=lambda index: (-slots[index], index))
    count = 0
    while num_pods > slots[by_size[count]]:
        num_pods -= slots[by_size[count]]
        count += 1
    rest = [index for index in by_size[count:] if slots[index] >= num_pods]
    return sorted([*by_size[:count], min(rest, key=lambda index: (slots[index], index))])
