"""Traces of jobs: the submission time, size and duration of each job.

A trace is a CSV with the columns `submit_time_s`, `gpus` and `duration_s`, in any order of columns
and rows. Ignores other columns. Skips a bad row with an error.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final, NamedTuple

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
