"""Types of option values that both programs take: paths, and texts that a parser refuses."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

from topology.model.errors import ConfigError

P = ParamSpec("P")
ValueT = TypeVar("ValueT")


class GivenPath(click.Path):
    """A path that is not empty: an unset variable of a script must not name the current folder."""

    def __init__(
        self, *, exists: bool = False, file_okay: bool = True, dir_okay: bool = True
    ) -> None:
        """Store what the path may be."""
        super().__init__(exists, file_okay, dir_okay, path_type=Path)

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


def refusing(parse: Callable[P, ValueT]) -> Callable[P, ValueT]:
    """Return a parser whose ConfigError is an error of usage."""

    @wraps(parse)
    def parse_value(*args: P.args, **kwargs: P.kwargs) -> ValueT:
        try:
            return parse(*args, **kwargs)
        except ConfigError as error:
            raise click.BadParameter(str(error)) from error

    return parse_value
