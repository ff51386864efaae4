"""What a command loads before it does anything: its help, and errors of usage.

The modules that a child process has loaded are counted, not its time: a machine that is busy must
not fail a test. `python -m tests.bench.start` measures the time.
"""

import subprocess  # noqa: TID251 - a process of its own shows what a command loads
import sys
from collections.abc import Iterator

import click
import pytest

from generator.cli.group import cli

HEAVY = (
    *("numpy", "pydantic", "pydantic_core", "asyncio", "ssl", "sqlite3", "rich"),
    *("grpc", "google", "pysnmp", "kubernetes", "urllib3", "cryptography"),
    *("starlette", "uvicorn", "apscheduler", "prometheus_client"),
)
"""None of them is needed to say which options there are."""


def list_paths(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of a command and of its subcommands."""
    yield path
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            found = command.get_command(ctx, name)
            assert found is not None
            yield from list_paths(found, (*path, name))


PROGRAM = """
import sys
from generator.cli.group import cli
try:
    cli({arguments!r}, prog_name="toponaut")
finally:
    print(*sorted({{name.partition(".")[0] for name in sys.modules}}), file=sys.stderr)
"""


def load(arguments: list[str], *, code: int) -> set[str]:
    """Return the packages that a command with these arguments has loaded."""
    program = [sys.executable, "-c", PROGRAM.format(arguments=arguments)]
    ran = subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == code, ran.stderr
    return set(ran.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("path", list(list_paths(cli)), ids=" ".join)
def test_the_help_of_a_command_loads_no_large_library(path: tuple[str, ...]) -> None:
    assert load([*path, "--help"], code=0).isdisjoint(HEAVY)


def test_an_error_of_usage_loads_no_large_library() -> None:
    assert load(["tree", "--depth", "none"], code=2).isdisjoint(HEAVY)
