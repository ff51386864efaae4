"""Writes this node's reports to a directory, one file each, and reads its own last one back.

A file is JSON in block form, which is YAML. It is written beside its place, flushed to disk and
renamed, so a reader sees the old or the new one and never a part. What did not change is not
written. Only files of this node's own reports are ever touched.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from agent.publish.destination import PublishOutcome
from agent.publish.regular_files import read_document
from topology.model.errors import ReportError, StoreError
from topology.reports.neighbor_report import NeighborReport, SweepPart, parse_report, render_report

log = logging.getLogger(__name__)

MAX_FILE_BYTES: Final = 8 << 20  # far above any report; more was not written by an agent
REPORTS: Final = "neighborreports"
"""The folder of reports in a store."""
_SUFFIX = ".yaml"
# Others may write to the folder too: no link is followed, no pipe waited for.
_WRITE_FLAGS: Final = (
    os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
)
# Legal inside JSON strings, but not as they stand, or not unchanged, inside YAML ones.
_NOT_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def document_of(report: NeighborReport) -> dict[str, Any]:
    """Return a report as plain data, its version and kind first."""
    document = render_report(report)
    return {key: document[key] for key in ("apiVersion", "kind")} | document


def render_document(document: Any) -> str:  # noqa: ANN401 - any JSON document
    """Return a document as JSON in block form that every YAML parser reads alike."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    return _NOT_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


class ReportFolder:
    """The folder that holds the reports of one node, beside those of others."""

    def __init__(self, folder: Path, node_name: str) -> None:
        """Keep the place; `node_name` is a checked one, so it is safe as a file name."""
        self._folder = folder
        self._node_name = node_name
        self._own_part = re.compile(
            rf"{re.escape(node_name)}\.sweep\.(0|[1-9][0-9]{{0,8}}){re.escape(_SUFFIX)}\Z"
        )

    def prepare(self) -> None:
        """Make the folder, and try whether files can be made in it.

        Raises:
            StoreError: one or the other fails.
        """
        probe = self._folder / f".{self._node_name}.probe"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise StoreError(f"{self._folder}: {error.strerror}") from error

    def last_report(self) -> NeighborReport | None:
        """Return this node's last published report; None when there is none that is readable."""
        return self._read(self._node_name)

    def publish(self, reports: Iterable[NeighborReport]) -> dict[str, PublishOutcome]:
        """Write what changed, and return by name what that was.

        Raises:
            StoreError: a file cannot be written; those before it are.
        """
        return {report.metadata.name: self._write(report) for report in reports}

    def read_parts(self) -> dict[int, SweepPart | None]:
        """Return the parts of this node's sweeps by number, None for what cannot be read.

        Raises:
            StoreError: the folder cannot be read.
        """
        try:
            names = [entry.name for entry in self._folder.iterdir()]
        except OSError as error:
            raise StoreError(f"{self._folder}: {error.strerror}") from error
        numbers = sorted(int(own[1]) for own in map(self._own_part.match, names) if own)
        found = ((number, self._read(f"{self._node_name}.sweep.{number}")) for number in numbers)
        return {number: report.spec.sweep if report else None for number, report in found}

    def withdraw(self, names: Iterable[str]) -> None:
        """Remove reports.

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
        # One agent writes these names, so a fixed temporary name is free, and one that a crash
        # left behind is taken over. It has another suffix: readers of the folder pass it by.
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
        """Make a rename survive a loss of power."""
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
