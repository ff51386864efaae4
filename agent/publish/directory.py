"""Writes this node's reports to a directory, one file each, and reads its own last report back.

A file is JSON in block form, which is YAML. It is written under a temporary name, flushed to disk
and renamed, so a reader sees the old or the new file and never a part. A report that did not
change is not written. Only files of this node's own reports are ever touched.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from agent.publish.destination import PublishOutcome
from topology.model.errors import ReportError, StoreError, WriteError
from topology.reports.neighbor_report import NeighborReport, SweepPart, parse_report, render_report

_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def read_document(file: Path, limit: int) -> object:
    """Return the JSON in a file; reads at most `limit` bytes.

    Raises:
        OSError: the file cannot be read, or is not a regular file.
        RecursionError: the document is nested too deeply.
        ValueError: the file does not hold JSON, or is longer than the limit.
    """
    descriptor = os.open(file, _FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(file))
        with open(descriptor, "rb", closefd=False) as stream:
            return json.loads(stream.read(limit))
    finally:
        os.close(descriptor)


log = logging.getLogger(__name__)

MAX_FILE_BYTES: Final = 8 << 20  # far above any report that an agent writes
REPORTS: Final = "neighborreports"
"""The folder of reports in a store."""
_SUFFIX = ".yaml"
# Others may write to the folder too: follow no link and wait for no pipe.
_WRITE_FLAGS: Final = (
    os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
)
# Characters that JSON strings may hold, but that YAML forbids or changes unless they are escaped.
_NOT_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def document_of(report: NeighborReport) -> dict[str, Any]:
    """Return a report as plain data, with `apiVersion` and `kind` first."""
    document = render_report(report)
    return {key: document[key] for key in ("apiVersion", "kind")} | document


def render_document(document: Any) -> str:  # noqa: ANN401 - any JSON document
    """Return a document as JSON in block form that every YAML parser reads alike."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    return _NOT_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


class ReportFolder:
    """The reports of one node in a folder that may hold the reports of other nodes too."""

    def __init__(self, folder: Path, node_name: str) -> None:
        """Keep the folder and the node's name, which is checked: it is a safe file name."""
        self._folder = folder
        self._node_name = node_name
        self._own_part = re.compile(
            rf"{re.escape(node_name)}\.sweep\.(0|[1-9][0-9]{{0,8}}){re.escape(_SUFFIX)}\Z"
        )

    def prepare(self) -> None:
        """Create the folder, and check that files can be created in it.

        Raises:
            WriteError: the folder or a file in it cannot be created.
        """
        probe = self._folder / f".{self._node_name}.probe"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise WriteError(f"cannot write {self._folder}: {error.strerror}") from error

    def last_report(self) -> NeighborReport | None:
        """Return this node's last published report; None if there is none, or it is unreadable."""
        return self._read(self._node_name)

    def publish(self, reports: Iterable[NeighborReport]) -> dict[str, PublishOutcome]:
        """Write the reports that changed, and return the result for each name.

        Raises:
            StoreError: a file cannot be written; the files before it are written.
        """
        return {report.metadata.name: self._write(report) for report in reports}

    def read_parts(self) -> dict[int, SweepPart | None]:
        """Return the parts of this node's sweeps by number; None for an unreadable part.

        Raises:
            StoreError: the folder cannot be read.
        """
        try:
            names = [entry.name for entry in self._folder.iterdir()]
        except OSError as error:
            raise StoreError(f"{self._folder}: {error.strerror}") from error
        matches = map(self._own_part.match, names)
        numbers = sorted(int(match[1]) for match in matches if match)
        reports = ((number, self._read(f"{self._node_name}.sweep.{number}")) for number in numbers)
        return {number: report.spec.sweep if report else None for number, report in reports}

    def withdraw(self, names: Iterable[str]) -> None:
        """Delete the files of reports; a file that does not exist is skipped.

        Raises:
            StoreError: the folder cannot be written.
        """
        try:
            for name in names:
                (self._folder / (name + _SUFFIX)).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{self._folder}: {error.strerror}") from error

    def _read(self, name: str) -> NeighborReport | None:
        path = self._folder / (name + _SUFFIX)
        try:
            return parse_report(read_document(path, MAX_FILE_BYTES))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError, ReportError) as error:
            log.warning("own report unreadable", extra={"file": str(path), "error": str(error)})
            return None

    def _write(self, report: NeighborReport) -> PublishOutcome:
        name = report.metadata.name
        published = self._read(name)
        if published == report:
            return PublishOutcome.NONE
        self._replace(name + _SUFFIX, render_document(document_of(report)).encode())
        is_same = published is not None and published.spec == report.spec
        return PublishOutcome.STATUS if is_same else PublishOutcome.SPEC

    def _replace(self, name: str, content: bytes) -> None:
        # Only one agent writes these names, so the temporary name can be fixed: a file that a
        # crash left behind is overwritten. Readers of the folder ignore its suffix.
        temporary = self._folder / f".{name}.tmp"
        try:
            with os.fdopen(os.open(temporary, _WRITE_FLAGS, 0o644), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(self._folder / name)
            self._flush_folder()
        except OSError as error:
            raise StoreError(f"{self._folder / name}: {error.strerror}") from error

    def _flush_folder(self) -> None:
        """Flush the folder to disk, so that a rename survives a loss of power."""
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
