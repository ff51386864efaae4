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
from generator.cli.fabric_values import parse_fabric_spec, parse_fault_spec
from generator.cli.output import open_progress, print_document, render_table, show_count
from generator.simulation.fabric_words import render_fault_options
from generator.simulation.run_names import GridSize, LossTarget, SourceMix
from generator.simulation.source_mixes import MIXES
from generator.simulation.verify import RunScore, TreeVerdict
from generator.simulation.verify_grid import (
    Scenario,
    ScenarioResult,
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


def run(
    ctx: click.Context,
    /,
    output: str,
    *,
    seeds: int,
    first_seed: int,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Run `toponaut verify` with the values of its options."""
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
