"""Telling how a round ended: the status of the Fabric object, written where it changed.

Only the replica that leads writes it. The others keep what it says, and count trees along, so
that one of them can go on where the leader ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from generator.objects.fabric import Condition, HeldPlan
from generator.reconcile.conditions import (
    Standing,
    conditions_after,
    degraded,
    held_plan,
    standing_in,
    with_standing,
)
from generator.reconcile.summary import generation_in, spec_version, summarise
from generator.reconcile.writer import Guarding
from generator.store.base import ServedStore
from topology.model.errors import KubeError, ParseError, StoreError
from topology.model.facts import Finding, Severity
from topology.model.tree import TopologyTree


class Noticed(NamedTuple):
    """What a round saw."""

    tree: TopologyTree | None = None
    """None while the fabric is not known."""
    findings: tuple[Finding, ...] = ()
    num_problems: int = 0
    """Inputs, or parts of them, that could not be used."""


class Told(NamedTuple):
    """What the Fabric object says after a round, or would say where we do not lead."""

    generation: int = 0
    conditions: tuple[Condition, ...] = ()
    held: HeldPlan | None = None
    problems: tuple[ParseError, ...] = ()
    """Why it could not be written."""


class Telling:
    """The memory of what was told, from round to round."""

    def __init__(
        self, store: ServedStore, *, now: Callable[[], datetime], leads: Callable[[], bool]
    ) -> None:
        """Keep the place.

        Args:
            store: whose Fabric object is written.
            now: the clock of conditions.
            leads: whether we are the one replica that writes.
        """
        self._store = store
        self._now = now
        self._leads = leads
        self._tree: TopologyTree | None = None
        """The last one that was counted."""

    def tell(self, noticed: Noticed, guarding: Guarding) -> Told:
        """Bring the status up to date, and return what it says."""
        try:
            document = self._store.read_fabric()
            told = self._told(document, noticed, guarding)
            if self._leads():
                status = _status(document, noticed, told)
                if status != (document or {}).get("status"):
                    self._store.write_status(status)
        except (KubeError, StoreError) as error:
            return Told(problems=(ParseError(str(error)),))
        self._tree = noticed.tree or self._tree
        return told

    def _told(
        self, document: Mapping[str, Any] | None, noticed: Noticed, guarding: Guarding
    ) -> Told:
        before, now = standing_in(document), self._now()
        doubts = {one.kind.value for one in _doubts(noticed.findings)}
        outcomes = (*guarding.outcomes, degraded(doubts, num_problems=noticed.num_problems))
        verdict = guarding.verdict
        if not self._leads():
            return Told(generation_in(document), before.conditions, before.held)
        generation = self._generation(document, noticed.tree, is_settled=guarding.is_settled)
        held = held_plan(verdict, before=before.held, now=now) if verdict else None
        return Told(generation, conditions_after(before.conditions, outcomes, now), held)

    def _generation(
        self, document: Mapping[str, Any] | None, tree: TopologyTree | None, *, is_settled: bool
    ) -> int:
        """Return the number of the tree; after a restart it goes on if HyperNodes say the same."""
        before = generation_in(document)
        if tree is None or tree is self._tree:
            return before
        is_same = is_settled if self._tree is None else tree == self._tree
        return before if is_same and before else before + 1


def _doubts(findings: Iterable[Finding]) -> Iterable[Finding]:
    return (one for one in findings if one.severity is not Severity.INFO)


def _status(document: Mapping[str, Any] | None, noticed: Noticed, told: Told) -> dict[str, Any]:
    status = dict(with_standing(document, Standing(told.conditions, told.held))["status"])
    if told.generation:
        status["generation"] = told.generation
    version = spec_version(document)
    if version is not None:
        status["observedGeneration"] = version
    if noticed.tree is not None:
        status |= summarise(noticed.tree, noticed.findings)
    return status
