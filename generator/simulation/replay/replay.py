"""Replay of a trace, event by event: jobs come, wait, start where a strategy puts them, and end.

At one instant jobs end before others start. The clock is the trace's.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from generator.jobs.cluster import SlotCluster, Ints, UniformPods, sum_by_domain, split_into_pods
from generator.simulation.replay.strategies import Strategy
from generator.simulation.replay.trace import Job

BACKFILL_DEPTH: Final = 100
"""Waiting jobs that are looked at for backfill each time, as Slurm's bf_max_job_test."""


class Backfill(StrEnum):
    """Which waiting jobs may start before the first of the queue."""

    NONE = "none"
    EASY = "easy"
    """Those that do not delay the first one."""
    ANY = "any"


class JobStart(NamedTuple):
    """What became of a job."""

    job: Job
    pods: UniformPods
    start_s: float
    height: int
    """Of the lowest domain around it: 0 a node."""
    least_height: int
    """The least that had room for it then."""
    leaves: int
    least_leaves: int
    """Leaves that would have done, were all as free as the freest."""


class ClusterSample(NamedTuple):
    """The cluster after an instant at which something changed."""

    time_s: float
    used: int
    """Slots."""
    waiting: int
    largest: tuple[int, ...]
    """Per tier, bottom-up: whole nodes free in its freest domain."""
    free_nodes: int
    """Whole ones."""


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What a strategy did with a trace."""

    starts: tuple[JobStart, ...]
    samples: tuple[ClusterSample, ...]
    num_refused: int
    """Jobs for which the strategy found no place in an empty cluster."""


@dataclass(slots=True)
class _QueueState:
    """Jobs that wait and run."""

    waiting: list[int] = field(default_factory=list)
    """Indices of jobs, in order of arrival."""
    ends: list[tuple[float, int]] = field(default_factory=list)
    """A heap of (time, index)."""
    nodes: dict[int, Ints] = field(default_factory=dict)
    """Of running jobs."""
    num_refused: int = 0


class _ReplayRun:
    """One replay under way."""

    def __init__(self, jobs: Sequence[Job], cluster: SlotCluster, strategy: Strategy) -> None:
        self.jobs = jobs
        self.pods = [split_into_pods(job.gpus, cluster.slots) for job in jobs]
        self.cluster = cluster
        self.strategy = strategy
        self.state = _QueueState()
        self.starts: list[JobStart] = []
        self.started: list[int] = []
        """Index of the job of each start."""
        self.samples: list[ClusterSample] = []

    def end_until(self, now: float) -> bool:
        """End the jobs that end by now; return whether there was one."""
        has_ended = False
        while self.state.ends and self.state.ends[0][0] <= now:
            _, at = heapq.heappop(self.state.ends)
            self.cluster.return_slots(self.state.nodes.pop(at), self.pods[at].slots)
            self.strategy.end(str(at))
            has_ended = True
        return has_ended

    def try_start(self, at: int, now: float) -> bool:
        """Start a job if it has a place."""
        pods = self.pods[at]
        fits = self.cluster.count_fitting(pods.slots)
        if int(fits.sum()) < pods.num:
            return False
        nodes = self.strategy.choose(str(at), pods)
        if nodes is None:
            return False
        self.starts.append(self._build_start(at, fits, nodes, now))
        self.started.append(at)
        self.cluster.take_slots(nodes, pods.slots)
        self.strategy.start(str(at), pods, nodes)
        self.state.nodes[at] = nodes
        heapq.heappush(self.state.ends, (now + self.jobs[at].duration_s, at))
        return True

    def _build_start(self, at: int, fits: Ints, nodes: Ints, now: float) -> JobStart:
        pods, cluster = self.pods[at], self.cluster
        rooms = [int(sum_by_domain(tier, fits).max(initial=0)) for tier in cluster.tiers]
        enough = [height for height, room in enumerate(rooms, 1) if room >= pods.num]
        if int(fits.max(initial=0)) >= pods.num:
            enough.insert(0, 0)
        return JobStart(
            job=self.jobs[at],
            pods=pods,
            start_s=now,
            height=cluster.find_height(nodes),
            least_height=enough[0] if enough else len(rooms) + 1,
            leaves=cluster.count_leaves(nodes),
            least_leaves=-(-pods.num // max(rooms[0], 1)),
        )

    def rearrange(self, since: int) -> None:
        """Let the strategy look again at the jobs that it has just started, all together."""
        just = {str(self.started[at]): at for at in range(since, len(self.starts))}
        for gang, nodes in self.strategy.rearrange(tuple(just)).items():
            job, pods = int(gang), self.pods[int(gang)]
            self.cluster.return_slots(self.state.nodes[job], pods.slots)
            self.cluster.take_slots(nodes, pods.slots)
            self.state.nodes[job] = nodes
            self.starts[just[gang]] = self.starts[just[gang]]._replace(
                height=self.cluster.find_height(nodes), leaves=self.cluster.count_leaves(nodes)
            )

    def record_sample(self, now: float) -> None:
        """Note how the cluster stands; at one instant the last word counts."""
        whole = (self.cluster.free == self.cluster.slots).astype("int64")
        largest = tuple(
            int(sum_by_domain(tier, whole).max(initial=0)) for tier in self.cluster.tiers
        )
        used = self.cluster.num_slots - self.cluster.num_free
        found = ClusterSample(now, used, len(self.state.waiting), largest, int(whole.sum()))
        if self.samples and self.samples[-1].time_s == now:
            self.samples[-1] = found
        else:
            self.samples.append(found)

    def compute_shadow(self, at: int) -> tuple[float, int]:
        """Return when the first of the queue will have slots enough, and how many are left then.

        By number of slots alone; where the jobs that run do not suffice, never.
        """
        need = self.jobs[at].gpus
        free = self.cluster.num_free
        for end_s, running in sorted(self.state.ends):
            free += self.jobs[running].gpus
            if free >= need:
                return end_s, free - need
        return float("inf"), 0


def run_replay(
    jobs: Sequence[Job],
    cluster: SlotCluster,
    strategy: Strategy,
    *,
    backfill: Backfill = Backfill.EASY,
    on_start: Callable[[int], None] = lambda _: None,
) -> ReplayResult:
    """Return what becomes of jobs on an empty cluster.

    Args:
        jobs: in order of submission.
        cluster: all free; it is changed.
        strategy: made for that cluster.
        backfill: who may overtake.
        on_start: called with the number of jobs started so far.

    Cost: O(jobs × (nodes + depth)) and as many questions to the strategy as jobs are tried.
    """
    run = _ReplayRun(jobs, cluster, strategy)
    coming = 0
    while coming < len(jobs) or run.state.ends or run.state.waiting:
        now = _find_next_instant(run, coming)
        has_room = run.end_until(now)
        first = coming
        while coming < len(jobs) and jobs[coming].submit_s <= now:
            run.state.waiting.append(coming)
            coming += 1
        before = len(run.starts)
        _start_waiting(run, now, backfill=backfill, only_from=None if has_room else first)
        if len(run.starts) > before + 1:
            run.rearrange(before)
        is_stuck = not run.state.ends and coming == len(jobs) and len(run.starts) == before
        if is_stuck and run.state.waiting:
            run.state.num_refused += 1
            run.state.waiting.pop(0)
        run.record_sample(now)
        on_start(len(run.starts))
    return ReplayResult(tuple(run.starts), tuple(run.samples), run.state.num_refused)


def _find_next_instant(run: _ReplayRun, coming: int) -> float:
    times = [run.state.ends[0][0]] if run.state.ends else []
    if coming < len(run.jobs):
        times.append(run.jobs[coming].submit_s)
    return min(times, default=run.samples[-1].time_s if run.samples else 0.0)


def _start_waiting(
    run: _ReplayRun, now: float, *, backfill: Backfill, only_from: int | None
) -> None:
    """Start what may start: in order, then those that may overtake.

    Where nothing has ended since, jobs before `only_from` have been tried already.
    """
    waiting = run.state.waiting
    while waiting and (only_from is None or waiting[0] >= only_from):
        if not run.try_start(waiting[0], now):
            break
        waiting.pop(0)
    if not waiting or backfill is Backfill.NONE:
        return
    until, spare = (
        run.compute_shadow(waiting[0]) if backfill is Backfill.EASY else (float("inf"), 1 << 62)
    )
    for at in waiting[1 : 1 + BACKFILL_DEPTH]:
        if run.cluster.num_free == 0:
            return
        if only_from is not None and at < only_from:
            continue
        job = run.jobs[at]
        ends_before = now + job.duration_s <= until
        if not (ends_before or job.gpus <= spare) or not run.try_start(at, now):
            continue
        waiting.remove(at)
        if not ends_before:
            spare -= job.gpus
