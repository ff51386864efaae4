"""`toponaut schema`: JSON schemas of documents that Toponaut reads, writes and prints."""

from __future__ import annotations

import click

from generator.cli import options
from generator.cli.schemas import SCHEMAS, render_schema
from runtime.options import Choice


@options.command(
    "schema",
    examples=(
        "toponaut schema tree",
        "toponaut schema report",
    ),
)
def command(*, name: str = options.argument(type=Choice(sorted(SCHEMAS)))) -> None:
    """Print the JSON schema of a kind of document."""
    click.echo(render_schema(name), nl=False)
