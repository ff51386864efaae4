"""Place one gang of a batch again, beside the other gangs.

Gangs whose only bound is their common tier are packed. All others are searched as if they were
requested alone, and never lose a tier or a preference that they had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from generator.placement.batch.free_index import FreeIndex, PodNeed, SpotUse
from generator.placement.batch.pack_heuristic import PackItem, fewest_bins, pack, pack_mixed
from generator.placement.cluster.levels import IntArray
from generator.placement.cluster.slot_cache import SlotCache
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.cluster.subset_sum import fill_in_order
from generator.placement.presets import ObjectiveKey
from generator.placement.problem.objective import Objective
from generator.placement.problem.problem import Problem, build_problem
from generator.placement.request import PlacementRequest
from generator.placement.solve.budget import Budget, BudgetExhausted
from generator.placement.solve.solver import solve

SEARCH_STEPS = 20_000
"""Step budget of one search by the engine."""
SEARCH_TRIAL_COST = 100
"""Cost of such a search in a batch's budget, in packed gangs."""
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


class GangPlace(NamedTuple):
    """The place of a gang."""

    positions: tuple[tuple[int, ...], ...] | None
    """Per group the nodes of its pods, in index order; None: `pods_per_spot` has the pods."""
    spot_uses: tuple[SpotUse, ...]
    span: int
    pods_per_spot: tuple[Mapping[int, int], ...] = ()
    """Per group the pods per spot."""


class GangPlacer(Protocol):
    """Places one gang in the free capacity of an index."""

    @property
    def trial_cost(self) -> int:
        """Cost of one trial in the budget."""

    def place(self, free_index: FreeIndex, rank: int) -> GangPlace | None:
        """Return the best place, or the one after `rank` better ones; None if there is none."""


def build_place(
    free_index: FreeIndex, needs: Sequence[PodNeed], pods: tuple[tuple[int, ...], ...]
) -> GangPlace:
    """Return the place of pods, given the nodes per group and what each pod needs."""
    uses = free_index.count_uses(needs, pods)
    return GangPlace(pods, uses, free_index.span(use.spot for use in uses))


@dataclass(frozen=True, slots=True)
class PackPlacer:
    """Packs groups of equal pods whose only bound is their common tier."""

    items: tuple[PackItem, ...]
    """Per group, in the order of the request."""
    max_tier: int
    """Highest tier at which the gang may lie."""
    trial_cost: int

    def place(self, free_index: FreeIndex, rank: int) -> GangPlace | None:
        """Pack the pods into few domains."""
        pods_per_spot = self._pack(free_index, rank)
        if pods_per_spot is None:
            return None
        pairs = list(zip(self.items, pods_per_spot, strict=True))
        uses = tuple(
            SpotUse(spot, free_index.views[item.view_index].need, count)
            for item, item_spots in pairs
            for spot, count in item_spots.items()
        )
        return GangPlace(None, uses, free_index.span(use.spot for use in uses), pods_per_spot)

    def _pack(self, free_index: FreeIndex, rank: int) -> tuple[dict[int, int], ...] | None:
        if len(self.items) > 1:
            return pack_mixed(free_index, self.items, max_tier=self.max_tier, rank=rank)
        pods_per_spot = pack(free_index, self.items[0], max_tier=self.max_tier, rank=rank)
        return None if pods_per_spot is None else (pods_per_spot,)


@dataclass(frozen=True, slots=True)
class SearchPlacer:
    """Places any other gang by the engine's search."""

    snapshot: Snapshot
    """The cluster; its free quantities are replaced by those of the index."""
    request: PlacementRequest
    """Named so that no running pods belong to it."""
    reserved: IntArray | None
    """Quantities reserved for other gangs."""
    pod_needs: tuple[PodNeed, ...]
    """Per group."""
    current_objective: Objective | None
    """Objective of the gang's current place; None if it is not placed."""
    trial_cost: int = SEARCH_TRIAL_COST

    def place(self, free_index: FreeIndex, rank: int) -> GangPlace | None:
        """Search for the best place; every rank gets the same one."""
        del rank
        free = np.array(free_index.free, dtype=np.int64).reshape(self.snapshot.free.shape)
        free = free if self.reserved is None else free - self.reserved
        snapshot = replace(self.snapshot, free=free, slot_cache=SlotCache())
        problem = build_problem(snapshot, self.request)
        try:
            candidate = solve(problem, Budget(SEARCH_STEPS))
        except BudgetExhausted:
            return None
        if candidate is None or self._is_worse(problem, candidate.objective):
            return None
        return build_place(free_index, self.pod_needs, candidate.positions)

    def _is_worse(self, problem: Problem, objective: Objective) -> bool:
        if self.current_objective is None:
            return False
        order = [term for term in problem.objective_order if term.key in PROTECTED_KEYS]
        return objective.vector(order) > self.current_objective.vector(order)


def is_packable(problem: Problem) -> bool:
    """Return whether the only bound on the pods of a gang is their common tier."""
    request, snapshot = problem.request, problem.snapshot
    has_no_rules = not (
        problem.running_positions
        or problem.unit_rules
        or problem.domain_limits
        or problem.traffic_pairs
    )
    has_other_bounds = request.strategies or request.sort or request.sets or problem.node_weights
    if not has_no_rules or has_other_bounds or problem.evictable is not None:
        return False
    has_one_group = len(request.groups) == 1
    return all(
        any(need for _, need in group.request)
        and all(name in snapshot.resources for name, need in group.request if need)
        and not (group.slices or group.wishes)
        and (has_one_group or not (group.required or group.preferred))
        for group in request.groups
    )


def positions_of_spots(
    problem: Problem, pods_per_spot: Sequence[Mapping[int, int]], *, are_leaves: bool
) -> tuple[tuple[int, ...], ...]:
    """Return per group the nodes of pods on spots, sorted; in a leaf the fewest nodes."""
    if not are_leaves:
        return tuple(
            tuple(spot for spot in sorted(spots) for _ in range(spots[spot]))
            for spots in pods_per_spot
        )
    (spots,) = pods_per_spot
    nodes: list[int] = []
    levels, slots = problem.snapshot.levels, problem.shapes[0].slots
    for leaf, pods in sorted(spots.items()):
        start, stop = int(levels.starts[1][leaf]), int(levels.stops[1][leaf])
        leaf_slots = slots[start:stop].tolist()
        for offset, count in fill_in_order(leaf_slots, fewest_bins(leaf_slots, pods), pods).items():
            nodes += [start + offset] * count
    return (tuple(nodes),)
