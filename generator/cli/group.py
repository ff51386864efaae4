"""The command `toponaut`: the command group, its errors and its exit codes.

A module of `generator.cli.commands` is imported when its command is called.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from generator.cli.commands import WORDS
from generator.cli.config_file import (
    check_option_values,
    find_config_file,
    read_config_file,
    show_file,
)
from generator.cli.exit_codes import ExitCode, end
from generator.cli.option_types import InputFile
from generator.cli.options import CableOptions, HelpContext
from generator.cli.output import print_error
from runtime.options import suggest_names
from runtime.program import interruptible, start_command
from topology.model.errors import (
    ConfigError,
    PlacementRequestError,
    TopologyError,
    WriteError,
    show,
)

_PLUGIN: Final = "kubectl toponaut"
_HELP: Final = {word: line for words in WORDS.values() for word, line in words.items()}
_CONFIG: Final = "toponaut.config"
_DOCTOR: Final = "doctor"
"""The command that says what is wrong in the config file, instead of failing."""
_SOURCE_OPTIONS: Final = (
    *CableOptions._fields,
    *("kube", "hypernodes", "files", "store", "tree", "server", "paths", "history"),
)
"""Parameters that name the input of a command, or the server that it calls."""


class _CommandGroup(click.Group):
    """Lists its commands without loading them, and loads a command when it is called."""

    context_class = HelpContext

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which a user needs them."""
        del ctx
        return list(_HELP)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load the module of a command."""
        del ctx
        package = next((name for name, words in WORDS.items() if cmd_name in words), None)
        if package is None:
            return None
        module = importlib.import_module(f"generator.cli.commands.{package}.{cmd_name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; as a kubectl plugin it reads the cluster unless a source is given."""
        try:
            name, command, rest = super().resolve_command(ctx, args)
        except click.UsageError as error:
            similar = suggest_names(args[0], _HELP)
            raise click.UsageError(f"{error.message.rstrip('.')}{similar}", ctx) from error
        start_command()
        if name is not None and command is not None and not ctx.resilient_parsing:
            with suppress(ConfigError) if name == _DOCTOR else nullcontext():
                _read_defaults(ctx, name, command)
        if (
            ctx.info_name == _PLUGIN
            and command is not None
            and _names_no_source(ctx, command, rest)
        ):
            return name, command, ["--kube", *rest]
        return name, command, rest

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; a TopologyError becomes one line on stderr and an exit code."""
        try:
            with interruptible():
                return _invoke(super().invoke, ctx)
        except (ConfigError, PlacementRequestError) as error:
            print_error(error)
            end(ExitCode.USAGE)
        except WriteError as error:
            print_error(error)
            end(ExitCode.INTERNAL)
        except TopologyError as error:
            print_error(error)
            end(ExitCode.NOTHING)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(_HELP.items()))


def _invoke(invoke: Callable[[click.Context], object], ctx: click.Context) -> object:
    """Run a command; a wrong value from the config file is named with the file.

    Raises:
        ConfigError: an option has a wrong value in the file.
    """
    try:
        return invoke(ctx)
    except click.BadParameter as error:
        place = _find_place(ctx, error)
        if not place:
            raise
        raise ConfigError(f"{place}: {error.message}") from error


def _find_place(ctx: click.Context, error: click.BadParameter) -> str:
    """Return where the config file has the value of an error; empty if it is from elsewhere."""
    param, found = error.param, error.ctx
    if param is None or found is None or param.name is None:
        return ""
    if found.get_parameter_source(param.name) is not ParameterSource.DEFAULT_MAP:
        return ""
    option = max(param.opts, key=len).removeprefix("--")
    command = found.command_path.removeprefix(ctx.command_path).strip().replace(" ", ".")
    return f"{show_file(ctx.meta[_CONFIG])}: {command}.{option}"


def _read_defaults(ctx: click.Context, name: str, command: click.Command) -> None:
    """Let the config file give the values of options that nothing else gives.

    Raises:
        ConfigError: the file cannot be read, or has an unknown command or option.
    """
    file = find_config_file(ctx.params.get("config"), os.environ)
    if file is None:
        return
    ctx.meta[_CONFIG] = file
    given, source = read_config_file(file), show_file(file)
    for other in given:
        if other not in _HELP:
            raise ConfigError(f"{source}: there is no command '{show(other)}'")
    if name in given:
        values = check_option_values(command, given[name], f"{source}: {name}")
        ctx.default_map = {name: values}


def _names_no_source(ctx: click.Context, command: click.Command, args: list[str]) -> bool:
    """Return whether a command can read the cluster, and no other source is given."""
    if command.name == "serve" or "kube" not in {param.name for param in command.params}:
        return False
    with command.make_context(
        command.name, list(args), parent=ctx, resilient_parsing=True
    ) as parsed:
        return not any(parsed.params.get(name) for name in _SOURCE_OPTIONS)


@click.group(
    cls=_CommandGroup,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "auto_envvar_prefix": "TOPONAUT",
    },
)
@click.option(
    "--config",
    type=InputFile(),
    help="File with values of options, by command.  [default: toponaut/config.yaml in "
    "$XDG_CONFIG_HOME or ~/.config, if there is one]",
)
@click.version_option(package_name="toponaut", prog_name="toponaut")
def cli(config: Path | None) -> None:
    """Discover how a GPU cluster is wired, keep HyperNodes correct, and place gangs of pods.

    Try it without a cluster: toponaut simulate fabric --hosts 64 --rails 4 --out fabric, then
    toponaut tree --reports fabric/reports. Each option has an environment variable, such as
    TOPONAUT_TREE_REPORTS. Exit codes: 0 answered, 1 internal error or failed write, 2 wrong usage
    or invalid request, 3 answered but some input was skipped, 4 no usable input, 5 --check
    failed, or the plan is held, 130 interrupted.
    """
    del config  # read before the command is loaded
