"""How a gang of a batch that is being planned is placed anew beside the others.

Equal pods without bounds among each other are gathered on tallies. All others are searched as if
they were asked for alone, and move only to what is as good for themselves as where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from generator.placement.capacity import Ints, Snapshot
from generator.placement.counted import Counted
from generator.placement.counting import is_countable
from generator.placement.effort import Effort, EffortSpent
from generator.placement.gathering import fewest, gather
from generator.placement.objective import Objective
from generator.placement.presets import Key
from generator.placement.problem import Problem, build_problem
from generator.placement.request import PlacementRequest
from generator.placement.solve import solve
from generator.placement.tallies import Need, Tallies, Use

SEARCH_STEPS = 20_000
"""Budget of one search of the engine."""
SEARCH_PRICE = 20
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
        Key.DOMAINS,
        Key.SORT,
    }
)
"""Keys that say how good a place is for the gang itself, not for what is left."""


class Place(NamedTuple):
    """Where a gang is."""

    pods: tuple[tuple[int, ...], ...] | None
    """Per group the nodes of its placed pods, in index order; None: as `uses` says."""
    uses: tuple[Use, ...]
    span: int


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
    """One group of so many equal pods."""

    view: int
    need: Need
    num_pods: int
    cap: int
    """Highest tier at which the gang may lie."""
    price: int = 1

    def place(self, tallies: Tallies, rank: int) -> Place | None:
        """Gather the pods in few domains."""
        found = gather(tallies, self.view, self.num_pods, cap=self.cap, rank=rank)
        if found is None:
            return None
        uses = tuple(Use(spot, self.need, count) for spot, count in found.items())
        return Place(None, uses, tallies.span(found))


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
    """Return whether a gang is one group of equal pods with no bound but the tier of them all."""
    request, snapshot = problem.request, problem.snapshot
    if len(request.groups) != 1 or request.strategies or request.sort:
        return False
    group = request.groups[0]
    needs = [name for name, quantity in group.request if quantity]
    is_bounded = bool(needs) and all(name in snapshot.resources for name in needs)
    kinds = {part.kind for part in problem.parts((group.count,), problem.root)}
    return is_bounded and not group.slices and is_countable(problem, kinds)


def spread_out(problem: Problem, uses: Sequence[Use], *, are_leaves: bool) -> tuple[int, ...]:
    """Return the nodes of equal pods on spots, sorted; in a leaf the fewest that hold them."""
    found: list[int] = []
    levels, slots = problem.snapshot.levels, problem.shapes[0].slots
    for use in uses:
        if not are_leaves:
            found += [use.spot] * use.pods
            continue
        start, stop = int(levels.starts[1][use.spot]), int(levels.stops[1][use.spot])
        rooms, left = slots[start:stop].tolist(), use.pods
        for at in fewest(rooms, use.pods):
            count = min(rooms[at], left)
            found += [start + at] * count
            left -= count
    return tuple(sorted(found))
