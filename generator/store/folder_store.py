"""A folder as a store: one file per object, in a folder per kind.

A file that cannot be used becomes a problem that names it, and affects no other file. Files are
read again when `stat` shows a change. Every write is atomic, and nothing is written if nothing
changed. Files do not show running pods.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from math import inf
from pathlib import Path
from threading import RLock
from typing import Any, Final, NamedTuple, TypeVar

from generator.kube.cache import Listing, Parse, StoredObject
from generator.kube.lease_record import LEASE_NAME, parse_lease
from generator.kube.resources import LEASES, PODS, Resource
from generator.objects.document import mapping_at
from generator.objects.inventory import Inventory
from generator.objects.yaml_document import parse_document
from generator.outputs.owned_object import is_object_name
from generator.store.folder_lock import hold_lock
from generator.store.kinds import Kind
from generator.store.local_files import read_inventory
from generator.store.object_files import (
    SUFFIX,
    delete_file,
    find_version,
    list_files,
    object_path,
    parse_objects,
    read_file,
    write_object,
)
from generator.store.object_store import (
    Document,
    Fence,
    KindProgress,
    StoreConflict,
    StoreFenced,
    Written,
)
from topology.model.errors import ConfigError, CutInput, KubeError, ParseError, StoreError

Value = TypeVar("Value")

_WRITE_LOCK: Final = ".toponaut.write.lock"
_LEASES: Final[Kind[Mapping[str, Any]]] = Kind(LEASES, dict)


class FileStamp(NamedTuple):
    """Values that change when a file is replaced or written in place."""

    name: str
    inode: int
    size: int
    changed_ns: int


class FolderStore:
    """The objects in the folders of one root folder."""

    has_agent_tokens = False
    is_synced = True
    problems: tuple[str, ...] = ()

    def __init__(self, root: Path, nodes: Path | None = None) -> None:
        """Read the inventory; the first write creates the folders.

        Args:
            root: contains a folder for each kind.
            nodes: the file of the inventory; read again when it changes.

        Raises:
            ConfigError: the inventory cannot be read.
        """
        self._root = root
        self._nodes = nodes
        self._node_stamps = read_stamps([nodes] if nodes else [])
        self._inventory = read_inventory(nodes)
        self._lock = RLock()
        """Guards the writes, and the objects that were read."""
        self._listings: dict[Kind[Any], tuple[tuple[FileStamp, ...], Listing[Any]]] = {}
        """By kind: the stamps of its files, and what was read."""
        self.epoch = 0
        """How many servers have begun to write this folder, with this one; 0: this is no server."""

    def find_folder(self, resource: Resource) -> Path:
        """Return the folder of the objects of a kind."""
        return self._root / resource.plural

    def begin_epoch(self) -> None:
        """Become the only server that writes: an earlier one can write no more.

        Raises:
            StoreError: the folder cannot be read or written.
        """
        with hold_lock(self._root / _WRITE_LOCK):
            self.epoch = self._read_epoch() + 1
            document = {
                "apiVersion": LEASES.api_version,
                "kind": LEASES.kind,
                "metadata": {"name": LEASE_NAME},
                "spec": {
                    "holderIdentity": f"process {os.getpid()}",
                    "leaseTransitions": self.epoch,
                },
            }
            self._write(_LEASES, LEASE_NAME, document)

    def find_progress(self, kind: Kind[Any]) -> KindProgress:
        """Report the kind as known: its folder is read when it is asked for."""
        del kind
        return KindProgress()

    def read_nodes(self) -> Inventory | None:
        """Return the inventory; while it is unreadable, the last good one with the problem."""
        if self._nodes is None or self._inventory is None:
            return None
        stamps = read_stamps([self._nodes])
        if stamps == self._node_stamps:
            return self._inventory
        try:
            self._inventory = read_inventory(self._nodes) or self._inventory
        except ConfigError as error:
            problems = (ParseError(str(error)), *self._inventory.problems)
            return self._inventory._replace(problems=problems)
        self._node_stamps = stamps
        return self._inventory

    def read(self, kind: Kind[Value]) -> Listing[Value]:
        """Return all objects of a kind, none without its folder; the same value if no file changed.

        Objects that only a server writes are read once. Only an object in a file of its own name is
        used: others could not be replaced or removed.

        Raises:
            StoreError: the folder cannot be read.
        """
        if kind.resource == PODS:  # files do not show them
            return Listing(is_missing=True)
        known = self._listings.get(kind)
        if known is not None and self._is_only_writer(kind):
            return known[1]
        with self._lock:
            folder = self.find_folder(kind.resource)
            # Stamps are taken before reading, so a change in between is noticed next time.
            stamps = _read_folder_stamps(folder)
            known = self._listings.get(kind)
            if known is not None and known[0] == stamps:
                return known[1]
            listing: Listing[Value] = Listing()
            if os.path.lexists(folder):
                read = kind.list_folder
                listing = read(folder) if read else _list_named(folder, kind)
            self._listings[kind] = stamps, listing
            return listing

    def _is_only_writer(self, kind: Kind[Any]) -> bool:
        return bool(self.epoch) and kind.is_private and kind.list_folder is None

    def refresh(self, kind: Kind[Any]) -> None:
        """Read a kind anew.

        Raises:
            StoreError: the folder cannot be read.
        """
        with self._lock:
            self._listings.pop(kind, None)
            self.read(kind)

    def get(self, kind: Kind[Any], name: str) -> StoredObject[Document] | None:
        """Return the document in the file of an object.

        Raises:
            StoreError: the name is not valid for an object, the file cannot be read, or it does not
                hold exactly one object.
        """
        path = object_path(self.find_folder(kind.resource), name)
        if not os.path.lexists(path):
            return None
        raw = read_file(path, str(path))
        if isinstance(raw, ParseError):
            raise StoreError(str(raw))
        try:
            document = parse_document(raw, source=str(path)).value
        except ConfigError as error:
            raise StoreError(str(error)) from error
        if not isinstance(document, dict):
            raise StoreError(f"{path}: expected an object")
        return StoredObject(name, _drop_finalizers(document), find_version(raw))

    def create(self, kind: Kind[Any], document: Document) -> StoredObject[Document]:
        """Write the file of an object that must not exist."""
        name = document["metadata"]["name"]
        with self._lock_writes():
            if os.path.lexists(object_path(self.find_folder(kind.resource), name)):
                raise StoreConflict(f"{kind.resource.kind} {name} exists already")
            return StoredObject(name, document, self._write(kind, name, document).version)

    def apply(
        self, kind: Kind[Any], document: Document, *, seen: StoredObject[Any] | None = None
    ) -> Written:
        """Write the file of an object, unless it has this content already."""
        name = document["metadata"]["name"]
        with self._lock_writes():
            self._check_unchanged(kind, name, seen)
            if "status" in document and "spec" not in document:
                present = self.get(kind, name)
                document = document if present is None else _merge(present.value, document)
            return self._write(kind, name, document)

    def patch(
        self,
        kind: Kind[Any],
        name: str,
        change: Document,
        *,
        seen: StoredObject[Any] | None = None,
    ) -> None:
        """Merge a change into the file of an object, or create it."""
        with self._lock_writes():
            self._check_unchanged(kind, name, seen)
            present = self.get(kind, name)
            head = {
                "apiVersion": kind.resource.api_version,
                "kind": kind.resource.kind,
                "metadata": {"name": name},
            }
            self._write(kind, name, _merge(head if present is None else present.value, change))

    def delete(self, kind: Kind[Any], seen: StoredObject[Any]) -> bool:
        """Delete the file of an object."""
        with self._lock_writes():
            self._check_unchanged(kind, seen.name, seen)
            existed = delete_file(self.find_folder(kind.resource), seen.name)
            known = self._listings.pop(kind, None)
            if known is not None and self._is_only_writer(kind):
                self._listings[kind] = known[0], known[1].without_object(seen.name)
            return existed

    def hold_writes(self, namespace: str) -> AbstractContextManager[Fence]:
        """Return a context without effect: the caller holds the `FolderLock` all the time."""
        del namespace
        return nullcontext(lambda: inf)

    @contextmanager
    def _lock_writes(self) -> Iterator[None]:
        """Let no other program write meanwhile.

        Raises:
            StoreFenced: another server has begun to write the folder.
            StoreError: the folder cannot be written, or was replaced.
        """
        with self._lock, hold_lock(self._root / _WRITE_LOCK):
            if self.epoch:
                epoch = self._read_epoch()
                if not epoch:
                    problem = "was removed or replaced; restart the server"
                    raise StoreError(f"{self._root}: {problem}")
                if epoch != self.epoch:
                    raise StoreFenced(f"{self._root}: another server has begun to write it since")
            yield

    def _read_epoch(self) -> int:
        """Return the last epoch of the folder; 0 if no server has written it.

        Raises:
            StoreError: the file cannot be read.
        """
        found = self.get(_LEASES, LEASE_NAME)
        try:
            return 0 if found is None else parse_lease(found.value)[0].transitions
        except KubeError as error:
            path = self.find_folder(LEASES) / f"{LEASE_NAME}{SUFFIX}"
            raise StoreError(f"{path}: {error}") from error

    def _check_unchanged(self, kind: Kind[Any], name: str, seen: StoredObject[Any] | None) -> None:
        """Refuse a write of an object that is not as it was seen."""
        if seen is None or not seen.version:
            return
        path = object_path(self.find_folder(kind.resource), name)
        raw = read_file(path, str(path))
        if isinstance(raw, ParseError) or find_version(raw) != seen.version:
            raise StoreConflict(f"{path} has changed since it was read")

    def _write(self, kind: Kind[Any], name: str, document: Document) -> Written:
        text = kind.render_text(document)
        version = find_version(text.encode())
        is_changed = write_object(self.find_folder(kind.resource), name, text)
        known = self._listings.pop(kind, None)
        if known is not None and self._is_only_writer(kind):
            row = StoredObject(name, kind.parse(document), version)
            self._listings[kind] = known[0], known[1].with_object(row)
        return Written(is_changed, version)


def _list_named(folder: Path, kind: Kind[Value]) -> Listing[Value]:
    """Return the objects of a folder in which the object NAME is in NAME.yaml."""
    parse = kind.parse
    objects: list[StoredObject[Value]] = []
    refused: dict[str, ParseError] = {}
    problems: list[ParseError] = []
    files = list_files(folder)
    for file in files:
        row, found = _read_named(file, kind, parse)
        if row is not None:
            objects.append(row)
        elif file.suffix == SUFFIX and is_object_name(file.stem):
            refused[file.stem] = found.pop(0)
        problems += found
    objects.sort(key=lambda row: row.name)
    return Listing(tuple(objects), refused, tuple(problems), len(files))


def _read_named(
    file: Path, kind: Kind[Value], parse: Parse[Value]
) -> tuple[StoredObject[Value] | None, list[ParseError]]:
    """Return the object in the file of its name, and the problems with the file."""
    source = str(file)
    raw = read_file(file, source)
    if isinstance(raw, ParseError):
        return None, [raw]
    version = find_version(raw)

    def parse_row(document: object) -> StoredObject[Value]:
        if not isinstance(document, Mapping):
            raise ConfigError(f"expected an object, got {type(document).__name__}")
        name = str(mapping_at(document, "metadata").get("name", file.stem))
        return StoredObject(name, parse(_drop_finalizers(document)), version)

    def keep_cut(row: StoredObject[Value]) -> StoredObject[Value] | None:
        kept = kind.keep_cut(row.value)
        return None if kept is None else row._replace(value=kept)

    problems: list[ParseError] = []
    rows = parse_objects(raw, parse_row, problems, source=source, keep_cut=keep_cut)
    if not rows or not all(isinstance(problem, CutInput) for problem in problems):
        return None, problems
    if [f"{row.name}{SUFFIX}" for row in rows] == [file.name]:
        return rows[0], problems
    text = "ignored: the store keeps one object per file, as NAME.yaml"
    return None, [ParseError(text, source=source)]


def _drop_finalizers(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a file; its finalizers were copied from a cluster and mean nothing."""
    metadata = document.get("metadata")
    if not isinstance(metadata, Mapping) or "finalizers" not in metadata:
        return dict(document)
    kept = {key: value for key, value in metadata.items() if key != "finalizers"}
    return {**document, "metadata": kept}


def _merge(document: Document, change: Document) -> dict[str, Any]:
    """Return a document with a change: None removes a field, objects are merged, all else replaces.

    Source: RFC 7396. A status is replaced, as by its only owner. An object that becomes empty is
    removed.
    """
    merged = dict(document)
    for key, value in change.items():
        before = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif key != "status" and isinstance(value, Mapping):
            merged[key] = _merge(before if isinstance(before, Mapping) else {}, value)
            if not merged[key]:
                del merged[key]
        else:
            merged[key] = value
    return merged


def _read_folder_stamps(folder: Path) -> tuple[FileStamp, ...]:
    """Return the stamps of all entries of a folder, sorted; empty without a folder."""
    try:
        return read_stamps(sorted(folder.iterdir()))
    except OSError:
        return ()


def read_stamps(files: Iterable[Path]) -> tuple[FileStamp, ...]:
    """Return the stamps of the files that exist."""
    stamps = []
    for file in files:
        try:
            stat = file.stat()
        except OSError:
            continue
        stamps.append(FileStamp(file.name, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return tuple(stamps)
