"""Traces of jobs: who came when, how large, for how long.

CSV with the columns `submit_time_s`, `gpus` and `duration_s`, in any order of columns and rows;
further columns are not looked at. A bad row costs itself.
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
    """Seconds from the first."""
    gpus: int
    duration_s: float


class Trace(NamedTuple):
    """Jobs in the order in which they came, and the rows that were refused."""

    jobs: tuple[Job, ...]
    problems: tuple[ParseError, ...] = ()


def parse_trace(lines: Iterable[str], *, source: str) -> Trace:
    """Return the jobs of a CSV; those of one instant by size, then by duration.

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
        raise ConfigError(f"{source}: no CSV: {error}") from error
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
            found = ParseError(str(error), source=source, line=rows.line_num, excerpt=show(excerpt))
            problems.append(found)
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
        found = float(text or "")
    except ValueError:
        found = math.nan
    if not 0 <= found <= _MAX_SECONDS:
        raise ValueError(f"{name}: expected seconds from 0 to {_MAX_SECONDS:g}")
    return found


def scale_jobs(
    jobs: Sequence[Job], *, sizes: int, load: float | None, gpus: int
) -> tuple[Job, ...]:
    """Return jobs that are larger and come faster or slower.

    For a load each day of the trace is stretched or shrunk until its jobs ask for that share of
    the GPU time there is meanwhile. One factor for all days would leave the cluster idle in the
    quiet weeks of a trace and never out of its queue in the busy ones.

    Args:
        jobs: in order of submission.
        sizes: factor of their GPUs; a job larger than the cluster becomes as large as it.
        load: GPU seconds asked for over those that the cluster has; None leaves the times.
        gpus: of the cluster.
    """
    grown = [job._replace(gpus=min(job.gpus * sizes, gpus)) for job in jobs]
    if load is None:
        return tuple(grown)
    found: list[Job] = []
    begins_s = 0.0
    for day, listed in groupby(grown, key=lambda job: int(job.submit_s // _DAY_S)):
        members = list(listed)
        length_s = sum(job.gpus * job.duration_s for job in members) / (load * gpus)
        for job in members:
            share = job.submit_s / _DAY_S - day
            found.append(job._replace(submit_s=begins_s + share * length_s))
        begins_s += length_s
    return tuple(found)
