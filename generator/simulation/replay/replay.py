"""Replays a trace, event by event: jobs arrive, wait, start where a strategy places them, and end.

At one instant, jobs end before others start. The clock is the trace's.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from generator.jobs.cluster import Ints, SlotCluster, UniformPods, split_into_pods, sum_by_domain
from generator.simulation.replay.run_names import Backfill
from generator.simulation.replay.strategies import Strategy
from generator.simulation.replay.trace import Job

BACKFILL_DEPTH: Final = 100
"""Waiting jobs that are tried for backfill each time, like Slurm's bf_max_job_test."""


class JobStart(NamedTuple):
    """The start of a job."""

    job: Job
    pods: UniformPods
    start_s: float
    height: int
    """Tier of the lowest domain around the job; 0 is a node."""
    least_height: int
    """The lowest tier that had room for the job at its start."""
    leaves: int
    least_leaves: int
    """The fewest possible leaves, if all were as free as the freest."""


class ClusterSample(NamedTuple):
    """The state of the cluster after a change."""

    time_s: float
    used: int
    """Used slots."""
    waiting: int
    """Waiting jobs."""
    largest: tuple[int, ...]
    """Per tier, lowest first, the number of wholly free nodes in its freest domain."""
    free_nodes: int
    """Wholly free nodes."""


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The result of a strategy on a trace."""

    starts: tuple[JobStart, ...]
    samples: tuple[ClusterSample, ...]
    num_refused: int
    """Jobs that the strategy could not place in an empty cluster."""


@dataclass(slots=True)
class _QueueState:
    """Waiting and running jobs."""

    waiting: list[int] = field(default_factory=list)
    """Indices of jobs, in order of arrival."""
    ends: list[tuple[float, int]] = field(default_factory=list)
    """A heap of (time, index)."""
    nodes: dict[int, Ints] = field(default_factory=dict)
    """Nodes of running jobs."""
    num_refused: int = 0


class _ReplayRun:
    """The state of a replay."""

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
        """End the jobs that are due; return whether any ended."""
        has_ended = False
        while self.state.ends and self.state.ends[0][0] <= now:
            _, job_index = heapq.heappop(self.state.ends)
            self.cluster.return_slots(self.state.nodes.pop(job_index), self.pods[job_index].slots)
            self.strategy.end(str(job_index))
            has_ended = True
        return has_ended

    def try_start(self, job_index: int, now: float) -> bool:
        """Start a job if the strategy finds a place; return whether it started."""
        pods = self.pods[job_index]
        fits = self.cluster.count_fitting(pods.slots)
        if int(fits.sum()) < pods.num:
            return False
        nodes = self.strategy.choose(str(job_index), pods)
        if nodes is None:
            return False
        self.starts.append(self._build_start(job_index, fits, nodes, now))
        self.started.append(job_index)
        self.cluster.take_slots(nodes, pods.slots)
        self.strategy.start(str(job_index), pods, nodes)
        self.state.nodes[job_index] = nodes
        heapq.heappush(self.state.ends, (now + self.jobs[job_index].duration_s, job_index))
        return True

    def _build_start(self, job_index: int, fits: Ints, nodes: Ints, now: float) -> JobStart:
        pods, cluster = self.pods[job_index], self.cluster
        rooms = [int(sum_by_domain(tier, fits).max(initial=0)) for tier in cluster.tiers]
        enough = [height for height, room in enumerate(rooms, 1) if room >= pods.num]
        if int(fits.max(initial=0)) >= pods.num:
            enough.insert(0, 0)
        return JobStart(
            job=self.jobs[job_index],
            pods=pods,
            start_s=now,
            height=cluster.find_height(nodes),
            least_height=enough[0] if enough else len(rooms) + 1,
            leaves=cluster.count_leaves(nodes),
            least_leaves=-(-pods.num // max(rooms[0], 1)),
        )

    def rearrange(self, since: int) -> None:
        """Let the strategy rearrange the jobs that it just started, together."""
        start_index = {str(self.started[index]): index for index in range(since, len(self.starts))}
        for gang, nodes in self.strategy.rearrange(tuple(start_index)).items():
            job, pods = int(gang), self.pods[int(gang)]
            self.cluster.return_slots(self.state.nodes[job], pods.slots)
            self.cluster.take_slots(nodes, pods.slots)
            self.state.nodes[job] = nodes
            self.starts[start_index[gang]] = self.starts[start_index[gang]]._replace(
                height=self.cluster.find_height(nodes), leaves=self.cluster.count_leaves(nodes)
            )

    def record_sample(self, now: float) -> None:
        """Record the state of the cluster; the last sample of an instant counts."""
        whole = (self.cluster.free == self.cluster.slots).astype("int64")
        largest = tuple(
            int(sum_by_domain(tier, whole).max(initial=0)) for tier in self.cluster.tiers
        )
        used = self.cluster.num_slots - self.cluster.num_free
        sample = ClusterSample(now, used, len(self.state.waiting), largest, int(whole.sum()))
        if self.samples and self.samples[-1].time_s == now:
            self.samples[-1] = sample
        else:
            self.samples.append(sample)

    def compute_shadow(self, job_index: int) -> tuple[float, int]:
        """Return when a job will have enough slots, and how many more are free then.

        Considers the number of slots only. The time is infinite if there are too few even after
        all running jobs have ended.
        """
        num_needed = self.jobs[job_index].gpus
        free = self.cluster.num_free
        for end_s, running in sorted(self.state.ends):
            free += self.jobs[running].gpus
            if free >= num_needed:
                return end_s, free - num_needed
        return float("inf"), 0


def run_replay(
    jobs: Sequence[Job],
    cluster: SlotCluster,
    strategy: Strategy,
    *,
    backfill: Backfill = Backfill.EASY,
    on_start: Callable[[int], None] = lambda _: None,
) -> ReplayResult:
    """Replay jobs on an empty cluster.

    Args:
        jobs: the jobs, in order of submission.
        cluster: the cluster, with all slots free; the replay changes it.
        strategy: a strategy for this cluster.
        backfill: which jobs may start before the first job of the queue.
        on_start: called with the number of jobs started so far.

    Cost: O(jobs × (nodes + depth)), and one call of the strategy per tried job.
    """
    run = _ReplayRun(jobs, cluster, strategy)
    next_job = 0
    while next_job < len(jobs) or run.state.ends or run.state.waiting:
        now = _find_next_instant(run, next_job)
        has_room = run.end_until(now)
        first_new = next_job
        while next_job < len(jobs) and jobs[next_job].submit_s <= now:
            run.state.waiting.append(next_job)
            next_job += 1
        num_before = len(run.starts)
        _start_waiting(run, now, backfill=backfill, only_from=None if has_room else first_new)
        if len(run.starts) > num_before + 1:
            run.rearrange(num_before)
        is_stuck = not run.state.ends and next_job == len(jobs) and len(run.starts) == num_before
        if is_stuck and run.state.waiting:
            run.state.num_refused += 1
            run.state.waiting.pop(0)
        run.record_sample(now)
        on_start(len(run.starts))
    return ReplayResult(tuple(run.starts), tuple(run.samples), run.state.num_refused)


def _find_next_instant(run: _ReplayRun, next_job: int) -> float:
    times = [run.state.ends[0][0]] if run.state.ends else []
    if next_job < len(run.jobs):
        times.append(run.jobs[next_job].submit_s)
    return min(times, default=run.samples[-1].time_s if run.samples else 0.0)


def _start_waiting(
    run: _ReplayRun, now: float, *, backfill: Backfill, only_from: int | None
) -> None:
    """Start the jobs at the head of the queue in order, then jobs by backfill.

    If nothing has ended since the last call, jobs before `only_from` have been tried already.
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
    for job_index in waiting[1 : 1 + BACKFILL_DEPTH]:
        if run.cluster.num_free == 0:
            return
        if only_from is not None and job_index < only_from:
            continue
        job = run.jobs[job_index]
        ends_before = now + job.duration_s <= until
        if not (ends_before or job.gpus <= spare) or not run.try_start(job_index, now):
            continue
        waiting.remove(job_index)
        if not ends_before:
            spare -= job.gpus
