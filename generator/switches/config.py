"""Reads the list of switches to walk, and the secret files that it names."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from generator.store.local_files import read_secret_file, read_whole_file
from generator.switches.targets import TargetList, parse_switches
from topology.model.errors import ConfigError, ParseError, show

_MAX_CONFIG_BYTES: Final = 4 << 20
_MAX_SECRET_BYTES: Final = 4096
_GROUP_AND_OTHERS_MODE: Final = 0o077
_OTHERS_MODE: Final = 0o007


class LoadedTargets(NamedTuple):
    """The list, and warnings about it."""

    targets: TargetList
    problems: tuple[ParseError, ...]


def read_targets(config: Path) -> LoadedTargets:
    """Read the list of switches and its secret files; relative names start at the list's folder.

    Raises:
        ConfigError: one of the files cannot be read or is wrong.
    """
    raw = read_whole_file(config, _MAX_CONFIG_BYTES)
    if isinstance(raw, ParseError):
        raise ConfigError(str(raw))
    problems: list[ParseError] = []
    read_secret = partial(_read_secret, config.parent, problems)
    targets = parse_switches(raw, source=show(str(config), 1024), read_secret=read_secret)
    return LoadedTargets(targets, tuple(problems))


def _read_secret(folder: Path, problems: list[ParseError], name: str) -> str:
    file = folder / name
    source = show(str(file), 1024)
    raw = read_secret_file(file, _MAX_SECRET_BYTES)
    if isinstance(raw, ParseError):
        raise ConfigError(str(raw))
    if _is_exposed(file.stat()):
        problems.append(ParseError("other users can read this secret: chmod 600", source=source))
    secret = raw.decode("ascii", "replace").rstrip("\r\n")
    if not secret:
        raise ConfigError(f"{source}: the secret is empty")
    if not (secret.isascii() and secret.isprintable()):
        raise ConfigError(f"{source}: the secret must be one line of printable ASCII")
    return secret


def _is_exposed(status: os.stat_result) -> bool:
    """Return whether other users can read a file.

    If another user owns the file, this process may read it through the group: a kubelet gives
    Secrets to root and to the group of the pod.
    """
    is_owner = status.st_uid == os.geteuid()
    return bool(status.st_mode & (_GROUP_AND_OTHERS_MODE if is_owner else _OTHERS_MODE))
