"""`toponaut adopt`: its options and its help."""

from __future__ import annotations

from typing import Any

import click

from generator.cli.options.output_format import output_option
from generator.cli.options.source import source_options
from generator.cli.options.store import namespace_option
from generator.cli.options.value_types import OutputFolder


@click.command(name="adopt")
@source_options
@click.option(
    "--store",
    type=OutputFolder(),
    help="Folder whose hypernodes/ are taken over; neighborreports/ is read if no source is "
    "given. Without --store, the cluster of --kube.",
)
@click.option(
    "--names-in",
    metavar="KEYS",
    help="Keep the names in these labels of the nodes (keys, coarsest first, or a preset of "
    "--node-labels) instead of the names of the HyperNodes.",
)
@click.option(
    "--labels",
    metavar="KEYS",
    help="Take over these labels of the nodes of a cluster instead of HyperNodes (keys, coarsest "
    "first, or a preset of --node-labels), with their values as the names of domains.",
)
@namespace_option
@click.option("--approve", metavar="HASH", help="Carry out the plan with this hash.")
@output_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Take over the HyperNodes, or the labels of nodes, that people or other tools wrote.

    Prints how they differ from the cables, and the plan: each one gets Toponaut's label, and its
    patterns and labels become lists of nodes; then the plan of `toponaut apply` follows. A domain
    keeps the name of the HyperNode that has most of its nodes. Nothing is written, and the exit
    code is 5, until you approve the hash of the plan here or with `toponaut approve`. The set of
    HyperNodes is valid after every write.

    With --labels, Toponaut becomes the owner of the labels that its output `labels` writes. A node
    gets its new values in one write, and none while a gang runs on it.
    """
    from generator.cli.commands.hypernodes.adopt import run

    run(ctx, **options)
