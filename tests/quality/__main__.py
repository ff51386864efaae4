"""Measure how good the placements of every preset are: python -m tests.quality --write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

from tests.quality.tables import render_live, render_presets
from tests.repository import ROOT

PAGE: Final = ROOT / "docs" / "quality.md"
HEADING: Final = "## Every preset"


@click.command()
@click.option("--jobs", default=5000, show_default=True, help="Jobs of the Philly trace.")
@click.option("--gangs", default=1200, show_default=True, help="Gangs of Kueue's mix.")
@click.option("--cases", default=60, show_default=True, help="Clusters for preemption.")
@click.option(
    "--live-gangs", default=100, show_default=True, help="Gangs of each mix for live schedulers."
)
@click.option("--write", is_flag=True, help="Replace the sections of docs/quality.md.")
def main(jobs: int, gangs: int, cases: int, live_gangs: int, *, write: bool) -> None:
    """Print the tables of docs/quality.md; 25 minutes with the default sizes."""
    text = "\n".join(_render(jobs, gangs, cases, live_gangs)) + "\n"
    if not write:
        click.echo(text)
        return
    before = PAGE.read_text(encoding="utf-8").partition(HEADING)[0]
    PAGE.write_text(before.rstrip() + "\n\n" + text, encoding="utf-8")


def _render(num_jobs: int, num_gangs: int, num_cases: int, num_live: int) -> Iterator[str]:
    yield HEADING
    yield from render_presets(num_jobs, num_gangs, num_cases)
    yield from render_live(num_live, num_cases)


if __name__ == "__main__":
    main()
