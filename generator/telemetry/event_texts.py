"""What people are told of a round: only what changed since the one before. Pure.

A condition that turned, a plan that is held or was carried out, a node whose ids are taken from
it, and grave findings that came or went. Everything else stands in the Fabric object, in the log
and in metrics. Many of a kind are one notice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from generator.objects.fabric import Condition, ConditionType, HeldPlan
from generator.reconcile.result import RoundOutcome
from topology.model.errors import show
from topology.model.facts import Finding, FindingKind, Severity
from topology.model.ids import natural_key
from topology.reports.fabric_status import FABRIC_KIND, FABRIC_NAME

NODE_KIND: Final = "Node"
MAX_NODES: Final = 20
"""Nodes that get a notice of their own in one round; the others are in that of the Fabric."""
_MAX_SHOWN: Final = 5
_MAX_NOTE: Final = 1000
_INTENDED_REASONS: Final = frozenset({"Paused", "DryRun"})
"""Reasons for which people themselves see to it that nothing is written."""


class EventSubject(NamedTuple):
    """The object that a notice is about."""

    kind: str
    name: str


FABRIC: Final = EventSubject(FABRIC_KIND, FABRIC_NAME)


class EventText(NamedTuple):
    """One change, for people."""

    subject: EventSubject
    reason: str
    """In CamelCase, as of a closed set."""
    action: str
    """What the server did when it saw the change, in CamelCase."""
    note: str
    is_warning: bool


def build_event_texts(
    before: RoundOutcome | None, after: RoundOutcome, *, started_at: datetime
) -> Iterator[EventText]:
    """Yield what changed from one round to the next.

    Of the first round of a process nobody knows what it changed: of it only those conditions are
    told that turned since the start.

    Args:
        before: the round before; None for the first of this process.
        after: the round.
        started: when the process did, with a time zone.
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
    """Return what stood when the process started, as far as it still does."""
    conditions = tuple(
        one for one in after.conditions if not _is_since(one.last_transition_time, started)
    )
    held = after.held if after.held and not _is_since(after.held.since, started) else None
    return RoundOutcome(0.0, conditions=conditions, held=held)


def _is_since(time: str, started: datetime) -> bool:
    try:
        found = datetime.fromisoformat(time)
    except ValueError:
        return False
    # Times of conditions are whole seconds.
    return found.tzinfo is not None and found >= started.replace(microsecond=0)


def _compare_conditions(
    before: Iterable[Condition], after: Iterable[Condition]
) -> Iterator[EventText]:
    """Yield a notice for each condition that turned, or has another reason; not for held plans."""
    known = {one.type: (one.status, one.reason) for one in before}
    for one in after:
        if one.type is ConditionType.CHANGE_BLOCKED or known.get(one.type) == (
            one.status,
            one.reason,
        ):
            continue
        is_good = (one.status == "True") is (one.type is ConditionType.READY)
        note = f"{one.type} is {one.status}" + (f": {one.message}" if one.message else "")
        yield EventText(
            FABRIC,
            one.reason,
            "Reconcile",
            _truncate(note),
            not (is_good or one.reason in _INTENDED_REASONS),
        )


def _find_block_reason(conditions: Iterable[Condition]) -> str:
    return next((c.message for c in conditions if c.type is ConditionType.CHANGE_BLOCKED), "")


def _build_held_text(held: HeldPlan, why: str) -> EventText:
    counts = f"{held.creates} creates, {held.updates} updates, {held.deletes} deletes"
    note = f"{why or f'plan {held.hash} is held'}; it has {counts}. Approve it, or mend the cause."
    return EventText(FABRIC, "PlanHeld", "Hold", _truncate(note), is_warning=True)


def _build_applied_text(after: RoundOutcome) -> EventText:
    counts = Counter(action.op for action in after.completed_actions)
    told = ", ".join(f"{num} {op.value}" for op, num in sorted(counts.items()))
    reason = "ApprovedPlanCarriedOut" if after.is_approved else "PlanCarriedOut"
    note = f"plan {after.completed_plan} is carried out: {told}"
    return EventText(FABRIC, reason, "Apply", _truncate(note), is_warning=False)


def _find_serious(outcome: RoundOutcome) -> dict[tuple[FindingKind, str, str | None], Finding]:
    return {
        (one.kind, one.device, one.port): one
        for one in outcome.findings
        if one.severity is Severity.ERROR
    }


def _find_nodes(outcome: RoundOutcome) -> frozenset[str]:
    tree = outcome.tree
    return frozenset((*tree.nodes, *(gone.node for gone in tree.unplaced)) if tree else ())


def _compare_findings(
    before: dict[tuple[FindingKind, str, str | None], Finding],
    after: dict[tuple[FindingKind, str, str | None], Finding],
    nodes: Collection[str],
) -> Iterator[EventText]:
    appeared = [one for key, one in after.items() if key not in before]
    gone = [one for key, one in before.items() if key not in after]
    quarantined = {
        one.device: one
        for one in appeared
        if one.kind is FindingKind.DUPLICATE_ID and one.device in nodes
    }
    own = sorted(quarantined, key=natural_key)[:MAX_NODES]
    for name in own:
        about = EventSubject(NODE_KIND, name)
        note = _truncate(quarantined[name].message)
        yield EventText(about, "Quarantined", "Quarantine", note, is_warning=True)
    rest = [
        one for one in appeared if one.kind is not FindingKind.DUPLICATE_ID or one.device not in own
    ]
    yield from _group_by_kind(rest, "Appeared", is_warning=True)
    yield from _group_by_kind(gone, "Gone", is_warning=False)


def _group_by_kind(
    findings: Iterable[Finding], action: str, *, is_warning: bool
) -> Iterator[EventText]:
    """Yield one notice for all findings of a kind."""
    kinds: dict[FindingKind, list[Finding]] = {}
    for one in findings:
        kinds.setdefault(one.kind, []).append(one)
    for kind, found in sorted(kinds.items()):
        reason = "".join(part.capitalize() for part in kind.value.split("-"))
        where = sorted({show(one.device, 253) for one in found}, key=natural_key)
        more = f" and {len(where) - _MAX_SHOWN} more" if len(where) > _MAX_SHOWN else ""
        note = f"{kind.value} {action.lower()} at {', '.join(where[:_MAX_SHOWN])}{more}"
        if is_warning:
            note += f": {found[0].message}"
        yield EventText(FABRIC, reason, action, _truncate(note), is_warning)


def _truncate(note: str) -> str:
    return show(note, _MAX_NOTE)
