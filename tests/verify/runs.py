"""Runs of the grid in several processes, with a journal: a run in it is not repeated."""

from __future__ import annotations

import gc
import json
import os
import random
import shlex
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache
from itertools import groupby
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Final, NamedTuple

import click

from tests.verify.grid import Scenario
from tests.verify.judgement import RunScore, TreeVerdict, run_scenario
from topology.synthetic import SyntheticSpec, Wiring, build_wiring

_PROGRESS_RUNS: Final = 100


class Run(NamedTuple):
    """One run of a scenario, with its seed."""

    scenario: Scenario
    seed: int

    @property
    def command(self) -> str:
        """The options that repeat it."""
        scenario = self.scenario
        words = ["--hcas", str(scenario.grid_size), "--fabric", scenario.fabric]
        words += ["--names", scenario.spec.names.value, "--fault", scenario.fault]
        words += ["--sources", scenario.find_mix(self.seed).value, "--seed", str(self.seed)]
        return shlex.join(words)


def run_all(runs: Sequence[Run], *, jobs: int, journal: Path | None) -> dict[Run, RunScore]:
    """Return the score of each run: from the journal, or of a run; small fabrics run first."""
    known = read_journal(journal) if journal else {}
    scores = {run: known[run.command] for run in runs if run.command in known}
    missing = sorted((run for run in runs if run not in scores), key=_count_hcas)
    for run, score in _run_in_processes(missing, jobs):
        scores[run] = score
        if journal:
            append_to_journal(journal, run, score)
        if len(scores) % _PROGRESS_RUNS == 0:
            click.echo(f"{len(scores)} of {len(runs)} runs", err=True)
    return scores


def read_journal(path: Path) -> dict[str, RunScore]:
    """Return the scores in a journal; a line that a killed run left incomplete is not one."""
    scores = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            command, verdict, *numbers = json.loads(line)
        except json.JSONDecodeError:
            continue
        scores[command] = RunScore(TreeVerdict(verdict), *numbers)
    return scores


def append_to_journal(path: Path, run: Run, score: RunScore) -> None:
    """Add a line; it begins with a line break, so that it does not continue an incomplete line."""
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" + json.dumps([run.command, *score]))


def _count_hcas(run: Run) -> int:
    return run.scenario.num_hcas


def _run_in_processes(runs: Sequence[Run], jobs: int) -> Iterator[tuple[Run, RunScore]]:
    """Yield scores as runs end. Each size has new processes: large runs fragment their memory."""
    for _, batch in groupby(runs, key=_count_hcas):
        with ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_end_with_parent) as pool:
            futures = {pool.submit(_run, run): run for run in batch}
            for future in as_completed(futures):
                yield futures[future], future.result()


def _end_with_parent() -> None:
    """End this process when its parent ends, also by SIGKILL."""
    parent = parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    Thread(target=wait, daemon=True).start()


def _run(run: Run) -> RunScore:
    gc.disable()  # facts have no cycles, and it takes 40 % of the time
    wiring = _build_wiring(run.scenario.spec)
    # Not for secrets; equal seeds draw equal faults.
    rng = random.Random(run.seed)  # noqa: S311
    faults = run.scenario.build_faults(run.seed, wiring)
    score = run_scenario(wiring, faults, rng, mix=run.scenario.find_mix(run.seed))
    gc.collect()
    return score


@lru_cache(maxsize=1)
def _build_wiring(spec: SyntheticSpec) -> Wiring:
    return build_wiring(spec)
