"""The types of option values: numbers, files, names in Kubernetes, durations, times and shares.

Names are checked before anything is read: a wrong one would be a path of the API server, or objects
that it refuses one by one.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from generator.outputs.owned_object import is_object_name
from runtime import values
from runtime.options import GivenPath, refusing
from topology.model.errors import ConfigError, show
from topology.model.globs import find_glob_fault
from topology.reports.observed_time import parse_observed_at

MAX_PATH_SHOWN = 1024
_MAX_LABEL: Final = 63
_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z", re.ASCII)
_LABEL_TEXT: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?\Z", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d\Z", re.ASCII)
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,9})?)%\Z", re.ASCII)
_FRACTION = re.compile(r"0(?:\.\d{1,12})?\Z", re.ASCII)
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
        del param, ctx  # click adds them to the error
        return refusing(values.parse_whole_number)(str(value), *self.bounds)


class _InputPath(GivenPath):
    """A path that exists; any other problem with it is reported as what it is."""

    def check(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """Return the path if it can be read."""

        def refuse(problem: str) -> NoReturn:
            shown = show(os.fspath(value), MAX_PATH_SHOWN)
            self.fail(f"{self.name.title()} '{shown}' {problem}.", param, ctx)

        try:
            is_folder = stat.S_ISDIR(Path(value).stat().st_mode)
        except FileNotFoundError:
            refuse("does not exist")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            refuse(f"cannot be read: {reason}")
        if is_folder is not self.dir_okay:
            other = "folder" if is_folder else "file"
            # An argument has no name that says what it takes; options of folders do.
            is_argument = is_folder and isinstance(param, click.Argument)
            hint = ": folders have options, such as --reports" if is_argument else ""
            refuse(f"is a {other}{hint}")
        if not os.access(value, os.R_OK):
            refuse("is not readable")
        return Path(value)


class InputFile(_InputPath):
    """A file to read; a pipe counts as one, and `-` is stdin, which one parameter may read."""

    def __init__(self) -> None:
        """Accept no folder."""
        super().__init__(exists=True, dir_okay=False)

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


def is_input_file(word: str) -> bool:
    """Return whether a word can be a file to read: it exists, or it is stdin."""
    return word == _STDIN or os.path.exists(word)  # noqa: PTH110 - false of any wrong path


class OutputFile(GivenPath):
    """A file to write, in a folder that exists: a long run must not end with a wrong path."""

    def __init__(self) -> None:
        """Accept no folder."""
        super().__init__(dir_okay=False)

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


class OutputFolder(GivenPath):
    """A folder to write; the command creates it."""

    def __init__(self) -> None:
        """Accept no file."""
        super().__init__(file_okay=False)


class InputFolder(_InputPath):
    """A folder to read."""

    def __init__(self) -> None:
        """Accept no file."""
        super().__init__(exists=True, file_okay=False)


def parse_namespace(text: str) -> str:
    """Return the name of a namespace: a DNS label.

    Raises:
        click.BadParameter: the text has another form.
    """
    if len(text) > _MAX_LABEL or not _DNS_LABEL.match(text):
        form = f"at most {_MAX_LABEL} lower-case letters, digits and '-'"
        raise _build_name_error(text, "a namespace", form)
    return text


def parse_pattern(text: str) -> str:
    """Return a pattern of names, with shell wildcards, unchanged.

    Raises:
        click.BadParameter: it would match nothing, or not what it seems to.
    """
    fault = find_glob_fault(text) if text else "is empty"
    if fault is not None:
        raise click.BadParameter(f"pattern '{show(text)}' {fault}")
    return text


def parse_object_name(text: str) -> str:
    """Return the name of an object: a DNS subdomain.

    Raises:
        click.BadParameter: the text has another form.
    """
    if not is_object_name(text):
        raise _build_name_error(text, "an object", "lower-case letters, digits, '-' and '.'")
    return text


def _build_name_error(text: str, what: str, form: str) -> click.BadParameter:
    return click.BadParameter(f"'{show(text)}' is not the name of {what}: use {form}.")


def parse_label_prefix(text: str) -> str:
    """Return the part of a label key before the slash: a DNS subdomain, not of Kubernetes itself.

    Raises:
        click.BadParameter: the text has another form.
    """
    from generator.outputs.node_labels import check_label_prefix

    try:
        check_label_prefix(text)
    except ConfigError as error:
        raise click.BadParameter(f"{error}.") from error
    return text


def is_label(key: str, value: str) -> bool:
    """Return whether a node can have this label."""
    prefix, slash, name = key.rpartition("/")
    is_key = _is_label_text(name) and (is_object_name(prefix) if slash else True)
    return is_key and (not value or _is_label_text(value))


def _is_label_text(text: str) -> bool:
    return len(text) <= _MAX_LABEL and _LABEL_TEXT.match(text) is not None


parse_duration: Final = refusing(values.parse_duration)
"""Returns the seconds of `500ms`, `30s`, `5m` or `1h`; a number without a unit is refused."""


def parse_since(text: str) -> datetime:
    """Return the time of `2026-11-01`, which begins in UTC, or of a time with a zone.

    Raises:
        click.BadParameter: the text has another form.
    """
    parsed = parse_observed_at(f"{text}T00:00:00Z" if _DATE.match(text) else text)
    if parsed is None:
        expected = "a date such as 2026-11-01, or a time such as 2026-11-01T08:00:00Z"
        raise click.BadParameter(f"'{show(text)}' is not {expected}")
    return parsed


def parse_share(text: str) -> float:
    """Return the fraction, 0 to 1, of `1%` or `0.01`; `1` is refused: it may mean 1 % or all.

    Raises:
        click.BadParameter: the text has another form, or is more than 100 %.
    """
    percent = _PERCENT.match(text)
    if not percent and not _FRACTION.match(text):
        raise click.BadParameter(f"'{show(text)}' is not a share such as 1% or 0.01")
    fraction = float(percent[1]) / 100 if percent else float(text)
    if fraction > 1:
        raise click.BadParameter(f"'{show(text)}' is more than 100%")
    return fraction


def parse_level_names(rows: Sequence[str]) -> dict[str, str]:
    """Return the tier of each name, from rows `NAME=TIER`.

    Raises:
        click.BadParameter: a row has another form.
    """
    tier_of_name: dict[str, str] = {}
    for row in rows:
        name, _, tier = row.rpartition("=")
        if not name or not tier:
            raise click.BadParameter(
                f"'{show(row)}' is not NAME=TIER, such as topology-rack=leaf", param_hint="--level"
            )
        tier_of_name[name] = tier
    return tier_of_name
