"""`toponaut verify`: how right the tree is, tried on fabrics whose truth is known."""

from __future__ import annotations

import gc
import os
import random  # noqa: TID251 - seeded: a run can be repeated
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache
from itertools import product
from multiprocessing import get_context
from typing import Any, Final, NamedTuple

import click

from generator.exits import Exit
from generator.fabric_options import (
    fabric_options,
    fabric_words,
    fault_words,
    faults_of,
    progress,
    spec_of,
)
from generator.printing import output_option, print_document, table
from generator.verifying import Row, Scenario, Score, Size, Verdict, grid, render_rows, run
from topology.errors import TopologyError
from topology.synthetic import FabricSpec, Wiring, build_wiring

_COLLECT_EVERY: Final = (200_000, 20, 20)  # as in `generator.cli`, for processes of their own
_HEADER: Final = (
    "FABRIC", "HCAS", "NAMES", "FAULT", "RUNS", "EXACT", "FLAGGED", "SILENT", "SWAPS NAMED",
)  # fmt: skip


class _Task(NamedTuple):
    """One run."""

    scenario: Scenario
    seed: int


@click.command(name="verify")
@click.option(
    "--grid",
    "grid",
    type=click.Choice([size.value for size in Size]),
    help="Many fabrics and faults instead of one: 512 HCAs, or up to 65,536, which takes hours.",
)
@fabric_options
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Runs of each fabric; each breaks other things.",
)
@click.option("--first-seed", type=int, default=0, show_default=True, help="Seed of the first run.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Processes at work.  [default: one per core]",
)
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    output: str,
    *,
    seeds: int,
    first_seed: int,
    jobs: int | None,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Make fabrics, break them, infer their trees, and compare these with the truth.

    A tree is exact; or it is wrong and a finding names each node concerned or a switch of its
    domain (flagged); or it is wrong and nothing says so (silent), which exits with 5. Swaps count
    where the fabric's symmetry can show them. The reports come in random order.
    """
    scenarios = _scenarios(ctx, options)
    tasks = [_Task(*task) for task in product(scenarios, range(first_seed, first_seed + seeds))]
    rows = _rows(tasks, _scores(tasks, jobs or _num_cores()))
    commands = {
        row.scenario: _command_line(row.scenario, row.worst.seed) for row in rows if row.worst
    }
    print_document(render_rows(rows, commands), output, text=lambda: _text(rows, commands))
    if any(row.num(Verdict.SILENT) for row in rows):
        ctx.exit(Exit.CHECK_FAILED)


def _scenarios(ctx: click.Context, options: dict[str, Any]) -> list[Scenario]:
    size = options.pop("grid")
    if size is None:
        spec, faults = spec_of(options), faults_of(options)
        return [Scenario(spec.kind.value, " ".join(fault_words(faults)) or "none", spec, faults)]
    given = [name for name in options if _is_given(ctx, name)]
    if given:
        flag = given[0].replace("_", "-")
        raise click.UsageError(f"--{flag} describes one fabric, --grid many: leave one out")
    return grid(Size(size))


def _is_given(ctx: click.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _num_cores() -> int:
    return len(os.sched_getaffinity(0))


def _scores(tasks: Sequence[_Task], jobs: int) -> list[Score]:
    """Return the score of each task, in their order.

    Raises:
        ConfigError: a fabric makes no sense, or its faults do not fit it.
        TopologyError: a process died.
    """
    found = []
    try:
        with progress("starting") as show_progress, _mapped(tasks, jobs) as scores:
            for num, one in enumerate(scores, 1):
                found.append(one)
                show_progress(f"{num} of {len(tasks)} runs")
    except BrokenProcessPool as error:
        raise TopologyError("a process died, likely for want of memory: lower --jobs") from error
    return found


@contextmanager
def _mapped(tasks: Sequence[_Task], jobs: int) -> Iterator[Iterator[Score]]:
    """Yield the scores as they come, in the order of the tasks; drop the rest on the way out."""
    if min(jobs, len(tasks)) == 1:
        yield map(_run, tasks)
        return
    # Spawned, for a fork would copy whatever threads and locks the caller has.
    pool = ProcessPoolExecutor(
        min(jobs, len(tasks)), get_context("spawn"), gc.set_threshold, _COLLECT_EVERY
    )
    try:
        yield pool.map(_run, tasks)
    finally:
        pool.shutdown(cancel_futures=True)


def _run(task: _Task) -> Score:
    # Not for secrets; equal seeds break the same things.
    rng = random.Random(task.seed)  # noqa: S311
    return run(_wiring(task.scenario.spec), task.scenario.faults, rng)


@lru_cache(maxsize=1)
def _wiring(spec: FabricSpec) -> Wiring:
    return build_wiring(spec)


def _rows(tasks: Sequence[_Task], scores: Sequence[Score]) -> list[Row]:
    found: dict[Scenario, dict[int, Score]] = {}
    for task, one in zip(tasks, scores, strict=True):
        found.setdefault(task.scenario, {})[task.seed] = one
    return [Row(scenario, by_seed) for scenario, by_seed in found.items()]


def _command_line(scenario: Scenario, seed: int) -> str:
    words = [*fabric_words(scenario.spec), *fault_words(scenario.faults)]
    return " ".join(["toponaut verify", *words, "--seeds 1 --first-seed", str(seed)])


def _text(rows: Sequence[Row], commands: Mapping[Scenario, str]) -> str:
    runs = {verdict: sum(row.num(verdict) for row in rows) for verdict in Verdict}
    counts = ", ".join(f"{num} {verdict.value}" for verdict, num in runs.items())
    lines = [table(_HEADER, map(_cells, rows)), f"{sum(runs.values())} runs: {counts}"]
    for row in rows:
        if row.worst and row.worst.score.verdict is not Verdict.EXACT:
            verdict = row.worst.score.verdict.value
            lines.append(f"to repeat a {verdict} one: {commands[row.scenario]}")
    return "\n".join(lines)


def _cells(row: Row) -> tuple[str, ...]:
    scenario = row.scenario
    return (
        scenario.fabric,
        str(scenario.num_hcas),
        scenario.spec.names.value,
        scenario.fault,
        str(len(row.scores)),
        *(str(row.num(verdict)) for verdict in Verdict),
        f"{row.num_named} of {row.num_swaps}" if row.num_swaps else "-",
    )
