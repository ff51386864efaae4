"""`toponaut approve`: approve one held plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from generator.cli.exit_codes import ExitCode
from generator.cli.kube_options import kube_options, parse_access
from generator.cli.option_types import InputFolder
from generator.cli.output import MAX_MESSAGE
from generator.cli.store_options import open_plan_store
from topology.model.errors import KubeError, StoreError, show


@click.command(name="approve")
@click.argument("plan", metavar="HASH")
@click.option(
    "--store",
    type=InputFolder(),
    help="Folder whose HyperNodes the plan changes.",
)
@kube_options("Approve a plan of a cluster instead of a folder.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    plan: str,
    *,
    store: Path | None,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Approve the held plan with this hash.

    `toponaut plan` and condition ChangeBlocked of the Fabric object show the hash. `serve` or
    `apply` carries out the approved plan once. A plan that has changed since has a different hash
    and needs a new approval.
    """
    with open_plan_store(store, parse_access(options)) as opened:
        try:
            opened.approve(plan)
        except (KubeError, StoreError) as error:  # a failed write, not missing input
            click.echo(f"error: {show(str(error), MAX_MESSAGE)}", err=True)
            ctx.exit(ExitCode.INTERNAL)
    click.echo(f"plan {plan} is approved", err=True)
