"""The history in one SQLite file: each generation of the tree, and the life of each finding.

A generation is a whole tree, so any two can be compared, and any may be dropped. A finding is one
row for its whole life. A server writes the file, and other programs read it at the same time.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

from generator.history.findings import build_fault_key, decode_finding, encode_finding, read_device
from generator.history.retention import (
    KEPT_S,
    EndedFinding,
    choose_kept,
    compute_room,
    find_surplus_findings,
)
from generator.store.sqlite_file import (
    SqliteSchema,
    name_file_in_errors,
    open_for_writes,
    open_read_only,
    run_transaction,
    show_path,
)
from topology.model.errors import ConfigError, StoreError
from topology.model.facts import Finding
from topology.model.tree import TopologyTree, parse_tree, render_tree

FILE_NAME: Final = "history.sqlite"
MAX_TREE_BYTES: Final = 256 << 20
"""Size of all compressed trees; the oldest generations make room. A tree of 10,000 hosts takes 40
kB."""
MAX_GONE_ROOM: Final = 200_000
"""Of findings that ended, so 200 MiB; the oldest make room, of the day and then of the device with
the most."""
_MAX_UNPACKED: Final = 256 << 20
_NUM_BYTES: Final = "length(CAST(fault AS BLOB)) + length(CAST(document AS BLOB))"
_SCHEMA: Final = SqliteSchema(
    "a history",
    0x546F7048,
    1,
    (
        "CREATE TABLE generations (number INTEGER PRIMARY KEY, at_s INTEGER, tree BLOB) STRICT",
        "CREATE TABLE findings (fault TEXT, document TEXT, began_s INT, ended_s INT) STRICT",
        "CREATE UNIQUE INDEX open_faults ON findings (fault) WHERE ended_s IS NULL",
        "CREATE INDEX ended_findings ON findings (ended_s)",
        "CREATE TABLE observations (last_s INTEGER) STRICT",
    ),
)


class Generation(NamedTuple):
    """A tree, and the time at which it was seen first."""

    number: int
    at_s: int
    """The time, in seconds since 1970."""
    tree: TopologyTree


class FindingLife(NamedTuple):
    """A finding, and the times in seconds at which it began and ended."""

    finding: Finding
    began_s: int
    ended_s: int | None
    """When the finding ended; None: it still exists."""


class HistoryWriter:
    """Writes one file; thread-safe. The file is created with the first record."""

    def __init__(self, file: Path) -> None:
        """Open nothing yet."""
        self._file = file
        self._lock = Lock()
        self._database: sqlite3.Connection | None = None

    def record(
        self, tree: TopologyTree | None, findings: Iterable[Finding] | None, now_s: int
    ) -> None:
        """Record a new generation, the present findings, or both, in one transaction.

        Args:
            tree: None: it is that of the last generation.
            findings: all that exist now; None: they are those of the last record.
            now_s: seconds since 1970; a time before the last record counts as that time.

        Raises:
            StoreError: the file cannot be used; it stays unchanged.
        """
        with self._lock, name_file_in_errors(self._file):
            database = self._database = self._database or self._open()
            with run_transaction(database):
                now_s = self._note_time(database, now_s)
                if tree is not None:
                    _add_generation(database, tree, now_s)
                if findings is not None:
                    _update_findings(database, findings, now_s)

    def restore(self, generations: Sequence[Generation], lives: Iterable[FindingLife]) -> None:
        """Begin with the history of another file; nothing is done if this file exists.

        Args:
            generations: newest first.
            lives: the findings, with the times at which each began and ended.

        Raises:
            StoreError: the file cannot be used.
        """
        with self._lock, name_file_in_errors(self._file):
            if os.path.lexists(self._file) or not generations:
                return
            database = self._database = self._open()
            with run_transaction(database):
                self._note_time(database, generations[0].at_s)
                for generation in reversed(generations):
                    _insert_generation(database, generation.tree, generation.at_s)
                database.executemany("INSERT INTO findings VALUES (?, ?, ?, ?)", _list_rows(lives))

    def read_last(self) -> tuple[TopologyTree, tuple[Finding, ...]] | None:
        """Return the tree and the findings of the last generation; None if there is none.

        Raises:
            StoreError: the file cannot be read.
        """
        if not os.path.lexists(self._file):
            return None
        with open_history(self._file) as history:
            newest = history.read_generations(limit=1)
            return (newest[0].tree, history.read_findings()) if newest else None

    def close(self) -> None:
        """Close the file; data is safe without it."""
        with self._lock:
            if self._database is not None:
                self._database.close()
            self._database = None

    def _open(self) -> sqlite3.Connection:
        database = open_for_writes(self._file, _SCHEMA)
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            database.close()
            raise
        return database

    def _note_time(self, database: sqlite3.Connection, now_s: int) -> int:
        """Note that the fabric was observed at a time; return it, never before the last."""
        row = database.execute("SELECT last_s FROM observations").fetchone()
        if row is None:
            database.execute("INSERT INTO observations VALUES (?)", (now_s,))
            return now_s
        now_s = max(now_s, int(row[0]))
        database.execute("UPDATE observations SET last_s = ?", (now_s,))
        return now_s


class History:
    """A history that is read in one state, whatever a server writes meanwhile."""

    def __init__(self, file: Path, database: sqlite3.Connection) -> None:
        """Read a file that `open_history` opened."""
        self._file = file
        self._database = database
        query = "SELECT min(at_s), min(number) FROM generations"
        begin_s, first = database.execute(query).fetchone()
        self.begin_s, self.first = int(begin_s or 0), int(first or 0)
        """The time and the number of the oldest generation."""

    def read_generations(self, *, limit: int, since_s: int = 0) -> tuple[Generation, ...]:
        """Return the newest generations, newest first.

        Raises:
            StoreError: a tree cannot be read.
        """
        rows = self._database.execute(
            "SELECT number, at_s, tree FROM generations WHERE at_s >= ?"
            " ORDER BY number DESC LIMIT ?",
            (since_s, limit),
        )
        return tuple(map(self._build_generation, rows))

    def read_times(self) -> tuple[int, ...]:
        """Return the time of each generation, oldest first."""
        rows = self._database.execute("SELECT at_s FROM generations ORDER BY number")
        return tuple(int(at_s) for (at_s,) in rows)

    def count_generations(self, *, since_s: int = 0) -> int:
        """Return the number of generations."""
        query = "SELECT count(*) FROM generations WHERE at_s >= ?"
        return int(self._database.execute(query, (since_s,)).fetchone()[0])

    def find_generation(self, at_s: int) -> Generation | None:
        """Return the generation of a time; None if the history begins later.

        Raises:
            StoreError: the tree cannot be read.
        """
        row = self._database.execute(
            "SELECT number, at_s, tree FROM generations WHERE at_s <= ?"
            " ORDER BY number DESC LIMIT 1",
            (at_s,),
        ).fetchone()
        return None if row is None else self._build_generation(row)

    def read_findings(self, at_s: int | None = None) -> tuple[Finding, ...]:
        """Return the findings that existed at a time, or exist now, sorted by fault.

        Raises:
            StoreError: a finding cannot be read.
        """
        condition = "ended_s IS NULL"
        if at_s is not None:
            condition = "began_s <= :at AND (ended_s IS NULL OR ended_s > :at)"
        query = f"SELECT document FROM findings WHERE {condition} ORDER BY fault"  # noqa: S608 - constants
        rows = self._database.execute(query, {"at": at_s} if at_s is not None else {})
        return tuple(self._decode(document) for (document,) in rows)

    def read_lives(self, *, gone_room: int) -> tuple[FindingLife, ...]:
        """Return the findings that exist, and a share of those that ended, with their times.

        Args:
            gone_room: the room for findings that ended, as `compute_room` counts it.

        Raises:
            StoreError: a finding cannot be read.
        """
        columns = "SELECT document, began_s, ended_s FROM findings WHERE"
        rows = self._database.execute(f"{columns} ended_s IS NULL ORDER BY fault").fetchall()
        for rowid in _choose_ended(self._database, gone_room).kept:
            rows += self._database.execute(f"{columns} rowid = ?", (rowid,)).fetchall()
        return tuple(FindingLife(self._decode(row[0]), row[1], row[2]) for row in rows)

    def _decode(self, document: str) -> Finding:
        try:
            return decode_finding(document)
        except ConfigError as error:
            raise StoreError(f"{show_path(self._file)}: {error}") from error

    def _build_generation(self, row: tuple[int, int, bytes]) -> Generation:
        number, at_s, packed = row
        try:
            unpacker = zlib.decompressobj()
            raw = unpacker.decompress(packed, _MAX_UNPACKED)
            return Generation(number, at_s, parse_tree(json.loads(raw)))
        except (ValueError, zlib.error, RecursionError, ConfigError) as error:
            message = f"{show_path(self._file)}: generation {number}: {error}"
            raise StoreError(message) from error


@contextmanager
def open_history(file: Path) -> Iterator[History]:
    """Open a history for reading.

    Raises:
        StoreError: there is no such file, or it is not a history.
    """
    with open_read_only(file) as database:
        database.execute("BEGIN")
        _SCHEMA.require_in(database)
        yield History(file, database)


def _add_generation(database: sqlite3.Connection, tree: TopologyTree, now_s: int) -> None:
    _insert_generation(database, tree, now_s)
    _forget_generations(database, now_s)


def _insert_generation(database: sqlite3.Connection, tree: TopologyTree, now_s: int) -> None:
    raw = json.dumps(render_tree(tree), separators=(",", ":")).encode()
    database.execute(
        "INSERT INTO generations (at_s, tree) VALUES (?, ?)", (now_s, zlib.compress(raw, 6))
    )


def _list_rows(lives: Iterable[FindingLife]) -> Iterator[tuple[str, str, int, int | None]]:
    for finding, began_s, ended_s in lives:
        yield build_fault_key(finding), encode_finding(finding), began_s, ended_s


def _forget_generations(database: sqlite3.Connection, now_s: int) -> None:
    query = "SELECT number, at_s, length(tree) FROM generations ORDER BY number DESC"
    rows: Sequence[tuple[int, int, int]] = database.execute(query).fetchall()
    kept = set(choose_kept([at_s for _, at_s, _ in rows], now_s))
    seen: set[int] = set()
    num_bytes, dropped = 0, []
    for number, at_s, size in rows:
        num_bytes += size
        is_newest = not seen
        if not is_newest and (at_s in seen or at_s not in kept or num_bytes > MAX_TREE_BYTES):
            dropped.append((number,))
            num_bytes -= size
        seen.add(at_s)
    database.executemany("DELETE FROM generations WHERE number = ?", dropped)


def _update_findings(database: sqlite3.Connection, findings: Iterable[Finding], now_s: int) -> None:
    present = {build_fault_key(finding): encode_finding(finding) for finding in findings}
    known = dict(database.execute("SELECT fault, document FROM findings WHERE ended_s IS NULL"))
    database.executemany(
        "UPDATE findings SET ended_s = ? WHERE fault = ? AND ended_s IS NULL",
        [(now_s, fault) for fault in known if fault not in present],
    )
    database.executemany(
        "UPDATE findings SET document = ? WHERE fault = ? AND ended_s IS NULL",
        [(text, fault) for fault, text in present.items() if known.get(fault, text) != text],
    )
    database.executemany(
        "INSERT INTO findings VALUES (?, ?, ?, NULL)",
        [(fault, text, now_s) for fault, text in present.items() if fault not in known],
    )
    database.execute("DELETE FROM findings WHERE ended_s < ?", (now_s - KEPT_S,))
    _forget_findings(database)


class _EndedChoice(NamedTuple):
    """Row ids of ended findings."""

    kept: list[int]
    """The finding that ended last comes first."""
    surplus: list[int]


def _forget_findings(database: sqlite3.Connection) -> None:
    """Delete the ended findings above the limit, many at a time: all are read to choose them."""
    query = f"SELECT {_NUM_BYTES} FROM findings WHERE ended_s IS NOT NULL"  # noqa: S608 - constants
    room = sum(compute_room(num_bytes) for (num_bytes,) in database.execute(query))
    if room <= MAX_GONE_ROOM + MAX_GONE_ROOM // 20:
        return
    surplus = _choose_ended(database, MAX_GONE_ROOM).surplus
    database.executemany("DELETE FROM findings WHERE rowid = ?", [(rowid,) for rowid in surplus])


def _choose_ended(database: sqlite3.Connection, limit: int) -> _EndedChoice:
    """Return which of the ended findings are within a limit of room; O(ended findings)."""
    query = f"SELECT rowid, fault, ended_s, {_NUM_BYTES} FROM findings WHERE ended_s IS NOT NULL"  # noqa: S608 - constants
    rows = database.execute(f"{query} ORDER BY ended_s DESC").fetchall()
    ended = [EndedFinding(read_device(fault), *rest) for _, fault, *rest in rows]
    surplus = [rows[index][0] for index in find_surplus_findings(ended, limit)]
    dropped = set(surplus)
    return _EndedChoice([row[0] for row in rows if row[0] not in dropped], surplus)
