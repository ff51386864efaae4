"""`toponaut approve`: let one held plan be carried out."""

from __future__ import annotations

from pathlib import Path

import click

from generator.exits import Exit
from generator.printing import MAX_MESSAGE
from generator.store.access import Access
from generator.store_options import cluster_options, open_place
from topology.errors import KubeError, StoreError, show


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
    kube: bool,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Approve the plan of a hash, as `plan` and condition ChangeBlocked of the Fabric tell it.

    `serve` and `apply` carry it out once. A plan that changed meanwhile has another hash, and
    needs another approval.
    """
    access = Access(kubeconfig, context)
    if any(access) and not kube:
        raise click.UsageError("--kubeconfig and --context go with --kube")
    with open_place(store, access if kube else None) as place:
        try:
            place.approve(plan)
        except (KubeError, StoreError) as error:  # a write that failed, not input that is missing
            click.echo(f"error: {show(str(error), MAX_MESSAGE)}", err=True)
            ctx.exit(Exit.INTERNAL)
    click.echo(f"plan {plan} is approved", err=True)
