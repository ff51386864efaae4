"""`toponaut simulate`: simulated fabrics as files, and jobs replayed on fabrics."""

from __future__ import annotations

import random  # noqa: TID251 - the seeded random source of simulations
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from generator.cli.commands.simulate.replayed_jobs import jobs
from generator.cli.fabric_options import (
    MAX_SEED,
    fabric_options,
    parse_fabric_spec,
    parse_fault_spec,
)
from generator.cli.option_types import OutputFolder, WholeNumber
from generator.cli.output import open_progress, show_count
from generator.simulation.fabric_files import FabricSimulation, render_fabric_files, write_folder

_STEP: Final = 100


@click.group(name="simulate")
def command() -> None:
    """Simulate fabrics to try the other commands on, and replay jobs on fabrics."""


@command.command(name="fabric")
@fabric_options
@click.option(
    "--seed",
    type=WholeNumber(-MAX_SEED, MAX_SEED),
    default=0,
    show_default=True,
    help="Random seed of the faults.",
)
@click.option(
    "--out",
    required=True,
    type=OutputFolder(),
    help="Folder to create; it appears once it is complete.",
)
@click.option("--force", is_flag=True, help="Replace an earlier simulation.")
@click.option(
    "--sysfs-hosts",
    type=WholeNumber(0, 1_000_000),
    default=32,
    show_default=True,
    help="Number of hosts whose sysfs is written.",
)
def fabric(out: Path, seed: int, *, force: bool, sysfs_hosts: int, **options: Any) -> None:  # noqa: ANN401 - click's
    """Write a fabric as files: reports/, nodes.yaml, what tools print of it, and truth.json.

    truth.json contains the faults, and the true tree of the fabric with these faults. The same
    options always give the same files.
    """
    simulation = FabricSimulation(
        spec=parse_fabric_spec(options),
        faults=parse_fault_spec(options),
        make_rng=partial(random.Random, seed),
        num_sysfs_hosts=sysfs_hosts,
    )
    with open_progress("connecting cables") as progress:
        num = write_folder(
            render_fabric_files(simulation),
            out,
            force=force,
            on_file=lambda num: (
                None if num % _STEP else progress.show(f"{show_count(num, 'file')} written")
            ),
        )
    click.echo(
        f"wrote {show_count(num, 'file')} to {out}; try: toponaut tree --reports {out}/reports",
        err=True,
    )


command.add_command(jobs)
