"""`toponaut reservations`: its options and its help."""

from __future__ import annotations

from typing import Any

import click

from generator.cli.options.decorators import watchable
from generator.cli.options.kube import kube_options
from generator.cli.options.output_format import wide_output_option
from generator.cli.options.value_types import InputFolder

_FOLDER = InputFolder()


@click.command(name="reservations")
@click.option("--store", type=_FOLDER, help="Folder that `toponaut serve --store` serves.")
@kube_options("Read a cluster instead of a folder.")
@click.option("--all", is_flag=True, help="Also list reservations that have ended.")
@wide_output_option
@watchable
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """List the nodes that are reserved for gangs whose pods do not run yet.

    The gRPC calls Reserve, Confirm and Release change reservations; try `toponaut rpc Reserve`.
    Listing them changes nothing and does not disturb a running server. In JSON, reservations are
    objects of kind PlacementReservation.
    """
    from generator.cli.commands.reservations import run

    run(ctx, **options)
