"""A folder as the store of a generator that serves: what changed is read again, told by `stat`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from generator.objects.inventory import Inventory
from generator.objects.pods import BoundPod, Gang
from generator.outputs.hypernode import HyperNode
from generator.store.directory import DirectoryStore, StoredHyperNodes, StoredReports
from generator.store.local_files import read_inventory
from topology.model.errors import ConfigError, ParseError
from topology.reports.neighbor_report import NeighborReport


class WatchedDirectory:
    """A `ServedStore` on files. Nothing in it tells what runs, so it knows of no gang."""

    def __init__(self, root: Path, nodes: Path | None = None) -> None:
        """Read the inventory and what is stored.

        Args:
            root: of the store.
            nodes: the inventory; read again when it changes.

        Raises:
            ConfigError: the inventory cannot be read.
            StoreError: the folders of the store cannot be read.
        """
        store = DirectoryStore(root)
        self._store = store
        files = (nodes,) if nodes else ()
        self._inventory = CachedReader(
            partial(read_inventory, nodes), partial(read_file_stamps, *files)
        )
        self._reports = CachedReader(store.read_reports, partial(read_folder_stamps, store.reports))
        self._hypernodes = CachedReader(
            store.read_hypernodes, partial(read_folder_stamps, store.hypernodes)
        )

    @property
    def is_synced(self) -> bool:
        """Return that all is known: it was read at the start."""
        return True

    @property
    def problems(self) -> tuple[str, ...]:
        """Return nothing: what cannot be read is an error, or a problem of what is read."""
        return ()

    def read_reports(self) -> StoredReports:
        """Return all reports.

        Raises:
            StoreError: the folder cannot be read.
        """
        return self._reports.read_latest()

    def read_hypernodes(self) -> StoredHyperNodes:
        """Return all HyperNodes.

        Raises:
            StoreError: the folder cannot be read.
        """
        return self._hypernodes.read_latest()

    def read_inventory(self) -> Inventory | None:
        """Return the inventory; the last good one, with the problem, while it cannot be read."""
        try:
            return self._inventory.read_latest()
        except ConfigError as error:
            last = self._inventory.last or Inventory((), ())
            return last._replace(problems=(ParseError(str(error)), *last.problems))

    def read_gangs(self) -> tuple[Gang, ...]:
        """Return nothing: files do not tell what runs."""
        return ()

    def read_bound_pods(self) -> tuple[BoundPod, ...]:
        """Return nothing: files do not tell what runs."""
        return ()

    def read_unready_agents(self) -> None:
        """Return None: reports in a folder are written again every period."""

    def read_fabric(self) -> Mapping[str, Any] | None:
        """Return the Fabric object.

        Raises:
            StoreError: it cannot be read.
        """
        return self._store.read_fabric()

    def write_status(self, status: Mapping[str, Any]) -> bool:
        """Replace the status of the Fabric object, as `DirectoryStore` does."""
        return self._store.write_status(status)

    def consume_approval(self, plan: str) -> bool:
        """Take back an approval, as `DirectoryStore` does."""
        return self._store.consume_approval(plan)

    def write_report(self, report: NeighborReport) -> bool:
        """Write a report, as `DirectoryStore` does; its time is always new."""
        return self._store.write_report(report)

    def withdraw_report(self, name: str) -> None:
        """Delete a report's file, as `DirectoryStore` does."""
        self._store.withdraw_report(name)

    def put(self, hypernode: HyperNode) -> bool:
        """Create or replace a HyperNode, as `DirectoryStore` does."""
        return self._store.put(hypernode)

    def remove(self, name: str) -> bool:
        """Delete a HyperNode, as `DirectoryStore` does."""
        return self._store.remove(name)


ReadT = TypeVar("ReadT")


class FileStamp(NamedTuple):
    """What changes when a file does, be it replaced or written in place."""

    name: str
    inode: int
    size: int
    changed_ns: int


class CachedReader(Generic[ReadT]):
    """What was read last, and the stamps that it was read at."""

    def __init__(
        self, read: Callable[[], ReadT], stamps: Callable[[], tuple[FileStamp, ...]]
    ) -> None:
        """Read once; errors of `read` are the caller's."""
        self._read = read
        self._stamps = stamps
        self._last_stamps = stamps()
        self._last = read()

    def read_latest(self) -> ReadT:
        """Return the content, read anew where a stamp differs; errors of `read` are the caller's.

        Stamps are taken before reading, so a change in between is seen the next time.
        """
        stamps = self._stamps()
        if stamps != self._last_stamps:
            self._last = self._read()
            self._last_stamps = stamps
        return self._last

    @property
    def last(self) -> ReadT:
        """What was read last, however old."""
        return self._last


def read_file_stamps(*files: Path) -> tuple[FileStamp, ...]:
    """Return the stamps of those files that exist."""
    return _read_stamps(files)


def read_folder_stamps(folder: Path) -> tuple[FileStamp, ...]:
    """Return the stamps of everything in a folder, sorted; none where there is no folder."""
    try:
        return _read_stamps(sorted(folder.iterdir()))
    except OSError:
        return ()


def _read_stamps(files: Iterable[Path]) -> tuple[FileStamp, ...]:
    found = []
    for file in files:
        try:
            stat = file.stat()
        except OSError:
            continue
        found.append(FileStamp(file.name, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return tuple(found)
