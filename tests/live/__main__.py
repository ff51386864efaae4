"""Compare the engine with the real schedulers for longer: python -m tests.live."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from tests.live.gang_days import Comparison, GangDay, draw_gangs, find_faults, scene_of
from tests.live.schedulers import SCHEDULERS, Scheduler


@click.command()
@click.option(
    "--scheduler",
    "names",
    type=click.Choice([*SCHEDULERS]),
    default=tuple(SCHEDULERS),
    multiple=True,
    help="Default: all.",
)
@click.option("--nodes", default=(64, 1_000), multiple=True, show_default=True)
@click.option("--gangs", default=60, show_default=True, help="Gangs for each number of nodes.")
@click.option("--seed", default=1, show_default=True)
def main(names: Sequence[str], nodes: Sequence[int], gangs: int, seed: int) -> None:
    """Print what was compared; fail if a scheduler contradicts the engine."""
    faults = []
    for name in names:
        for num_nodes in nodes:
            try:
                rows = compare(SCHEDULERS[name], num_nodes, gangs, seed=seed)
            except pytest.skip.Exception as missing:
                click.echo(f"{name}: not run: {missing}")
                break
            counts = summarise(rows)
            click.echo(f"{name}: {num_nodes} nodes, {len(rows)} gangs, seed {seed}: {counts}")
            is_predictable = SCHEDULERS[name].is_predictable
            faults += find_faults(rows, is_predictable=is_predictable)
    for fault in faults:
        click.echo(fault)
    raise SystemExit(bool(faults))


def compare(scheduler: Scheduler, num_nodes: int, num_gangs: int, *, seed: int) -> list[Comparison]:
    """Return the comparison of each gang of a day; each is printed on stderr."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, scheduler.start(Path(folder)) as cluster:
        day = GangDay(cluster, scene_of(Path(folder) / "scene", num_nodes))
        for gang in draw_gangs(num_gangs, num_nodes, seed=seed, num_kinds=scheduler.num_kinds):
            row = day.compare(gang)
            pods = ", ".join(f"{num} x {size}m" for size, num in Counter(gang.millicores).items())
            tiers = f"engine {row.engine_tier}, scheduler {row.scheduler_tier}"
            click.echo(f"{pods}: {tiers}", err=True)
            rows.append(row)
    return rows


def summarise(rows: Sequence[Comparison]) -> str:
    """Return the counts of a day."""
    placed = [row for row in rows if row.engine_tier is not None]
    counts = Counter(compare_tiers(row) for row in rows)
    accepted = sum(row.is_accepted is True for row in placed)
    predicted = [row.is_predicted for row in rows if row.is_predicted is not None]
    return (
        f"same tier {counts['same']}, refused by both {counts['refused']}, "
        f"scheduler at a higher tier {counts['higher']}, not placed by the scheduler alone "
        f"{counts['unplaced']}, scheduler at a lower tier {counts['lower']}; "
        f"choice predicted {sum(predicted)} of {len(predicted)}; "
        f"nodes of the engine accepted {accepted} of {len(placed)}"
    )


def compare_tiers(row: Comparison) -> str:
    """Return how the tier of the scheduler compares with that of the engine."""
    if row.engine_tier is None:
        return "refused" if row.scheduler_tier is None else "lower"
    if row.scheduler_tier is None:
        return "unplaced"
    if row.scheduler_tier == row.engine_tier:
        return "same"
    return "higher" if row.scheduler_tier > row.engine_tier else "lower"


if __name__ == "__main__":
    main()
