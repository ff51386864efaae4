"""The texts of Kubernetes Events: what changed from one round to the next. Pure.

A change is a condition with a new status or reason, a held or applied plan, a quarantined node,
or a finding of severity error that appeared or went. Everything else is in the Fabric object, the
log and the metrics. Findings of one kind share one Event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from generator.objects.fabric import Condition, ConditionType, HeldPlan
from generator.reconcile.round_results import RoundOutcome
from topology.model.errors import list_some, show
from topology.model.facts import Finding, FindingKind, Severity
from topology.model.ids import natural_key
from topology.reports.fabric_status import FABRIC_KIND, FABRIC_NAME
from topology.reports.observed_time import parse_observed_at

NODE_KIND: Final = "Node"
MAX_NODES: Final = 20
"""Nodes that get an Event each in one round; further nodes share one Event of the Fabric."""
_MAX_SHOWN: Final = 5
_MAX_NOTE: Final = 1000
_INTENDED_REASONS: Final = frozenset({"Paused", "DryRun"})
"""Reasons that are not a warning, because a person has switched off writing on purpose."""


class EventSubject(NamedTuple):
    """The object that an Event is about."""

    kind: str
    name: str


FABRIC: Final = EventSubject(FABRIC_KIND, FABRIC_NAME)


class EventText(NamedTuple):
    """The text and fields of one Event."""

    subject: EventSubject
    reason: str
    """A word in CamelCase, from a closed set."""
    action: str
    """What the server did when it saw the change, in CamelCase."""
    note: str
    is_warning: bool


def build_event_texts(
    before: RoundOutcome | None, after: RoundOutcome, *, started_at: datetime
) -> Iterator[EventText]:
    """Yield one text for each change from one round to the next.

    The first round of a process has no predecessor to compare with: it yields only the conditions
    and the held plan that changed since the process started.

    Args:
        before: the previous round; None for the first round of this process.
        after: the round.
        started_at: when the process started, with a time zone.
    """
    if after.is_failed:
        return
    last = before or _find_state_at_start(started_at, after)
    yield from _compare_conditions(last.conditions, after.conditions)
    if after.held is not None and (last.held is None or last.held.hash != after.held.hash):
        yield _build_held_text(after.held, _find_block_reason(after.conditions))
    if after.completed_plan:
        yield _build_applied_text(after)
    if before is not None:
        yield from _compare_findings(
            _find_serious(before), _find_serious(after), _find_nodes(after)
        )


def _find_state_at_start(started: datetime, after: RoundOutcome) -> RoundOutcome:
    """Return the conditions and the held plan that are unchanged since the process started."""
    conditions = tuple(
        condition
        for condition in after.conditions
        if not _is_since(condition.last_transition_time, started)
    )
    held = after.held if after.held and not _is_since(after.held.since, started) else None
    return RoundOutcome(0.0, conditions=conditions, held=held)


def _is_since(time: str, started: datetime) -> bool:
    parsed = parse_observed_at(time)
    # Conditions store whole seconds.
    return parsed is not None and parsed >= started.replace(microsecond=0)


def _compare_conditions(
    before: Iterable[Condition], after: Iterable[Condition]
) -> Iterator[EventText]:
    """Yield a text for each condition with a new status or reason; held plans have their own."""
    known = {condition.type: (condition.status, condition.reason) for condition in before}
    for condition in after:
        type_, status, reason = condition.type, condition.status, condition.reason
        if type_ is ConditionType.CHANGE_BLOCKED or known.get(type_) == (status, reason):
            continue
        is_good = (status == "True") is (type_ is ConditionType.READY)
        note = f"{type_} is {status}" + (f": {condition.message}" if condition.message else "")
        is_warning = not (is_good or reason in _INTENDED_REASONS)
        yield EventText(FABRIC, reason, "Reconcile", _truncate(note), is_warning)


def _find_block_reason(conditions: Iterable[Condition]) -> str:
    blocked = (row.message for row in conditions if row.type is ConditionType.CHANGE_BLOCKED)
    return next(blocked, "")


def _build_held_text(held: HeldPlan, why: str) -> EventText:
    counts = f"{held.creates} creates, {held.updates} updates, {held.deletes} deletes"
    note = f"{why or f'plan {held.hash} is held'}; it has {counts}. Approve it, or fix the cause."
    return EventText(FABRIC, "PlanHeld", "Hold", _truncate(note), is_warning=True)


def _build_applied_text(after: RoundOutcome) -> EventText:
    counts = Counter(action.op for action in after.completed_actions)
    shown = ", ".join(f"{num} {op.value}" for op, num in sorted(counts.items()))
    reason = "ApprovedPlanCarriedOut" if after.is_approved else "PlanCarriedOut"
    note = f"plan {after.completed_plan} was applied: {shown}"
    return EventText(FABRIC, reason, "Apply", _truncate(note), is_warning=False)


def _find_serious(outcome: RoundOutcome) -> dict[tuple[FindingKind, str, str | None], Finding]:
    return {
        (finding.kind, finding.device, finding.port): finding
        for finding in outcome.findings
        if finding.severity is Severity.ERROR
    }


def _find_nodes(outcome: RoundOutcome) -> frozenset[str]:
    tree = outcome.tree
    return frozenset((*tree.nodes, *(unplaced.node for unplaced in tree.unplaced)) if tree else ())


def _compare_findings(
    before: dict[tuple[FindingKind, str, str | None], Finding],
    after: dict[tuple[FindingKind, str, str | None], Finding],
    nodes: Collection[str],
) -> Iterator[EventText]:
    appeared = [finding for key, finding in after.items() if key not in before]
    cleared = [finding for key, finding in before.items() if key not in after]
    quarantined = {
        finding.device: finding
        for finding in appeared
        if finding.kind is FindingKind.DUPLICATE_ID and finding.device in nodes
    }
    own = sorted(quarantined, key=natural_key)[:MAX_NODES]
    for name in own:
        about = EventSubject(NODE_KIND, name)
        note = _truncate(quarantined[name].message)
        yield EventText(about, "Quarantined", "Quarantine", note, is_warning=True)
    rest = [
        finding
        for finding in appeared
        if finding.kind is not FindingKind.DUPLICATE_ID or finding.device not in own
    ]
    yield from _group_by_kind(rest, "Appeared", is_warning=True)
    yield from _group_by_kind(cleared, "Gone", is_warning=False)


def _group_by_kind(
    findings: Iterable[Finding], action: str, *, is_warning: bool
) -> Iterator[EventText]:
    """Yield one text for all findings of a kind."""
    kinds: dict[FindingKind, list[Finding]] = {}
    for finding in findings:
        kinds.setdefault(finding.kind, []).append(finding)
    for kind, members in sorted(kinds.items()):
        reason = "".join(part.capitalize() for part in kind.value.split("-"))
        where = sorted({show(finding.device, 253) for finding in members}, key=natural_key)
        note = f"{kind.value} {action.lower()} at {list_some(where, _MAX_SHOWN)}"
        if is_warning:
            note += f": {members[0].message}"
        yield EventText(FABRIC, reason, action, _truncate(note), is_warning)


def _truncate(note: str) -> str:
    return show(note, _MAX_NOTE)
