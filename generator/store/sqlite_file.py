"""SQLite files of a store: marked as ours, of a known version, with errors that name the file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from topology.model.errors import StoreError, WriteError, show

BUSY_TIMEOUT_S: Final = 5.0


class SqliteSchema(NamedTuple):
    """What a file of one kind contains."""

    content: str
    """The name of the content in messages, such as `reservations`."""
    application_id: int
    """SQLite's mark of the program, so that the database of another program is refused."""
    version: int
    statements: tuple[str, ...]
    """Create the tables."""

    def require_in(self, database: sqlite3.Connection) -> None:
        """Check that a file has the tables.

        Raises:
            StoreError: it has none, so it was emptied or cut: a new file appears with its tables.
                Or the tables belong to another program or to a later version.
        """
        (mark,) = database.execute("PRAGMA application_id").fetchone()
        (version,) = database.execute("PRAGMA user_version").fetchone()
        (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not (mark or version or tables):
            raise StoreError(f"is damaged: it is empty, and was a database of {self.content}")
        if mark != self.application_id:
            raise StoreError(f"is not a database of {self.content}")
        if version != self.version:
            raise StoreError(f"has schema version {version}; this program supports {self.version}")

    def build_file(self) -> bytes:
        """Return the content of a new file: the tables, without a row."""
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
            for statement in self.statements:
                database.execute(statement)
            database.execute(f"PRAGMA application_id = {self.application_id}")
            database.execute(f"PRAGMA user_version = {self.version}")
            return database.serialize()


def open_for_writes(file: Path, schema: SqliteSchema) -> sqlite3.Connection:
    """Open a file for writes; threads share the connection under a lock.

    If there is no file, it appears with its tables in one step. So a file without tables was
    emptied or cut by another program, and never by a crash of this one.

    Raises:
        StoreError: the file cannot be used; it stays unchanged.
    """
    if not os.path.lexists(file):
        from generator.store.object_files import replace_file  # noqa: PLC0415 - readers do not need it, and it loads pydantic

        try:
            replace_file(file, schema.build_file())
        except OSError as error:
            raise WriteError(f"cannot be created: {error.strerror}") from error
    with open_read_only(file) as database:  # raises before an unusable file is changed
        schema.require_in(database)
    return sqlite3.connect(
        file, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )


@contextmanager
def open_read_only(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a file that is not changed; another program may write it meanwhile.

    Raises:
        StoreError: there is no such file, it is not a regular file, or it cannot be read.
    """
    if not os.path.lexists(file):
        raise StoreError(f"{show_path(file)}: does not exist; toponaut serve writes it")
    if not file.is_file():
        raise StoreError(f"{show_path(file)}: is not a regular file")
    with name_file_in_errors(file):
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


def require_undamaged(database: sqlite3.Connection) -> None:
    """Check the file.

    Raises:
        StoreError: it is damaged.
    """
    (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise StoreError(f"is damaged: {show(str(verdict))}")


@contextmanager
def run_transaction(database: sqlite3.Connection) -> Iterator[None]:
    """Commit what the body writes, or nothing of it."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


@contextmanager
def name_file_in_errors(file: Path) -> Iterator[None]:
    """Turn errors of SQLite into a StoreError, and add the path of the file to each."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{show_path(file)}: {show(str(error), 300)}") from error
    except StoreError as error:
        path = show_path(file)
        if str(error).startswith(path):
            raise
        raise type(error)(f"{path}: {error}") from error


def show_path(file: Path) -> str:
    """Return the path of a file for a message."""
    return show(str(file), 1024)
