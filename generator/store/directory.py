"""The embedded store: reports and HyperNodes as files of a folder, one object each.

`read_reports` and `read_hypernodes` also read any other folder: each unusable file or document
becomes a problem that names it, and affects no other file. `DirectoryStore` is the store that the
programs themselves write, under `neighborreports/NAME.yaml` and `hypernodes/NAME.yaml`. Every write
is atomic, and nothing is written if nothing changed.

Of several reports with one name, the newest by `status.observedAt` is used. If the times are equal
or missing and the contents differ, none is used, because each of them may be wrong. The same holds
for HyperNodes, which have no time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

from generator.objects.tree_record import (
    RECORD_NAME,
    TreeRecord,
    parse_tree_record,
    render_tree_record,
)
from generator.objects.write_policy import (
    check_approval,
    parse_write_policy,
    with_approval,
    without_approval,
)
from generator.objects.yaml_document import parse_document
from generator.outputs.hypernode import HyperNode, build_unreadable, parse_manifest, render_manifest
from generator.outputs.object_names import is_object_name
from generator.store.base import StoredHyperNodes, StoredRecord, StoredReports
from generator.store.folder_lock import hold_lock
from generator.store.object_files import (
    SUFFIX,
    YAML_DUMPER,
    choose_one_per_name,
    delete_file,
    find_agreed,
    find_newest,
    hypernode_name,
    list_files,
    list_ignored_files,
    object_path,
    read_file,
    read_objects,
    render_json,
    write_object,
)
from runtime.clock import utc_now
from runtime.progress import NO_PROGRESS, Progress, track
from topology.model.errors import ConfigError, CutInput, ParseError, StoreError, WriteError, show
from topology.reports.compact_reports import compact_document, compact_file
from topology.reports.fabric_status import FABRIC_NAME, fabric_head
from topology.reports.neighbor_report import (
    NeighborReport,
    render_report,
)
from topology.reports.report_shapes import ReportShapes

REPORTS: Final = "neighborreports"
HYPERNODES: Final = "hypernodes"
FABRICS: Final = "fabrics"
RECORDS: Final = "treerecords"
MAX_YAML_MEMBERS: Final = 5000
_LOCK_FILE: Final = ".lock"


def read_reports(
    folder: Path, *, now: datetime | None = None, progress: Progress = NO_PROGRESS
) -> StoredReports:
    """Return every report in a folder's YAML and JSON files; the order of files is irrelevant.

    Args:
        folder: contains the files.
        now: with a time zone; of several reports of one name, those dated later do not count.
            None: the clock.
        progress: shows the files that are read.

    Raises:
        StoreError: the folder cannot be read.
    """
    files = list_files(folder)
    problems: list[ParseError] = [*list_ignored_files(folder)]
    read_whole = partial(compact_file, shapes=ReportShapes())
    num_ignored = len(problems)
    rows = [
        (report.metadata.name, file, report)
        for file in track(files, "reading reports", progress)
        for report in read_objects(file, compact_document, problems, read_whole)
    ]
    refused = tuple(problems[num_ignored:])
    chosen = choose_one_per_name(rows, partial(find_newest, now=now or utc_now()), problems)
    return StoredReports(chosen, tuple(problems), len(files), refused)


def read_hypernodes(folder: Path) -> StoredHyperNodes:
    """Return every HyperNode in a folder's YAML and JSON files, ours and foreign ones.

    Raises:
        StoreError: the folder cannot be read.
    """
    problems: list[ParseError] = []
    files = list_files(folder)
    rows = [
        (hypernode.name, file, hypernode)
        for file in files
        for hypernode in read_objects(file, parse_manifest, problems)
    ]
    return StoredHyperNodes(
        choose_one_per_name(rows, find_agreed, problems), tuple(problems), len(files)
    )


def write_report(folder: Path, report: NeighborReport) -> bool:
    """Write a report into a folder; return False if the file has this content already.

    The file has a YAML name and JSON content, which is also YAML: ten thousand such reports are
    read in seconds, not minutes.

    Raises:
        StoreError: the name is not valid for an object, or the folder cannot be written.
    """
    return write_object(folder, report.metadata.name, render_json(render_report(report)))


class DirectoryStore:
    """The folders that the programs write; a `HyperNodeStore` for plans."""

    def __init__(self, root: Path) -> None:
        """Keep the root; the first write creates the folders."""
        self.reports = root / REPORTS
        self.hypernodes = root / HYPERNODES
        self.fabrics = root / FABRICS
        self.records = root / RECORDS

    def hold_writes(self, namespace: str) -> AbstractContextManager[None]:
        """Return a context without effect: the caller holds the `FolderLock` all the time."""
        del namespace
        return nullcontext()

    def read_reports(self) -> StoredReports:
        """Return all reports; empty before the first write."""
        if not os.path.lexists(self.reports):
            return StoredReports((), (), 0)
        return read_reports(self.reports)

    def read_hypernodes(self) -> StoredHyperNodes:
        """Return all HyperNodes; empty before the first write.

        Only a HyperNode in a file of its own name is used: others could not be replaced or removed.
        The name of a file with any other content is taken.
        """
        if not os.path.lexists(self.hypernodes):
            return StoredHyperNodes((), (), 0)
        problems: list[ParseError] = []
        files = list_files(self.hypernodes)
        used = []
        for file in files:
            hypernode = _read_own_file(file, problems)
            if hypernode is not None:
                used.append(hypernode)
            elif file.suffix == SUFFIX and is_object_name(file.stem):
                used.append(build_unreadable(file.stem))
        return StoredHyperNodes(
            tuple(sorted(used, key=hypernode_name)), tuple(problems), len(files)
        )

    def write_report(self, report: NeighborReport) -> bool:
        """Write a report into the store, as `write_report` does.

        Raises:
            StoreError: the name is not valid for an object, or the folder cannot be written.
        """
        return write_report(self.reports, report)

    def read_record(self) -> StoredRecord:
        """Return the record of the HyperNodes that were decided last; none before the first write.

        A record that cannot be read is a problem, and the next one replaces it.
        """
        path = object_path(self.records, RECORD_NAME)
        if not os.path.lexists(path):
            return StoredRecord()
        try:
            return StoredRecord(parse_tree_record(_read_document(path)))
        except (ConfigError, StoreError) as error:
            problem = ParseError(f"{error}; it is not used", source=show(str(path), 1024))
            return StoredRecord(problems=(problem,))

    def write_record(self, record: TreeRecord) -> bool:
        """Write the record; return False if the file has this content already.

        Raises:
            StoreError: the folder cannot be written.
        """
        return write_object(self.records, RECORD_NAME, render_json(render_tree_record(record)))

    def put(self, hypernode: HyperNode) -> bool:
        """Write a HyperNode; return False if the file has this content already.

        Raises:
            StoreError: the name is not valid for an object, the folder cannot be written, or the
                file has content that is not ours or cannot be read.
        """
        manifest = render_manifest(hypernode)
        # JSON is YAML too, and of many members it is written and read 20 times faster.
        text: str = (
            render_json(manifest)
            if len(hypernode.members) > MAX_YAML_MEMBERS
            else yaml.dump(manifest, Dumper=YAML_DUMPER, sort_keys=False)
        )
        self._refuse_foreign(hypernode.name, text.encode())
        return write_object(self.hypernodes, hypernode.name, text)

    def take_over(self, hypernode: HyperNode, seen: HyperNode) -> bool:
        """Replace a HyperNode of another program, which a person approved.

        Args:
            hypernode: as ours.
            seen: as it was when the take-over was planned.

        Raises:
            StoreError: it was changed or deleted since, or the folder cannot be written.
        """
        path = object_path(self.hypernodes, hypernode.name)
        if _read_own_file(path, []) != seen:
            raise WriteError(f"{show(str(path), 1024)} was changed; plan again")
        text: str = yaml.dump(render_manifest(hypernode), Dumper=YAML_DUMPER, sort_keys=False)
        return write_object(self.hypernodes, hypernode.name, text)

    def read_fabric(self) -> dict[str, Any] | None:
        """Return the Fabric object that agents read; None before the first write.

        Raises:
            StoreError: the file cannot be read, or does not hold exactly one object.
        """
        path = object_path(self.fabrics, FABRIC_NAME)
        return _read_document(path) if os.path.lexists(path) else None

    def write_fabric(self, document: dict[str, Any]) -> bool:
        """Write the Fabric object; return False if the file has this content already.

        Raises:
            StoreError: the folder cannot be written.
        """
        return write_object(self.fabrics, FABRIC_NAME, render_json(document))

    def write_status(self, status: Mapping[str, Any]) -> bool:
        """Replace the status of the Fabric object, and keep the rest; returns as `write_fabric`.

        Raises:
            StoreError: the object cannot be read, or the folder cannot be written.
        """
        with self._lock_fabric():
            return self.write_fabric(
                fabric_head() | (self.read_fabric() or {}) | {"status": dict(status)}
            )

    def approve(self, plan: str) -> bool:
        """Approve a held plan; returns as `write_fabric` does.

        Raises:
            ConfigError: the text is not the hash of the held plan.
            StoreError: the object cannot be read, or the folder cannot be written.
        """
        with self._lock_fabric():
            document = self.read_fabric()
            check_approval(document, plan)
            return self.write_fabric(with_approval(document, plan))

    def consume_approval(self, plan: str) -> bool:
        """Remove the approval of a plan that was applied; return whether there was one.

        Raises:
            StoreError: the object cannot be read, or the folder cannot be written.
        """
        if not parse_write_policy(self.read_fabric()).is_approved(plan):
            return False
        with self._lock_fabric():
            document = self.read_fabric()
            if document is None or not parse_write_policy(document).is_approved(plan):
                return False
            return self.write_fabric(without_approval(document))

    def remove(self, name: str) -> bool:
        """Delete a HyperNode's file; return whether it existed.

        Raises:
            StoreError: the name is not valid for an object, the folder cannot be written, or the
                file has content that is not ours or cannot be read.
        """
        self._refuse_foreign(name)
        return delete_file(self.hypernodes, name)

    def withdraw_report(self, name: str) -> None:
        """Delete a report's file if it exists; raises as `remove` does."""
        delete_file(self.reports, name)

    def _lock_fabric(self) -> AbstractContextManager[None]:
        """Return a lock on the Fabric object, which server and commands change."""
        return hold_lock(self.fabrics / _LOCK_FILE)

    def _refuse_foreign(self, name: str, content: bytes | None = None) -> None:
        """Raise if a HyperNode's file exists and is neither ours nor equal to `content`."""
        path = object_path(self.hypernodes, name)
        if not os.path.lexists(path):
            return
        if content is not None and read_file(path, str(path)) == content:
            return
        problems: list[ParseError] = []
        hypernode = _read_own_file(path, problems)
        if hypernode is None or not hypernode.is_ours:
            why = problems[0].problem if problems else "it is not a HyperNode of Toponaut"
            raise WriteError(f"{show(str(path), 1024)} stays unchanged: {why}")


def _read_own_file(file: Path, problems: list[ParseError]) -> HyperNode | None:
    """Return the HyperNode of a file that has its name, else None and a problem."""
    num_before = len(problems)
    hypernodes = read_objects(file, parse_manifest, problems, keep_cut=_keep_own)
    is_cut = all(isinstance(problem, CutInput) for problem in problems[num_before:])
    if len(problems) > num_before and not (is_cut and hypernodes):
        return None
    if [f"{hypernode.name}{SUFFIX}" for hypernode in hypernodes] == [file.name]:
        return replace(hypernodes[0], finalizers=())  # files have none; this was copied
    problem = "ignored: the store keeps one object per file, as NAME.yaml"
    problems.append(ParseError(problem, source=show(str(file), 1024)))
    return None


def _keep_own(hypernode: HyperNode) -> HyperNode | None:
    """Return our HyperNode of a file that may be cut, so that it differs from what is desired.

    Toponaut ends every file with a line break, so this file is damaged and is written anew.
    """
    if not hypernode.is_ours:
        return None
    return replace(hypernode, num_inexact_members=hypernode.num_inexact_members + 1)


def _read_document(path: Path) -> dict[str, Any]:
    """Return the one object of a file.

    Raises:
        StoreError: the file cannot be read, or does not hold exactly one object.
    """
    raw = read_file(path, show(str(path), 1024))
    if isinstance(raw, ParseError):
        raise StoreError(str(raw))
    try:
        document = parse_document(raw, source=str(path))
    except ConfigError as error:
        raise StoreError(str(error)) from error
    if not isinstance(document.value, dict):
        raise StoreError(f"{path}: expected an object")
    return document.value
