"""Durations and shares on the command line: an ambiguous form is refused."""

from __future__ import annotations

import click
import pytest

from generator.cli.option_types import parse_duration, parse_share


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("60s", 60), ("1.5m", 90), ("2h", 7200)]
)
def test_it_reads_a_duration(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "60", "0s", "-1s", "1 s", "1d", "s", "1e3s", "٣s", "1s\n"])
def test_it_refuses_as_a_duration(text: str) -> None:
    with pytest.raises(click.BadParameter):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "fraction"),
    [("1%", 0.01), ("0.01", 0.01), ("0", 0), ("0%", 0), ("100%", 1), ("12.5%", 0.125)],
)
def test_it_reads_a_share(text: str, fraction: float) -> None:
    assert parse_share(text) == fraction


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("1", id="1, which can mean 1 % or all"),
        pytest.param("101%", id="more than all"),
        pytest.param("-1%", id="a negative share"),
        pytest.param("", id="an empty text"),
        pytest.param(".5", id="a number without a leading digit"),
        pytest.param("nan", id="not a number"),
        pytest.param("0.5\n", id="a line break"),
    ],
)
def test_it_refuses_as_a_share(text: str) -> None:
    with pytest.raises(click.BadParameter):
        parse_share(text)
