"""Writes what the rounds of a server saw into its history; nothing while nothing changes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from generator.history.findings import build_fault_key
from generator.history.history_file import HistoryWriter
from generator.history.tree_changes import compare_names
from topology.model.errors import StoreError
from topology.model.facts import Finding
from topology.model.tree import TopologyTree

log = logging.getLogger(__name__)


class HistoryRecorder:
    """Compares each round with the last record; a file that cannot be written stops nothing."""

    def __init__(self, writer: HistoryWriter, now: Callable[[], datetime]) -> None:
        """Begin with what the file has; write nothing yet.

        Args:
            writer: writes the history file.
            now: the wall clock, with a time zone.
        """
        self._writer = writer
        self._now = now
        self._tree: TopologyTree | None = None
        self._faults: frozenset[str] | None = None
        self._problem = ""
        self._has_read = False

    def read_last(self) -> tuple[TopologyTree, tuple[Finding, ...]] | tuple[()]:
        """Return the tree and the findings of the last record; nothing if none can be read."""
        try:
            return self._writer.read_last() or ()
        except StoreError as error:
            log.warning("history not read", extra={"error": str(error)})
            return ()

    def record(self, tree: TopologyTree | None, findings: tuple[Finding, ...]) -> None:
        """Record a round. An unknown tree says nothing about the fabric, so nothing is recorded."""
        if tree is None:
            return
        try:
            self._record(tree, findings)
        except StoreError as error:
            if str(error) != self._problem:
                log.warning("history not written", extra={"error": str(error)})
            self._problem = str(error)
            self._has_read, self._faults = False, None
        else:
            self._problem = ""

    def close(self) -> None:
        """Close the file."""
        self._writer.close()

    def _record(self, tree: TopologyTree, findings: tuple[Finding, ...]) -> None:
        if not self._has_read:
            last_record = self._writer.read_last()
            self._tree, self._has_read = last_record[0] if last_record else None, True
        last = self._tree
        has_new_tree = last is None or (last is not tree and bool(compare_names(last, tree)))
        faults = frozenset(map(build_fault_key, findings))
        has_new_findings = faults != self._faults
        if has_new_tree or has_new_findings:
            self._writer.record(
                tree if has_new_tree else None,
                findings if has_new_findings else None,
                int(self._now().timestamp()),
            )
        self._tree, self._faults = tree, faults
