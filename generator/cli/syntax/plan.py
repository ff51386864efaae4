"""`toponaut plan`: its options and its help."""

from __future__ import annotations

from typing import Any

import click

from generator.cli.options.decorators import watchable
from generator.cli.options.output_format import output_option
from generator.cli.options.source import source_options
from generator.cli.options.store import namespace_option
from generator.cli.options.value_types import OutputFolder

_FOLDER = OutputFolder()


@click.command(name="plan")
@source_options
@click.option("--store", type=_FOLDER, help="Folder with neighborreports/ and hypernodes/.")
@click.option(
    "--observed", type=_FOLDER, help="Folder of HyperNodes to compare with, instead of --store."
)
@namespace_option
@click.option("--check", is_flag=True, help="Exit with 5 if anything would change.")
@output_option
@watchable
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Print the actions, in order, that change the observed HyperNodes into the desired ones.

    stderr shows the hash of the plan, whether the plan is held because it is too large, and how
    many objects of each other output would be written.
    """
    from generator.cli.commands.plan import run

    run(ctx, **options)
