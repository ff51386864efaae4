"""`toponaut completion`: its options and its help."""

from __future__ import annotations

from typing import Any, Final

import click

SHELLS: Final = ("bash", "zsh", "fish")


@click.command(name="completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Print the script with which a shell completes commands and options.

    For bash: toponaut completion bash > ~/.local/share/bash-completion/completions/toponaut. For
    zsh, write it to a folder in $fpath as _toponaut; for fish, to
    ~/.config/fish/completions/toponaut.fish.
    """
    from generator.cli.commands.reference.completion import run

    run(ctx, **options)
