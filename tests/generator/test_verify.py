"""`toponaut verify`: what it prints, how it exits, and a slice of the grid on every run."""

from __future__ import annotations

import shlex

import pytest

from generator.commands import verify
from generator.exits import Exit
from generator.verifying import Score, Verdict
from tests.generator.scenes import run
from topology.synthetic import FaultSpec, RandomSource, Wiring

SMALL = ("verify", "--kind", "rail", "--hosts", 16, "--rails", 4, "--radix", 16)


@pytest.mark.timeout(60)
def test_it_finds_no_tree_of_the_quick_grid_silently_wrong() -> None:
    ran = run("verify", "--grid", "quick", "--seeds", 1, "-o", "json")
    silent = [row["worst"]["command"] for row in ran.document["rows"] if row["silent"]]
    assert silent == []
    assert ran.code == Exit.OK
    assert ran.err == ""


def test_it_prints_the_same_whatever_the_number_of_jobs() -> None:
    words = (*SMALL, "--lose-links", "10%", "--swap", "5%", "--seeds", 4, "-o", "json")
    alone, together = run(*words, "--jobs", 1), run(*words, "--jobs", 2)
    assert alone == together
    assert alone.document["total"]["runs"] == 4


def test_it_says_in_a_table_what_was_tried() -> None:
    ran = run(*SMALL, "--swap", "2", "--seeds", 2)
    heading, cells, total = ran.out.splitlines()[:3]
    assert heading.startswith("FABRIC  HCAS  NAMES  FAULT")
    assert "--swap 2" in cells
    assert total.startswith("2 runs: ")


def silently_wrong(wiring: Wiring, faults: FaultSpec, rng: RandomSource) -> Score:
    del wiring, faults, rng
    return Score(Verdict.SILENT, 0, 0)


def test_it_exits_with_5_and_tells_how_to_repeat_a_silently_wrong_tree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(verify, "run", silently_wrong)
    given = (*SMALL, "--names", "opaque", "--lose-links", "2.5%", "--swap", "5%", "--lose-host", 1)
    ran = run(*given, "--first-seed", 7, "--seeds", 2, "--jobs", 1)
    assert ran.code == Exit.CHECK_FAILED
    (line,) = [line for line in ran.out.splitlines() if line.startswith("to repeat")]
    words = shlex.split(line.partition(": toponaut ")[2])
    again = run(*words, "--jobs", 1)
    assert again.code == Exit.CHECK_FAILED
    assert line in again.out.splitlines()
    assert "--first-seed 7" in line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("--grid", "quick", "--hosts", "8"), "--hosts", id="a grid and one fabric"),
        pytest.param(("--swap", "101%"), "more than all", id="more cables than there are"),
        pytest.param(("--swap", "-1"), "no share", id="a negative number of swaps"),
        pytest.param(("--hosts", "999999", "--radix", "4"), "do not fit", id="too many hosts"),
        pytest.param(("--lose-host", "65"), "0 to 64 hosts", id="more hosts than there are"),
        pytest.param(("--jobs", "0"), "--jobs", id="no process at work"),
    ],
)
def test_it_refuses_what_makes_no_fabric(words: tuple[str, ...], said: str) -> None:
    ran = run("verify", "--seeds", 1, *words)
    assert (ran.code, ran.out) == (Exit.USAGE, "")
    assert said in ran.err
