"""Compare the inferred trees of damaged fabrics with the true trees: python -m tests.verify."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import click

from tests.verify.grid import (
    SIZES,
    GridSize,
    Scenario,
    ScenarioResult,
    build_grid,
    render_markdown,
)
from tests.verify.judgement import RunScore, TreeVerdict
from tests.verify.runs import Run, run_all
from tests.verify.sources import SourceMix
from topology.synthetic import NamePolicy


@click.command()
@click.option(
    "--grid",
    type=click.Choice([size.value for size in GridSize]),
    default=GridSize.QUICK.value,
    show_default=True,
    help="Fabrics with 512 HCAs (quick), with up to 65,536, which takes hours (full), or that are "
    "not regular Clos networks (odd).",
)
@click.option("--hcas", type=click.Choice([str(num) for num in SIZES]), help="Only this size.")
@click.option("--fabric", help="Only the fabric of this name.")
@click.option("--fault", help="Only the fault of this name.")
@click.option("--names", type=click.Choice([policy.value for policy in NamePolicy]))
@click.option(
    "--sources",
    type=click.Choice([mix.value for mix in SourceMix]),
    multiple=True,
    help="Mixes of sources that the seeds read in turn. Repeatable.  [default: all]",
)
@click.option("--seeds", default=5, show_default=True, help="Runs of each scenario.")
@click.option("--first-seed", default=0, show_default=True)
@click.option("--seed", type=int, help="Only the run with this seed.")
@click.option(
    "--jobs",
    default=len(os.sched_getaffinity(0)),
    show_default=True,
    help="Processes. A run with 65,536 HCAs takes 1.4 GiB of memory.",
)
@click.option(
    "--journal",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File that keeps the result of each run; runs in the file are not repeated.",
)
def main(  # noqa: PLR0913 - one per option
    *,
    grid: str,
    hcas: str | None,
    fabric: str | None,
    fault: str | None,
    names: str | None,
    sources: tuple[str, ...],
    seeds: int,
    first_seed: int,
    seed: int | None,
    jobs: int,
    journal: Path | None,
) -> None:
    """Simulate fabrics with faults, infer their trees, and compare them with the true trees.

    An exact tree is right at every tier. A flagged tree is wrong, but every wrong node is listed
    as unplaced, or a finding questions its place. A silent tree is wrong without such a warning;
    then the exit code is 1. Swapped cables count only if the cabling makes them detectable. The
    sources are read in random order.
    """
    scenarios = [
        scenario
        for scenario in build_grid(
            GridSize(grid),
            (int(hcas),) if hcas else (),
            tuple(map(SourceMix, sources)) or tuple(SourceMix),
        )
        if scenario.fabric == (fabric or scenario.fabric)
        and scenario.fault == (fault or scenario.fault)
        and scenario.spec.names == (names or scenario.spec.names)
    ]
    if not scenarios:
        raise click.UsageError(f"the grid {grid} has no such fabric")
    runs = [
        Run(scenario, number)
        for scenario in scenarios
        for number in (scenario.find_seeds(first_seed, seeds) if seed is None else (seed,))
    ]
    scores = run_all(runs, jobs=jobs, journal=journal)
    for line in render_results(runs, scores, grid):
        click.echo(line)
    if any(score.verdict is TreeVerdict.SILENT for score in scores.values()):
        sys.exit(1)


def render_results(runs: Iterable[Run], scores: Mapping[Run, RunScore], grid: str) -> Iterator[str]:
    """Yield the tables, the number of runs by verdict, and what repeats runs that are not exact."""
    by_scenario: dict[Scenario, dict[int, RunScore]] = {}
    for run in runs:
        by_scenario.setdefault(run.scenario, {})[run.seed] = scores[run]
    results = [ScenarioResult(scenario, by_seed) for scenario, by_seed in by_scenario.items()]
    yield render_markdown(results)
    yield ""
    counts = (
        f"{sum(result.count_runs(verdict) for result in results)} {verdict.value}"
        for verdict in TreeVerdict
    )
    yield f"{len(scores)} runs: {', '.join(counts)}"
    for result in results:
        worst = result.worst_run
        if worst and worst.score.verdict is not TreeVerdict.EXACT:
            command = (
                f"python -m tests.verify --grid {grid} {Run(result.scenario, worst.seed).command}"
            )
            yield f"{worst.score.verdict.value}, {worst.score.num_wrong} nodes wrong: {command}"


if __name__ == "__main__":
    main()
