"""`toponaut simulate`: fabrics with known truth as files, and jobs replayed on fabrics."""

from __future__ import annotations

import random  # noqa: TID251 - the one seeded source of simulations
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from generator.cli.commands.simulate_jobs import jobs
from generator.cli.fabric_options import (
    fabric_options,
    parse_fault_spec,
    open_progress,
    parse_fabric_spec,
)
from generator.simulation.fabric_files import FabricSimulation, render_fabric_files, write_folder

_STEP: Final = 100


@click.group(name="simulate")
def command() -> None:
    """Make fabrics with known truth to try the other commands on, and replay jobs on fabrics."""


@command.command(name="fabric")
@fabric_options
@click.option("--seed", type=int, default=0, show_default=True, help="Draws what exactly breaks.")
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder that is made; it appears when it is complete.",
)
@click.option("--force", is_flag=True, help="Replace an earlier simulation.")
@click.option(
    "--sysfs-hosts",
    type=click.IntRange(min=0),
    default=32,
    show_default=True,
    help="Hosts whose sysfs is written.",
)
def fabric(out: Path, seed: int, *, force: bool, sysfs_hosts: int, **options: Any) -> None:  # noqa: ANN401 - click's
    """Write a fabric as reports/, nodes.yaml, ibnetdiscover/, lldpcli/, sysfs/ and truth.json.

    The truth is the tree that the cables give after all faults, and the faults. Equal options
    give equal files.
    """
    simulation = FabricSimulation(
        spec=parse_fabric_spec(options),
        faults=parse_fault_spec(options),
        make_rng=partial(random.Random, seed),
        num_sysfs_hosts=sysfs_hosts,
    )
    with open_progress("wiring") as show_progress:
        num = write_folder(
            render_fabric_files(simulation),
            out,
            force=force,
            on_file=lambda num: None if num % _STEP else show_progress(f"{num} files written"),
        )
    click.echo(f"{num} files in {out}; try: toponaut tree --reports {out}/reports", err=True)


command.add_command(jobs)
