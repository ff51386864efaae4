"""`toponaut approve`: let one held plan be carried out."""

from __future__ import annotations

from pathlib import Path

import click

from generator.store.directory import DirectoryStore


@click.command(name="approve")
@click.argument("plan", metavar="HASH")
@click.option(
    "--store",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder whose HyperNodes the plan is for.",
)
def command(plan: str, *, store: Path) -> None:
    """Approve the plan of a hash, as `plan` and condition ChangeBlocked of the Fabric tell it.

    `serve` and `apply` carry it out once. A plan that changed meanwhile has another hash, and
    needs another approval.
    """
    DirectoryStore(store).approve(plan)
    click.echo(f"plan {plan} is approved", err=True)
