"""`toponaut simulate`: its commands, their options and their help."""

from __future__ import annotations

from typing import Any, Final

import click

from generator.cli.options.output_format import output_option
from generator.cli.options.synthetic_fabric import MAX_SEED, fabric_options
from generator.cli.options.value_types import OutputFolder, WholeNumber
from generator.cli.options.values import parse_share
from generator.simulation.replay.run_names import STRATEGY_NAMES, Backfill
from topology.model.errors import show


@click.group(name="simulate")
def command() -> None:
    """Simulate fabrics to try the other commands on, and replay jobs on fabrics."""


SYNTHETIC_TRACE: Final = "philly"
_MIN_LOAD: Final = 0.001


def _parse_load(text: str) -> float:
    """Return a load; one close to 0 would stretch the clock of the trace without limit.

    Raises:
        click.BadParameter: the text is not a share, or is below 0.001.
    """
    load = parse_share(text)
    if load < _MIN_LOAD:
        raise click.BadParameter(f"'{show(text)}' is less than {_MIN_LOAD:g}")
    return load


@command.command(name="jobs")
@click.option(
    "--trace",
    default=SYNTHETIC_TRACE,
    show_default=True,
    metavar="FILE",
    help="CSV with submit_time_s, gpus and duration_s, plain or gzipped; philly generates a trace.",
)
@click.option("--num-jobs", type=WholeNumber(1, 1_000_000), help="Number of jobs to replay.")
@click.option(
    "--seed",
    type=WholeNumber(-MAX_SEED, MAX_SEED),
    default=0,
    show_default=True,
    help="Random seed of a generated trace.",
)
@click.option(
    "--fabric",
    default="8x5x16",
    show_default=True,
    metavar="FILE|SHAPE",
    help="TopologyTree (output of `toponaut tree -o json`), or top domains x leaves x nodes.",
)
@click.option(
    "--slots",
    type=WholeNumber(1, 1024),
    default=8,
    show_default=True,
    help="GPUs of each node.",
)
@click.option(
    "--preset",
    "presets",
    multiple=True,
    type=click.Choice(STRATEGY_NAMES),
    help="Preset to replay, or best-fit or first-fit, to compare with. Repeatable.  [default: "
    "optimal, best-fit, first-fit]",
)
@click.option(
    "--prefer",
    metavar="TIER",
    help="Tier that gangs prefer. Presets such as kueue pack a gang only if it prefers a tier.",
)
@click.option(
    "--scale-sizes",
    type=WholeNumber(1, 10_000),
    default=1,
    show_default=True,
    help="Factor for the number of GPUs of each job.",
)
@click.option(
    "--load",
    type=_parse_load,
    metavar="SHARE",
    help="Requested GPU time divided by available GPU time, such as 0.9. Submit times are "
    "stretched to reach it.",
)
@click.option(
    "--backfill",
    type=click.Choice([kind.value for kind in Backfill]),
    default=Backfill.EASY.value,
    show_default=True,
    help="Jobs that can start before the first waiting job: none, those that do not delay it "
    "(easy), or any.",
)
@click.option(
    "--joint/--one-by-one",
    "is_joint",
    default=True,
    show_default=True,
    help="Whether optimal plans jobs that start at the same time jointly, or one by one.",
)
@click.option(
    "--spare-islands/--no-spare-islands",
    "spares_islands",
    default=True,
    show_default=True,
    help="Whether optimal fills the tightest top domains first, or uses fewer leaves first.",
)
@output_option
@click.pass_context
def jobs(ctx: click.Context, /, **options: Any) -> None:
    """Replay a trace of jobs on a fabric, and compare presets.

    Prints, for each preset, the tiers of the gangs, the leaves that they use, the largest gang
    that would still fit, utilization and waiting times. The same options always give the same
    results.
    """
    from generator.cli.commands.simulate.replayed_jobs import run

    run(ctx, **options)


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
def fabric(**options: Any) -> None:
    """Write a fabric as files: reports/, nodes.yaml, what tools print of it, and truth.json.

    truth.json contains the faults, and the true tree of the fabric with these faults. The same
    options always give the same files, but for the time of the reports, which is now.
    """
    from generator.cli.commands.simulate.fabric_folder import run

    run(**options)
