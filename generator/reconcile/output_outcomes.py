"""The result of each output: rows and condition of the status, and findings. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from generator.objects.fabric import ConditionType
from generator.objects.outputs import LabelKey, OutputState, OutputStatus, OutputType
from generator.reconcile.conditions import ConditionChange
from topology.model.errors import list_some, show
from topology.model.facts import Finding, FindingKind, Severity, finding_about

_MAX_SHOWN: Final = 3
_MAX_FINDINGS: Final = 20
"""Findings of one output; the status counts all of them."""
_MAX_MESSAGE: Final = 1000


class RefusedWrite(NamedTuple):
    """An object that could not be written."""

    key: str
    problem: str
    is_conflict: bool
    """Whether another writer owns the object, or a field of it."""
    advice: str = "Remove the other writer of the object or key, or change spec.outputs."
    """The advice for a person."""


class OutputOutcome(NamedTuple):
    """The result of one output in a round."""

    type: OutputType
    num_current: int = 0
    num_pending: int = 0
    num_written: int = 0
    """Writes of this round."""
    deferred: tuple[str, ...] = ()
    """Nodes whose labels wait for gangs."""
    refusals: tuple[RefusedWrite, ...] = ()
    problem: str = ""
    """Why the output as a whole is not written, or which names it cannot hold."""
    is_served: bool = True
    is_known: bool = True
    """Whether its objects could be read."""
    is_removal: bool = False
    """Whether the output is no longer wanted."""

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to write, now or later."""
        is_quiet = not (self.num_pending or self.deferred or self.refusals or self.problem)
        return is_quiet and self.is_known

    @property
    def is_gone(self) -> bool:
        """Whether the output is no longer wanted, and no object of it is left."""
        return self.is_removal and (self.is_done or not self.is_served)

    @property
    def state(self) -> OutputState:
        """The state for the status."""
        if not self.is_served:
            return OutputState.NOT_SERVED
        if not self.is_known:
            return OutputState.UNKNOWN
        if any(refusal.is_conflict for refusal in self.refusals):
            return OutputState.CONFLICT
        if self.refusals or self.problem:
            return OutputState.REFUSED
        is_pending = self.num_pending or self.deferred
        return OutputState.PENDING if is_pending else OutputState.WRITTEN


class OutputsOutcome(NamedTuple):
    """The result of all outputs in a round."""

    outputs: tuple[OutputOutcome, ...] = ()
    label_keys: tuple[LabelKey, ...] = ()
    retry_s: float | None = None
    """Seconds until the next round, if it should be sooner than usual."""
    is_paused: bool = False
    """Whether nothing may be written now."""

    @property
    def is_done(self) -> bool:
        """Whether nothing of any output is left to write, now or later."""
        return all(row.state is OutputState.WRITTEN for row in self.rows)

    @property
    def rows(self) -> tuple[OutputStatus, ...]:
        """The rows of the status, without removed outputs of which nothing is left."""
        return tuple(_build_row(output) for output in self.outputs if not output.is_gone)

    @property
    def condition(self) -> ConditionChange | None:
        """The condition OutputsWritten; None without outputs."""
        rows = self.rows
        if not rows:
            return None
        bad = [row for row in rows if row.state is not OutputState.WRITTEN]
        message = "; ".join(f"{row.type}: {row.message or row.state.lower()}" for row in bad)
        reason = "AllWritten"
        if bad:
            reason = "Paused" if self.is_paused else bad[0].state.value
        return ConditionChange(ConditionType.OUTPUTS_WRITTEN, not bad, reason, message)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """A finding for each object that could not be written, and for each output."""
        return tuple(finding for output in self.outputs for finding in _build_findings(output))


def _build_row(outcome: OutputOutcome) -> OutputStatus:
    return OutputStatus(
        type=outcome.type,
        state=outcome.state,
        objects=outcome.num_current,
        pending=outcome.num_pending,
        deferred=len(outcome.deferred),
        refused=len(outcome.refusals),
        message=show(_build_message(outcome), _MAX_MESSAGE),
    )


def _build_message(outcome: OutputOutcome) -> str:
    parts = [outcome.problem] if outcome.problem else []
    if outcome.refusals:
        first = outcome.refusals[0]
        more = f" and {len(outcome.refusals) - 1} more" if len(outcome.refusals) > 1 else ""
        parts.append(f"not written: {show(first.key)}{more}: {first.problem}")
    if outcome.deferred:
        shown = list_some(map(show, outcome.deferred), _MAX_SHOWN)
        parts.append(f"labels wait until the gangs on {shown} have ended")
    if outcome.is_removal:
        parts.append("is removed")
    return "; ".join(parts)


def _build_findings(outcome: OutputOutcome) -> Sequence[Finding]:
    if not outcome.is_known or outcome.is_gone:
        return []  # the condition says so; nothing is wrong with an object
    whole = RefusedWrite(outcome.type.value, outcome.problem, is_conflict=False)
    problems = [*([whole] if outcome.problem else []), *outcome.refusals]
    return [
        finding_about(
            FindingKind.OUTPUT_REFUSED,
            (row.key,),
            severity=Severity.WARNING,
            message=f"output {outcome.type}: {row.problem}. {row.advice}",
        )
        for row in problems[:_MAX_FINDINGS]
    ]
