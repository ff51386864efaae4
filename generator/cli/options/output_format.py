"""The option `--output`: the format of what a command prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from generator.cli.output import WIDE


def build_output_option(*formats: str, note: str = "") -> Callable[..., Any]:
    """Return the option `--output` with text, JSON, YAML and further formats."""
    return click.option(
        "--output",
        "-o",
        type=click.Choice(["text", *formats, "json", "yaml"]),
        default="text",
        show_default=True,
        help=f"Format of the output.{note}",
    )


output_option: Final = build_output_option()
wide_output_option: Final = build_output_option(
    WIDE, note=" text prints nodes as ranges, wide lists every node."
)
