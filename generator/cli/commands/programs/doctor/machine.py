"""Checks the machine: the program and its libraries, the config file, variables, open files."""

from __future__ import annotations

import platform
import resource
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Final

import click

from generator.cli.commands import WORDS
from generator.cli.config_file import (
    check_option_values,
    find_config_file,
    read_config_file,
    show_file,
)
from runtime.checks import Check, Outcome
from runtime.options import suggest_names
from topology.model.errors import ConfigError, list_some, show

_LIBRARIES: Final = (
    *("cryptography", "grpc", "grpc_health", "grpc_reflection", "kubernetes", "numpy"),
    *("pysnmp", "re2", "rich", "starlette", "uvicorn"),
)
"""Modules of the extra `generator`."""
_VARIABLE_PREFIX: Final = "TOPONAUT_"
_MIN_DESCRIPTORS: Final = 4096
"""`serve` has a descriptor for each connection."""
_MAX_NAMES: Final = 5


def check_machine(program: click.Context, environ: Mapping[str, str]) -> list[Check]:
    """Return a line per check.

    Args:
        program: the context of the command group.
        environ: the environment.
    """
    given = program.params.get("config")
    return [
        _check_program(),
        _check_libraries(),
        _check_config(program, find_config_file(given, environ)),
        _check_variables(program, environ),
        _check_descriptors(),
        Check(
            "Cluster",
            Outcome.UNKNOWN,
            "no kubeconfig is named, and this is no pod",
            "toponaut doctor --kubeconfig FILE checks a cluster",
        ),
    ]


def _check_program() -> Check:
    text = f"toponaut {version('toponaut')}, Python {platform.python_version()}"
    return Check("Program", Outcome.OK, text)


def _check_libraries() -> Check:
    missing = [name for name in _LIBRARIES if find_spec(name) is None]
    if missing:
        text = f"missing: {', '.join(missing)}"
        return Check("Libraries", Outcome.ERROR, text, "pip install 'toponaut[generator]'")
    return Check("Libraries", Outcome.OK, f"all {len(_LIBRARIES)} of the extra generator are here")


def _check_config(program: click.Context, file: Path | None) -> Check:
    """Check every command in the config file, not only one that is called."""
    if file is None:
        return Check("Config file", Outcome.OK, "there is none, which is fine")
    problem = _find_config_problem(program, file)
    if problem:
        fix = "correct the file; toponaut COMMAND --help lists the options"
        return Check("Config file", Outcome.ERROR, problem, fix)
    return Check("Config file", Outcome.OK, show_file(file))


def _find_config_problem(program: click.Context, file: Path) -> str:
    """Return the first problem of the file; empty without one."""
    try:
        for name, values in read_config_file(file).items():
            command = _find_command(program, str(name))
            if command is None:
                return f"{show_file(file)}: there is no command '{show(str(name))}'"
            check_option_values(command, values, f"{show_file(file)}: {name}")
    except ConfigError as error:
        return str(error)
    return ""


def _check_variables(program: click.Context, environ: Mapping[str, str]) -> Check:
    given = sorted(name for name in environ if name.startswith(_VARIABLE_PREFIX))
    known = {f"{_VARIABLE_PREFIX}CONFIG", *_list_variables(program)}
    wrong = [name for name in given if name not in known]
    if wrong:
        text = f"no option reads {list_some(map(show, wrong), _MAX_NAMES)}"
        fix = f"correct or remove the variable{suggest_names(wrong[0], known)}"
        return Check("Environment", Outcome.WARNING, text, fix)
    shown = list_some(map(show, given), _MAX_NAMES)
    return Check("Environment", Outcome.OK, shown or f"no variable {_VARIABLE_PREFIX}…")


def _list_variables(program: click.Context) -> Iterator[str]:
    """Yield the variable of each option."""
    for name in chain.from_iterable(WORDS.values()):
        command = _find_command(program, name)
        inner = command.commands.values() if isinstance(command, click.Group) else (command,)
        start = (name,) if isinstance(command, click.Group) else ()
        for subcommand in inner:
            if subcommand is not None:
                for param in subcommand.params:
                    words = (*start, subcommand.name or "", param.name or "")
                    yield _VARIABLE_PREFIX + "_".join(words).upper().replace("-", "_")


def _find_command(program: click.Context, name: str) -> click.Command | None:
    group = program.command
    return group.get_command(program, name) if isinstance(group, click.Group) else None


def _check_descriptors() -> Check:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < _MIN_DESCRIPTORS:
        fix = f"raise it for toponaut serve: ulimit -Hn {_MIN_DESCRIPTORS}"
        return Check("Open files", Outcome.WARNING, f"at most {hard}", fix)
    shown = "any number" if hard == resource.RLIM_INFINITY else f"at most {hard}"
    return Check("Open files", Outcome.OK, shown)
