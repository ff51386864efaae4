"""`toponaut simulate jobs` as a command."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.simulation.replay.replay import build_tree_of_shape
from tests.generator.scenes import Ran, run
from topology.model.tree import render_tree

TRACE = "submit_time_s,gpus,duration_s\n" + "".join(
    f"{at},{2 if at % 3 else 6},{40 + at}\n" for at in range(0, 90, 5)
)
FIGURES = {"gangs", "tiers", "leaves", "over_least", "fragmentation", "utilisation", "wait_s"}


def simulate(*words: object) -> Ran:
    return run("simulate", "jobs", "--fabric", "2x2x2", "--scale-sizes", 8, *words)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "trace.csv"
    file.write_text(TRACE, encoding="utf-8")
    return file


def test_it_compares_the_engine_with_two_rules(trace: Path) -> None:
    ran = simulate("--trace", trace, "--load", "0.9", "-o", "json")
    assert ran.code == ExitCode.OK
    found = {row["name"]: row for row in ran.document["presets"]}
    assert list(found) == ["optimal", "best-fit", "first-fit"]
    assert found["optimal"].keys() >= FIGURES
    assert all(row["started"] == ran.document["jobs"] for row in found.values())
    assert found["optimal"]["at_lowest_tier"] == 1
    assert found["optimal"]["leaves"] <= found["first-fit"]["leaves"]


def test_it_places_jobs_one_by_one_on_demand(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    rows = [(2, 50), (3, 60), (5, 70), (6, 80)]
    lines = "".join(f"0,{nodes},{seconds}\n" for nodes, seconds in rows)
    file.write_text(f"submit_time_s,gpus,duration_s\n{lines}", encoding="utf-8")
    words = ("--trace", file, "--fabric", "2x2x4", "--preset", "optimal", "-o", "json")
    leaves = [
        simulate(*words, mode).document["presets"][0]["leaves"]
        for mode in ("--joint", "--one-by-one")
    ]
    assert leaves == [6, 7]


def test_it_prints_a_row_for_each_preset(trace: Path) -> None:
    ran = simulate("--trace", trace, "--preset", "best-fit", "--preset", "first-fit")
    header, *rows, total = ran.out.splitlines()
    assert header.split()[:2] == ["PRESET", "GANGS"]
    assert [row.split()[0] for row in rows] == ["best-fit", "first-fit"]
    gangs = int(rows[0].split()[1])
    assert f": {gangs} gangs, {int(total.split()[0]) - gangs} of one pod" in total


def test_it_says_why_no_job_is_a_gang(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("submit_time_s,gpus,duration_s\n0,1,99\n1,8,9\n", encoding="utf-8")
    words = ("--trace", file, "--preset", "best-fit", "--fabric", "2x2x2")
    *_, row, total = run("simulate", "jobs", *words).out.splitlines()
    assert row.split()[:5] == ["best-fit", "0", "-", "-", "-"]
    none = "because none needs more than the 8 GPUs of a node: see --scale-sizes"
    assert total == f"2 jobs: 0 gangs, 2 of one pod, {none}"


def test_gangs_can_prefer_a_tier(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("submit_time_s,gpus,duration_s\n0,1,99\n1,2,9\n", encoding="utf-8")
    words = ("--trace", file, "--preset", "kueue", "-o", "json")
    preferred, unasked = simulate(*words, "--prefer", "leaf"), simulate(*words)
    shares = [ran.document["presets"][0]["at_lowest_tier"] for ran in (preferred, unasked)]
    assert shares == [1, 0]


def test_it_refuses_a_tier_that_is_not_in_the_tree(trace: Path) -> None:
    ran = simulate("--trace", trace, "--prefer", "rack")
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "--prefer: the tree has no tier 'rack'; it has leaf, spine" in ran.err


def test_it_reads_a_packed_trace_and_a_tree(trace: Path, tmp_path: Path) -> None:
    packed, tree = tmp_path / "t.csv.gz", tmp_path / "tree.json"
    packed.write_bytes(gzip.compress(trace.read_bytes()))
    tree.write_text(json.dumps(render_tree(build_tree_of_shape("2x2x2"))), encoding="utf-8")
    words = ("--preset", "first-fit", "-o", "json")
    by_file = run(
        "simulate", "jobs", "--trace", packed, "--fabric", tree, "--scale-sizes", 8, *words
    )
    assert by_file.document == simulate("--trace", trace, *words).document


def test_it_draws_a_trace_from_a_seed() -> None:
    words = ("--num-jobs", 40, "--seed", 7, "--preset", "first-fit", "-o", "json")
    assert simulate(*words).document == simulate(*words).document


def test_it_reports_the_rows_that_it_skipped(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("submit_time_s,gpus,duration_s\n1,1,1\nx,1,1\n", encoding="utf-8")
    ran = simulate("--trace", file, "--preset", "first-fit", "-o", "json")
    assert (ran.code, ran.document["jobs"]) == (ExitCode.SKIPPED, 1)
    assert "t.csv:3: submit_time_s" in ran.err


REFUSED = [
    pytest.param(b"", "column submit_time_s is missing", id="empty"),
    pytest.param(b"submit_time_s,gpus,duration_s\n", "no jobs in this file", id="a header only"),
    pytest.param(b"submit_time_s,gpus,duration_s\n1,x,3\n", "trace.csv:2: gpus", id="a bad row"),
    pytest.param(b"\x1f\x8b\x08broken", "trace.csv", id="a broken archive"),
    pytest.param(b"\xff\xf0\x00", "trace.csv: not UTF-8 at byte 0", id="binary"),
]


@pytest.mark.parametrize(("raw", "why"), REFUSED)
def test_it_refuses_a_trace_that_is(tmp_path: Path, raw: bytes, why: str) -> None:
    file = tmp_path / "trace.csv"
    file.write_bytes(raw)
    ran = simulate("--trace", file)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert why in ran.err


@pytest.mark.parametrize("load", ["0", "0%", "0.0001"])
def test_it_refuses_an_invalid_load(load: str) -> None:
    ran = simulate("--load", load)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert f"'{load}' is less than 0.001" in ran.err
