"""Starts `toponaut-agent`: stop signals and standard streams first, then the commands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from runtime.program import run_program


def main() -> None:
    """Run the command line."""
    run_program(_load)


def _load() -> Callable[[], object]:
    from agent.cli.commands import cli  # noqa: PLC0415 - a signal must not wait for imports

    return partial(cli, prog_name="toponaut-agent")
