"""Try a range of seeds: python -m tests.random_cases --seeds 0:50000."""

from __future__ import annotations

import time

import click

from tests.random_cases.judge import faults_of_seed

STEP = 1_000
"""Seeds between two lines of progress."""


@click.command()
@click.option("--seeds", default="0:5000", show_default=True, help="FIRST:END, END excluded.")
@click.option("--most", default=20, show_default=True, help="Stop after so many faulty seeds.")
def main(seeds: str, most: int) -> None:
    """Judge every case; print the faults and where to resume."""
    first, end = map(int, seeds.split(":"))
    num_faulty, started = 0, time.process_time()
    for seed in range(first, end):
        faults = faults_of_seed(seed)
        for fault in faults:
            click.echo(f"seed {seed}: {fault}")
        num_faulty += bool(faults)
        if (seed + 1 - first) % STEP == 0:
            spent = time.process_time() - started
            click.echo(f"{seed + 1 - first} seeds, {num_faulty} faulty, {spent:.0f} s", err=True)
        if num_faulty >= most:
            click.echo(f"stopped; resume with --seeds {seed + 1}:{end}", err=True)
            raise SystemExit(1)
    click.echo(f"{end - first} seeds, {num_faulty} faulty", err=True)
    raise SystemExit(num_faulty > 0)


if __name__ == "__main__":
    main()
