"""Replays a trace, event by event: jobs arrive, wait, start where a strategy places them, and end.

Jobs that end at one time free their nodes before other jobs start. The clock is the trace's. The
fabric is a regular tree: `8x5x16` is 8 spine domains of 5 leaves of 16 nodes.

The statistics are those of tiers, leaf groups, fragmentation, utilization and waiting. Means over
time are from the first to the last submission, because after that the cluster only empties.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

from generator.jobs.cluster import Ints, SlotCluster, UniformPods, split_into_pods, sum_by_domain
from generator.simulation.replay.run_names import Backfill
from generator.simulation.replay.strategies import Strategy
from generator.simulation.replay.trace import Job
from topology.model.errors import ConfigError, show
from topology.model.tree import DomainSpec, TopologyTree, build_tree

_SHAPE = re.compile(r"[0-9]+(?:x[0-9]+)+\Z", re.ASCII)
_LEVELS = re.compile(r"[1-9][0-9]{0,5}(?:x[1-9][0-9]{0,5}){1,4}\Z", re.ASCII)
_NAMES: Final = ("leaf", "spine", "core", "tier4")
_MAX_NODES: Final = 200_000


def is_shape(text: str) -> bool:
    """Return whether a text is a shape and not the name of a file."""
    return _SHAPE.match(text) is not None


def build_tree_of_shape(text: str) -> TopologyTree:
    """Return the tree of `8x5x16`: 8 domains at the top, of 5 leaves each, of 16 nodes each.

    Raises:
        ConfigError: a number is 0, or the tree is too large or too high.
    """
    if not _LEVELS.match(text):
        raise ConfigError(
            f"{show(text)}: expected 2 to 5 numbers from 1 to 999999, such as 8x5x16; for a file "
            "of this name, give its folder too, such as ./NAME"
        )
    counts = [int(part) for part in text.split("x")]
    total = 1
    for count in counts:
        total *= count
    if total > _MAX_NODES:
        raise ConfigError(f"{show(text)}: expected at most {_MAX_NODES} nodes, got {total}")
    specs: list[DomainSpec] = []
    _add_domains(specs, counts, "", None)
    return build_tree(specs, tiers=_NAMES[: len(counts) - 1])


def _add_domains(
    specs: list[DomainSpec], counts: Sequence[int], prefix: str, parent: str | None
) -> None:
    tier = len(counts) - 1
    for index in range(counts[0]):
        path = f"{prefix}{index + 1}"
        name = f"{_NAMES[tier - 1]}-{path}"
        if tier == 1:
            nodes = tuple(f"node-{path}-{number + 1}" for number in range(counts[1]))
            specs.append(DomainSpec(name, tier, parent, nodes))
            continue
        specs.append(DomainSpec(name, tier, parent))
        _add_domains(specs, counts[1:], f"{path}-", name)


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
        backfill: the rule by which jobs may start before the first job of the queue.
        on_start: called with the number of jobs started so far.

    Cost: O(jobs × (nodes + depth)), and one call of the strategy per tried job.
    """
    run = _ReplayRun(jobs, cluster, strategy)
    next_job = 0
    while next_job < len(jobs) or run.state.ends or run.state.waiting:
        now = _find_next_instant(run, next_job)
        has_room = run.end_until(now)
        first_arrival = next_job
        while next_job < len(jobs) and jobs[next_job].submit_s <= now:
            run.state.waiting.append(next_job)
            next_job += 1
        num_before = len(run.starts)
        _start_waiting(run, now, backfill=backfill, only_from=None if has_room else first_arrival)
        if len(run.starts) > num_before + 1:  # one job alone cannot be rearranged
            run.rearrange(num_before)
        is_stuck = not run.state.ends and next_job == len(jobs) and len(run.starts) == num_before
        # The cluster is empty and no job follows: the head can never start.
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


NUM_POINTS: Final = 240
"""Number of points of a series over time."""
_BUCKETS: Final = (1, 2, 8, 32, 128)
"""Smallest number of nodes of each size class, for waiting times."""
_QUANTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True, slots=True)
class ReplaySeries:
    """Values over time, means of equal parts."""

    hours: tuple[float, ...]
    """Middle of each part, in hours."""
    utilisation: tuple[float, ...]
    """Share of used slots."""
    waiting: tuple[float, ...]
    """Number of waiting jobs."""


@dataclass(frozen=True, slots=True)
class ReplayStatistics:
    """All numbers of one strategy."""

    name: str
    started: int
    refused: int
    gangs: int
    """Started jobs with several pods; tiers and leaves are counted for them only."""
    tiers: dict[str, int]
    """Number of gangs per tier of the lowest domain around them, lowest first."""
    at_lowest_tier: float
    """Share of gangs that were placed at the lowest tier with room for them."""
    leaves: int
    """Leaf groups in use, summed over gangs."""
    leaves_least: int
    """The fewest possible leaf groups, if all were as free as the freest; summed over gangs."""
    over_least: float
    """Mean of the ratio of leaf groups in use to the fewest possible."""
    fragmentation: dict[str, float]
    """Per tier, wholly free nodes in the freest domain as a share of all; mean over time."""
    largest: dict[str, float]
    """Per tier, whole nodes of the largest gang that fits; mean over time."""
    utilisation: float
    """Share of used slots, mean over time."""
    wait_s: dict[str, float]
    """Mean and quantiles over jobs, in seconds."""
    wait_by_nodes: dict[str, float]
    """Mean wait in seconds per size class."""
    course: ReplaySeries

    def to_document(self) -> dict[str, Any]:
        """Return the document that `-o json` prints."""
        return asdict(self)


def compute_statistics(name: str, replay: ReplayResult, cluster: SlotCluster) -> ReplayStatistics:
    """Return the numbers of a replay on a cluster; O(jobs log jobs + samples)."""
    starts = replay.starts
    gangs = [start for start in starts if start.pods.num > 1]
    end_s = max((start.job.submit_s for start in starts), default=0.0)
    spans = list(_build_spans(replay.samples, end_s))
    heights = range(len(cluster.tiers) + 2)
    return ReplayStatistics(
        name=name,
        started=len(starts),
        refused=replay.num_refused,
        gangs=len(gangs),
        tiers={
            cluster.tier_name(height): sum(start.height == height for start in gangs)
            for height in heights
        },
        at_lowest_tier=_mean(start.height <= start.least_height for start in gangs),
        leaves=sum(start.leaves for start in gangs),
        leaves_least=sum(start.least_leaves for start in gangs),
        over_least=_mean(start.leaves / start.least_leaves for start in gangs),
        fragmentation=_average_per_tier(cluster, spans, _compute_freest_share),
        largest=_average_per_tier(cluster, spans, lambda sample, at: float(sample.largest[at])),
        utilisation=_average_over_time(spans, lambda sample: sample.used / cluster.num_slots),
        wait_s=_compute_waits(starts),
        wait_by_nodes=_compute_waits_by_nodes(starts, cluster.slots),
        course=_build_series(spans, cluster, end_s),
    )


_Span = tuple[float, float, ClusterSample]
"""Start, end, and the state of the cluster in between."""


def _build_spans(samples: Sequence[ClusterSample], end_s: float) -> Iterable[_Span]:
    for sample, following in pairwise(samples):
        if sample.time_s >= end_s:
            return
        yield sample.time_s, min(following.time_s, end_s), sample


def _average_over_time(spans: Sequence[_Span], value: Callable[[ClusterSample], float]) -> float:
    total = sum(until - since for since, until, _ in spans)
    if not total:
        return 0.0
    return sum((until - since) * value(sample) for since, until, sample in spans) / total


def _compute_freest_share(sample: ClusterSample, tier_index: int) -> float:
    return sample.largest[tier_index] / sample.free_nodes if sample.free_nodes else 1.0


def _average_per_tier(
    cluster: SlotCluster, spans: Sequence[_Span], value: Callable[[ClusterSample, int], float]
) -> dict[str, float]:
    return {
        tier.name: _average_over_time(spans, lambda sample, at=at: value(sample, at))  # type: ignore[misc]
        for at, tier in enumerate(cluster.tiers)
    }


def _compute_waits(starts: Sequence[JobStart]) -> dict[str, float]:
    waits = sorted(start.start_s - start.job.submit_s for start in starts)
    values = {"mean": _mean(waits)}
    for name, share in _QUANTILES.items():
        values[name] = waits[min(int(share * len(waits)), len(waits) - 1)] if waits else 0.0
    return values


def _compute_waits_by_nodes(starts: Sequence[JobStart], slots: int) -> dict[str, float]:
    mean_waits = {}
    for fewest, limit in zip(_BUCKETS, (*_BUCKETS[1:], 1 << 62), strict=True):
        waits = [
            start.start_s - start.job.submit_s
            for start in starts
            if fewest <= -(-start.job.gpus // slots) < limit
        ]
        if waits:
            last = "" if limit > _BUCKETS[-1] else f"-{limit - 1}"
            mean_waits[f"{fewest}{last}" if limit - 1 != fewest else str(fewest)] = _mean(waits)
    return mean_waits


def _build_series(spans: Sequence[_Span], cluster: SlotCluster, end_s: float) -> ReplaySeries:
    width = end_s / NUM_POINTS
    used, waiting = [0.0] * NUM_POINTS, [0.0] * NUM_POINTS
    if width:
        for since, until, sample in spans:
            for part_index, share in _split_span(since, until, width):
                used[part_index] += share * sample.used / cluster.num_slots
                waiting[part_index] += share * sample.waiting
    return ReplaySeries(
        hours=tuple(
            round((part_index + 0.5) * width / 3600, 3) for part_index in range(NUM_POINTS)
        ),
        utilisation=tuple(round(value, 4) for value in used),
        waiting=tuple(round(value, 2) for value in waiting),
    )


def _split_span(since: float, until: float, width: float) -> Iterable[tuple[int, float]]:
    """Yield (index of a part, share of the part) for each part that a span of time covers."""
    for part_index in range(int(since / width), min(int(until / width), NUM_POINTS - 1) + 1):
        covered = min(until, (part_index + 1) * width) - max(since, part_index * width)
        yield part_index, max(covered, 0.0) / width


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else 0.0
