"""Starts `toponaut`: stop signals and standard streams first, then the commands."""

from __future__ import annotations

import _signal
from collections.abc import Callable
from functools import partial

_PLUGIN = "kubectl toponaut"


def main(name: str = "toponaut") -> None:
    """Run the command line under the given program name."""
    # Until `run_program` has its handlers, Ctrl-C ends the process without a traceback.
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from runtime.program import run_program

    run_program(partial(_load, name))


def kubectl_main() -> None:
    """Run the command line as `kubectl toponaut`."""
    main(_PLUGIN)


def _load(name: str) -> Callable[[], object]:
    from generator.cli.group import cli
    from runtime.process_settings import collect_garbage_rarely, set_library_defaults

    set_library_defaults()
    collect_garbage_rarely()
    return partial(cli, prog_name=name)


if __name__ == "__main__":
    main()
