"""`toponaut approve`: its options and its help."""

from __future__ import annotations

from typing import Any

import click

from generator.cli.options.kube import kube_options
from generator.cli.options.value_types import InputFolder


@click.command(name="approve")
@click.argument("plan", metavar="HASH")
@click.option(
    "--store",
    type=InputFolder(),
    help="Folder whose HyperNodes the plan changes.",
)
@kube_options("Approve a plan of a cluster instead of a folder.")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Approve the held plan with this hash.

    `toponaut plan` and condition ChangeBlocked of the Fabric object show the hash. `serve` or
    `apply` carries out the approved plan once. A plan that has changed since has a different hash
    and needs a new approval.
    """
    from generator.cli.commands.approve import run

    run(ctx, **options)
