"""Gangs placed one after the other, each on what those before it have left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from generator.placement.answer import Placement
from generator.placement.batch.uniform_batch import PlainBatch
from generator.placement.cluster.snapshot import (
    RunningGang,
    Snapshot,
    seen_by,
    with_running,
    without_running,
)
from generator.placement.engine import place, plain_answer, running_gang
from generator.placement.request import PlacementRequest

MOST_KEPT_BYTES = 64 << 20
"""Of snapshots that answers of a batch may keep to explain themselves later."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Gangs placed one after the other."""

    requests: tuple[PlacementRequest, ...]
    """By priority, then as they were given."""
    placements: tuple[Placement, ...]
    before: Snapshot
    """Without what the batch evicts, and nothing of the batch running."""
    line: Line

    @property
    def after(self) -> Snapshot:
        """With all that have a place."""
        return self.line.last

    @property
    def is_settled(self) -> bool:
        """Whether each gang has a place in one domain of the lowest tier."""
        lowest = self.before.levels.tiers[:2]
        return all(found.is_feasible and found.tier in lowest for found in self.placements)


def in_turn(
    snapshot: Snapshot,
    requests: Sequence[PlacementRequest],
    *,
    clock: Callable[[], float] | None = None,
    each_s: float | None = None,
) -> Turn:
    """Place gangs one after the other.

    Args:
        snapshot: the cluster.
        requests: of distinct gangs, in their turn.
        clock: seconds of a monotonic clock, for deadlines.
        each_s: of the search for each gang, where its request allows no less.
    """
    before, placements = snapshot, []
    line, plain = Line(snapshot), PlainBatch(snapshot, requests)
    tells_at_once = keeps_much(snapshot, len(requests))
    for at, request in enumerate(requests):
        pods = plain.place(at)
        if pods is not None:
            found = plain_answer(snapshot, request, pods, line.view(request))
            placements.append(found)
            line.add(request, found)
            continue
        asked = request if each_s is None else request.within(each_s)
        found = place(line.last, asked, clock=clock)
        if tells_at_once:
            found.tell()
        placements.append(found)
        if not found.is_feasible:
            continue
        if found.victims:
            before = without_victims(before, found.victims, below=request.priority)
            left = without_victims(line.last, found.victims, below=request.priority)
            plain.follow(line.last, left)
        line.add(request, found)
        plain.take(running_gang(request, found))
    return Turn(tuple(requests), tuple(placements), before, line)


def keeps_much(snapshot: Snapshot, num_answers: int) -> bool:
    """Return whether so many answers, each with a snapshot that explains it, would be too much."""
    return snapshot.free.nbytes * num_answers > MOST_KEPT_BYTES


class Line:
    """The snapshots between gangs; one is made when somebody looks at it."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Begin with nobody."""
        self._started: list[tuple[PlacementRequest, Placement]] = []
        self._first = snapshot
        self._last = (0, snapshot)
        """With the number of gangs that have started by then."""
        self._seen_at = {0: snapshot}
        """What somebody has looked at, by the same number: answers are read in other orders."""
        self._most_seen = max(MOST_KEPT_BYTES // (4 * snapshot.free.nbytes + 1), 4)

    def add(self, request: PlacementRequest, found: Placement) -> None:
        """Let a gang start once its victims have gone."""
        self._started.append((request, found))

    @property
    def last(self) -> Snapshot:
        """The snapshot with all gangs that have started."""
        self._last = self._after(self._last, len(self._started))
        return self._last[1]

    def view(self, request: PlacementRequest) -> Callable[[], Snapshot]:
        """Return what makes the snapshot as a gang sees it now."""
        return partial(self._seen, len(self._started), request)

    def _seen(self, num: int, request: PlacementRequest) -> Snapshot:
        made = self._seen_at.copy()  # another thread may look elsewhere meanwhile
        if num not in made:
            start = max(filter(num.__ge__, made))
            made[num] = self._after((start, made[start]), num)[1]
            kept = made if len(made) <= self._most_seen else {0: self._first, num: made[num]}
            self._seen_at = kept
        return seen_by(made[num], request.gang, request.priority)

    def _after(self, made: tuple[int, Snapshot], num: int) -> tuple[int, Snapshot]:
        """Return the snapshot once so many gangs have started, from one where fewer have."""
        start, snapshot = made
        waiting: list[RunningGang] = []
        for request, found in self._started[start:num]:
            if found.victims:
                full = with_running(snapshot, *waiting)
                snapshot = without_victims(full, found.victims, below=request.priority)
                waiting = []
            waiting.append(running_gang(request, found))
        return num, with_running(snapshot, *waiting) if waiting else snapshot


def without_victims(snapshot: Snapshot, victims: Sequence[str], *, below: int) -> Snapshot:
    """Return the snapshot after victims, `gang` or `gang@node`, have gone.

    Args:
        snapshot: where they run.
        victims: their names.
        below: the priority that they gave way to, which tells a gang with an @ in its name from
            the pods of another one on a node.
    """
    for victim in victims:
        gang, _, node = victim.rpartition("@")
        whole = snapshot.running.get(victim)
        if whole is not None and whole.preemptible and whole.priority < below:
            snapshot = without_running(snapshot, victim)
        elif gang in snapshot.running:
            held = snapshot.running[gang]
            rest = tuple(row for row in held.pods if row.node != node)
            snapshot = with_running(without_running(snapshot, gang), replace(held, pods=rest))
    return snapshot
