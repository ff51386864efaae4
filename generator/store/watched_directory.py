"""A folder as the store of a server: files are read again when `stat` shows a change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from generator.objects.inventory import Inventory
from generator.objects.pods import BoundPod, Gang
from generator.objects.tree_record import TreeRecord
from generator.outputs.hypernode import HyperNode
from generator.store.base import StoredHyperNodes, StoredRecord, StoredReports
from generator.store.directory import DirectoryStore
from generator.store.local_files import read_inventory
from generator.store.reporter_names import name_reports_as_listed
from topology.model.errors import ConfigError, ParseError
from topology.reports.neighbor_report import NeighborReport


class WatchedDirectory:
    """A `ServedStore` on files. Files do not show running pods, so it has no gangs."""

    def __init__(self, root: Path, nodes: Path | None = None) -> None:
        """Read the inventory and the store.

        Args:
            root: the root folder of the store.
            nodes: the file of the inventory; read again when it changes.

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
        self._named: tuple[StoredReports, Inventory | None, StoredReports] | None = None
        """The reports and the inventory that were read last, and the reports as listed."""
        self._record = CachedReader(store.read_record, partial(read_folder_stamps, store.records))
        self._hypernodes = CachedReader(
            store.read_hypernodes, partial(read_folder_stamps, store.hypernodes)
        )

    @property
    def is_synced(self) -> bool:
        """Report ready: the folder was read at startup."""
        return True

    @property
    def has_agent_tokens(self) -> bool:
        """Return False: a folder does not know who wrote a file."""
        return False

    @property
    def problems(self) -> tuple[str, ...]:
        """Return no problems: an unreadable file raises, or is a problem of the returned value."""
        return ()

    def read_reports(self) -> StoredReports:
        """Return all reports; the same object if no file changed.

        Raises:
            StoreError: the folder cannot be read.
        """
        stored, inventory = self._reports.read_latest(), self.read_inventory()
        last = self._named
        if last is None or last[0] is not stored or last[1] is not inventory:
            last = stored, inventory, name_reports_as_listed(stored, inventory)
            self._named = last
        return last[2]

    def read_hypernodes(self) -> StoredHyperNodes:
        """Return all HyperNodes.

        Raises:
            StoreError: the folder cannot be read.
        """
        return self._hypernodes.read_latest()

    def read_inventory(self) -> Inventory | None:
        """Return the inventory; while it is unreadable, the last good one with the problem."""
        try:
            return self._inventory.read_latest()
        except ConfigError as error:
            last = self._inventory.last or Inventory((), ())
            return last._replace(problems=(ParseError(str(error)), *last.problems))

    def read_gangs(self) -> tuple[Gang, ...]:
        """Return no pods: files do not show running pods."""
        return ()

    def read_bound_pods(self) -> tuple[BoundPod, ...]:
        """Return no pods: files do not show running pods."""
        return ()

    def read_unready_agents(self) -> None:
        """Return None: agents write their reports in a folder every period, so their age counts."""

    def read_fabric(self) -> Mapping[str, Any] | None:
        """Return the Fabric object.

        Raises:
            StoreError: the file cannot be read.
        """
        return self._store.read_fabric()

    def write_status(self, status: Mapping[str, Any]) -> bool:
        """Replace the status of the Fabric object, as `DirectoryStore` does."""
        return self._store.write_status(status)

    def consume_approval(self, plan: str) -> bool:
        """Remove an approval, as `DirectoryStore` does."""
        return self._store.consume_approval(plan)

    def write_report(self, report: NeighborReport) -> bool:
        """Write a report, as `DirectoryStore` does; its time is always new."""
        return self._store.write_report(report)

    def withdraw_report(self, name: str) -> None:
        """Delete a report's file, as `DirectoryStore` does."""
        self._store.withdraw_report(name)

    def read_record(self) -> StoredRecord:
        """Return the record of the HyperNodes that were decided last."""
        return self._record.read_latest()

    def write_record(self, record: TreeRecord) -> bool:
        """Write the record, as `DirectoryStore` does."""
        return self._store.write_record(record)

    def put(self, hypernode: HyperNode) -> bool:
        """Create or replace a HyperNode, as `DirectoryStore` does."""
        return self._store.put(hypernode)

    def remove(self, name: str) -> bool:
        """Delete a HyperNode, as `DirectoryStore` does."""
        return self._store.remove(name)


ReadT = TypeVar("ReadT")


class FileStamp(NamedTuple):
    """Values that change when a file is replaced or written in place."""

    name: str
    inode: int
    size: int
    changed_ns: int


class CachedReader(Generic[ReadT]):
    """Reads a value again only if the stamps of its files changed."""

    def __init__(
        self, read: Callable[[], ReadT], stamps: Callable[[], tuple[FileStamp, ...]]
    ) -> None:
        """Read the value once; errors of `read` propagate."""
        self._read = read
        self._stamps = stamps
        self._last_stamps = stamps()
        self._last = read()

    def read_latest(self) -> ReadT:
        """Return the value; read it again if a stamp differs. Errors of `read` propagate.

        Stamps are taken before reading, so a change in between is noticed next time.
        """
        stamps = self._stamps()
        if stamps != self._last_stamps:
            self._last = self._read()
            self._last_stamps = stamps
        return self._last

    @property
    def last(self) -> ReadT:
        """The last value, however old."""
        return self._last


def read_file_stamps(*files: Path) -> tuple[FileStamp, ...]:
    """Return the stamps of the files that exist."""
    return _read_stamps(files)


def read_folder_stamps(folder: Path) -> tuple[FileStamp, ...]:
    """Return the stamps of all entries of a folder, sorted; empty without a folder."""
    try:
        return _read_stamps(sorted(folder.iterdir()))
    except OSError:
        return ()


def _read_stamps(files: Iterable[Path]) -> tuple[FileStamp, ...]:
    stamps = []
    for file in files:
        try:
            stat = file.stat()
        except OSError:
            continue
        stamps.append(FileStamp(file.name, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return tuple(stamps)
