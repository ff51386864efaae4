"""Parsers of option values with a form of their own: durations, times, shares, levels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

import click

from runtime import values
from topology.model.errors import ConfigError, show
from topology.reports.observed_time import parse_observed_at

_DATE = re.compile(r"\d{4}-\d\d-\d\d\Z", re.ASCII)
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,9})?)%\Z", re.ASCII)
_FRACTION = re.compile(r"0(?:\.\d{1,12})?\Z", re.ASCII)


def parse_duration(text: str) -> float:
    """Return the seconds of `500ms`, `30s`, `5m` or `1h`; a number without a unit is refused.

    Raises:
        click.BadParameter: the text has another form, or means 0.
    """
    try:
        return values.parse_duration(text)
    except ConfigError as error:
        raise click.BadParameter(str(error)) from error


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
