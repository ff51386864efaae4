"""The options that name a store and its history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from generator.cli.options.decorators import combine_options
from generator.cli.options.value_types import InputFile, InputFolder, NamespaceName
from generator.cli.options.values import parse_since

if TYPE_CHECKING:
    pass

namespace_option = click.option(
    "--namespace",
    type=NamespaceName(),
    default="toponaut-system",
    show_default=True,
    help="Namespace of objects of outputs that have one: where `toponaut serve` runs.",
)
history_options = combine_options(
    click.option("--store", type=InputFolder(), help="Folder that `toponaut serve` serves."),
    click.option(
        "--history",
        type=InputFile(),
        help="File with the history, instead of the one in --store.",
    ),
)
since_option = click.option(
    "--since",
    type=parse_since,
    metavar="DATE",
    help="Compare with the fabric of this date or time: 2026-11-01, or 2026-11-01T08:00:00Z.",
)
