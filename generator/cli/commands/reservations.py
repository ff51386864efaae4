"""`toponaut reservations`: what is kept for which gang, in a folder or a cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from generator.cli.observation import exit_with_problems
from generator.cli.options import parse_access
from generator.cli.output import output_option, print_document, shorten_names, render_table
from generator.kube.access import ClusterAccess
from generator.reservations.documents import render_reservation
from generator.reservations.records import Reservation
from generator.reservations.rules import expire_if_due
from runtime.clock import utc_now
from topology.model.errors import ParseError, show

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command(name="reservations")
@click.option("--store", type=_FOLDER, help="Folder that `toponaut serve --store` serves.")
@click.option("--kube", is_flag=True, help="Read a cluster in place of a folder.")
@click.option("--kubeconfig", help="How to reach it, in place of kubectl's files or the pod.")
@click.option("--context", help="Of the kubeconfig, in place of the current one.")
@click.option("--all", "with_ended", is_flag=True, help="Also those that ended a while ago.")
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    store: Path | None,
    output: str,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """List what is kept for gangs whose pods do not run yet.

    Reservations are made by the gRPC calls Reserve, Confirm and Release, such as by `toponaut rpc
    Reserve`. Reading changes nothing, and a running server is not disturbed. In JSON they are
    objects of kind PlacementReservation.
    """
    access = parse_access(options)
    if (store is None) == (access is None):
        raise click.UsageError("name what to read: either --store or --kube")
    found, problems = _read_reservations(store, access)
    if not options["with_ended"]:
        found = tuple(one for one in found if not one.is_ended)
    print_document(
        [render_reservation(one) for one in found], output, text=lambda: _render_text(found)
    )
    exit_with_problems(ctx, problems)


def _read_reservations(
    store: Path | None, access: ClusterAccess | None
) -> tuple[tuple[Reservation, ...], tuple[ParseError, ...]]:
    if access is not None:
        from generator.reservations.cluster_view import fetch_reservations  # noqa: PLC0415 - loads a client

        known = fetch_reservations(access, os.environ)
        return known.reservations, known.problems
    from generator.reservations.sqlite import FILE_NAME, read_reservations  # noqa: PLC0415 - one

    now = utc_now()
    rows = read_reservations((store or Path()) / FILE_NAME)
    return tuple(expire_if_due(one, now=now, epoch=one.epoch) for one in rows), ()


def _render_text(found: tuple[Reservation, ...]) -> str:
    if not found:
        return "nothing is reserved"
    columns = ("RESERVATION", "GANG", "PHASE", "PODS", "NODES", "UNTIL", "HOLDER")
    return render_table(columns, [_render_row(one) for one in found])


def _render_row(one: Reservation) -> tuple[str, ...]:
    runs = [run for group in one.groups for run in group.runs if run.node is not None]
    until = one.ended_at or one.expires_at
    return (
        one.id,
        show(one.gang, 320),
        one.phase.value,
        str(sum(run.count for run in runs)),
        shorten_names(sorted({run.node or "" for run in runs})),
        until.isoformat(timespec="seconds").replace("+00:00", "Z") if until else "released",
        show(one.holder, 300),
    )
