"""Running the scenarios of `toponaut verify` in several processes, within a bound on memory.

What a run came to can be kept in a journal, a line of JSON each, so that hours of runs survive
an interruption: those that the journal has are not repeated.
"""

from __future__ import annotations

import gc
import json
import random  # noqa: TID251 - seeded: a run can be repeated
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache
from itertools import groupby, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, NamedTuple

from generator.simulation.fabric_words import fabric_words, fault_words
from generator.simulation.verify import Score, Verdict, run
from generator.simulation.verify_grid import Scenario
from topology.model.errors import ConfigError, TopologyError, show
from topology.synthetic import FabricSpec, FaultSpec, Wiring, build_wiring

_BASE_BYTES: Final = 100 << 20
_BYTES_PER_HCA: Final = 20 << 10
"""What a run takes at its peak, as measured at 65,536 HCAs of every kind of fabric."""
_RUNS_PER_POOL: Final = 256
"""Then fresh processes start: memory that many large runs left scattered goes back. The pool's
own limit on the tasks of a process is no use, since Python 3.11 may hang when it is reached."""


class Task(NamedTuple):
    """One run."""

    scenario: Scenario
    seed: int


class Outcome(NamedTuple):
    """What one run came to."""

    score: Score
    seconds: float


def command_line(task: Task) -> str:
    """Return the command that repeats a run."""
    words = [*fabric_words(task.scenario.spec), *fault_words(_faults(task))]
    return " ".join(["toponaut verify", *words, "--seeds 1 --first-seed", str(task.seed)])


class Journal:
    """A file with a line of JSON for each run that was made."""

    def __init__(self, path: Path | None) -> None:
        """Read what the file has, if there is one.

        Raises:
            ConfigError: it cannot be read, or holds something else.
        """
        self._path = path
        self._found: dict[str, Outcome] = {}
        if path is None or not path.exists():
            return
        problem = f"no journal of runs: {show(str(path))}"
        if not path.is_file():  # what is read from a device or a pipe may never end
            raise ConfigError(f"{problem}: not a regular file")
        try:
            self._found.update(map(_parse_line, path.read_text(encoding="utf-8").splitlines()))
        except OSError as error:
            raise ConfigError(f"{problem}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{problem}: not the lines that verify writes") from error

    def get(self, task: Task) -> Outcome | None:
        """Return what a run came to, None where it has yet to be made."""
        return self._found.get(command_line(task)) if self._found else None

    def append(self, task: Task, outcome: Outcome) -> None:
        """Add a run to the file.

        Raises:
            ConfigError: the file cannot be written.
        """
        if self._path is None:
            return
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(_render_line(task, outcome)) + "\n")
        except OSError as error:
            raise ConfigError(f"cannot write {show(str(self._path))}: {error.strerror}") from error


def _render_line(task: Task, outcome: Outcome) -> dict[str, Any]:
    scenario, score = task.scenario, outcome.score
    return {
        "fabric": scenario.fabric,
        "hcas": scenario.num_hcas,
        "names": scenario.spec.names.value,
        "fault": scenario.fault,
        "seed": task.seed,
        "verdict": score.verdict.value,
        "nodes_wrong": score.num_wrong,
        "swaps": {"detectable": score.num_swaps, "named": score.num_named},
        "seconds": round(outcome.seconds, 2),
        "command": command_line(task),
    }


def _parse_line(line: str) -> tuple[str, Outcome]:
    row = json.loads(line)
    score = Score(
        Verdict(row["verdict"]),
        int(row["nodes_wrong"]),
        int(row["swaps"]["detectable"]),
        int(row["swaps"]["named"]),
    )
    return str(row["command"]), Outcome(score, float(row["seconds"]))


def run_all(
    tasks: Sequence[Task],
    *,
    jobs: int,
    memory_bytes: int,
    journal: Journal,
    on_run: Callable[[Task, Outcome], None],
) -> dict[Task, Outcome]:
    """Return what each task came to; small fabrics are tried first.

    Args:
        tasks: different ones.
        jobs: processes at work at most.
        memory_bytes: that all of them may take; a single one runs in any case.
        journal: of earlier runs, to which each new one is added.
        on_run: is told of each run that was made now.

    Raises:
        ConfigError: a fabric makes no sense, or its faults do not fit it.
        TopologyError: a process died.
    """
    found = {task: outcome for task in tasks if (outcome := journal.get(task))}
    ordered = sorted((task for task in tasks if task not in found), key=_size)
    for batch in _batches(ordered):
        fitting = memory_bytes // (_BASE_BYTES + _BYTES_PER_HCA * _size(batch[0]))
        for task, outcome in _run_batch(batch, max(1, min(jobs, fitting))):
            journal.append(task, outcome)
            found[task] = outcome
            on_run(task, outcome)
    return found


def _batches(tasks: Iterable[Task]) -> Iterator[list[Task]]:
    """Yield tasks of one size, as many at a time as a pool shall run."""
    for _, found in groupby(tasks, key=_size):
        while batch := list(islice(found, _RUNS_PER_POOL)):
            yield batch


def _size(task: Task) -> int:
    return task.scenario.num_hcas


def _run_batch(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[Task, Outcome]]:
    """Yield outcomes as they come; drop the rest on the way out."""
    if min(jobs, len(tasks)) == 1:
        yield from ((task, _run(task)) for task in tasks)
        return
    # Spawned, for a fork would copy whatever threads and locks the caller has.
    pool = ProcessPoolExecutor(min(jobs, len(tasks)), get_context("spawn"))
    try:
        futures: Mapping[Future[Outcome], Task] = {pool.submit(_run, task): task for task in tasks}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool as error:
        raise TopologyError("a process died, likely for want of memory: lower --jobs") from error
    finally:
        pool.shutdown(cancel_futures=True)


def _run(task: Task) -> Outcome:
    start = time.monotonic()
    # Not for secrets; equal seeds break the same things.
    rng = random.Random(task.seed)  # noqa: S311
    with _uncollected():
        found = run(_wiring(task.scenario.spec), _faults(task), rng)
    return Outcome(found, time.monotonic() - start)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Look for no cycles meanwhile: facts have none, and looking takes 40 % of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _faults(task: Task) -> FaultSpec:
    scenario = task.scenario
    if scenario.each is None:
        return scenario.faults
    return scenario.faults_at(task.seed, _wiring(scenario.spec))


@lru_cache(maxsize=1)
def _wiring(spec: FabricSpec) -> Wiring:
    return build_wiring(spec)
