"""`toponaut diff`: its options and its help."""

from __future__ import annotations

from typing import Any

import click

from generator.cli.options.output_format import output_option
from generator.cli.options.silence import silence_option
from generator.cli.options.source import source_options
from generator.cli.options.store import history_options, since_option
from generator.cli.options.value_types import InputFile
from generator.observe.domain_witness import Witness


@click.command(name="diff")
@source_options
@click.option(
    "--cabling",
    type=InputFile(),
    help="Cabling plan: CSV with device_a,port_a,device_b,port_b, a NetBox cable export (CSV or "
    "JSON), an ibdm topology file, or a topology.dot.",
)
@click.option(
    "--against",
    type=click.Choice([row.value for row in Witness]),
    help="Compare the cables with the labels of --node-labels, or with the HyperNodes of "
    "--hypernodes or --kube, instead of a plan.",
)
@since_option
@history_options
@silence_option
@click.option("--check", is_flag=True, help="Exit with 5 if anything differs.")
@click.option("--all", is_flag=True, help="Print every row, not the first 100 of a table.")
@output_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Compare the fabric with a cabling plan, with labels or HyperNodes, or with its past.

    Prints cables that are swapped, in a wrong port, missing or extra, and the shortest list of
    moves that repairs them. Cables that are not in the plan are listed separately; they
    are not faults. With --against, prints the nodes that are labelled, or listed in HyperNodes,
    into another domain than their cables say. With --since, prints the nodes, switches and
    domains that came, went or moved since then; without a source, up to the last generation.
    """
    from generator.cli.commands.diff import run

    run(ctx, **options)
