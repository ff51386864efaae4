"""Starts `toponaut`: stop signals and standard streams first, then the commands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from runtime.program import run_program

_PLUGIN = "kubectl toponaut"


def main(name: str = "toponaut") -> None:
    """Run the command line under the given program name."""
    run_program(partial(_load, name))


def kubectl_main() -> None:
    """Run the command line as `kubectl toponaut`."""
    main(_PLUGIN)


def _load(name: str) -> Callable[[], object]:
    from generator.cli.group import cli  # noqa: PLC0415 - a signal must not wait for imports
    from runtime.memory import collect_garbage_rarely  # noqa: PLC0415 - the same

    collect_garbage_rarely()
    return partial(cli, prog_name=name)


if __name__ == "__main__":
    main()
