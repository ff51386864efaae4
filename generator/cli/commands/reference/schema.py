"""`toponaut schema`: JSON schemas of documents that Toponaut reads, writes and prints."""

from __future__ import annotations

import click

from generator.cli.schemas import SCHEMAS, render_schema


@click.command(name="schema")
@click.argument("name", type=click.Choice(sorted(SCHEMAS)))
def command(name: str) -> None:
    """Print the JSON schema of a kind of document."""
    click.echo(render_schema(name), nl=False)
