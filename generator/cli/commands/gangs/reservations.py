"""`toponaut reservations`: list the nodes that are reserved for gangs, in a folder or a cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from generator.cli import options
from generator.cli.exit_codes import exit_with_problems
from generator.cli.options import ClusterOptions
from generator.cli.output import Table, list_nodes, print_document
from generator.kube.access import ClusterAccess
from runtime.clock import utc_now
from topology.model.errors import ParseError, show

if TYPE_CHECKING:
    from generator.reservations.records import Reservation

_COLUMNS: Final = ("RESERVATION", "GANG", "PHASE", "PODS", "NODES", "UNTIL", "HOLDER")


@options.command(
    "reservations",
    is_watchable=True,
    examples=(
        "toponaut reservations --store store",
        "toponaut reservations --kube --all",
    ),
)
def command(
    *,
    store: Path | None = options.option(
        "Folder that `toponaut serve --store` serves.", type=options.FOLDER
    ),
    cluster: ClusterOptions = options.kube("Read a cluster instead of a folder."),
    all: bool = options.option(  # noqa: A002 - the option's name
        "Also list reservations that have ended."
    ),
    output: str = options.WIDE_OUTPUT,
) -> None:
    """List the nodes that are reserved for gangs whose pods do not run yet.

    The gRPC calls Reserve, Confirm and Release change reservations; try `toponaut rpc Reserve`.
    Listing them changes nothing and does not disturb a running server. In JSON, reservations are
    objects of kind PlacementReservation.
    """
    from generator.reservations.records import render_reservation

    access = cluster.find_cluster()
    if (store is None) == (access is None):
        raise click.UsageError("give the store to read: either --store or --kube")
    reservations, problems = _read_reservations(store, access)
    listed = [row for row in reservations if all or not row.is_ended]
    print_document(
        [render_reservation(row) for row in listed],
        output,
        text=lambda: Table(
            _COLUMNS, [_render_row(row, output) for row in listed], empty="no reservations"
        ),
    )
    exit_with_problems(problems)


def _read_reservations(
    store: Path | None, access: ClusterAccess | None
) -> tuple[tuple[Reservation, ...], tuple[ParseError, ...]]:
    if access is not None:
        from generator.reservations.cluster_view import fetch_reservations

        fetched = fetch_reservations(access, os.environ)
        return fetched.reservations, fetched.problems
    from generator.reservations.legacy_sqlite import FILE_NAME, read_reservations
    from generator.reservations.objects import RESERVATIONS
    from generator.reservations.phases import expire_if_due
    from generator.store.folder_store import FolderStore

    root, now = store or Path(), utc_now()
    listing = FolderStore(root).read(RESERVATIONS)
    rows = {row.id: row for row in read_reservations(root / FILE_NAME)}  # not converted yet
    rows |= {row.name: row.value.reservation for row in listing.objects if row.value.reservation}
    current = (expire_if_due(rows[id_], now=now, epoch=rows[id_].epoch) for id_ in sorted(rows))
    return tuple(current), listing.all_problems


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
