"""The option `--silence` of `findings` and `diff`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from generator.cli.options.value_types import InputFile

silence_option: Final[Callable[..., Any]] = click.option(
    "--silence",
    type=InputFile(),
    help="YAML file that lists known problems to silence: {kind, device, port, reason, "
    "until: YYYY-MM-DD}. Only port is optional.",
)
