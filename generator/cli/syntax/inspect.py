"""`toponaut inspect`: its options and its help."""

from __future__ import annotations

from typing import Any

import click

from generator.cli.options.output_format import output_option
from generator.cli.options.value_types import InputFile


@click.command(name="inspect")
@click.argument("files", nargs=-1, required=True, type=InputFile())
@click.option(
    "--strict", is_flag=True, help="Refuse a file that has any problem, and list all its problems."
)
@output_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Show the format of each file, the number of devices, ports and links in it, and its problems.

    Recognizes, by content, output of ibnetdiscover, ibdiagnet, opensm, lldpcli, snmpwalk and
    nvidia-smi, reports, HyperNodes, Fabrics, node lists, cabling plans, trees and placement
    requests. A bad line is skipped, and the rest is read, unless --strict is given.
    """
    from generator.cli.commands.inspect import run

    run(ctx, **options)
