"""The command `toponaut`: its group, its errors and its exit codes.

Each command is a module of `generator.cli.commands`, imported when it is called, so that `--help`
and small commands do not pay for numpy or gRPC.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
from pathlib import Path
from typing import Final, TextIO

import click

from generator.cli.exit_codes import ExitCode
from generator.cli.output import MAX_MESSAGE
from runtime.process_tuning import collect_garbage_rarely
from topology.model.errors import ConfigError, PlacementRequestError, TopologyError, show

_PLUGIN: Final = "kubectl toponaut"
_SOURCE_OPTIONS: Final = (
    *("kube", "reports", "ibnetdiscover", "lldpcli", "snmpwalk", "hypernodes", "files"),
    *("store", "tree", "server"),
)
"""Parameters of commands that say what to read, or whom to ask."""
_WRITE_ERRNOS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""How stdout fails; what fails of files and sockets is an error of our own by then."""
_COMMANDS: Final = {
    "tree": "The tiered tree that the cables say.",
    "planes": "Which networks there are, and whose ports are in which.",
    "findings": "What is wrong with the cabling, and what to do.",
    "diff": "How the fabric differs from a cabling plan, and the moves that mend it.",
    "switches": "Walk switches by SNMP; their neighbors as reports.",
    "inspect": "What files hold: format, counts, bad lines.",
    "plan": "What apply would change, in order.",
    "apply": "Write the HyperNodes of the tree.",
    "approve": "Let a plan be carried out that is held as too large.",
    "place": "Where a gang should run, or why it cannot.",
    "compare": "The same gang under every scheduler's preset, side by side.",
    "where": "Where a job runs, and what a better place would be.",
    "reservations": "What is kept for gangs whose pods do not run yet.",
    "rpc": "Call any method of a server, with JSON or YAML.",
    "serve": "Keep HyperNodes true and answer placement queries.",
    "simulate": "Make fabrics with known truth; replay jobs on fabrics.",
    "verify": "How right the tree is, on fabrics with known truth.",
    "schema": "JSON schemas of what is read and printed.",
}


class _CommandGroup(click.Group):
    """A group that knows its commands by name and loads them when needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which a user meets them."""
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command's module."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"generator.cli.commands.{cmd_name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; as a plugin of kubectl it reads the cluster where no source is named."""
        name, command, rest = super().resolve_command(ctx, args)
        if (
            ctx.info_name == _PLUGIN
            and command is not None
            and _names_no_source(ctx, command, rest)
        ):
            return name, command, ["--kube", *rest]
        return name, command, rest

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; our own errors become one line on stderr and an exit code."""
        try:
            return super().invoke(ctx)
        except (ConfigError, PlacementRequestError) as error:
            _print_error(error)
            ctx.exit(ExitCode.USAGE)
        except TopologyError as error:
            _print_error(error)
            ctx.exit(ExitCode.NOTHING)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


def _names_no_source(ctx: click.Context, command: click.Command, args: list[str]) -> bool:
    """Return whether a command could read the cluster, and was told to read nothing else."""
    if command.name == "serve" or "kube" not in {param.name for param in command.params}:
        return False
    with command.make_context(
        command.name, list(args), parent=ctx, resilient_parsing=True
    ) as asked:
        return not any(asked.params.get(name) for name in _SOURCE_OPTIONS)


def _print_error(error: TopologyError) -> None:
    click.echo(f"error: {show(str(error), MAX_MESSAGE)}", err=True)


@click.group(
    cls=_CommandGroup,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "auto_envvar_prefix": "TOPONAUT",
    },
)
@click.version_option(package_name="toponaut", prog_name="toponaut")
def cli() -> None:
    """Discover how a cluster is wired, and use it.

    Try it without a cluster: toponaut simulate fabric --hosts 64 --rails 4 --out fabric, then
    toponaut tree --reports fabric/reports. Each option has a variable, such as
    TOPONAUT_TREE_REPORTS. Exit codes: 0 ok, 1 internal, 2 usage or invalid request, 3 answered
    but some input was skipped, 4 nothing usable read, 5 --check or verify failed, or held.
    """


def kubectl_main() -> None:
    """Run the command line as `kubectl toponaut`."""
    main(_PLUGIN)


def main(name: str = "toponaut") -> None:
    """Run the command line under the name by which it was called."""
    collect_garbage_rarely()
    sys.stdout = sys.stdout or _open_null()  # None where it is closed: nobody wants the answer
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr is: a locale may be ASCII
    try:
        cli(prog_name=name)
    except OSError as error:
        if error.errno not in _WRITE_ERRNOS:
            raise
        sys.stdout = _open_null()  # else what is left in it would be tried again at the end
        click.echo(f"error: cannot write the answer: {error.strerror}", err=True)
        sys.exit(ExitCode.INTERNAL)


def _open_null() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


if __name__ == "__main__":
    main()
