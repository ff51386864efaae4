"""The optional config file of `toponaut`: values of options, by command.

A command line and an environment variable count before the file, and the file before a default.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from topology.model.errors import ConfigError, list_some, show

MAX_CONFIG_BYTES: Final = 1 << 20
_MAX_NAMES: Final = 40


def find_config_file(given: Path | None, environ: Mapping[str, str]) -> Path | None:
    """Return the file that an option names, or the user's own if it exists.

    Source: XDG Base Directory Specification, for the folder of the user's own file.
    """
    if given is not None:
        return given
    home = environ.get("HOME", "")
    base = environ.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    file = Path(base) / "toponaut" / "config.yaml"
    return file if base and file.is_file() else None


def read_config_file(file: Path) -> Mapping[str, Any]:
    """Return the mapping in a config file; the commands in it are not checked.

    Raises:
        ConfigError: the file cannot be read, or is no mapping.
    """
    from generator.objects.yaml_document import parse_document
    from generator.store.local_files import read_input

    source, raw = read_input(str(file), MAX_CONFIG_BYTES)
    return _check_mapping(parse_document(raw, source=source).value, source)


def check_option_values(command: click.Command, value: object, path: str) -> dict[str, Any]:
    """Return the values of a command for click: by parameter, and nested for its subcommands.

    Args:
        command: the command; a key is the name of one of its options without dashes.
        value: the value of the command in the file.
        path: names the place in errors, such as `config.yaml: tree`.

    Raises:
        ConfigError: an unknown key, or a value that is no text, number, boolean or list.
    """
    given = _check_mapping(value, path)
    if isinstance(command, click.Group):
        return {
            name: check_option_values(command.commands[name], row, f"{path}.{name}")
            for name, row in given.items()
            if _is_known(name, command.commands, path)
        }
    options = {
        name.removeprefix("--"): param
        for param in command.params
        if isinstance(param, click.Option)
        for name in param.opts
        if name.startswith("--")
    }
    found: dict[str, Any] = {}
    for key, row in given.items():
        if _is_known(key, options, path):
            found[options[key].name or ""] = _read_value(options[key], row, f"{path}.{key}")
    return found


def show_file(file: Path) -> str:
    """Return a path for errors."""
    return show(os.fspath(file), 1024)


def _check_mapping(value: object, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{path}: expected names and values, such as `tree: {{depth: 2}}`")
    return value


def _is_known(name: str, known: Mapping[str, object], path: str) -> bool:
    if name not in known:
        names = list_some(list(known), _MAX_NAMES)
        raise ConfigError(f"{path}: there is no '{show(name)}'; there are: {names}")
    return True


def _read_value(option: click.Option, value: object, path: str) -> object:
    """Return a value as click reads it from a command line: text, or several texts."""
    if option.multiple or option.nargs != 1:
        if not isinstance(value, list):
            raise ConfigError(f"{path}: expected a list")
        return [_read_scalar(row, path) for row in value]
    if option.is_flag and not isinstance(value, bool):
        raise ConfigError(f"{path}: expected true or false")
    return value if option.is_flag else _read_scalar(value, path)


def _read_scalar(value: object, path: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ConfigError(f"{path}: expected a text or a number")
    return str(value)
