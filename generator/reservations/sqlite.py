"""Reservations in a SQLite file, for a single server that reads a folder.

Each write is one transaction with a write-ahead log and full synchronisation: after a crash of the
process or the machine, an acknowledged write is complete. After each write the log is copied into
the file, so an acknowledged write does not depend on the log. The file is created with the first
reservation; an empty one is damaged. Each server that opens the file begins a new epoch; a server
of an older epoch can no longer write.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final

from generator.reservations.documents import parse_stored_reservation, render_reservation
from generator.reservations.records import Refusal, Reservation
from generator.reservations.store import StoreFenced
from generator.store.sqlite_file import (
    SqliteSchema,
    name_file_in_errors,
    open_for_writes,
    open_read_only,
    require_undamaged,
    run_transaction,
    show_path,
)
from topology.model.errors import ConfigError, StoreError, show

FILE_NAME: Final = "reservations.sqlite"
APPLICATION_ID: Final = 0x546F706E
"""SQLite application id of the file, so that the database of another program is refused."""
SCHEMA_VERSION: Final = 1
_SCHEMA: Final = SqliteSchema(
    "reservations",
    APPLICATION_ID,
    SCHEMA_VERSION,
    (
        "CREATE TABLE epochs (epoch INTEGER NOT NULL) STRICT",
        "INSERT INTO epochs VALUES (0)",
        "CREATE TABLE reservations (id TEXT PRIMARY KEY, document TEXT NOT NULL) STRICT",
    ),
)


class SqliteReservations:
    """A `ReservationStore` in one file; thread-safe."""

    def __init__(self, file: Path) -> None:
        """Read the stored reservations and begin an epoch; create no file.

        Raises:
            StoreError: the file cannot be used; it stays unchanged.
        """
        self._file = file
        self._lock = Lock()
        self._database: sqlite3.Connection | None = None
        self._by_id: dict[str, Reservation] = {}
        self._known: tuple[Reservation, ...] = ()
        self._inherited_ids: frozenset[str] = frozenset()
        self._epoch = 1
        self._inode = 0
        if os.path.lexists(file):
            self._open()

    @property
    def epoch(self) -> int:
        """Number of times a server has opened the file."""
        return self._epoch

    @property
    def is_known(self) -> bool:
        """Report known: the file was read at startup."""
        return True

    @property
    def problems(self) -> tuple[str, ...]:
        """Return no problems: a file with an unusable document is not opened."""
        return ()

    def find_write_refusal(self) -> Refusal | None:
        """Return None: the only server may always write."""
        return None

    def read_reservations(self) -> tuple[Reservation, ...]:
        """Return the stored reservations, sorted by id."""
        return self._known

    def refresh(self) -> None:
        """Do nothing: another server that opens the file ends this server's right to write."""

    def read_inherited_ids(self) -> Collection[str]:
        """Return the ids that were in the file when it was opened."""
        return self._inherited_ids

    def put(self, changed: Sequence[Reservation]) -> None:
        """Write these reservations, all or none.

        Raises:
            StoreFenced: another server has opened the file since.
            StoreError: the file cannot be written.
        """
        rows = [(item.id, json.dumps(render_reservation(item))) for item in changed]
        with self._write_transaction() as database:
            database.executemany("INSERT OR REPLACE INTO reservations VALUES (?, ?)", rows)
        self._by_id |= {item.id: item for item in changed}
        self._refresh_known()

    def delete(self, ids: Collection[str]) -> None:
        """Delete these reservations, all or none.

        Raises:
            StoreFenced: another server has opened the file since.
            StoreError: the file cannot be written.
        """
        with self._write_transaction() as database:
            database.executemany("DELETE FROM reservations WHERE id = ?", [(id_,) for id_ in ids])
        for id_ in ids:
            self._by_id.pop(id_, None)
        self._refresh_known()

    def close(self) -> None:
        """Close the file; data is safe without it."""
        with self._lock:
            if self._database is not None:
                self._database.close()
            self._database = None

    def _refresh_known(self) -> None:
        self._known = tuple(self._by_id[id_] for id_ in sorted(self._by_id))

    def _open(self) -> sqlite3.Connection:
        """Open the file, or create it, and begin an epoch."""
        read_reservations(self._file)  # raises before an unusable file is changed
        with name_file_in_errors(self._file):
            database = open_for_writes(self._file, _SCHEMA)
            try:
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("PRAGMA wal_autocheckpoint = 1")  # the log may get lost
                database.execute("PRAGMA synchronous = FULL")
                rows = self._begin_epoch(database)
                self._inode = self._file.stat().st_ino
            except BaseException:
                database.close()
                raise
        self._by_id = {item.id: item for item in (_parse_row(self._file, row) for row in rows)}
        self._inherited_ids = frozenset(self._by_id)
        self._refresh_known()
        self._database = database
        return database

    def _begin_epoch(self, database: sqlite3.Connection) -> list[tuple[str, str]]:
        """Begin an epoch, and return the rows stored at its start."""
        with run_transaction(database):
            database.execute("UPDATE epochs SET epoch = epoch + 1")
            (self._epoch,) = database.execute("SELECT epoch FROM epochs").fetchone()
            return database.execute("SELECT id, document FROM reservations").fetchall()

    @contextmanager
    def _write_transaction(self) -> Iterator[sqlite3.Connection]:
        """Write in one transaction, which is rolled back if any part fails."""
        with self._lock:
            database = self._database or self._open()
            if not self._is_file_unchanged():
                raise StoreError(
                    f"{show_path(self._file)}: was removed or replaced; restart the server"
                )
            with name_file_in_errors(self._file), run_transaction(database):
                (epoch,) = database.execute("SELECT epoch FROM epochs").fetchone()
                if epoch != self._epoch:
                    raise StoreFenced(
                        f"{show_path(self._file)}: another server has opened this file since"
                    )
                yield database

    def _is_file_unchanged(self) -> bool:
        """Return whether the path still names the open file."""
        try:
            return self._file.stat().st_ino == self._inode
        except OSError:
            return False


def read_reservations(file: Path) -> tuple[Reservation, ...]:
    """Return the reservations of a file, sorted by id, without a change; empty if there is no file.

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
