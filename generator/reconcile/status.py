"""The status of the Fabric object: read once a round, and written by this class alone.

Only the leader writes it. Followers track the tree generation so that a new leader can continue
from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from generator.objects.fabric import Condition, HeldPlan
from generator.reconcile.conditions import (
    WriteStatus,
    conditions_after,
    degraded,
    held_plan,
    parse_write_status,
    with_write_status,
)
from generator.reconcile.summary import generation_in, spec_version, summarise
from generator.reconcile.writer import WriterState
from generator.store.base import FabricRead, ServedStore
from topology.model.errors import KubeError, ParseError, StoreError
from topology.model.facts import Finding, Severity
from topology.model.tree import TopologyTree
from topology.reports.fabric_status import FabricStatus, render_fabric


class RoundSummary(NamedTuple):
    """The result of one round, as far as the status reports it."""

    tree: TopologyTree | None = None
    """None while the fabric is unknown."""
    findings: tuple[Finding, ...] = ()
    num_problems: int = 0
    """Inputs, or parts of them, that could not be used."""


class StatusUpdate(NamedTuple):
    """The status after a round; on a follower, the status that the leader wrote."""

    generation: int = 0
    conditions: tuple[Condition, ...] = ()
    held: HeldPlan | None = None
    problems: tuple[ParseError, ...] = ()
    """Why the status could not be written."""


class FabricStatusWriter:
    """Reads the Fabric object at the start of a round and writes its status where it changed."""

    def __init__(
        self, store: ServedStore, *, now: Callable[[], datetime], leads: Callable[[], bool]
    ) -> None:
        """Read nothing yet.

        Args:
            store: holds the Fabric object.
            now: clock for the times of conditions.
            leads: whether this replica is the leader.
        """
        self._store = store
        self._now = now
        self._leads = leads
        self._fabric = FabricRead()
        self._tree: TopologyTree | None = None
        """The last tree that was counted as a generation."""

    def read(self) -> FabricRead:
        """Read the Fabric object; the rest of the round works on this value."""
        try:
            self._fabric = FabricRead(self._store.read_fabric())
        except (KubeError, StoreError) as error:
            self._fabric = FabricRead(problems=(ParseError(str(error)),))
        return self._fabric

    def write_sweepers(self, elected: FabricStatus) -> None:
        """Write the elected sweepers; all else in the status stays.

        Raises:
            KubeError: the API server refuses the write, or does not answer.
            StoreError: the file cannot be written.
        """
        self._write(render_fabric(elected, self._fabric.document))

    def update(self, summary: RoundSummary, writer: WriterState) -> StatusUpdate:
        """Write the status if this round changed it; return what it says now.

        A status that could not be read in this round is not written either.
        """
        if self._fabric.problems:
            return StatusUpdate()
        update = self._updated(summary, writer)
        try:
            if self._leads():
                document = self._document_with(summary, update)
                if document["status"] != (self._fabric.document or {}).get("status"):
                    self._write(document)
        except (KubeError, StoreError) as error:
            return StatusUpdate(problems=(ParseError(str(error)),))
        self._tree = summary.tree or self._tree
        return update

    def _write(self, document: Mapping[str, Any]) -> None:
        self._store.write_status(document["status"])
        self._fabric = FabricRead(document)

    def _updated(self, summary: RoundSummary, writer: WriterState) -> StatusUpdate:
        document, now = self._fabric.document, self._now()
        before = parse_write_status(document)
        if not self._leads():
            return StatusUpdate(generation_in(document), before.conditions, before.held)
        kinds = {finding.kind.value for finding in _warnings(summary.findings)}
        changes = (*writer.conditions, degraded(kinds, num_problems=summary.num_problems))
        generation = self._generation(summary.tree, is_settled=writer.is_settled)
        held = held_plan(writer.held, before=before.held, now=now) if writer.held else None
        return StatusUpdate(generation, conditions_after(before.conditions, changes, now), held)

    def _generation(self, tree: TopologyTree | None, *, is_settled: bool) -> int:
        """Return the generation of a tree; a restart keeps it if the HyperNodes are up to date."""
        before = generation_in(self._fabric.document)
        if tree is None or tree is self._tree:
            return before
        is_same = is_settled if self._tree is None else tree == self._tree
        return before if is_same and before else before + 1

    def _document_with(self, summary: RoundSummary, update: StatusUpdate) -> dict[str, Any]:
        before = self._fabric.document
        document = with_write_status(before, WriteStatus(update.conditions, update.held))
        status = document["status"]
        if update.generation:
            status["generation"] = update.generation
        version = spec_version(before)
        if version is not None:
            status["observedGeneration"] = version
        if summary.tree is not None:
            status |= summarise(summary.tree, summary.findings)
        return document


def _warnings(findings: Iterable[Finding]) -> Iterable[Finding]:
    return (finding for finding in findings if finding.severity is not Severity.INFO)
