"""`toponaut compare`: its options and its help."""

from __future__ import annotations

from typing import Any

import click

from generator.cli.options.placement import cluster_options, request_options, timeout_option
from generator.placement.presets import Preset


@click.command(name="compare")
@request_options
@click.option(
    "--preset",
    multiple=True,
    type=click.Choice([preset.value for preset in Preset]),
    help="Only this preset. Repeatable.",
)
@cluster_options
@timeout_option
@click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "json", "yaml"]),
    help="Format of the output.  [default: text on a terminal, else json]",
)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Place a gang under each preset, and compare tiers, domains, free slots and victims.

    Each preset may take the full --timeout. Nothing is written.
    """
    from generator.cli.commands.compare import run

    run(ctx, **options)
