"""`toponaut reservations`: list the nodes that are reserved for gangs, in a folder or a cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from generator.cli.connection_values import parse_access
from generator.cli.exit_codes import exit_with_problems
from generator.cli.output import list_nodes, print_document, render_table
from generator.kube.access import ClusterAccess
from generator.reservations.documents import render_reservation
from generator.reservations.records import Reservation
from generator.reservations.rules import expire_if_due
from runtime.clock import utc_now
from topology.model.errors import ParseError, show


def run(
    ctx: click.Context,
    /,
    store: Path | None,
    output: str,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Run `toponaut reservations` with the values of its options."""
    access = parse_access(options)
    if (store is None) == (access is None):
        raise click.UsageError("give the store to read: either --store or --kube")
    reservations, problems = _read_reservations(store, access)
    if not options["all"]:
        reservations = tuple(row for row in reservations if not row.is_ended)
    document = [render_reservation(reservation) for reservation in reservations]
    print_document(document, output, text=lambda: _render_text(reservations, output))
    exit_with_problems(ctx, problems)


def _read_reservations(
    store: Path | None, access: ClusterAccess | None
) -> tuple[tuple[Reservation, ...], tuple[ParseError, ...]]:
    if access is not None:
        from generator.reservations.cluster_view import fetch_reservations  # noqa: PLC0415 - loads a client

        listing = fetch_reservations(access, os.environ)
        return listing.reservations, listing.problems
    from generator.reservations.sqlite import FILE_NAME, read_reservations  # noqa: PLC0415 - only for a folder

    now = utc_now()
    rows = read_reservations((store or Path()) / FILE_NAME)
    return tuple(expire_if_due(row, now=now, epoch=row.epoch) for row in rows), ()


def _render_text(reservations: tuple[Reservation, ...], output: str) -> str:
    if not reservations:
        return "no reservations"
    columns = ("RESERVATION", "GANG", "PHASE", "PODS", "NODES", "UNTIL", "HOLDER")
    return render_table(columns, (_render_row(row, output) for row in reservations))


def _render_row(reservation: Reservation, output: str) -> tuple[str, ...]:
    runs = [run for group in reservation.groups for run in group.runs if run.node is not None]
    until = reservation.ended_at or reservation.expires_at
    return (
        reservation.id,
        show(reservation.gang, 320),
        reservation.phase.value,
        str(sum(run.count for run in runs)),
        list_nodes(list(dict.fromkeys(run.node or "" for run in runs)), output),
        until.isoformat(timespec="seconds").replace("+00:00", "Z") if until else "released",
        show(reservation.holder, 300),
    )
