"""Place a batch of gangs jointly: never worse than one after the other, and better where possible.

The gangs are first placed one after the other, by priority and then in the given order. A gang that
has a place then keeps a place. Where gangs compete for capacity, `local_search` places them again
together, to place gangs that found no place and to reduce the *span*: the domains in which gangs
lie, each counting as eight of the tier below. Pure: the only clock is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from generator.placement.answer import Placement
from generator.placement.batch.local_search import GangPlace, LocalSearch
from generator.placement.batch.members import SPAN_FACTOR, BatchMembers
from generator.placement.batch.sequential import (
    SequentialPlacement,
    place_sequentially,
)
from generator.placement.budget import Budget
from generator.placement.cluster.gang_view import view_for
from generator.placement.cluster.snapshot import Snapshot, with_running, without_running
from generator.placement.engine import as_running_gang, build_answer
from generator.placement.problem.objective import Objective, PlacementCandidate
from generator.placement.problem.problem import build_problem
from generator.placement.request import PlacementRequest
from topology.model.errors import InvariantError

BATCH_STEPS = 4000
"""Base budget of a batch, in trial placements of a gang: a few tenths of a second."""
STEPS_PER_GANG = 10
"""Additional budget per gang."""
SEQUENTIAL_TIME_SHARE = 0.7
"""Share of a batch's deadline for placing its gangs one after the other."""


class BatchOptions(NamedTuple):
    """What the caller of a batch decides."""

    steps: int = BATCH_STEPS
    """Budget of the joint placement, in addition to the budget per gang."""
    keeps_tiers: bool = False
    """Whether each gang stays at the tier that it had in sequence or a lower one.

    Otherwise it may move up if others of its priority gain more than it loses.
    """
    explains: bool = True
    """Whether placements are explained, which takes longer than to find them."""


DEFAULT_OPTIONS: Final = BatchOptions()


@dataclass(frozen=True, slots=True)
class BatchPlacement:
    """The answers to a batch."""

    placements: tuple[Placement, ...]
    """One per request, in the order of the requests."""
    make_snapshot: Callable[[], Snapshot]
    span: int
    """Span of all placed gangs."""
    sequential_span: int
    """Span of all placed gangs when they are placed one after the other."""
    num_moved: int
    """Gangs whose place differs from the one that they had in sequence."""
    is_proved: bool
    """Whether every gang is placed and has the smallest span that it could have alone."""

    @property
    def snapshot(self) -> Snapshot:
        """The cluster with all placed gangs running and victims removed; computed when read."""
        return self.make_snapshot()


def place_batch(
    snapshot: Snapshot,
    requests: Sequence[PlacementRequest],
    *,
    clock: Callable[[], float] | None = None,
    deadline_s: float | None = None,
    options: BatchOptions = DEFAULT_OPTIONS,
) -> BatchPlacement:
    """Return the best places found for gangs that run together.

    A gang of lower priority never makes a gang of higher priority worse. Among equal priorities,
    the given order is the queue. Only gangs with the preset `optimal` that evict no pods, and of
    which no pod runs yet, are moved for others; none if a gang of the batch has exclusive domains.

    Args:
        snapshot: the cluster.
        requests: requests of distinct gangs.
        clock: seconds of a monotonic clock, for the deadlines of the requests and of the batch.
        deadline_s: time limit of the batch: most of it is divided equally among the gangs for
            placing them in sequence; at least the rest is for placing them jointly.
        options: what is left to the caller.

    Raises:
        InvariantError: two requests name the same gang.
    """
    if len({request.gang for request in requests}) < len(requests):
        raise InvariantError("two requests of a batch name the same gang")
    started_at_s = clock() if clock is not None else 0.0
    queue = sorted(range(len(requests)), key=lambda index: -requests[index].priority)
    budget = Budget(options.steps + STEPS_PER_GANG * len(requests))
    if clock is not None and deadline_s is not None:
        budget = Budget(budget.steps, clock, started_at_s + deadline_s)
    gang_deadline_s = (
        None if deadline_s is None else deadline_s * SEQUENTIAL_TIME_SHARE / max(len(requests), 1)
    )
    sequential = place_sequentially(
        snapshot,
        [requests[index] for index in queue],
        clock=clock,
        gang_deadline_s=gang_deadline_s,
        explains=options.explains,
    )
    batch = (
        _sequential_answer(sequential)
        if sequential.is_within_leaves
        else _improve_jointly(sequential, budget, options)
    )
    placements = dict(zip(queue, batch.placements, strict=True))
    return replace(batch, placements=tuple(placements[index] for index in range(len(requests))))


def _sequential_answer(sequential: SequentialPlacement) -> BatchPlacement:
    """Return the sequential answer, in which every gang has the smallest possible span."""
    min_gang_span = sum(
        SPAN_FACTOR**tier for tier in range(sequential.base_snapshot.levels.root - 1)
    )
    span = min_gang_span * len(sequential.requests)
    return BatchPlacement(
        sequential.placements,
        lambda: sequential.final_snapshot,
        span,
        span,
        num_moved=0,
        is_proved=True,
    )


def _improve_jointly(
    sequential: SequentialPlacement, budget: Budget, options: BatchOptions
) -> BatchPlacement:
    """Return the answer after the local search has moved gangs."""
    batch = BatchMembers(sequential, keeps_tiers=options.keeps_tiers)
    before = [member.place for member in batch.members]
    LocalSearch(batch.members, batch.free, budget).run()
    after = [member.place for member in batch.members]
    moved = {
        index: place
        for index, (old_place, place) in enumerate(zip(before, after, strict=True))
        if place is not None and place != old_place
    }
    snapshot, placements = _apply_moves(sequential, moved, explains=options.explains)
    return BatchPlacement(
        placements=placements,
        make_snapshot=lambda: snapshot,
        span=sum(place.span for place in after if place is not None),
        sequential_span=sum(place.span for place in before if place is not None),
        num_moved=len(moved),
        is_proved=all(
            member.place and member.place.span == member.min_span for member in batch.members
        ),
    )


def _apply_moves(
    sequential: SequentialPlacement, places: Mapping[int, GangPlace], *, explains: bool
) -> tuple[Snapshot, tuple[Placement, ...]]:
    """Return the snapshot and the answers after gangs move from their sequential places."""
    snapshot, placements = sequential.final_snapshot, list(sequential.placements)
    for index in places:
        snapshot = without_running(snapshot, sequential.requests[index].gang)
    for index, place in places.items():
        request = sequential.requests[index]
        problem = build_problem(view_for(snapshot, request.gang, request.priority), request)
        # Alone, the gang might do better.
        objective = Objective(problem, place.positions, 0)
        candidate = PlacementCandidate(place.positions, objective, is_proved=False)
        placements[index] = build_answer(problem, candidate, explains=explains)
        snapshot = with_running(snapshot, as_running_gang(request, placements[index]))
    return snapshot, tuple(placements)
