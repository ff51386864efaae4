"""`toponaut planes`: its options and its help."""

from __future__ import annotations

from typing import Any

import click

from generator.cli.options.output_format import output_option
from generator.cli.options.source import source_options


@click.command(name="planes")
@source_options
@click.option(
    "--explain",
    is_flag=True,
    help="Show for each machine type why its compute ports were chosen, and the next candidate.",
)
@output_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Print the networks, the host ports in each, and why they are there.

    The tree describes the compute network, unless you choose another with --plane. If ports are
    in the wrong network, write rules to a file and pass it with --planes. --explain shows what
    was compared.
    """
    from generator.cli.commands.fabric.planes import run

    run(ctx, **options)
