"""`toponaut describe`: its options and its help."""

from __future__ import annotations

from typing import Any, Final

import click

from generator.cli.options.output_format import wide_output_option
from generator.cli.options.source import source_options

_KINDS: Final = ("node", "switch", "port", "domain")


@click.command(name="describe")
@click.argument("kind", type=click.Choice(_KINDS))
@click.argument("name")
@source_options
@wide_output_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Print all that is known about a node, a switch, a port or a domain.

    NAME is a name, or an id such as a GUID or a MAC; of a port it is DEVICE:PORT, such as
    node-0001:mlx5_0/1. To see where a gang runs, use toponaut where.
    """
    from generator.cli.commands.fabric.describe import run

    run(ctx, **options)
