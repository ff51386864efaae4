"""Starts `toponaut-agent`: stop signals and standard streams first, then the commands."""

from __future__ import annotations

import _signal
from collections.abc import Callable
from functools import partial


def main() -> None:
    """Run the command line."""
    # Until `run_program` has its handlers, Ctrl-C ends the process without a traceback.
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from runtime.program import run_program  # noqa: PLC0415 - takes longer than all before it

    run_program(_load)


def _load() -> Callable[[], object]:
    from agent.cli.commands import cli  # noqa: PLC0415 - a signal must not wait for imports

    return partial(cli, prog_name="toponaut-agent")
