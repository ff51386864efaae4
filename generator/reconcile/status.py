"""The status of the Fabric object: read once a round, and written by this class alone.

Only the leader writes it. Followers track the tree generation so that a new leader can continue
from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from generator.objects.document import rows_at
from generator.objects.fabric import (
    MAX_TIERS,
    Condition,
    ConditionType,
    FindingCount,
    HeldPlan,
    TierCount,
)
from generator.objects.outputs import LabelKey, OutputStatus
from generator.reconcile.conditions import (
    WriteStatus,
    build_degraded,
    build_held_plan,
    merge_conditions,
    parse_write_status,
    render_time,
    with_write_status,
)
from generator.reconcile.output_outcomes import OutputsOutcome
from generator.reconcile.settings import FabricRead
from generator.reconcile.writer import WriteOutcome
from generator.store.fabric_store import FabricStore
from topology.model.errors import KubeError, KubeUnavailable, ParseError, StoreError
from topology.model.facts import Finding, FindingKind, Severity
from topology.model.tree import TopologyTree
from topology.reports.fabric_status import FabricStatus, render_fabric
from topology.reports.observed_time import parse_observed_at


def parse_tree_generation(document: Mapping[str, Any] | None) -> int:
    """Return the generation of the tree in a Fabric object's status, 0 if it has none."""
    status = document.get("status") if document else None
    generation = status.get("generation") if isinstance(status, Mapping) else None
    return (
        generation
        if isinstance(generation, int) and not isinstance(generation, bool) and generation > 0
        else 0
    )


def parse_spec_generation(document: Mapping[str, Any] | None) -> int | None:
    """Return the generation of the spec, None if the store does not count it, as in a folder."""
    metadata = document.get("metadata") if document else None
    generation = metadata.get("generation") if isinstance(metadata, Mapping) else None
    return generation if isinstance(generation, int) else None


def summarise(tree: TopologyTree, findings: Iterable[Finding]) -> dict[str, Any]:
    """Return the status fields that describe a tree. Cost: O(domains + findings)."""
    return {
        "tiers": [
            tier.model_dump(mode="json", by_alias=True)
            for tier in _count_tiers(tree)
            if tier.domains
        ],
        "unplaced": len(tree.unplaced),
        "findings": [
            count.model_dump(mode="json", by_alias=True) for count in count_findings(findings)
        ],
    }


def count_findings(findings: Iterable[Finding]) -> tuple[FindingCount, ...]:
    """Return the number of findings of each kind and severity, sorted by both."""
    counts = Counter((finding.kind.value, finding.severity) for finding in findings)
    return tuple(
        FindingCount(kind=kind, severity=severity, count=num)
        for (kind, severity), num in sorted(counts.items())
    )


def _count_tiers(tree: TopologyTree) -> Iterable[TierCount]:
    domains: Counter[int] = Counter(domain.tier for domain in tree.domains)
    nodes: Counter[int] = Counter()
    for domain in tree.domains:
        nodes[domain.tier] += domain.stop - domain.start
    for tier, name in enumerate(tree.tiers[:MAX_TIERS], 1):
        yield TierCount(tier=tier, name=name, domains=domains[tier], nodes=nodes[tier])


_OUTPUTS_WRITTEN: Final = ConditionType.OUTPUTS_WRITTEN
_RETRY_S: Final = 5.0
"""Until a status that the server could not take is written again: no change may come before the
next period."""


class RoundSummary(NamedTuple):
    """The result of one round, as far as the status reports it."""

    tree: TopologyTree | None = None
    """None while the fabric is unknown."""
    findings: tuple[Finding, ...] = ()
    num_problems: int = 0
    """Inputs, or parts of them, that could not be used, except for settings."""
    wrong_settings: tuple[str, ...] = ()
    """The faults in the spec of the Fabric object."""


class StatusUpdate(NamedTuple):
    """The status after a round; on a follower, the status that the leader wrote."""

    generation: int = 0
    conditions: tuple[Condition, ...] = ()
    held: HeldPlan | None = None
    problems: tuple[ParseError, ...] = ()
    """Why the status could not be written."""
    retry_s: float | None = None
    """Seconds until it may be written, if the server was not available."""


class FabricStatusWriter:
    """Reads the Fabric object at the start of a round and writes its status where it changed."""

    def __init__(
        self, store: FabricStore, *, now: Callable[[], datetime], is_leader: Callable[[], bool]
    ) -> None:
        """Read nothing yet.

        Args:
            store: holds the Fabric object.
            now: clock for the times of conditions.
            is_leader: whether this replica is the leader.
        """
        self._store = store
        self._now = now
        self._is_leader = is_leader
        self._fabric = FabricRead()
        self._last_tree: TopologyTree | None = None
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

    def update(self, summary: RoundSummary, written: WriteOutcome) -> StatusUpdate:
        """Write the status if this round changed it; return what it says now.

        A status that could not be read in this round is not written either.
        """
        if self._fabric.problems:
            return StatusUpdate()
        update = self._build_update(summary, written)
        try:
            if self._is_leader():
                document = self._render_document(summary, update, written.outputs)
                if document["status"] != (self._fabric.document or {}).get("status"):
                    self._write(document)
        except (KubeError, StoreError) as error:
            retry_s = _RETRY_S if isinstance(error, KubeUnavailable) else None
            return StatusUpdate(problems=(ParseError(str(error)),), retry_s=retry_s)
        self._last_tree = summary.tree or self._last_tree
        return update

    def _write(self, document: Mapping[str, Any]) -> None:
        self._store.write_status(document["status"])
        self._fabric = FabricRead(document)

    def _build_update(self, summary: RoundSummary, written: WriteOutcome) -> StatusUpdate:
        document, now = self._fabric.document, self._now()
        before = parse_write_status(document)
        if not self._is_leader():
            return StatusUpdate(parse_tree_generation(document), before.conditions, before.held)
        kinds = {finding.kind.value for finding in _select_degrading(summary.findings)}
        degraded = build_degraded(
            kinds,
            num_problems=summary.num_problems,
            unusable={
                finding.device
                for finding in summary.findings
                if finding.kind is FindingKind.UNUSABLE_REPORT
            },
            wrong_settings=summary.wrong_settings,
        )
        outputs = written.outputs
        of_outputs = () if outputs is None or outputs.condition is None else (outputs.condition,)
        changes = (*written.conditions, degraded, *of_outputs)
        if outputs is not None and outputs.condition is None:
            kept = [row for row in before.conditions if row.type is not _OUTPUTS_WRITTEN]
            before = before._replace(conditions=tuple(kept))
        generation = self._find_generation(summary.tree, is_in_sync=written.has_no_pending_plan)
        held = None if written.is_judged else before.held
        if written.held is not None:
            held = build_held_plan(written.held, before=before.held, now=now)
        return StatusUpdate(generation, merge_conditions(before.conditions, changes, now), held)

    def _find_generation(self, tree: TopologyTree | None, *, is_in_sync: bool) -> int:
        """Return the generation of a tree; a restart keeps it if the HyperNodes are up to date."""
        before = parse_tree_generation(self._fabric.document)
        if tree is None or tree is self._last_tree:
            return before
        is_same = is_in_sync if self._last_tree is None else tree == self._last_tree
        return before if is_same and before else before + 1

    def _render_document(
        self, summary: RoundSummary, update: StatusUpdate, outputs: OutputsOutcome | None
    ) -> dict[str, Any]:
        before = self._fabric.document
        document = with_write_status(before, WriteStatus(update.conditions, update.held))
        status = document["status"]
        if update.generation:
            status["generation"] = update.generation
        version = parse_spec_generation(before)
        if version is not None:
            status["observedGeneration"] = version
        if outputs is not None:
            _set_rows(status, "outputs", _date_rows(outputs, before, self._now()))
            _set_rows(status, "labelKeys", outputs.label_keys)
        if summary.tree is not None:
            status |= summarise(summary.tree, summary.findings)
        return document


def _date_rows(
    outcome: OutputsOutcome, before: Mapping[str, Any] | None, now: datetime
) -> list[OutputStatus]:
    """Return the rows with the time of their last write: now, or as the status said before."""
    known = {
        row.get("type"): row["lastWrite"]
        for row in rows_at(before, "status", "outputs")
        if parse_observed_at(row.get("lastWrite")) is not None
    }
    known |= {row.type: render_time(now) for row in outcome.outputs if row.num_written}
    return [row.model_copy(update={"last_write": known.get(row.type)}) for row in outcome.rows]


def _set_rows(status: dict[str, Any], field: str, rows: Sequence[OutputStatus | LabelKey]) -> None:
    """Set a list in the status, without empty fields; an empty list is no field."""
    status.pop(field, None)
    if rows:
        status[field] = [
            row.model_dump(mode="json", by_alias=True, exclude_defaults=True) for row in rows
        ]


def _select_degrading(findings: Iterable[Finding]) -> Iterable[Finding]:
    return (finding for finding in findings if finding.severity is not Severity.INFO)
