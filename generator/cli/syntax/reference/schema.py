"""`toponaut schema`: its options and its help."""

from __future__ import annotations

from typing import Any

import click

from generator.cli.commands.reference.schema import SCHEMAS


@click.command(name="schema")
@click.argument("name", type=click.Choice(sorted(SCHEMAS)))
def command(**options: Any) -> None:
    """Print the JSON schema of a kind of document."""
    from generator.cli.commands.reference.schema import run

    run(**options)
