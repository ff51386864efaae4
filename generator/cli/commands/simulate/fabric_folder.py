"""`toponaut simulate fabric`: a simulated fabric as files."""

from __future__ import annotations

import random  # noqa: TID251 - the seeded random source of simulations
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from generator.cli.fabric_values import parse_fabric_spec, parse_fault_spec
from generator.cli.output import open_progress, show_count
from generator.simulation.fabric_files import FabricSimulation, render_fabric_files, write_folder
from runtime.clock import utc_now

_STEP: Final = 100


def run(out: Path, seed: int, *, force: bool, sysfs_hosts: int, **options: Any) -> None:  # noqa: ANN401 - click's
    """Run `toponaut simulate fabric` with the values of its options."""
    simulation = FabricSimulation(
        spec=parse_fabric_spec(options),
        faults=parse_fault_spec(options),
        make_rng=partial(random.Random, seed),
        num_sysfs_hosts=sysfs_hosts,
        observed_at=utc_now().strftime("%Y-%m-%dT%H:%M:%SZ"),
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
