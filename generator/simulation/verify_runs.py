"""Runs the scenarios of `toponaut verify` in several processes, with a limit on memory.

A journal can store the result of each run as a line of JSON, so that hours of runs survive an
interruption: a run in the journal is not repeated.
"""

from __future__ import annotations

import gc
import json
import os
import random  # noqa: TID251 - seeded: a run can be repeated
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache
from io import FileIO
from itertools import groupby, islice
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread
from typing import Any, Final, NamedTuple

from generator.simulation.fabric_words import render_fabric_options, render_fault_options
from generator.simulation.run_names import SourceMix
from generator.simulation.verify import RunScore, TreeVerdict, run_scenario
from generator.simulation.verify_grid import Scenario
from runtime.program import noting_interruption
from runtime.stop import STOP_SIGNALS
from topology.model.errors import ConfigError, TopologyError, WriteError, show
from topology.synthetic import FaultSpec, SyntheticSpec, Wiring, build_wiring

_LINE_START: Final = b'{"fabric": '
_BASE_BYTES: Final = 100 << 20
_BYTES_PER_HCA: Final = 20 << 10
"""Peak memory of a run per HCA, measured at 65,536 HCAs for every kind of fabric."""
_RUNS_PER_POOL: Final = 256
"""Runs after which new processes start, to return memory that large runs fragment. The pool's own
limit on the tasks of a process is not usable: Python 3.11 may hang when it is reached."""


class RunTask(NamedTuple):
    """One run of a scenario, with its seed."""

    scenario: Scenario
    seed: int

    @property
    def mix(self) -> SourceMix:
        """The sources that it reads."""
        return self.scenario.find_mix(self.seed)


class RunResult(NamedTuple):
    """The result of one run."""

    score: RunScore
    duration_s: float


def render_command(task: RunTask) -> str:
    """Return the command that repeats a run."""
    words = [*render_fabric_options(task.scenario.spec), *render_fault_options(_build_faults(task))]
    words += ["--sources", task.mix.value, "--seeds 1 --first-seed", str(task.seed)]
    return " ".join(["toponaut verify", *words])


class Journal:
    """A file with a line of JSON for each completed run."""

    def __init__(self, path: Path | None) -> None:
        """Read the file, if it exists.

        Raises:
            ConfigError: the file cannot be read, or is not a journal.
        """
        self._path = path
        self._size = 0
        self._results: dict[str, RunResult] = {}
        if path is None or not path.exists():
            return
        problem = f"not a journal of runs: {show(str(path))}"
        if not path.is_file():  # reading a device or a pipe may never end
            raise ConfigError(f"{problem}: not a regular file")
        try:
            lines = _keep_complete_lines(path.read_bytes())
            self._results.update(map(_parse_line, lines.decode().splitlines()))
            self._size = len(lines)
        except OSError as error:
            raise ConfigError(f"{problem}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{problem}: a line is not in the format of verify") from error

    def find_result(self, task: RunTask) -> RunResult | None:
        """Return the result of a run, None if it is not in the journal."""
        return self._results.get(render_command(task)) if self._results else None

    def append(self, task: RunTask, outcome: RunResult) -> None:
        """Add a run to the file.

        Raises:
            WriteError: the file cannot be written; it keeps the runs before.
        """
        if self._path is None:
            return
        line = json.dumps(_render_line(task, outcome)).encode() + b"\n"
        try:
            with self._path.open("ab", buffering=0) as file:
                file.truncate(self._size)
                self._write_line(file, line)
        except OSError as error:
            raise WriteError(f"cannot write {show(str(self._path))}: {error.strerror}") from error
        self._size += len(line)

    def _write_line(self, file: FileIO, line: bytes) -> None:
        try:
            while line:
                line = line[file.write(line) :]
        except BaseException:
            file.truncate(self._size)
            raise

    def describe(self) -> str:
        """Return how many runs an interruption leaves, for a note."""
        if self._path is None:
            return "no run is kept; with --journal FILE they are"
        num = len(self._path.read_bytes().splitlines()) if self._path.exists() else 0
        return f"{num} runs are in {show(str(self._path))}, and the next run continues"


def _keep_complete_lines(raw: bytes) -> bytes:
    """Return a journal without the part of a line that a killed run left at its end."""
    complete, newline, rest = raw.rpartition(b"\n")
    is_cut = rest[: len(_LINE_START)] == _LINE_START[: len(rest)]
    return complete + newline if is_cut else raw


def _render_line(task: RunTask, outcome: RunResult) -> dict[str, Any]:
    scenario, score = task.scenario, outcome.score
    return {
        "fabric": scenario.fabric,
        "hcas": scenario.num_hcas,
        "names": scenario.spec.names.value,
        "fault": scenario.fault,
        "sources": task.mix.value,
        "seed": task.seed,
        "verdict": score.verdict.value,
        "nodes_wrong": score.num_wrong,
        "swaps": {"detectable": score.num_swaps, "named": score.num_named},
        "seconds": round(outcome.duration_s, 2),
        "command": render_command(task),
    }


def _parse_line(line: str) -> tuple[str, RunResult]:
    row = json.loads(line)
    score = RunScore(
        TreeVerdict(row["verdict"]),
        int(row["nodes_wrong"]),
        int(row["swaps"]["detectable"]),
        int(row["swaps"]["named"]),
    )
    return str(row["command"]), RunResult(score, float(row["seconds"]))


def run_tasks(
    tasks: Sequence[RunTask],
    *,
    jobs: int,
    memory_bytes: int,
    journal: Journal,
    on_run: Callable[[RunTask, RunResult], None],
) -> dict[RunTask, RunResult]:
    """Return the result of each task; small fabrics run first.

    Args:
        tasks: the runs, without duplicates.
        jobs: maximum number of processes.
        memory_bytes: memory limit of all processes; a single process runs in any case.
        journal: the journal of earlier runs, to which each new run is added.
        on_run: called after each new run.

    Raises:
        ConfigError: a fabric is invalid, or its faults do not fit it.
        TopologyError: a process died.
    """
    results = {task: outcome for task in tasks if (outcome := journal.find_result(task))}
    ordered = sorted((task for task in tasks if task not in results), key=_count_hcas)
    with noting_interruption(journal.describe):
        for batch in _split_batches(ordered):
            fitting = memory_bytes // (_BASE_BYTES + _BYTES_PER_HCA * _count_hcas(batch[0]))
            for task, outcome in _run_batch(batch, max(1, min(jobs, fitting))):
                journal.append(task, outcome)
                results[task] = outcome
                on_run(task, outcome)
    return results


def _split_batches(tasks: Iterable[RunTask]) -> Iterator[list[RunTask]]:
    """Yield batches of tasks of one size, each for one pool."""
    for _, same_size in groupby(tasks, key=_count_hcas):
        while batch := list(islice(same_size, _RUNS_PER_POOL)):
            yield batch


def _count_hcas(task: RunTask) -> int:
    return task.scenario.num_hcas


def _run_batch(tasks: Sequence[RunTask], jobs: int) -> Iterator[tuple[RunTask, RunResult]]:
    """Yield results as they complete; on an early exit, cancel the remaining tasks."""
    if min(jobs, len(tasks)) == 1:
        yield from ((task, _run_task(task)) for task in tasks)
        return
    # Spawn, because a fork would copy the threads and locks of the caller.
    pool = ProcessPoolExecutor(
        min(jobs, len(tasks)), get_context("spawn"), initializer=_end_with_parent
    )
    try:
        with _block_stop_signals():  # its processes inherit that: this process ends them
            futures: Mapping[Future[RunResult], RunTask] = {
                pool.submit(_run_task, task): task for task in tasks
            }
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool as error:
        raise TopologyError("a process died, probably out of memory: use fewer --jobs") from error
    except KeyboardInterrupt:
        for process in active_children():
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """End this process when its parent ends, also by SIGKILL, which lets the parent do nothing."""
    parent = parent_process()
    if parent is not None:
        Thread(target=_exit_after, args=(parent,), daemon=True).start()


def _exit_after(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


@contextmanager
def _block_stop_signals() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run_task(task: RunTask) -> RunResult:
    start = time.monotonic()
    # Not for secrets; equal seeds draw equal faults.
    rng = random.Random(task.seed)  # noqa: S311
    with _pause_gc():
        wiring = _build_wiring(task.scenario.spec)
        score = run_scenario(wiring, _build_faults(task), rng, mix=task.mix)
    return RunResult(score, time.monotonic() - start)


@contextmanager
def _pause_gc() -> Iterator[None]:
    """Pause the garbage collector: facts have no cycles, and it takes 40 % of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _build_faults(task: RunTask) -> FaultSpec:
    scenario = task.scenario
    if scenario.loss_target is None:
        return scenario.faults
    return scenario.build_faults(task.seed, _build_wiring(scenario.spec))


@lru_cache(maxsize=1)
def _build_wiring(spec: SyntheticSpec) -> Wiring:
    return build_wiring(spec)
