"""Traces: parsing a CSV, scaling, and the statistics of the synthetic trace."""

from __future__ import annotations

import random  # noqa: TID251 - seeded

import pytest

from generator.simulation.replay.trace import Job, draw_philly_jobs, parse_trace, scale_jobs
from topology.model.errors import ConfigError

HEAD = "submit_time_s,gpus,duration_s"
DAY_S = 86_400.0


def seeded(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - no secret


def read(*rows: str) -> tuple[tuple[Job, ...], list[str]]:
    found = parse_trace([HEAD, *rows], source="t.csv")
    return found.jobs, [str(problem) for problem in found.problems]


def test_it_orders_jobs_and_counts_from_the_first() -> None:
    jobs, problems = read("20,4,9", "10,1,5", "10,1,4")
    assert jobs == (Job(0, 1, 4), Job(0, 1, 5), Job(10, 4, 9))
    assert problems == []


def test_it_reads_columns_by_name() -> None:
    found = parse_trace(["gpus,user,duration_s,submit_time_s", "2,me,3,1"], source="t.csv")
    assert found.jobs == (Job(0, 2, 3),)


BAD_ROWS = [
    pytest.param("x,1,1", "submit_time_s: expected seconds", id="a time in words"),
    pytest.param("1,0,1", "gpus: expected an integer from 1", id="no GPU"),
    pytest.param("1,1.5,1", "gpus: expected an integer from 1", id="half a GPU"),
    pytest.param("1,9999999,1", "gpus: expected an integer from 1", id="millions of GPUs"),
    pytest.param("1,1,-1", "duration_s: expected seconds", id="a negative duration"),
    pytest.param("1,1,nan", "duration_s: expected seconds", id="a duration of NaN"),
    pytest.param("1,1,inf", "duration_s: expected seconds", id="an endless duration"),
    pytest.param("1,1", "duration_s: expected seconds", id="a truncated row"),
    pytest.param("1,²,1", "gpus: expected an integer from 1", id="a superscript"),
]


@pytest.mark.parametrize(("row", "why"), BAD_ROWS)
def test_it_skips_a_row_with(row: str, why: str) -> None:
    jobs, problems = read(row, "5,2,7")
    assert jobs == (Job(0, 2, 7),)
    assert problems[0].startswith(f"t.csv:2: {why}")


def test_it_refuses_a_file_without_a_column() -> None:
    with pytest.raises(ConfigError, match="column gpus is missing"):
        parse_trace(["submit_time_s,duration_s", "1,1"], source="t.csv")


def test_it_limits_a_scaled_job_to_the_cluster() -> None:
    grown = scale_jobs([Job(0, 4, 1), Job(1, 1, 1)], sizes=8, load=None, gpus=16)
    assert [job.gpus for job in grown] == [16, 8]


def test_it_stretches_every_day_to_the_load() -> None:
    quiet, busy = Job(0, 1, 100), Job(DAY_S, 4, 1000)
    found = scale_jobs([quiet, busy, Job(1.5 * DAY_S, 4, 1000)], sizes=1, load=0.5, gpus=4)
    assert [round(job.submit_s, 6) for job in found] == [0, 50, 50 + 2000]


def test_it_draws_jobs_with_the_published_statistics() -> None:
    jobs = draw_philly_jobs(40_000, seeded(1))
    durations = sorted(job.duration_s for job in jobs)
    spent = dict.fromkeys((1, 8, 9), 0.0)
    for job in jobs:
        spent[1 if job.gpus < 8 else min(job.gpus, 9)] += job.gpus * job.duration_s
    total = sum(spent.values())
    assert sum(job.gpus == 1 for job in jobs) / len(jobs) == pytest.approx(0.93, abs=0.01)
    assert durations[len(jobs) // 2] == pytest.approx(1144, rel=0.1)
    assert durations[len(jobs) * 9 // 10] == pytest.approx(11_265, rel=0.1)
    assert (spent[8] + spent[9]) / total == pytest.approx(0.62, abs=0.06)
    assert spent[9] / total == pytest.approx(0.14, abs=0.05)
    days = (jobs[-1].submit_s - jobs[0].submit_s) / DAY_S
    assert len(jobs) / days == pytest.approx(82_247 / 109, rel=0.05)


def test_it_draws_equal_traces_from_equal_seeds() -> None:
    assert draw_philly_jobs(50, seeded(3)) == draw_philly_jobs(50, seeded(3))
