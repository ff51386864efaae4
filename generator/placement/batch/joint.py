"""Place a batch of gangs jointly: never worse than one after the other, and better where possible.

The gangs of the highest priority are placed first, one after the other in the given order. Where
they compete for capacity, `local_search` places them again together, to place gangs that found no
place and to reduce the *span*: the domains in which gangs lie, each counting as eight of the tier
below. Then the next priority follows in the same way, and gangs of both may move. A gang that has a
place keeps a place. Pure: the only clock is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, NamedTuple

from generator.placement.answer import Placement
from generator.placement.batch.local_search import GangPlace, LocalSearch
from generator.placement.batch.members import (
    SPAN_FACTOR,
    BatchMembers,
    PlacedGangs,
)
from generator.placement.batch.uniform_gangs import UniformGangs
from generator.placement.budget import Budget, IsCancelled, never_cancelled
from generator.placement.cluster.gang_view import view_for
from generator.placement.cluster.snapshot import Snapshot, with_running, without_running
from generator.placement.engine import as_running_gang, build_answer, place
from generator.placement.problem.objective import Objective, PlacementCandidate
from generator.placement.problem.problem import build_problem
from generator.placement.request import PlacementRequest
from topology.model.errors import InvariantError

BATCH_STEPS = 4000
"""Base budget of a batch, in trial placements of a gang: a few tenths of a second."""
STEPS_PER_GANG = 10
"""Additional budget per gang."""
MAX_EARLY_ROUNDS = 7
"""So many of the highest priorities are rearranged before the next one is placed."""
SEQUENTIAL_TIME_SHARE = 0.7
"""Share of a batch's deadline for placing its gangs one after the other."""


class BatchOptions(NamedTuple):
    """What the caller of a batch decides."""

    steps: int = BATCH_STEPS
    """Budget of the joint placement, in addition to the budget per gang; high priorities first."""
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
    """Span of all placed gangs where they were first placed."""
    num_moved: int
    """Gangs that are not where they were first placed, or got a place later."""
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
    is_cancelled: IsCancelled = never_cancelled,
) -> BatchPlacement:
    """Return the best places found for gangs that run together.

    A gang of lower priority never takes a place from a gang of higher priority, nor makes its place
    worse. Among equal priorities, the given order is the queue. A gang is moved for others only if
    its preset is `optimal`, it evicts no pods, and none of its pods runs yet. No gang is moved if a
    gang of the batch has exclusive domains.

    Args:
        snapshot: the cluster.
        requests: requests of distinct gangs.
        clock: seconds of a monotonic clock, for the deadlines of the requests and of the batch.
        deadline_s: time limit of the batch, divided equally among the gangs: most of it for
            placing them in sequence, at least the rest for placing them jointly.
        options: the choices that the caller makes.
        is_cancelled: asked at each step of each search.

    Raises:
        SearchCancelledError: the batch was cancelled before it had an answer.
        InvariantError: two requests name the same gang.
    """
    if len({request.gang for request in requests}) < len(requests):
        raise InvariantError("two requests of a batch name the same gang")
    started_at_s = clock() if clock is not None else 0.0
    queue = sorted(range(len(requests)), key=lambda index: -requests[index].priority)
    batch, budget = (
        _Batch(PlacedGangs(snapshot)),
        Budget(options.steps, is_cancelled=is_cancelled),
    )
    share_s = None if deadline_s is None else deadline_s / max(len(requests), 1)
    for rank, (_, indices) in enumerate(groupby(queue, key=lambda index: requests[index].priority)):
        added = [requests[index] for index in indices]
        num_gangs = len(batch.placed.requests) + len(added)
        budget.steps += STEPS_PER_GANG * len(added)
        if share_s is not None:
            budget.clock, budget.deadline_at_s = clock, started_at_s + share_s * num_gangs
        place_sequentially(
            batch.placed,
            added,
            clock=clock,
            gang_deadline_s=None if share_s is None else share_s * SEQUENTIAL_TIME_SHARE,
            explains=options.explains,
            is_cancelled=is_cancelled,
        )
        if num_gangs == len(requests) or rank < MAX_EARLY_ROUNDS:
            batch.improve(budget, options)
            budget.steps = max(budget.steps, 0)
    placements = dict(zip(queue, batch.placed.placements, strict=True))
    return BatchPlacement(
        placements=tuple(placements[index] for index in range(len(requests))),
        make_snapshot=lambda: batch.placed.snapshot,
        span=batch.span,
        sequential_span=batch.span + batch.saved_span,
        num_moved=len(batch.moved),
        is_proved=batch.is_proved,
    )


def place_sequentially(
    placed: PlacedGangs,
    requests: Sequence[PlacementRequest],
    *,
    clock: Callable[[], float] | None = None,
    gang_deadline_s: float | None = None,
    explains: bool = True,
    is_cancelled: IsCancelled = never_cancelled,
) -> None:
    """Place gangs one after the other.

    Args:
        placed: the gangs that were placed before; these are added.
        requests: requests of distinct further gangs, in order.
        clock: seconds of a monotonic clock, for deadlines.
        gang_deadline_s: time limit of the search for each gang; a shorter one of its request wins.
        explains: whether the placements have explanations. Without them, plain gangs with equal
            requests are placed by the ranks of leaves.
        is_cancelled: asked at each step of each search.
    """
    # The ranks of leaves know free capacity, but not which domains a placed gang has for itself.
    is_ranked = not explains and not any(request.exclusive for request in requests)
    uniform = UniformGangs(placed.snapshot, requests if is_ranked else ())
    for request in requests:
        answer = uniform.place(request)
        if answer is None:
            before = placed.snapshot
            bounded = request if gang_deadline_s is None else request.with_deadline(gang_deadline_s)
            answer = place(
                before, bounded, clock=clock, explains=explains, is_cancelled=is_cancelled
            )
            placed.add(request, answer)
            uniform.follow(before, placed.snapshot)
        else:
            placed.add(request, answer)


@dataclass
class _Batch:
    """A batch while its gangs are placed, one priority after the other."""

    placed: PlacedGangs
    """All gangs so far, where they are now."""
    span: int = 0
    saved_span: int = 0
    """By how much the moves so far reduced the span of gangs that had a place."""
    num_settled: int = 0
    """Gangs of the priorities that were placed and rearranged before, which come first."""
    moved: set[str] = field(default_factory=set)
    """Gangs that are not where they were first placed, or got a place later."""
    is_proved: bool = True
    """Whether every gang is placed and has the smallest span that it could have alone."""

    def improve(self, budget: Budget, options: BatchOptions) -> None:
        """Move gangs by local search, unless each of them lies in one leaf."""
        num_settled, self.num_settled = self.num_settled, len(self.placed.requests)
        if self.placed.is_within_leaves:
            tiers = range(self.placed.base_snapshot.levels.root - 1)
            self.span = sum(SPAN_FACTOR**tier for tier in tiers) * len(self.placed.requests)
            self.is_proved = True
            return
        batch = BatchMembers(
            self.placed, budget, keeps_tiers=options.keeps_tiers, num_settled=num_settled
        )
        before = [member.place for member in batch.members]
        LocalSearch(batch.members, batch.free, budget).run()
        after = [member.place for member in batch.members]
        moves = {
            index: place
            for index, (old_place, place) in enumerate(zip(before, after, strict=True))
            if place is not None and place != old_place
        }
        self.span = sum(place.span for place in after if place is not None)
        self.saved_span += sum(place.span for place in before if place is not None) - self.span
        self.moved |= {self.placed.requests[index].gang for index in moves}
        self.is_proved = all(
            member.place and member.place.span == member.min_span for member in batch.members
        )
        _apply_moves(self.placed, moves, explains=options.explains)


def _apply_moves(placed: PlacedGangs, places: Mapping[int, GangPlace], *, explains: bool) -> None:
    """Replace the answers of the gangs that moved."""
    snapshot = without_running(placed.snapshot, *(placed.requests[at].gang for at in places))
    moved: dict[int, Placement] = {}
    for index, gang_place in places.items():
        request = placed.requests[index]
        problem = build_problem(view_for(snapshot, request.gang, request.priority), request)
        # Alone, the gang might do better.
        objective = Objective(problem, gang_place.positions, 0)
        candidate = PlacementCandidate(gang_place.positions, objective, is_proved=False)
        moved[index] = build_answer(problem, candidate, explains=explains)
        snapshot = with_running(snapshot, as_running_gang(request, moved[index]))
    placed.move(moved)
