"""`toponaut verify`: its output, its exit codes, and its journal."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.simulation import verify_runs
from generator.simulation.run_names import SourceMix
from generator.simulation.verify import RunScore, TreeVerdict
from tests.generator.scenes import run
from topology.synthetic import FaultSpec, RandomSource, Wiring

SMALL = ("verify", "--kind", "rail", "--hosts", 16, "--rails", 4, "--radix", 16)


def test_it_prints_the_same_for_any_number_of_jobs() -> None:
    words = (*SMALL, "--lose-links", "10%", "--swap", "5%", "--seeds", 4, "-o", "json")
    alone, together = run(*words, "--jobs", 1), run(*words, "--jobs", 2)
    assert alone == together
    assert alone.document["total"]["runs"] == 4


def test_it_prints_a_table_of_its_runs() -> None:
    ran = run(*SMALL, "--swap", "2", "--seeds", 2)
    heading, cells, total = ran.out.splitlines()[:3]
    assert heading.startswith("FABRIC  HCAS  NAMES  FAULT")
    assert "--swap 2" in cells
    assert total.startswith("2 runs: ")


def silently_wrong(
    wiring: Wiring, faults: FaultSpec, rng: RandomSource, *, mix: SourceMix
) -> RunScore:
    del wiring, faults, rng, mix
    return RunScore(TreeVerdict.SILENT, 1, 0, 0)


def test_it_exits_with_5_and_prints_the_command_that_repeats_a_silently_wrong_tree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(verify_runs, "run_scenario", silently_wrong)
    faults = ("--lose-links", "2.5%", "--swap", "5%", "--lose-host", 1, "--shuffle-hosts")
    lost = ("--lose-switch", 1, "--lose-rank", 2, "--lose", "node-0003")
    ran = run(*SMALL, *faults, *lost, "--first-seed", 7, "--seeds", 2, "--jobs", 1)
    assert ran.code == ExitCode.CHECK_FAILED
    (line,) = [line for line in ran.out.splitlines() if line.startswith("repeat silent run: ")]
    words = shlex.split(line.partition(": toponaut ")[2])
    again = run(*words, "--jobs", 1)
    assert again.code == ExitCode.CHECK_FAILED
    assert line in again.out.splitlines()
    assert "--sources sweep --seeds 1 --first-seed 7" in line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("--grid", "quick", "--hosts", "8"), "--hosts", id="a grid and one fabric"),
        pytest.param(("--hcas", "512"), "--grid", id="a size without a grid"),
        pytest.param(
            ("--grid", "quick", "--hcas", "8192"), "no fabric", id="a size that the grid lacks"
        ),
        pytest.param(("--swap", "101%"), "more than 100%", id="more cables than there are"),
        pytest.param(("--swap", "-1"), "not a share", id="a negative number of swaps"),
        pytest.param(("--hosts", "9999", "--radix", "4"), "do not fit", id="too many hosts"),
        pytest.param(("--lose-host", "65"), "0 to 64 hosts", id="more hosts than there are"),
        pytest.param(
            ("--medium", "ethernet", "--sources", "sweep"),
            "use reports+nodes",
            id="a sweep of an Ethernet fabric",
        ),
        pytest.param(
            ("--grid", "odd", "--sources", "reports+nodes"),
            "no fabric with these sources",
            id="sources that the grid lacks",
        ),
        pytest.param(("--jobs", "0"), "--jobs", id="no process"),
        pytest.param(("--lose", "x"), "got x", id="an unknown device"),
        pytest.param(("--lose-switch", "1", "--lose-rank", "4"), "of rank 4", id="an unknown rank"),
        pytest.param(("--journal", __file__), "not a journal", id="a file that is not a journal"),
        pytest.param(
            ("--journal", "/dev/full"), "not a regular file", id="a device file as journal"
        ),
    ],
)
def test_it_refuses(words: tuple[str, ...], said: str) -> None:
    ran = run("verify", "--seeds", 1, *words)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert said in ran.err


@pytest.mark.parametrize("sources", [(), ("sweep+nodes", "sweep", "all")])
def test_each_seed_reads_the_next_of_the_given_sources(sources: tuple[str, ...]) -> None:
    words = (*SMALL, "--lose-links", "10%", "--swap", "5%", "--jobs", 1, "-o", "json")
    flags = [word for mix in sources for word in ("--sources", mix)]
    (row,) = run(*words, *flags, "--seeds", 3).document["rows"]
    single = [
        run(*words, "--sources", mix, "--seeds", 1, "--first-seed", seed).document["rows"][0]
        for seed, mix in enumerate(("sweep+nodes", "sweep", "all"))
    ]
    assert row["swaps"]["named"] == sum(one["swaps"]["named"] for one in single)
    assert row["exact"] == sum(one["exact"] for one in single)


def test_it_removes_each_device_in_turn() -> None:
    ran = run(*SMALL, "--lose-each", "switch", "--seeds", 1, "-o", "json")
    assert ran.document["total"]["runs"] == 8 + 4
    (row,) = ran.document["rows"]
    assert (row["fault"], row["exact"]) == ("--lose-each switch", 12)


def test_it_repeats_no_run_that_is_in_its_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (*SMALL, "--lose-links", "10%", "--jobs", 1, "--journal", tmp_path / "runs.jsonl")
    first = run(*words, "--seeds", 2)
    lines = (tmp_path / "runs.jsonl").read_text().splitlines()
    assert [json.loads(line)["seed"] for line in lines] == [0, 1]
    assert json.loads(lines[1])["command"].endswith("10% --sources sweep --seeds 1 --first-seed 1")
    assert [json.loads(line)["sources"] for line in lines] == ["sweep+nodes", "sweep"]
    monkeypatch.setattr(verify_runs, "run_scenario", silently_wrong)
    assert run(*words, "--seeds", 2) == first
    assert run(*words, "--seeds", 3).code == ExitCode.CHECK_FAILED
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 3


def test_it_runs_a_task_alone_if_it_needs_more_memory_than_is_free() -> None:
    words = (*SMALL, "--jobs", 2, "--seeds", 2)
    assert run(*words, "--memory", "0.001") == run(*words)


def test_it_prints_tables_in_markdown() -> None:
    ran = run(*SMALL, "--seeds", 1, "--markdown")
    assert "| rail | 1 / 0 / 0 | none visible |" in ran.out.splitlines()
