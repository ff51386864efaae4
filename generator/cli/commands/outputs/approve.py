"""`toponaut approve`: approve one held plan."""

from __future__ import annotations

from pathlib import Path

import click

from generator.cli import options
from generator.cli.exit_codes import ExitCode, end
from generator.cli.options import ClusterOptions
from generator.cli.output import MAX_MESSAGE
from topology.model.errors import KubeError, StoreError, show


@options.command(
    "approve",
    examples=(
        "toponaut approve 0710ff9ee032bcb9 --store store",
        "toponaut approve 0710ff9ee032bcb9 --kube",
    ),
)
def command(
    *,
    plan: str = options.argument(metavar="HASH"),
    store: Path | None = options.option(
        "Folder whose HyperNodes the plan changes.", type=options.FOLDER
    ),
    cluster: ClusterOptions = options.kube("Approve a plan of a cluster instead of a folder."),
) -> None:
    """Approve the held plan with this hash.

    `toponaut plan` and condition ChangeBlocked of the Fabric object show the hash. `serve` or
    `apply` carries out the approved plan once. A plan that has changed since has a different hash
    and needs a new approval.
    """
    from generator.cli.plans import open_plan_store

    with open_plan_store(store, cluster.find_cluster()) as opened:
        try:
            opened.approve(plan)
        except (KubeError, StoreError) as error:  # a failed write, not missing input
            click.echo(f"error: {show(str(error), MAX_MESSAGE)}", err=True)
            end(ExitCode.INTERNAL)
    click.echo(f"plan {plan} is approved", err=True)
