"""`toponaut history`: its options and its help."""

from __future__ import annotations

from typing import Any

import click

from generator.cli.options.output_format import build_output_option
from generator.cli.options.store import history_options
from generator.cli.options.value_types import WholeNumber
from generator.cli.options.values import parse_since
from generator.cli.output import CSV


@click.command(name="history")
@history_options
@click.option(
    "--since",
    type=parse_since,
    metavar="DATE",
    help="Only generations since this date or time: 2026-11-01, or 2026-11-01T08:00:00Z.",
)
@click.option(
    "--limit",
    type=WholeNumber(1, 10_000),
    default=20,
    show_default=True,
    help="Number of generations, the newest ones.",
)
@build_output_option(CSV)
def command(**options: Any) -> None:
    """List the generations of the tree, newest first, and how many parts changed in each.

    `toponaut serve` keeps the newest generation of each minute for a day, of each hour for 31 days,
    and of each day for 400 days. `toponaut diff --since` names what changed.
    """
    from generator.cli.commands.history import run

    run(**options)
