"""Place gangs one after the other, each on the capacity that earlier gangs leave free."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from generator.placement.answer import Placement
from generator.placement.batch.uniform_gangs import UniformGangs
from generator.placement.cluster.gang_view import view_for
from generator.placement.cluster.snapshot import (
    RunningGang,
    Snapshot,
    with_running,
    without_running,
)
from generator.placement.engine import as_running_gang, place, uniform_answer
from generator.placement.request import PlacementRequest

MAX_KEPT_BYTES = 64 << 20
"""Most bytes of snapshots that the answers of a batch may keep for their explanations."""


@dataclass(frozen=True, slots=True)
class SequentialPlacement:
    """The result of placing gangs one after the other."""

    requests: tuple[PlacementRequest, ...]
    """By priority, then in the given order."""
    placements: tuple[Placement, ...]
    base_snapshot: Snapshot
    """Without the pods that the batch evicts, and without the gangs of the batch."""
    chain: SnapshotChain

    @property
    def final_snapshot(self) -> Snapshot:
        """With all placed gangs."""
        return self.chain.latest

    @property
    def is_within_leaves(self) -> bool:
        """Whether each gang is placed in one domain of the lowest tier."""
        lowest = self.base_snapshot.levels.tiers[:2]
        return all(found.is_feasible and found.tier in lowest for found in self.placements)


def place_sequentially(
    snapshot: Snapshot,
    requests: Sequence[PlacementRequest],
    *,
    clock: Callable[[], float] | None = None,
    gang_deadline_s: float | None = None,
) -> SequentialPlacement:
    """Place gangs one after the other.

    Args:
        snapshot: the cluster.
        requests: requests of distinct gangs, in order.
        clock: seconds of a monotonic clock, for deadlines.
        gang_deadline_s: time limit of the search for each gang; a shorter one of its request wins.
    """
    base, placements = snapshot, list[Placement]()
    # The ranks of leaves know free capacity, but not which domains a placed gang has for itself.
    ranked = () if any(request.exclusive for request in requests) else requests
    chain, uniform = SnapshotChain(snapshot), UniformGangs(snapshot, ranked)
    explains_now = must_explain_now(snapshot, len(requests))
    for request in requests:
        pods = uniform.place(request)
        if pods is not None:
            answer = uniform_answer(snapshot, request, pods, chain.lazy_view(request))
            placements.append(answer)
            chain.add(request, answer)
            continue
        before = chain.latest
        bounded = request if gang_deadline_s is None else request.with_deadline(gang_deadline_s)
        answer = place(before, bounded, clock=clock)
        if explains_now:
            answer.explain()
        placements.append(answer)
        if answer.is_feasible:
            base = without_victims(base, answer.victims, priority=request.priority)
            chain.add(request, answer)
            uniform.follow(before, chain.latest)
    return SequentialPlacement(tuple(requests), tuple(placements), base, chain)


def must_explain_now(snapshot: Snapshot, num_answers: int) -> bool:
    """Return whether this many answers, each with its own snapshot, would use too much memory."""
    return snapshot.free.nbytes * num_answers > MAX_KEPT_BYTES


class SnapshotChain:
    """The snapshots between gangs; each is built when it is read."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Begin with no gang placed."""
        self._placed: list[tuple[PlacementRequest, Placement]] = []
        self._first = (0, snapshot)
        self._last_read = self._first
        """A number of gangs that have started, and the snapshot then."""

    def add(self, request: PlacementRequest, placement: Placement) -> None:
        """Let a gang start after its victims are evicted."""
        self._placed.append((request, placement))

    @property
    def latest(self) -> Snapshot:
        """The snapshot with all gangs that have started."""
        return self._at(len(self._placed))

    def lazy_view(self, request: PlacementRequest) -> Callable[[], Snapshot]:
        """Return a function that builds the snapshot as a gang sees it now."""
        num_placed = len(self._placed)
        return lambda: view_for(self._at(num_placed), request.gang, request.priority)

    def _at(self, num_placed: int) -> Snapshot:
        """Return the snapshot after the first gangs have started; O(nodes + gangs since)."""
        last_read = self._last_read  # read once: another thread may replace it
        start, snapshot = last_read if last_read[0] <= num_placed else self._first
        waiting: list[RunningGang] = []
        for request, placement in self._placed[start:num_placed]:
            if placement.victims:
                snapshot = with_running(snapshot, *waiting)
                snapshot = without_victims(snapshot, placement.victims, priority=request.priority)
                waiting = []
            waiting.append(as_running_gang(request, placement))
        snapshot = with_running(snapshot, *waiting) if waiting else snapshot
        self._last_read = (num_placed, snapshot)
        return snapshot


def without_victims(snapshot: Snapshot, victims: Sequence[str], *, priority: int) -> Snapshot:
    """Return the snapshot after victims, `gang` or `gang@node`, are evicted.

    Args:
        snapshot: the cluster where they run.
        victims: their names.
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
