"""Measure how good the placements of every preset are: python -m tests.quality --write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import click

from generator.placement.presets import Preset
from tests.quality.kueue_mix import measure_mix
from tests.quality.philly import FABRIC, LOAD, SCALE, replay_philly
from tests.quality.victims import SHAPE, measure_victims
from tests.repository import ROOT

PAGE: Final = ROOT / "docs" / "quality.md"
HEADING: Final = "## Every preset"


@click.command()
@click.option("--jobs", default=5000, show_default=True, help="Jobs of the Philly trace.")
@click.option("--gangs", default=1200, show_default=True, help="Gangs of Kueue's mix.")
@click.option("--cases", default=60, show_default=True, help="Clusters for preemption.")
@click.option("--write", is_flag=True, help="Replace the section of docs/quality.md.")
def main(jobs: int, gangs: int, cases: int, *, write: bool) -> None:
    """Print the tables of docs/quality.md for every preset; 10 minutes with the default sizes."""
    text = "\n".join([HEADING, *_render(jobs, gangs, cases)]) + "\n"
    if not write:
        click.echo(text)
        return
    before = PAGE.read_text(encoding="utf-8").partition(HEADING)[0]
    PAGE.write_text(before.rstrip() + "\n\n" + text, encoding="utf-8")


def _render(num_jobs: int, num_gangs: int, num_cases: int) -> Iterator[str]:
    yield "`make quality` measures the presets that imitate other systems, and `optimal`. A preset"
    yield "is the engine with the rules of a system, not the system itself. All rows come from one"
    yield "run and are the same in every run."
    yield ""
    yield "### A trace as of the Philly clusters"
    yield f"{num_jobs} generated jobs with {SCALE} times their GPUs at {float(LOAD):.0%} load on"
    yield f"`{FABRIC}`, where every gang prefers a leaf ([replays](jobs.md))."
    yield ""
    yield from _table(
        ("preset", "gangs", "at the lowest tier with room", "leaves used", "leaves / fewest"),
        [
            (
                row["name"],
                row["gangs"],
                f"{row['at_lowest_tier']:.1%}",
                row["leaves"],
                f"{row['over_least']:.3f}",
            )
            for row in replay_philly(num_jobs)
        ],
    )
    yield "`kubernetes` and `task-topology` know no preferred tier: without a required tier they do"
    yield "not keep a gang together. `optimal` uses a few leaves more than the tightest fit: it"
    yield "keeps top domains free first ([across islands](placement.md#across-islands))."
    yield ""
    yield "### The mix of Kueue's scheduler benchmark"
    yield f"{num_gangs} gangs on 10 racks of 64 nodes at about 80 % load. For each gang, `optimal`"
    yield "is asked for the same free capacity."
    yield ""
    mixes = [measure_mix(preset, num_gangs) for preset in Preset]
    yield from _table(
        ("preset", "placed", "at the tier of `optimal`", "racks used", "racks of `optimal`"),
        [
            (
                row.preset,
                row.num_placed,
                f"{row.num_lowest / max(1, row.num_placed):.1%}",
                row.num_racks,
                row.least_racks,
            )
            for row in mixes
        ],
    )
    yield "### Victims"
    yield f"{num_cases} full clusters `{SHAPE}`, and a gang of higher priority on each. The fewest"
    yield "victims are proved; `topologyFirst` may preempt more pods for a lower tier."
    yield ""
    rows = [measure_victims(preset, num_cases) for preset in Preset]
    yield from _table(
        ("preset", "placed", "fewest pods", "`fewestVictims`", "`topologyFirst`"),
        [
            (
                row.preset,
                f"{row.num_placed} of {row.num_cases}",
                row.least_victims,
                row.num_victims,
                row.num_for_topology,
            )
            for row in rows
        ],
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(map(str, row)) + " |"
    yield ""


if __name__ == "__main__":
    main()
