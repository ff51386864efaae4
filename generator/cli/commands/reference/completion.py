"""`toponaut completion`: the script with which a shell completes commands and options."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

PROGRAM: Final = "toponaut"
COMPLETE_VARIABLE: Final = "_TOPONAUT_COMPLETE"


def run(ctx: click.Context, /, shell: str) -> None:
    """Run `toponaut completion` with the values of its options."""
    kind = get_completion_class(shell)
    if kind is None:  # click has all of SHELLS
        raise click.UsageError(f"no completion for {shell}")
    click.echo(kind(ctx.find_root().command, {}, PROGRAM, COMPLETE_VARIABLE).source())
