"""The types of option values: numbers with bounds, files and folders, and names in Kubernetes.

Names are checked before anything is read: a wrong one would be a path of the API server, or objects
that it refuses one by one.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any, Final

import click

from generator.outputs.node_labels import check_label_prefix
from generator.outputs.object_names import is_object_name
from runtime.values import parse_whole_number
from topology.model.errors import ConfigError, show

MAX_PATH_SHOWN = 1024
_MAX_LABEL: Final = 63
_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z", re.ASCII)
_LABEL_TEXT: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?\Z", re.ASCII)
_STDIN = "-"
_STDIN_FILE = "/dev/stdin"
_STDIN_READER = f"{__name__}.stdin_reader"
"""Key of the parameter that reads stdin, in the context of the command."""


class WholeNumber(click.IntRange):
    """A whole number between two bounds, both included."""

    def __init__(self, minimum: int, maximum: int) -> None:
        """Store the bounds."""
        super().__init__(minimum, maximum)
        self.bounds = (minimum, maximum)

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> int:
        """Return the number of a text."""
        try:
            return parse_whole_number(str(value), *self.bounds)
        except ConfigError as error:
            self.fail(str(error), param, ctx)


class _NamedPath(click.Path):
    """A path that is not empty: an unset variable of a script must not name the current folder."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """Return the path of a text."""
        if not os.fspath(value):
            self.fail("the path is empty.", param, ctx)
        return self.check(value, param, ctx)

    def check(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """Return the path if it is usable, by the rules of click."""
        return Path(os.fsdecode(super().convert(value, param, ctx)))


class _InputPath(_NamedPath):
    """A path that exists; any other problem with it is reported as what it is."""

    def check(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """Return the path if it can be read."""
        shown = show(os.fspath(value), MAX_PATH_SHOWN)
        try:
            is_folder = stat.S_ISDIR(Path(value).stat().st_mode)
        except FileNotFoundError:
            self.fail(f"{self.name.title()} '{shown}' does not exist.", param, ctx)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            self.fail(f"{self.name.title()} '{shown}' cannot be read: {reason}.", param, ctx)
        if is_folder is not self.dir_okay:
            other = "folder" if is_folder else "file"
            self.fail(f"{self.name.title()} '{shown}' is a {other}.", param, ctx)
        if not os.access(value, os.R_OK):
            self.fail(f"{self.name.title()} '{shown}' is not readable.", param, ctx)
        return Path(value)


class InputFile(_InputPath):
    """A file to read; a pipe counts as one, and `-` is stdin, which one parameter may read."""

    def __init__(self) -> None:
        """Accept no folder."""
        super().__init__(exists=True, dir_okay=False, path_type=Path)

    def check(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """Return the path if it can be read."""
        if os.fspath(value) != _STDIN:
            return super().check(value, param, ctx)
        if ctx is not None and param is not None:
            reader = ctx.meta.setdefault(_STDIN_READER, param)
            if reader is not param:
                self.fail(f"stdin is read by {reader.get_error_hint(ctx)} already.", param, ctx)
        return super().check(_STDIN_FILE, param, ctx)


class OutputFile(_NamedPath):
    """A file to write, in a folder that exists: a long run must not end with a wrong path."""

    def __init__(self) -> None:
        """Accept no folder."""
        super().__init__(dir_okay=False, path_type=Path)

    def check(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """Return the path if its folder exists."""
        file = super().check(value, param, ctx)
        if not file.parent.is_dir():
            self.fail(f"'{show(str(file.parent), MAX_PATH_SHOWN)}' is no folder.", param, ctx)
        return file


class OutputFolder(_NamedPath):
    """A folder to write; the command creates it."""

    def __init__(self) -> None:
        """Accept no file."""
        super().__init__(file_okay=False, path_type=Path)


class InputFolder(_InputPath):
    """A folder to read."""

    def __init__(self) -> None:
        """Accept no file."""
        super().__init__(exists=True, file_okay=False, path_type=Path)


class NamespaceName(click.ParamType[str]):
    """The name of a namespace: a DNS label."""

    name = "name"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str:
        """Return the name."""
        text = str(value)
        if len(text) > _MAX_LABEL or not _DNS_LABEL.match(text):
            self.fail(
                f"'{show(text)}' is not the name of a namespace: use at most {_MAX_LABEL} "
                "lower-case letters, digits and '-'.",
                param,
                ctx,
            )
        return text


class KubernetesName(click.ParamType[str]):
    """The name of an object: a DNS subdomain."""

    name = "name"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str:
        """Return the name."""
        text = str(value)
        if not is_object_name(text):
            self.fail(
                f"'{show(text)}' is not the name of an object: use lower-case letters, digits, '-' "
                "and '.'.",
                param,
                ctx,
            )
        return text


class LabelPrefix(click.ParamType[str]):
    """The part of a label key before the slash: a DNS subdomain that is not Kubernetes' own."""

    name = "prefix"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str:
        """Return the prefix."""
        text = str(value)
        try:
            check_label_prefix(text)
        except ConfigError as error:
            self.fail(f"{error}.", param, ctx)
        return text


def is_label(key: str, value: str) -> bool:
    """Return whether a node can have this label."""
    prefix, slash, name = key.rpartition("/")
    is_key = _is_label_text(name) and (is_object_name(prefix) if slash else True)
    return is_key and (not value or _is_label_text(value))


def _is_label_text(text: str) -> bool:
    return len(text) <= _MAX_LABEL and _LABEL_TEXT.match(text) is not None
