"""`toponaut tree`: its options and its help."""

from __future__ import annotations

from typing import Any, Final

import click

from generator.cli.options.decorators import watchable
from generator.cli.options.output_format import build_output_option
from generator.cli.options.source import name_options, source_options
from generator.cli.options.value_types import WholeNumber
from generator.cli.output import CSV, NAME, WIDE

MAX_DEPTH: Final = 1_000


@click.command(name="tree")
@source_options
@name_options
@click.option(
    "--depth",
    type=WholeNumber(1, MAX_DEPTH),
    help="Levels to print, 1 for the top domains only.  [default: as many as fit a screen]",
)
@click.option("--domain", metavar="NAME", help="Only this domain, and those around and inside it.")
@click.option("--node", metavar="NAME", help="Only the domains of this node.")
@click.option("--switch", metavar="NAME", help="Only the domain of this switch, and those inside.")
@build_output_option(
    WIDE,
    NAME,
    CSV,
    note=" text prints nodes as ranges; wide lists every domain and node; name lists domains.",
)
@watchable
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Print the tree of the compute network.

    Reads the reports of agents, or output that your own scripts collect: toponaut tree
    --ibnetdiscover dump.txt --nodes nodes.json. Text marks domains with findings. Unplaced nodes
    are listed with the reason. With --kube, text also lists which outputs are written, held, or in
    conflict with another writer.
    """
    from generator.cli.commands.fabric.tree import run

    run(ctx, **options)
