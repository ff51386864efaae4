"""`toponaut where`: its options and its help."""

from __future__ import annotations

from typing import Any

import click

from generator.cli.options.output_format import wide_output_option
from generator.cli.options.placement import pods_options
from generator.cli.options.source import source_options, tree_option
from generator.cli.options.values import parse_duration


@click.command(name="where")
@click.argument("job")
@source_options
@tree_option
@pods_options
@click.option(
    "--timeout",
    type=parse_duration,
    metavar="DURATION",
    default="10s",
    show_default=True,
    help="Time limit of the search for a better place.",
)
@wide_output_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Print where the pods of JOB run: their domains and tier, and a better place.

    JOB is the name of the job's group, of its batch object or of the owner of its pods, or
    NAMESPACE/NAME. Pods come from --pods, from --running or, with --kube, from the cluster.
    """
    from generator.cli.commands.where import run

    run(ctx, **options)
