"""Place gangs one after the other, each on the capacity that earlier gangs leave free."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from generator.placement.answer import Placement
from generator.placement.batch.uniform_gangs import UniformGangs
from generator.placement.cluster.snapshot import (
    Snapshot,
    with_running,
    without_running,
)
from generator.placement.engine import as_running_gang, place
from generator.placement.request import PlacementRequest


@dataclass(frozen=True, slots=True)
class SequentialPlacement:
    """Gangs that were placed one after the other."""

    requests: tuple[PlacementRequest, ...]
    """In the order in which they were placed."""
    placements: tuple[Placement, ...]
    base_snapshot: Snapshot
    """Without the pods that the batch evicts, and without the gangs of the batch."""
    cluster: GrowingCluster

    @classmethod
    def begin(cls, snapshot: Snapshot) -> SequentialPlacement:
        """Return a batch of which no gang is placed yet."""
        return cls((), (), snapshot, GrowingCluster(snapshot))

    @property
    def final_snapshot(self) -> Snapshot:
        """With all placed gangs."""
        return self.cluster.snapshot

    @property
    def is_within_leaves(self) -> bool:
        """Whether each gang is placed in one domain of the lowest tier."""
        lowest = self.base_snapshot.levels.tiers[:2]
        return all(found.is_feasible and found.tier in lowest for found in self.placements)


def place_sequentially(
    placed: SequentialPlacement,
    requests: Sequence[PlacementRequest],
    *,
    clock: Callable[[], float] | None = None,
    gang_deadline_s: float | None = None,
    explains: bool = True,
) -> SequentialPlacement:
    """Place gangs one after the other.

    Args:
        placed: the gangs that were placed before.
        requests: requests of distinct further gangs, in order.
        clock: seconds of a monotonic clock, for deadlines.
        gang_deadline_s: time limit of the search for each gang; a shorter one of its request wins.
        explains: whether the placements have explanations. Without them, plain gangs with equal
            requests are placed by the ranks of leaves.
    """
    base, placements, cluster = placed.base_snapshot, list[Placement](), placed.cluster
    # The ranks of leaves know free capacity, but not which domains a placed gang has for itself.
    is_ranked = not explains and not any(request.exclusive for request in requests)
    uniform = UniformGangs(cluster.snapshot, requests if is_ranked else ())
    for request in requests:
        answer = uniform.place(request)
        if answer is None:
            before = cluster.snapshot
            bounded = request if gang_deadline_s is None else request.with_deadline(gang_deadline_s)
            answer = place(before, bounded, clock=clock, explains=explains)
            if answer.is_feasible:
                base = without_victims(base, answer.victims, priority=request.priority)
                cluster.start(request, answer)
                uniform.follow(before, cluster.snapshot)
        else:
            cluster.start(request, answer)
        placements.append(answer)
    return SequentialPlacement(
        (*placed.requests, *requests), (*placed.placements, *placements), base, cluster
    )


class GrowingCluster:
    """The cluster while gangs start; its snapshot is built when it is read."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Begin with no gang placed."""
        self._snapshot = snapshot
        self._waiting: list[tuple[PlacementRequest, Placement]] = []

    def start(self, request: PlacementRequest, placement: Placement) -> None:
        """Let a gang start after its victims are evicted."""
        if placement.victims:
            victims, priority = placement.victims, request.priority
            self._snapshot = without_victims(self.snapshot, victims, priority=priority)
        self._waiting.append((request, placement))

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot with all gangs that have started; O(nodes + gangs since the last read)."""
        if self._waiting:
            gangs = [as_running_gang(request, placement) for request, placement in self._waiting]
            self._snapshot, self._waiting = with_running(self._snapshot, *gangs), []
        return self._snapshot


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
