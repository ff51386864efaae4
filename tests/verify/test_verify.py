"""The runs of the grid: what they print, how they exit, and their journal."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository import ROOT

SLICE = ("--fabric", "8 rails", "--names", "plain", "--fault", "10 % of links lost", "--jobs", "2")

Ran = subprocess.CompletedProcess[str]


def verify(*words: str) -> Ran:
    line = [sys.executable, "-m", "tests.verify", *words]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ran]:
    """Return the journal and the output of two runs."""
    journal = tmp_path_factory.mktemp("verify") / "runs"
    return journal, verify(*SLICE, "--seeds", "2", "--journal", str(journal))


def test_it_prints_a_table_and_the_number_of_runs_by_verdict(runs: tuple[Path, Ran]) -> None:
    _, ran = runs
    lines = ran.stdout.splitlines()
    assert (ran.returncode, ran.stderr, lines[0]) == (0, "", "512 HCAs:")
    assert "| 8 rails | 2 / 0 / 0 | none visible |" in lines
    assert lines[-1] == "2 runs: 2 exact, 0 flagged, 0 silent"


def test_it_repeats_no_run_that_is_in_its_journal_and_fails_for_a_silently_wrong_one(
    runs: tuple[Path, Ran], tmp_path: Path
) -> None:
    journal = tmp_path / "runs"
    text = runs[0].read_text().replace('"exact", 0', '"silent", 3')
    journal.write_text(text)
    ran = verify(*SLICE, "--seeds", "2", "--journal", str(journal))
    assert (ran.returncode, journal.read_text()) == (1, text)
    total, repeat = ran.stdout.splitlines()[-2:]
    assert total == "2 runs: 0 exact, 0 flagged, 2 silent"
    what, _, command = repeat.partition(": python -m tests.verify ")
    assert what == "silent, 3 nodes wrong"
    again = verify(*shlex.split(command))
    assert again.stdout.splitlines()[-1] == "1 runs: 1 exact, 0 flagged, 0 silent"


def test_it_repeats_the_run_whose_line_in_the_journal_is_cut(
    runs: tuple[Path, Ran], tmp_path: Path
) -> None:
    journal = tmp_path / "runs"
    whole = runs[0].read_text()
    journal.write_text(whole[:-5])
    ran = verify(*SLICE, "--seeds", "2", "--journal", str(journal))
    assert ran.stdout == runs[1].stdout
    assert json.loads(journal.read_text().splitlines()[-1]) == json.loads(whole.splitlines()[-1])


def test_it_refuses_a_fabric_that_the_grid_lacks() -> None:
    ran = verify("--grid", "odd", "--sources", "reports+nodes")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "the grid odd has no such fabric" in ran.stderr
