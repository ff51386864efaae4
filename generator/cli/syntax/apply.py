"""`toponaut apply`: its options and its help."""

from __future__ import annotations

from typing import Any

import click

from generator.cli.options.output_format import output_option
from generator.cli.options.source import source_options
from generator.cli.options.store import namespace_option
from generator.cli.options.value_types import OutputFolder


@click.command(name="apply")
@source_options
@click.option(
    "--store",
    type=OutputFolder(),
    help="Folder to write: hypernodes/ is written, and neighborreports/ is read if no source is "
    "given. Without --store, the cluster of --kube is written.",
)
@click.option("--approve", metavar="HASH", help="Apply the plan with this hash even if it is held.")
@namespace_option
@output_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Apply the plan: write the HyperNodes of the tree, and never change HyperNodes of others.

    The other outputs in the spec of the Fabric object follow, with a line on stderr for each.

    Stops at the first write that fails. The set of HyperNodes is valid after every write, and the
    next run continues. A plan that exceeds the change budget is held: nothing is written, and the
    exit code is 5, until you approve its hash here or with `toponaut approve`. While the Fabric
    object pauses writing, nothing is written either. While `toponaut serve` runs on a folder or a
    cluster, it alone writes there: then a plan that is not empty is refused.
    """
    from generator.cli.commands.apply import run

    run(ctx, **options)
