"""Reads the SQLite file in which earlier versions kept the reservations of a folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

from generator.reservations.objects import RESERVATIONS
from generator.reservations.records import Reservation, parse_stored_reservation, render_reservation
from generator.store.object_store import ObjectStore
from generator.store.sqlite_file import SqliteSchema, open_read_only, require_undamaged, show_path
from topology.model.errors import ConfigError, StoreError, WriteError, show

FILE_NAME: Final = "reservations.sqlite"
CONVERTED_SUFFIX: Final = ".converted"
_SCHEMA: Final = SqliteSchema("reservations", 0x546F706E, 1, ())


def read_reservations(file: Path) -> tuple[Reservation, ...]:
    """Return the reservations of a file, sorted by id; empty if there is no file.

    Raises:
        StoreError: the file is not a reservations database, has a later version, or is damaged.
    """
    if not os.path.lexists(file):
        return ()
    with open_read_only(file) as database:
        _SCHEMA.require_in(database)
        require_undamaged(database)
        rows = database.execute("SELECT id, document FROM reservations ORDER BY id").fetchall()
    return tuple(_parse_row(file, row) for row in rows)


def convert_file(file: Path, objects: ObjectStore) -> None:
    """Write the reservations of a file as objects, once; then the file has another name.

    After an interruption, all of them are written again: nothing else writes before the end.

    Raises:
        StoreError: the file cannot be used, or an object cannot be written.
    """
    if not os.path.lexists(file):
        return
    for reservation in read_reservations(file):
        objects.apply(RESERVATIONS, render_reservation(reservation))
    try:
        file.rename(file.with_name(f"{file.name}{CONVERTED_SUFFIX}"))
    except OSError as error:
        raise WriteError(f"cannot rename {show_path(file)}: {error.strerror}") from error


def _parse_row(file: Path, row: tuple[str, str]) -> Reservation:
    id_, text = row
    try:
        reservation = parse_stored_reservation(json.loads(text))
    except (ValueError, RecursionError, ConfigError) as error:
        raise StoreError(f"{show_path(file)}: reservation {show(id_, 64)}: {error}") from error
    if reservation is None or reservation.id != id_:
        raise StoreError(
            f"{show_path(file)}: reservation {show(id_, 64)}: the stored document has another id"
        )
    return reservation
