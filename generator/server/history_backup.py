"""Keeps the history of a cluster beyond the life of a pod: one object, written by the leader.

The file of a pod is lost with the pod. Its successor begins with the backup. A new backup is merged
with the stored one, so nothing of it is lost if a pod could not read it at its start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

from generator.history.backup import EMPTY, merge_backups, pack_backup, parse_backup, read_backup
from generator.history.history_file import HistoryWriter
from topology.model.errors import TopologyError

log = logging.getLogger(__name__)

PERIOD_S: Final = 300.0
"""A pod that is killed loses at most the changes of this time from the backup."""


class BackupStore(Protocol):
    """Where one backup is."""

    def read(self) -> bytes | None:
        """Return the document of the backup; None without a backup."""
        ...

    def write(self, content: bytes) -> None:
        """Replace the document of the backup."""
        ...


class HistoryBackup:
    """The backup of one file. A backup that cannot be read is never replaced."""

    def __init__(
        self,
        file: Path,
        store: BackupStore,
        *,
        is_leader: Callable[[], bool],
        now: Callable[[], datetime],
    ) -> None:
        """Read nothing yet.

        Args:
            file: the history file.
            store: the place of the backup.
            is_leader: whether this replica may write now.
            now: the wall clock, with a time zone.
        """
        self._file = file
        self._store = store
        self._is_leader = is_leader
        self._now = now
        self._last: tuple[int, ...] = ()
        """Identifies the file that was written last, as `_identify` returns it."""
        self._problem = ""

    def restore(self, writer: HistoryWriter) -> None:
        """Create a missing file with the content of the backup; log a problem."""
        if self._file.exists():
            return
        try:
            raw = self._store.read()
            backup = parse_backup(raw) if raw is not None else EMPTY
            writer.restore(backup.generations, backup.lives)
        except TopologyError as error:
            log.warning("history not restored", extra={"error": str(error)})

    def tick(self) -> None:
        """Write a backup if this replica leads and the history has changed; log a problem once."""
        if not self._is_leader():
            return
        try:
            self._write()
        except TopologyError as error:
            if str(error) != self._problem:
                log.warning("history not backed up", extra={"error": str(error)})
            self._problem = str(error)
        else:
            self._problem = ""

    def _write(self) -> None:
        state = _identify(self._file)
        if not state or state == self._last:
            return
        own = read_backup(self._file, int(self._now().timestamp()))
        raw = self._store.read()
        older = parse_backup(raw) if raw is not None else EMPTY
        self._store.write(pack_backup(merge_backups(older, own)))
        self._last = state


def _identify(file: Path) -> tuple[int, ...]:
    """Return values that change with each write to a SQLite file; empty without a file."""
    found = []
    for path in (file, file.with_name(f"{file.name}-wal")):
        try:
            status = path.stat()
        except FileNotFoundError:
            continue
        found += [status.st_mtime_ns, status.st_size]
    return tuple(found)
