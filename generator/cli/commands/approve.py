"""`toponaut approve`: let one held plan be carried out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from generator.cli.exit_codes import ExitCode
from generator.cli.options import parse_access
from generator.cli.output import MAX_MESSAGE
from generator.cli.store_options import cluster_options, open_plan_store
from topology.model.errors import KubeError, StoreError, show


@click.command(name="approve")
@click.argument("plan", metavar="HASH")
@click.option(
    "--store",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder whose HyperNodes the plan is for.",
)
@cluster_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    plan: str,
    *,
    store: Path | None,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Approve the plan of a hash, as `plan` and condition ChangeBlocked of the Fabric tell it.

    `serve` and `apply` carry it out once. A plan that changed meanwhile has another hash, and
    needs another approval.
    """
    with open_plan_store(store, parse_access(options)) as place:
        try:
            place.approve(plan)
        except (KubeError, StoreError) as error:  # a write that failed, not input that is missing
            click.echo(f"error: {show(str(error), MAX_MESSAGE)}", err=True)
            ctx.exit(ExitCode.INTERNAL)
    click.echo(f"plan {plan} is approved", err=True)
