"""Reading the list of switches to walk, and the files of secrets that it names."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from generator.store.local_files import read_whole_file, read_regular_file
from generator.switches.targets import TargetList, parse_switches
from topology.model.errors import ConfigError, ParseError, show

_MAX_CONFIG_BYTES: Final = 4 << 20
_MAX_SECRET_BYTES: Final = 4096
_GROUP_AND_OTHERS_MODE: Final = 0o077
_OTHERS_MODE: Final = 0o007


class LoadedTargets(NamedTuple):
    """The list, and what is doubtful about it."""

    targets: TargetList
    problems: tuple[ParseError, ...]


def read_targets(config: Path) -> LoadedTargets:
    """Read the list of switches and the files of secrets that it names, beside it if relative.

    Raises:
        ConfigError: one of them cannot be read or is wrong.
    """
    raw = read_whole_file(config, _MAX_CONFIG_BYTES)
    if isinstance(raw, ParseError):
        raise ConfigError(str(raw))
    problems: list[ParseError] = []
    read_secret = partial(_read_secret, config.parent, problems)
    found = parse_switches(raw, source=show(str(config), 1024), read_secret=read_secret)
    return LoadedTargets(found, tuple(problems))


def _read_secret(folder: Path, problems: list[ParseError], name: str) -> str:
    file = folder / name
    source = show(str(file), 1024)
    raw = read_regular_file(file, _MAX_SECRET_BYTES)
    if isinstance(raw, ParseError):
        raise ConfigError(str(raw))
    if _is_exposed(file.stat()):
        problems.append(ParseError("a secret that others may read: chmod 600", source=source))
    secret = raw.decode("ascii", "replace").rstrip("\r\n")
    if not secret:
        raise ConfigError(f"{source}: an empty secret")
    if not (secret.isascii() and secret.isprintable()):
        raise ConfigError(f"{source}: a secret that is not one line of printable ASCII")
    return secret


def _is_exposed(found: os.stat_result) -> bool:
    """Return whether more than we may read a file.

    Of a file that is not ours the group is how we get at it: a kubelet gives Secrets to root and
    to the group of the pod.
    """
    is_ours = found.st_uid == os.geteuid()
    return bool(found.st_mode & (_GROUP_AND_OTHERS_MODE if is_ours else _OTHERS_MODE))
