"""Reservations in a file of SQLite, for the one server of a folder.

Each write is one transaction with a write-ahead log and full synchronisation: what was answered is
there after a crash of the process or the machine, and nothing by half. The file is made with the
first reservation. A server that opens it signs with an epoch of its own; where another has opened
it since, the older one writes nothing any more.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final

from generator.reservations.documents import parse_stored_reservation, render_reservation
from generator.reservations.records import Refusal, Reservation
from generator.reservations.store import StoreFenced
from topology.model.errors import ConfigError, StoreError, show

FILE_NAME: Final = "reservations.sqlite"
APPLICATION_ID: Final = 0x546F706E
"""Of the file, so that no other database is taken for ours."""
SCHEMA_VERSION: Final = 1
BUSY_TIMEOUT_S: Final = 5.0
_SCHEMA: Final = (
    "CREATE TABLE epochs (epoch INTEGER NOT NULL) STRICT",
    "INSERT INTO epochs VALUES (0)",
    "CREATE TABLE reservations (id TEXT PRIMARY KEY, document TEXT NOT NULL) STRICT",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)


class SqliteReservations:
    """A `ReservationStore` in one file; any thread may call."""

    def __init__(self, file: Path) -> None:
        """Read what is stored, and take over from whoever wrote it; make no file.

        Raises:
            StoreError: the file cannot be used; it is left as it is.
        """
        self._file = file
        self._lock = Lock()
        self._database: sqlite3.Connection | None = None
        self._by_id: dict[str, Reservation] = {}
        self._known: tuple[Reservation, ...] = ()
        self._inherited_ids: frozenset[str] = frozenset()
        self._epoch = 1
        self._inode = 0
        if file.exists():
            self._open()

    @property
    def epoch(self) -> int:
        """How often a server has opened the file."""
        return self._epoch

    @property
    def is_known(self) -> bool:
        """Return that all is: it was read at the start."""
        return True

    @property
    def problems(self) -> tuple[str, ...]:
        """Return nothing: a file that holds what cannot be used is not opened."""
        return ()

    def find_write_refusal(self) -> Refusal | None:
        """Return None: nobody else leads."""
        return None

    def read_reservations(self) -> tuple[Reservation, ...]:
        """Return what is stored, in order of ids."""
        return self._known

    def refresh(self) -> None:
        """Do nothing: who else writes takes the right to write from us."""

    def read_inherited_ids(self) -> Collection[str]:
        """Return the ids that were in the file when it was opened."""
        return self._inherited_ids

    def put(self, changed: Sequence[Reservation]) -> None:
        """Write these, all or none.

        Raises:
            StoreFenced: another server has opened the file since.
            StoreError: the file cannot be written.
        """
        rows = [(one.id, json.dumps(render_reservation(one))) for one in changed]
        with self._write_transaction() as database:
            database.executemany("INSERT OR REPLACE INTO reservations VALUES (?, ?)", rows)
        self._by_id |= {one.id: one for one in changed}
        self._refresh_known()

    def delete(self, ids: Collection[str]) -> None:
        """Delete these, all or none.

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
        """Close the file; nothing is lost without it."""
        with self._lock:
            if self._database is not None:
                self._database.close()
            self._database = None

    def _refresh_known(self) -> None:
        self._known = tuple(self._by_id[id_] for id_ in sorted(self._by_id))

    def _open(self) -> sqlite3.Connection:
        """Open the file, which is made where there is none, and begin an epoch."""
        read_reservations(self._file)  # what cannot be used is left as it is
        with _translate_errors(self._file):
            database = sqlite3.connect(
                self._file, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
            try:
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("PRAGMA synchronous = FULL")
                rows = self._begin_epoch(database)
                self._inode = self._file.stat().st_ino
            except BaseException:
                database.close()
                raise
        self._by_id = {one.id: one for one in (_parse_row(self._file, row) for row in rows)}
        self._inherited_ids = frozenset(self._by_id)
        self._refresh_known()
        self._database = database
        return database

    def _begin_epoch(self, database: sqlite3.Connection) -> list[tuple[str, str]]:
        """Begin an epoch, and return the rows that stand at its beginning."""
        with _run_transaction(database):
            if not _has_schema(database):
                for statement in _SCHEMA:
                    database.execute(statement)
            database.execute("UPDATE epochs SET epoch = epoch + 1")
            (self._epoch,) = database.execute("SELECT epoch FROM epochs").fetchone()
            return database.execute("SELECT id, document FROM reservations").fetchall()

    @contextmanager
    def _write_transaction(self) -> Iterator[sqlite3.Connection]:
        """Write in one transaction, which is kept only where all of it succeeds."""
        with self._lock:
            database = self._database or self._open()
            if not self._is_file_unchanged():
                raise StoreError(f"{_show_path(self._file)}: was removed or replaced; start again")
            with _translate_errors(self._file), _run_transaction(database):
                (epoch,) = database.execute("SELECT epoch FROM epochs").fetchone()
                if epoch != self._epoch:
                    raise StoreFenced(f"{_show_path(self._file)}: another server has taken it over")
                yield database

    def _is_file_unchanged(self) -> bool:
        """Return whether what is written now will be found by whoever opens the file."""
        try:
            return self._file.stat().st_ino == self._inode
        except OSError:
            return False


def read_reservations(file: Path) -> tuple[Reservation, ...]:
    """Return what a file holds, in order of ids, and change nothing; empty where there is none.

    Raises:
        StoreError: it is not ours, of a later version, or damaged.
    """
    if not file.exists():
        return ()
    if not file.is_file():
        raise StoreError(f"{_show_path(file)}: is no file")
    with _open_read_only(file) as database:
        if not _has_schema(database):
            return ()
        (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise StoreError(f"is damaged: {show(str(verdict))}")
        rows = database.execute("SELECT id, document FROM reservations ORDER BY id").fetchall()
    return tuple(_parse_row(file, row) for row in rows)


def _has_schema(database: sqlite3.Connection) -> bool:
    """Return whether there are tables of ours; False where there are none at all.

    Raises:
        StoreError: they are somebody else's, or of a later version.
    """
    (mark,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not (mark or version or tables):
        return False
    if mark != APPLICATION_ID:
        raise StoreError("is a database of something else than reservations")
    if version != SCHEMA_VERSION:
        raise StoreError(f"is of version {version}; this program knows {SCHEMA_VERSION}")
    return True


@contextmanager
def _open_read_only(file: Path) -> Iterator[sqlite3.Connection]:
    with _translate_errors(file):
        database = sqlite3.connect(
            f"{file.absolute().as_uri()}?mode=ro",
            uri=True,
            timeout=BUSY_TIMEOUT_S,
            isolation_level=None,
        )
        try:
            yield database
        finally:
            database.close()


@contextmanager
def _run_transaction(database: sqlite3.Connection) -> Iterator[None]:
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


@contextmanager
def _translate_errors(file: Path) -> Iterator[None]:
    """Say of every error which file it is about."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{_show_path(file)}: {show(str(error), 300)}") from error
    except StoreFenced:
        raise
    except StoreError as error:
        raise StoreError(f"{_show_path(file)}: {error}") from error


def _parse_row(file: Path, row: tuple[str, str]) -> Reservation:
    id_, text = row
    try:
        found = parse_stored_reservation(json.loads(text))
    except (ValueError, RecursionError, ConfigError) as error:
        raise StoreError(f"{_show_path(file)}: reservation {show(id_, 64)}: {error}") from error
    if found is None or found.id != id_:
        raise StoreError(
            f"{_show_path(file)}: reservation {show(id_, 64)}: is not what it is named"
        )
    return found


def _show_path(file: Path) -> str:
    return show(str(file), 1024)
