"""How a gang of a batch that is being planned is placed anew beside the others.

Pods without bounds among each other are gathered on tallies. All others are searched as if they
were asked for alone, and never lose a tier or a wish that they had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from generator.placement.batch.free_index import Need, Tallies, Use
from generator.placement.batch.pack_heuristic import Row, fewest, gather, gather_mixed
from generator.placement.cluster.levels import Ints
from generator.placement.cluster.slot_cache import Counted
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.cluster.subset_sum import poured
from generator.placement.presets import Key
from generator.placement.problem.objective import Objective
from generator.placement.problem.problem import Problem, build_problem
from generator.placement.request import PlacementRequest
from generator.placement.solve.budget import Effort, EffortSpent
from generator.placement.solve.solver import solve

SEARCH_STEPS = 20_000
"""Budget of one search of the engine."""
SEARCH_PRICE = 100
"""What such a search costs of a batch's budget, in gangs gathered on tallies."""
OWN_KEYS = frozenset(
    {
        Key.PLACED,
        Key.STRATEGY,
        Key.JOB_TIER,
        Key.GROUP_TIER,
        Key.HISTOGRAM,
        Key.PREFERRED_MISSES,
        Key.NODE_MISSES,
    }
)
"""Keys in which no gang that is searched gets worse; domains are in the span of the batch."""


class Place(NamedTuple):
    """Where a gang is."""

    pods: tuple[tuple[int, ...], ...] | None
    """Per group the nodes of its placed pods, in index order; None: as `gathered` says."""
    uses: tuple[Use, ...]
    span: int
    gathered: tuple[Mapping[int, int], ...] = ()
    """Per group pods by spot."""


class Mover(Protocol):
    """Places one gang on what tallies have free."""

    @property
    def price(self) -> int:
        """What it costs of the budget."""

    def place(self, tallies: Tallies, rank: int) -> Place | None:
        """Return a place, or the one after `rank` others; None where there is none."""


def place_of(tallies: Tallies, needs: Sequence[Need], pods: tuple[tuple[int, ...], ...]) -> Place:
    """Return a place by the pods of every group and what each pod takes."""
    uses = tallies.uses(needs, pods)
    return Place(pods, uses, tallies.span(use.spot for use in uses))


@dataclass(frozen=True, slots=True)
class Gathered:
    """Groups of so many pods each, with no bound but the tier of them all."""

    rows: tuple[Row, ...]
    """Per group, in the order of the request."""
    cap: int
    """Highest tier at which the gang may lie."""
    price: int

    def place(self, tallies: Tallies, rank: int) -> Place | None:
        """Gather the pods in few domains."""
        gathered = self._gathered(tallies, rank)
        if gathered is None:
            return None
        pairs = list(zip(self.rows, gathered, strict=True))
        uses = tuple(
            Use(spot, tallies.views[row.view].need, count)
            for row, found in pairs
            for spot, count in found.items()
        )
        return Place(None, uses, tallies.span(use.spot for use in uses), gathered)

    def _gathered(self, tallies: Tallies, rank: int) -> tuple[dict[int, int], ...] | None:
        if len(self.rows) > 1:
            return gather_mixed(tallies, self.rows, cap=self.cap, rank=rank)
        found = gather(tallies, self.rows[0], cap=self.cap, rank=rank)
        return None if found is None else (found,)


@dataclass(frozen=True, slots=True)
class Searched:
    """Any other gang, by the engine's search."""

    snapshot: Snapshot
    """Its free quantities are not looked at."""
    request: PlacementRequest
    """Under a name that nothing runs by."""
    kept: Ints | None
    """What others have reserved of free quantities."""
    needs: tuple[Need, ...]
    """Per group."""
    worst: Objective | None
    """Where the gang is now; None where it is not placed."""
    price: int = SEARCH_PRICE

    def place(self, tallies: Tallies, rank: int) -> Place | None:
        """Search; the best place alone is offered, whatever the rank."""
        del rank
        free = np.array(tallies.free, dtype=np.int64).reshape(self.snapshot.free.shape)
        free = free if self.kept is None else free - self.kept
        snapshot = replace(self.snapshot, free=free, counted=Counted())
        problem = build_problem(snapshot, self.request)
        try:
            found = solve(problem, Effort(SEARCH_STEPS))
        except EffortSpent:
            return None
        if found is None or self._is_worse(problem, found.objective):
            return None
        return place_of(tallies, self.needs, found.pods)

    def _is_worse(self, problem: Problem, found: Objective) -> bool:
        if self.worst is None:
            return False
        order = [term for term in problem.order if term.key in OWN_KEYS]
        return found.vector(order) > self.worst.vector(order)


def is_gathered(problem: Problem) -> bool:
    """Return whether nothing binds the pods of a gang but the tier of them all."""
    request, snapshot = problem.request, problem.snapshot
    is_open = not (problem.own or problem.rules or problem.limits or problem.pairs)
    has_wish = request.strategies or request.sort or request.sets or problem.node_weights
    if not is_open or has_wish or problem.eviction is not None:
        return False
    is_one = len(request.groups) == 1
    return all(
        any(need for _, need in group.request)
        and all(name in snapshot.resources for name, need in group.request if need)
        and not (group.slices or group.wishes)
        and (is_one or not (group.required or group.preferred))
        for group in request.groups
    )


def spread_out(
    problem: Problem, gathered: Sequence[Mapping[int, int]], *, are_leaves: bool
) -> tuple[tuple[int, ...], ...]:
    """Return per group the nodes of pods on spots, sorted; in a leaf the fewest that hold them."""
    if not are_leaves:
        return tuple(
            tuple(spot for spot in sorted(found) for _ in range(found[spot])) for found in gathered
        )
    (found,) = gathered
    nodes: list[int] = []
    levels, slots = problem.snapshot.levels, problem.shapes[0].slots
    for leaf, pods in sorted(found.items()):
        start, stop = int(levels.starts[1][leaf]), int(levels.stops[1][leaf])
        rooms = slots[start:stop].tolist()
        for at, count in poured(rooms, fewest(rooms, pods), pods).items():
            nodes += [start + at] * count
    return (tuple(nodes),)
