"""Shares on the command line: `1%` and `0.01`, never `1`, which can mean either or all."""

import pytest

from generator.cli.option_types import parse_share


@pytest.mark.parametrize(
    ("text", "fraction"),
    [("1%", 0.01), ("0.01", 0.01), ("0", 0), ("0%", 0), ("100%", 1), ("12.5%", 0.125)],
)
def test_it_reads_a_share(text: str, fraction: float) -> None:
    assert parse_share(text) == fraction
