"""`toponaut verify`: how right the tree is, tried on fabrics whose truth is known."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from generator.cli.exit_codes import ExitCode
from generator.cli.fabric_options import (
    fabric_options,
    parse_fault_spec,
    open_progress,
    parse_fabric_spec,
)
from generator.cli.output import output_option, print_document, render_table
from generator.simulation.fabric_words import render_fault_options
from generator.simulation.verify import RunScore, TreeVerdict
from generator.simulation.verify_grid import (
    SIZES,
    LossTarget,
    ScenarioResult,
    Scenario,
    GridSize,
    build_grid,
    render_markdown,
    render_rows,
)
from generator.simulation.verify_runs import Journal, RunResult, RunTask, render_command, run_tasks

_GIB: Final = 1 << 30
_FREE_MEMORY_SHARE: Final = 0.8
_FALLBACK_BYTES: Final = 4 << 30
_PROGRESS_PERIOD_S: Final = 60.0
_AVAILABLE: Final = re.compile(r"^MemAvailable:\s+(\d+) kB$", re.MULTILINE)
_HEADER: Final = (
    "FABRIC", "HCAS", "NAMES", "FAULT", "RUNS", "EXACT", "FLAGGED", "SILENT", "SWAPS NAMED",
)  # fmt: skip


@click.command(name="verify")
@click.option(
    "--grid",
    "grid",
    type=click.Choice([size.value for size in GridSize]),
    help=(
        "Many fabrics and faults instead of one: 512 HCAs (quick), up to 65,536, which takes hours "
        "(full), or fabrics that are no regular Clos (odd)."
    ),
)
@click.option(
    "--hcas",
    type=click.Choice([str(num) for num in SIZES]),
    multiple=True,
    help="Only fabrics of this size, of the grid; repeatable.",
)
@fabric_options
@click.option(
    "--lose-each",
    type=click.Choice([each.value for each in LossTarget]),
    help="Lose one after the other, one in each run, instead of runs by seed.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Runs of each fabric; each breaks other things.",
)
@click.option("--first-seed", type=int, default=0, show_default=True, help="Seed of the first run.")
@click.option(
    "--journal",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File that gets a line of JSON per run; the runs that it has are not repeated.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Processes at work at most.  [default: one per core]",
)
@click.option(
    "--memory",
    type=click.FloatRange(min=0, min_open=True),
    metavar="GIB",
    help="What they may take together; one runs in any case.  [default: 80 % of what is free]",
)
@click.option("--markdown", is_flag=True, help="Print tables for a document.")
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    output: str,
    *,
    seeds: int,
    first_seed: int,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Make fabrics, break them, infer their trees, and compare these with the truth.

    A tree is exact, at every tier; or it is wrong, and every node concerned is listed as
    unplaced or a finding doubts its domain (flagged); or it is wrong and nothing says so
    (silent), which exits with 5. Swaps count where the fabric's symmetry can show them. The
    reports come in random order.

    Each fault is drawn anew from each seed. With --grid full, give a --journal: it takes hours,
    and some 1.4 GiB of memory for each run at 65,536 HCAs.
    """
    bounds = {name: options.pop(name) for name in ("journal", "jobs", "memory")}
    as_markdown = options.pop("markdown")
    tasks = [
        RunTask(scenario, seed)
        for scenario in _build_scenarios(ctx, options)
        for seed in scenario.find_seeds(first_seed, seeds)
    ]
    rows = _build_rows(tasks, _run_tasks(tasks, **bounds))
    commands = {
        row.scenario: render_command(RunTask(row.scenario, row.worst_run.seed))
        for row in rows
        if row.worst_run
    }
    text = (
        (lambda: render_markdown(rows)) if as_markdown else (lambda: _render_text(rows, commands))
    )
    print_document(render_rows(rows, commands), output, text=text)
    if any(row.count_runs(TreeVerdict.SILENT) for row in rows):
        ctx.exit(ExitCode.CHECK_FAILED)


def _build_scenarios(ctx: click.Context, options: dict[str, Any]) -> list[Scenario]:
    size, hcas = options.pop("grid"), tuple(map(int, options.pop("hcas")))
    if size is None:
        if hcas:
            raise click.UsageError("--hcas is about a --grid; for one fabric, give --hosts")
        spec, faults = parse_fabric_spec(options), parse_fault_spec(options)
        each = LossTarget(options["lose_each"]) if options["lose_each"] else None
        words = [*render_fault_options(faults), *(["--lose-each", each.value] if each else [])]
        return [Scenario(spec.kind.value, " ".join(words) or "none", spec, faults, each)]
    given = [name for name in options if _is_given(ctx, name)]
    if given:
        flag = given[0].replace("_", "-")
        raise click.UsageError(f"--{flag} describes one fabric, --grid many: leave one out")
    found = build_grid(GridSize(size), hcas)
    if not found:
        raise click.UsageError(f"--grid {size} has no fabric of {hcas[0]} HCAs")
    return found


def _run_tasks(
    tasks: Sequence[RunTask], *, journal: Path | None, jobs: int | None, memory: float | None
) -> dict[RunTask, RunResult]:
    known = Journal(journal)
    with _report_progress([task for task in tasks if not known.find_result(task)]) as on_run:
        return run_tasks(
            tasks,
            jobs=jobs or len(os.sched_getaffinity(0)),
            memory_bytes=int(memory * _GIB) if memory else _read_free_bytes(),
            journal=known,
            on_run=on_run,
        )


def _is_given(ctx: click.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _read_free_bytes() -> int:
    try:
        found = _AVAILABLE.search(Path("/proc/meminfo").read_text(encoding="ascii"))
    except OSError:
        found = None
    return int(_FREE_MEMORY_SHARE * 1024 * int(found[1])) if found else _FALLBACK_BYTES


@contextmanager
def _report_progress(tasks: Sequence[RunTask]) -> Iterator[Callable[[RunTask, RunResult], None]]:
    """Yield what tells on stderr how far the runs are: all the time, or now and then in a log."""
    start = time.monotonic()
    left = sum(task.scenario.num_hcas for task in tasks)
    ends: list[TreeVerdict] = []
    done = 0
    with open_progress("starting", every_s=_PROGRESS_PERIOD_S) as show_progress:

        def on_run(task: RunTask, outcome: RunResult) -> None:
            nonlocal done
            done += task.scenario.num_hcas
            ends.append(outcome.score.verdict)
            remaining_s = (time.monotonic() - start) * (left - done) / done
            counts = ", ".join(f"{ends.count(verdict)} {verdict.value}" for verdict in TreeVerdict)
            show_progress(
                f"{len(ends)} of {len(tasks)} runs: {counts}; some {remaining_s / 60:.0f} min left"
            )

        yield on_run


def _build_rows(
    tasks: Sequence[RunTask], outcomes: Mapping[RunTask, RunResult]
) -> list[ScenarioResult]:
    found: dict[Scenario, dict[int, RunScore]] = {}
    for task in tasks:
        found.setdefault(task.scenario, {})[task.seed] = outcomes[task].score
    return [ScenarioResult(scenario, by_seed) for scenario, by_seed in found.items()]


def _render_text(rows: Sequence[ScenarioResult], commands: Mapping[Scenario, str]) -> str:
    runs = {verdict: sum(row.count_runs(verdict) for row in rows) for verdict in TreeVerdict}
    counts = ", ".join(f"{num} {verdict.value}" for verdict, num in runs.items())
    lines = [
        render_table(_HEADER, map(_render_cells, rows)),
        f"{sum(runs.values())} runs: {counts}",
    ]
    for row in rows:
        if row.worst_run and row.worst_run.score.verdict is not TreeVerdict.EXACT:
            verdict = row.worst_run.score.verdict.value
            lines.append(f"to repeat a {verdict} one: {commands[row.scenario]}")
    return "\n".join(lines)


def _render_cells(row: ScenarioResult) -> tuple[str, ...]:
    scenario = row.scenario
    return (
        scenario.fabric,
        str(scenario.num_hcas),
        scenario.spec.names.value,
        scenario.fault,
        str(len(row.scores)),
        *(str(row.count_runs(verdict)) for verdict in TreeVerdict),
        f"{row.num_named} of {row.num_swaps}" if row.num_swaps else "-",
    )
