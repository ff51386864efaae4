"""Gangs placed one after the other, each on what those before it have left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from generator.placement.answer import Placement
from generator.placement.capacity import (
    RunningGang,
    Snapshot,
    seen_by,
    with_running,
    without_running,
)
from generator.placement.engine import place, plain_answer, running_gang
from generator.placement.plain_batch import PlainBatch
from generator.placement.request import PlacementRequest


@dataclass(frozen=True, slots=True)
class Turn:
    """Gangs placed one after the other."""

    requests: tuple[PlacementRequest, ...]
    """By priority, then as they were given."""
    placements: tuple[Placement, ...]
    before: Snapshot
    """Without what the batch evicts, and nothing of the batch running."""
    after: Snapshot
    """With all that have a place."""

    @property
    def is_settled(self) -> bool:
        """Whether each gang has a place in one domain of the lowest tier."""
        lowest = self.after.levels.tiers[:2]
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
    line, plain = _Line(snapshot), PlainBatch(snapshot, requests)
    for at, request in enumerate(requests):
        pods = plain.pods(at)
        if pods is not None:
            found = plain_answer(snapshot, request, pods, line.view(request))
        else:
            asked = request if each_s is None else request.within(each_s)
            found = place(line.last, asked, clock=clock)
        placements.append(found)
        if not found.is_feasible:
            continue
        if found.victims:
            before, full = without_victims(before, found.victims), line.last
            line.replace(without_victims(full, found.victims))
            plain.follow(full, line.last)
        gang = running_gang(request, found)
        line.add(gang)
        plain.take(gang)
    return Turn(tuple(requests), tuple(placements), before, line.last)


class _Line:
    """The snapshots between gangs; one is made when somebody looks at it."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._gangs: list[RunningGang] = []
        self._made = {0: snapshot}
        """By the number of gangs that have started."""

    def add(self, gang: RunningGang) -> None:
        """Let a gang start."""
        self._gangs.append(gang)

    def replace(self, snapshot: Snapshot) -> None:
        """Go on with another one."""
        self._made[len(self._gangs)] = snapshot

    @property
    def last(self) -> Snapshot:
        """The snapshot with all gangs that have started."""
        return self._at(len(self._gangs))

    def view(self, request: PlacementRequest) -> Callable[[], Snapshot]:
        """Return what makes the snapshot as a gang sees it now."""
        return partial(self._seen, len(self._gangs), request)

    def _seen(self, num: int, request: PlacementRequest) -> Snapshot:
        return seen_by(self._at(num), request.gang, request.priority)

    def _at(self, num: int) -> Snapshot:
        made = self._made.get(num)
        if made is None:
            known = max(filter(num.__ge__, [*self._made]))
            made = self._made[num] = with_running(self._made[known], *self._gangs[known:num])
        return made


def without_victims(snapshot: Snapshot, victims: Sequence[str]) -> Snapshot:
    """Return the snapshot after victims, `gang` or `gang@node`, have gone."""
    for victim in victims:
        gang, _, node = victim.rpartition("@")
        if victim in snapshot.running:
            snapshot = without_running(snapshot, victim)
        elif gang in snapshot.running:
            held = snapshot.running[gang]
            rest = tuple(row for row in held.pods if row.node != node)
            snapshot = with_running(without_running(snapshot, gang), replace(held, pods=rest))
    return snapshot
