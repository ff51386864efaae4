"""`toponaut findings`: its options and its help."""

from __future__ import annotations

from typing import Any

import click

from generator.cli.options.decorators import watchable
from generator.cli.options.output_format import build_output_option
from generator.cli.options.silence import silence_option
from generator.cli.options.source import source_options
from generator.cli.options.store import history_options, since_option
from generator.cli.options.values import parse_duration
from generator.cli.output import CSV, WIDE
from generator.history.finding_changes import FindingAge
from topology.model.facts import (
    FindingKind,
    Severity,
)


@click.command(name="findings")
@source_options
@click.option(
    "--kind",
    multiple=True,
    type=click.Choice([kind.value for kind in FindingKind]),
    help="Only findings of this kind. Repeatable.",
)
@click.option(
    "--severity",
    multiple=True,
    type=click.Choice([severity.value for severity in reversed(Severity)]),
    help="Only findings of this severity. Repeatable.",
)
@click.option(
    "--device",
    "--node",
    "--switch",
    multiple=True,
    metavar="NAME",
    help="Only findings about this node or switch, or with a port of it. Repeatable.",
)
@click.option(
    "--period",
    type=parse_duration,
    metavar="DURATION",
    help="Collection period of the agents, such as 1m: reports older than three periods are "
    "stale. Without it, the age of reports is ignored.",
)
@since_option
@history_options
@click.option(
    "--age",
    multiple=True,
    type=click.Choice([age.value for age in FindingAge]),
    help="Only findings that are new, lasting or gone since --since. Repeatable.",
)
@silence_option
@click.option("--check", is_flag=True, help="Exit with 5 if there are warnings or errors.")
@build_output_option(
    WIDE, CSV, note=" text prints findings that say the same as one row; wide prints each."
)
@watchable
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """List what is wrong with the cabling, or with the data about it, and what to do.

    Ten rows or more begin with a summary. toponaut describe shows what is connected to a device.
    With --since, the findings are compared with the history of `toponaut serve`, and each is new,
    lasting or gone. Without a source, the last record of the history is compared.
    """
    from generator.cli.commands.fabric.findings import run

    run(ctx, **options)
