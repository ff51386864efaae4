"""`toponaut verify`: score inferred trees on simulated fabrics whose true tree is known."""

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
    MAX_SEED,
    fabric_options,
    parse_fabric_spec,
    parse_fault_spec,
)
from generator.cli.option_types import OutputFile, Quantity, WholeNumber
from generator.cli.output import (
    open_progress,
    output_option,
    print_document,
    render_table,
    show_count,
)
from generator.simulation.fabric_words import render_fault_options
from generator.simulation.source_mixes import MIXES, SourceMix
from generator.simulation.verify import RunScore, TreeVerdict
from generator.simulation.verify_grid import (
    SIZES,
    GridSize,
    LossTarget,
    Scenario,
    ScenarioResult,
    build_grid,
    render_markdown,
    render_rows,
)
from generator.simulation.verify_runs import Journal, RunResult, RunTask, render_command, run_tasks

_GIB: Final = 1 << 30
_MAX_GIB: Final = float(1 << 20)
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
        "Many fabrics and faults instead of one: with 512 HCAs (quick), with up to 65,536 HCAs, "
        "which takes hours (full), or fabrics that are not regular Clos networks (odd)."
    ),
)
@click.option(
    "--hcas",
    type=click.Choice([str(num) for num in SIZES]),
    multiple=True,
    help="Only the fabrics of this size in the grid. Repeatable.",
)
@fabric_options
@click.option(
    "--lose-each",
    type=click.Choice([each.value for each in LossTarget]),
    help="Remove each switch or each host in turn, one per run, instead of using seeds.",
)
@click.option(
    "--sources",
    type=click.Choice([mix.value for mix in SourceMix]),
    multiple=True,
    help=(
        "Sources that the tree follows from. Repeatable: each seed takes the next.  [default: all "
        "mixes that show the cables]"
    ),
)
@click.option(
    "--seeds",
    type=WholeNumber(1, 100_000),
    default=5,
    show_default=True,
    help="Number of runs of each fabric, each with different random faults.",
)
@click.option(
    "--first-seed",
    type=WholeNumber(-MAX_SEED, MAX_SEED),
    default=0,
    show_default=True,
    help="Seed of the first run.",
)
@click.option(
    "--journal",
    type=OutputFile(),
    help="File to which each run appends a line of JSON; runs in the file are not repeated.",
)
@click.option(
    "--jobs",
    type=WholeNumber(1, 1024),
    help="Maximum number of processes.  [default: one per core]",
)
@click.option(
    "--memory",
    type=Quantity(_MAX_GIB),
    metavar="GIB",
    help="Memory limit of all processes; at least one runs.  [default: 80 % of the free memory]",
)
@click.option("--markdown", is_flag=True, help="Print tables in Markdown.")
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
    """Simulate fabrics with faults, infer their trees, and compare them with the true trees.

    An exact tree is right at every tier. A flagged tree is wrong, but every wrong node is listed
    as unplaced, or a finding questions its place. A silent tree is wrong without such a warning;
    then the exit code is 5. Swapped cables count only if the cabling makes them detectable. The
    sources are read in random order.

    Each seed draws new faults, and reads the next mix of sources: of InfiniBand, the sweep with the
    node list, the sweep alone, or both with the reports; of Ethernet, the reports with the list.
    With --grid full, use --journal: the grid takes hours, and about
    1.4 GiB of memory for each run with 65,536 HCAs.
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
    sources = tuple(map(SourceMix, options.pop("sources")))
    if size is None:
        if hcas:
            raise click.UsageError("--hcas needs --grid; for one fabric, use --hosts")
        spec, faults = parse_fabric_spec(options), parse_fault_spec(options)
        target = LossTarget(options["lose_each"]) if options["lose_each"] else None
        words = [*render_fault_options(faults), *(["--lose-each", target.value] if target else [])]
        mixes = sources or MIXES[spec.medium]
        return [Scenario(spec.kind.value, " ".join(words) or "none", spec, faults, target, mixes)]
    given_names = [name for name in options if _is_given(ctx, name)]
    if given_names:
        flag = given_names[0].replace("_", "-")
        raise click.UsageError(
            f"--{flag} describes one fabric, --grid describes many: give only one"
        )
    scenarios = build_grid(GridSize(size), hcas, sources or tuple(SourceMix))
    if not scenarios:
        what = f"{hcas[0]} HCAs" if hcas else "these sources"
        raise click.UsageError(f"--grid {size} has no fabric with {what}")
    return scenarios


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
        match = _AVAILABLE.search(Path("/proc/meminfo").read_text(encoding="ascii"))
    except OSError:
        match = None
    return int(_FREE_MEMORY_SHARE * 1024 * int(match[1])) if match else _FALLBACK_BYTES


@contextmanager
def _report_progress(tasks: Sequence[RunTask]) -> Iterator[Callable[[RunTask, RunResult], None]]:
    """Yield a function that shows the progress of the runs on stderr: live, or once a minute."""
    start = time.monotonic()
    total = sum(task.scenario.num_hcas for task in tasks)
    verdicts: list[TreeVerdict] = []
    done = 0
    with open_progress("starting", every_s=_PROGRESS_PERIOD_S) as progress:

        def on_run(task: RunTask, outcome: RunResult) -> None:
            nonlocal done
            done += task.scenario.num_hcas
            verdicts.append(outcome.score.verdict)
            remaining_s = (time.monotonic() - start) * (total - done) / done
            counts = ", ".join(
                f"{verdicts.count(verdict)} {verdict.value}" for verdict in TreeVerdict
            )
            progress.show(
                f"{len(verdicts)} of {show_count(len(tasks), 'run')}: {counts}; "
                f"about {remaining_s / 60:.0f} min left",
                num_done=done,
                total=total,
            )

        yield on_run


def _build_rows(
    tasks: Sequence[RunTask], outcomes: Mapping[RunTask, RunResult]
) -> list[ScenarioResult]:
    scores: dict[Scenario, dict[int, RunScore]] = {}
    for task in tasks:
        scores.setdefault(task.scenario, {})[task.seed] = outcomes[task].score
    return [ScenarioResult(scenario, by_seed) for scenario, by_seed in scores.items()]


def _render_text(rows: Sequence[ScenarioResult], commands: Mapping[Scenario, str]) -> str:
    runs = {verdict: sum(row.count_runs(verdict) for row in rows) for verdict in TreeVerdict}
    counts = ", ".join(f"{num} {verdict.value}" for verdict, num in runs.items())
    lines = [
        render_table(_HEADER, map(_render_cells, rows)),
        f"{show_count(sum(runs.values()), 'run')}: {counts}",
    ]
    for row in rows:
        if row.worst_run and row.worst_run.score.verdict is not TreeVerdict.EXACT:
            verdict = row.worst_run.score.verdict.value
            lines.append(f"repeat {verdict} run: {commands[row.scenario]}")
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
