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

    def place(self, tallies: FreeIndex, rank: int) -> GangPlace | None:
        """Return the best place, or the one after `rank` better ones; None if there is none."""


def build_place(
    tallies: FreeIndex, needs: Sequence[PodNeed], pods: tuple[tuple[int, ...], ...]
) -> GangPlace:
    """Return the place of pods, given the nodes per group and what each pod needs."""
    uses = tallies.count_uses(needs, pods)
    return GangPlace(pods, uses, tallies.span(use.spot for use in uses))


@dataclass(frozen=True, slots=True)
class PackPlacer:
    """Packs groups of equal pods whose only bound is their common tier."""

    items: tuple[PackItem, ...]
    """Per group, in the order of the request."""
    max_tier: int
    """Highest tier at which the gang may lie."""
    trial_cost: int

    def place(self, tallies: FreeIndex, rank: int) -> GangPlace | None:
        """Pack the pods into few domains."""
        gathered = self._pack(tallies, rank)
        if gathered is None:
            return None
        pairs = list(zip(self.items, gathered, strict=True))
        uses = tuple(
            SpotUse(spot, tallies.views[row.view_index].need, count)
            for row, found in pairs
            for spot, count in found.items()
        )
        return GangPlace(None, uses, tallies.span(use.spot for use in uses), gathered)

    def _pack(self, tallies: FreeIndex, rank: int) -> tuple[dict[int, int], ...] | None:
        if len(self.items) > 1:
            return pack_mixed(tallies, self.items, max_tier=self.max_tier, rank=rank)
        found = pack(tallies, self.items[0], max_tier=self.max_tier, rank=rank)
        return None if found is None else (found,)


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

    def place(self, tallies: FreeIndex, rank: int) -> GangPlace | None:
        """Search for the best place; it is the only one offered, whatever the rank."""
        del rank
        free = np.array(tallies.free, dtype=np.int64).reshape(self.snapshot.free.shape)
        free = free if self.reserved is None else free - self.reserved
        snapshot = replace(self.snapshot, free=free, slot_cache=SlotCache())
        problem = build_problem(snapshot, self.request)
        try:
            found = solve(problem, Budget(SEARCH_STEPS))
        except BudgetExhausted:
            return None
        if found is None or self._is_worse(problem, found.objective):
            return None
        return build_place(tallies, self.pod_needs, found.positions)

    def _is_worse(self, problem: Problem, found: Objective) -> bool:
        if self.current_objective is None:
            return False
        order = [term for term in problem.objective_order if term.key in PROTECTED_KEYS]
        return found.vector(order) > self.current_objective.vector(order)


def is_packable(problem: Problem) -> bool:
    """Return whether the only bound on the pods of a gang is their common tier."""
    request, snapshot = problem.request, problem.snapshot
    is_open = not (
        problem.running_positions
        or problem.unit_rules
        or problem.domain_limits
        or problem.traffic_pairs
    )
    has_wish = request.strategies or request.sort or request.sets or problem.node_weights
    if not is_open or has_wish or problem.evictable is not None:
        return False
    is_one = len(request.groups) == 1
    return all(
        any(need for _, need in group.request)
        and all(name in snapshot.resources for name, need in group.request if need)
        and not (group.slices or group.wishes)
        and (is_one or not (group.required or group.preferred))
        for group in request.groups
    )


def positions_of_spots(
    problem: Problem, pods_per_spot: Sequence[Mapping[int, int]], *, are_leaves: bool
) -> tuple[tuple[int, ...], ...]:
    """Return per group the nodes of pods on spots, sorted; in a leaf the fewest nodes."""
    if not are_leaves:
        return tuple(
            tuple(spot for spot in sorted(found) for _ in range(found[spot]))
            for found in pods_per_spot
        )
    (found,) = pods_per_spot
    nodes: list[int] = []
    levels, slots = problem.snapshot.levels, problem.shapes[0].slots
    for leaf, pods in sorted(found.items()):
        start, stop = int(levels.starts[1][leaf]), int(levels.stops[1][leaf])
        rooms = slots[start:stop].tolist()
        for at, count in fill_in_order(rooms, fewest_bins(rooms, pods), pods).items():
            nodes += [start + at] * count
    return (tuple(nodes),)
