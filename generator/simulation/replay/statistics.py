"""The numbers of a replay: tiers, leaves, fragmentation, utilization and waiting.

Means over time are from the first to the last submission, because after that the cluster only
empties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Final

from generator.jobs.cluster import SlotCluster
from generator.simulation.replay.replay import ClusterSample, JobStart, ReplayResult

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
