"""Command-line values that are more than text or a number, and options that go together."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeVar

import click

from generator.kube.access import ClusterAccess
from runtime import values
from topology.model.errors import ConfigError, show

_Command = TypeVar("_Command", bound=Callable[..., Any])
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,9})?)%\Z", re.ASCII)
_FRACTION = re.compile(r"0(?:\.\d{1,12})?\Z", re.ASCII)


def combine_options(*options: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    """Return what gives a click command several options, which --help lists in this order."""

    def decorate(command: _Command) -> _Command:
        return reduce(lambda made, option: option(made), reversed(options), command)

    return decorate


def parse_access(options: dict[str, Any]) -> ClusterAccess | None:
    """Take the cluster that is named out of a command's parameters; None where none is.

    Raises:
        click.UsageError: what says how to reach one stands without --kube.
    """
    access = ClusterAccess(options.pop("kubeconfig"), options.pop("context"))
    if options.pop("kube"):
        return access
    if any(access):
        raise click.UsageError("--kubeconfig and --context go with --kube")
    return None


def parse_duration(text: str) -> float:
    """Return seconds above 0 of `500ms`, `30s`, `5m` or `1h`; a bare number is refused.

    Raises:
        click.BadParameter: the text has another form, or means 0.
    """
    try:
        return values.parse_duration(text)
    except ConfigError as error:
        raise click.BadParameter(str(error)) from error


def parse_share(text: str) -> float:
    """Return a fraction from 0 to 1 of `1%` or `0.01`; `1` is refused: it may mean either.

    Raises:
        click.BadParameter: another form, or more than all.
    """
    percent = _PERCENT.match(text)
    if not percent and not _FRACTION.match(text):
        raise click.BadParameter(f"'{show(text)}' is no share such as 1% or 0.01")
    fraction = float(percent[1]) / 100 if percent else float(text)
    if fraction > 1:
        raise click.BadParameter(f"'{show(text)}' is more than all")
    return fraction


def parse_level_names(rows: Sequence[str]) -> dict[str, str]:
    """Return tiers by name of rows `NAME=TIER`.

    Raises:
        click.BadParameter: another form.
    """
    found: dict[str, str] = {}
    for row in rows:
        name, _, tier = row.rpartition("=")
        if not name or not tier:
            raise click.BadParameter(
                f"'{show(row)}' is no NAME=TIER such as topology-rack=leaf", param_hint="--level"
            )
        found[name] = tier
    return found
