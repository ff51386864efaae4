"""`toponaut completion`: the script with which a shell completes commands and options."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

from generator.cli import options
from runtime.options import Choice

PROGRAM: Final = "toponaut"
COMPLETE_VARIABLE: Final = "_TOPONAUT_COMPLETE"
SHELLS: Final = ("bash", "zsh", "fish")


@options.command(
    "completion",
    examples=(
        "toponaut completion bash",
        "toponaut completion zsh",
    ),
)
def command(*, shell: str = options.argument(type=Choice(SHELLS))) -> None:
    """Print the script with which a shell completes commands and options.

    For bash: toponaut completion bash > ~/.local/share/bash-completion/completions/toponaut. For
    zsh, write it to a folder in $fpath as _toponaut; for fish, to
    ~/.config/fish/completions/toponaut.fish.
    """
    kind = get_completion_class(shell)
    if kind is None:  # click has all of SHELLS
        raise click.UsageError(f"no completion for {shell}")
    click.echo(
        kind(
            click.get_current_context().find_root().command, {}, PROGRAM, COMPLETE_VARIABLE
        ).source()
    )
