"""Traces of jobs: the submission time, size and duration of each job.

A trace is a CSV with the columns `submit_time_s`, `gpus` and `duration_s`, in any order of columns
and rows. Ignores other columns. Skips a bad row with an error.

A synthetic trace has the published statistics of Microsoft's Philly clusters. 93 % of the jobs
request one GPU. Jobs with 8 or more GPUs take 62 % of the GPU time, jobs with more than 8 take
14 %. Half of the jobs run for up to 1,144 s, nine tenths for up to 11,265 s. Jobs arrive in bursts.
Source of the figures: Jeon et al., Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN
Training Workloads, USENIX ATC 2019, and its public trace.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final, NamedTuple, Protocol

from topology.model.errors import ConfigError, ParseError, show

COLUMNS: Final = ("submit_time_s", "gpus", "duration_s")
_MAX_GPUS: Final = 1_000_000
_MAX_SECONDS: Final = 1e10
_DAY_S: Final = 86_400.0


class Job(NamedTuple):
    """One gang of a trace."""

    submit_s: float
    """Seconds since the first submission."""
    gpus: int
    duration_s: float


class Trace(NamedTuple):
    """Jobs in order of submission, and an error per bad row."""

    jobs: tuple[Job, ...]
    problems: tuple[ParseError, ...] = ()


def parse_trace(lines: Iterable[str], *, source: str) -> Trace:
    """Return the jobs of a CSV; jobs of one instant are sorted by size, then by duration.

    Raises:
        ConfigError: a column is missing.
    """
    rows = csv.DictReader(lines)
    try:
        missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
        if missing:
            raise ConfigError(f"{source}: column {missing[0]} is missing")
        jobs, problems = _parse_rows(rows, source)
    except csv.Error as error:
        raise ConfigError(f"{source}: not a CSV: {error}") from error
    jobs.sort()
    first = jobs[0].submit_s if jobs else 0.0
    return Trace(
        tuple(job._replace(submit_s=job.submit_s - first) for job in jobs), tuple(problems)
    )


def _parse_rows(rows: csv.DictReader[str], source: str) -> tuple[list[Job], list[ParseError]]:
    jobs: list[Job] = []
    problems: list[ParseError] = []
    for row in rows:
        try:
            jobs.append(_parse_job(row))
        except ValueError as error:
            excerpt = ",".join(str(row.get(name)) for name in COLUMNS)
            problem = ParseError(
                str(error), source=source, line=rows.line_num, excerpt=show(excerpt)
            )
            problems.append(problem)
    return jobs, problems


def _parse_job(row: dict[str, str]) -> Job:
    submit_s, duration_s = (
        _parse_seconds(row[name], name) for name in ("submit_time_s", "duration_s")
    )
    gpus = row["gpus"]
    if not gpus or not gpus.isascii() or not gpus.isdecimal() or not 1 <= int(gpus) <= _MAX_GPUS:
        raise ValueError(f"gpus: expected an integer from 1 to {_MAX_GPUS}")
    return Job(submit_s, int(gpus), duration_s)


def _parse_seconds(text: str | None, name: str) -> float:
    try:
        seconds = float(text or "")
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= _MAX_SECONDS:
        raise ValueError(f"{name}: expected seconds from 0 to {_MAX_SECONDS:g}")
    return seconds


def scale_jobs(
    jobs: Sequence[Job], *, sizes: int, load: float | None, gpus: int
) -> tuple[Job, ...]:
    """Scale the sizes of jobs, and the times between them.

    With a load, stretches or shrinks each day of the trace so that its jobs request that share of
    the GPU time of the cluster. With one factor for all days, the cluster would be idle in the
    quiet weeks of a trace and permanently overloaded in the busy weeks.

    Args:
        jobs: the jobs, in order of submission.
        sizes: factor on their GPUs; a job is limited to the size of the cluster.
        load: requested GPU seconds over those of the cluster; None does not change the times.
        gpus: the GPUs of the cluster.
    """
    grown = [job._replace(gpus=min(job.gpus * sizes, gpus)) for job in jobs]
    if load is None:
        return tuple(grown)
    scaled: list[Job] = []
    begins_s = 0.0
    for day, day_jobs in groupby(grown, key=lambda job: int(job.submit_s // _DAY_S)):
        members = list(day_jobs)
        length_s = sum(job.gpus * job.duration_s for job in members) / (load * gpus)
        for job in members:
            share = job.submit_s / _DAY_S - day
            scaled.append(job._replace(submit_s=begins_s + share * length_s))
        begins_s += length_s
    return tuple(scaled)


_SIZES: Final = (1, 2, 4, 8, 12, 16, 24, 32, 64, 128)
_SHARES: Final = (0.93, 0.018, 0.014, 0.0336, 0.0002, 0.003, 0.0002, 0.0007, 0.0002, 0.0001)
"""Share of the jobs, per size."""
_MEDIAN_S: Final = 1144.0
_SIGMA: Final = math.log(11_265 / 1144) / 1.2816
"""Standard deviation of the logarithm of durations: the 90th percentile of a normal distribution is
1.2816 standard deviations above its mean."""
_NODE: Final = 8
"""GPUs of a node in these clusters."""
_LONGER_NODE: Final = 4.8
_LONGER_GANG: Final = 3.65
"""Factors on the durations of jobs with a whole node and with more; they yield the shares of GPU
time."""
_MAX_DURATION_S: Final = 30 * 86_400.0
_MEAN_GAP_S: Final = 109 * 86_400 / 82_247
_BURST_SHARE: Final = 0.5
"""Share of jobs that arrive within seconds of the previous job."""
_BURST_GAP_S: Final = 2.0


class RandomDraws(Protocol):
    """A seeded source, such as `random.Random`."""

    def random(self) -> float:
        """Return a number from 0 to 1."""

    def expovariate(self, lambd: float, /) -> float:
        """Return a gap of a Poisson process."""

    def lognormvariate(self, mu: float, sigma: float, /) -> float:
        """Return a number whose logarithm is normal."""


def draw_philly_jobs(num: int, draws: RandomDraws) -> tuple[Job, ...]:
    """Return `num` jobs in order of submission; equal sources give equal jobs."""
    submit_s, jobs = 0.0, []
    for _ in range(num):
        gpus = _find_size(draws.random())
        median_s = _MEDIAN_S * _compute_duration_factor(gpus)
        duration_s = min(draws.lognormvariate(math.log(median_s), _SIGMA), _MAX_DURATION_S)
        jobs.append(Job(round(submit_s, 1), gpus, round(max(duration_s, 1.0), 1)))
        is_burst = draws.random() < _BURST_SHARE
        mean_s = _BURST_GAP_S if is_burst else (2 * _MEAN_GAP_S - _BURST_GAP_S)
        submit_s += draws.expovariate(1 / mean_s)
    return tuple(jobs)


def _find_size(drawn: float) -> int:
    for size, share in zip(_SIZES, _SHARES, strict=True):
        drawn -= share
        if drawn < 0:
            return size
    return _SIZES[0]


def _compute_duration_factor(gpus: int) -> float:
    if gpus < _NODE:
        return 1.0
    return _LONGER_NODE if gpus == _NODE else _LONGER_GANG
