"""Event texts: each change between two rounds once, and nothing that did not change."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from generator.objects.fabric import ConditionType
from generator.reconcile.hypernode_plan import Action, Op
from generator.reconcile.round_results import RoundOutcome
from generator.telemetry.event_texts import (
    FABRIC,
    MAX_NODES,
    EventSubject,
    EventText,
    build_event_texts,
)
from tests.generator.rpc.clusters import tree_of
from tests.generator.telemetry.outcomes import BUSY, HELD, NOW, condition, finding
from topology.model.facts import FindingKind, Severity

STARTED = datetime.fromisoformat(NOW) - timedelta(hours=1)  # noqa: TID251 - a literal
LATER = datetime.fromisoformat(NOW) + timedelta(seconds=1)  # noqa: TID251 - a literal
QUIET = RoundOutcome(0.1, tree=BUSY.tree)
READY = replace(QUIET, conditions=(condition(ConditionType.READY, is_true=True),))


def texts_of(before: RoundOutcome | None, after: RoundOutcome) -> list[EventText]:
    return list(build_event_texts(before, after, started_at=STARTED))


@pytest.mark.parametrize("outcome", [QUIET, READY, BUSY], ids=["nothing", "ready", "busy"])
def test_it_yields_nothing_where_nothing_changed(outcome: RoundOutcome) -> None:
    unchanged = replace(outcome, completed_actions=(), completed_plan="")
    assert texts_of(unchanged, unchanged) == []


def test_it_yields_nothing_for_a_failed_round() -> None:
    assert texts_of(READY, RoundOutcome(1.0, is_failed=True)) == []


@pytest.mark.parametrize(
    ("kind", "is_true", "reason", "is_warning"),
    [
        (ConditionType.READY, True, "HyperNodesWritten", False),
        (ConditionType.READY, False, "NoData", True),
        (ConditionType.READY, False, "Paused", False),
        (ConditionType.DEGRADED, True, "FindingsStand", True),
        (ConditionType.DEGRADED, False, "EvidenceWhole", False),
    ],
    ids=str,
)
def test_it_reports_a_condition_that_changed(
    *, kind: ConditionType, is_true: bool, reason: str, is_warning: bool
) -> None:
    before = replace(QUIET, conditions=(condition(kind, is_true=not is_true),))
    after = replace(QUIET, conditions=(condition(kind, is_true=is_true, reason=reason),))
    note = f"{kind} is {is_true}: it is so"
    assert texts_of(before, after) == [EventText(FABRIC, reason, "Reconcile", note, is_warning)]


def test_it_reports_a_new_reason_but_not_a_new_message() -> None:
    (one,) = READY.conditions
    reworded = replace(READY, conditions=(one.model_copy(update={"message": "in other words"}),))
    assert texts_of(READY, reworded) == []
    other_reason = replace(READY, conditions=(one.model_copy(update={"reason": "Otherwise"}),))
    assert [text.reason for text in texts_of(READY, other_reason)] == ["Otherwise"]


def test_it_reports_of_the_first_round_only_changes_since_the_start() -> None:
    turned = replace(BUSY, completed_plan="")
    assert [one.reason for one in texts_of(None, turned)] == ["Because", "PlanHeld"]
    assert list(build_event_texts(None, turned, started_at=LATER)) == []


def test_it_reports_a_held_plan_once_until_another_is_held() -> None:
    blocked = condition(ConditionType.CHANGE_BLOCKED, is_true=True)
    held = replace(QUIET, held=HELD, conditions=(blocked,))
    (text,) = texts_of(QUIET, held)
    assert (text.reason, text.is_warning) == ("PlanHeld", True)
    assert text.note.startswith("it is so; it has 1 creates, 2 updates, 3 deletes")
    assert texts_of(held, held) == []
    other = replace(held, held=HELD.model_copy(update={"hash": "f" * 16}))
    assert [one.reason for one in texts_of(held, other)] == ["PlanHeld"]
    assert texts_of(held, QUIET) == [], "the event that ended the hold says so"


@pytest.mark.parametrize(
    ("is_approved", "reason"), [(False, "PlanCarriedOut"), (True, "ApprovedPlanCarriedOut")]
)
def test_it_reports_an_applied_plan(*, is_approved: bool, reason: str) -> None:
    actions = (*BUSY.completed_actions, Action(Op.DELETE, "l2", 1, "gone", None))
    done = replace(
        QUIET, completed_actions=actions, completed_plan="0123456789abcdef", is_approved=is_approved
    )
    note = "plan 0123456789abcdef was applied: 1 create, 1 delete"
    assert texts_of(QUIET, done) == [EventText(FABRIC, reason, "Apply", note, is_warning=False)]


def test_it_reports_a_quarantined_node_in_an_event_of_that_node() -> None:
    after = replace(QUIET, findings=(finding(FindingKind.DUPLICATE_ID, "a2"),))
    about = EventSubject("Node", "a2")
    note = "a2 is wrong."
    assert texts_of(QUIET, after) == [
        EventText(about, "Quarantined", "Quarantine", note, is_warning=True)
    ]
    (gone,) = texts_of(after, QUIET)
    assert (gone.subject, gone.note) == (FABRIC, "duplicate-id gone at a2")


def test_it_gives_a_few_nodes_an_event_each_and_groups_the_others() -> None:
    names = tuple(f"n{at}" for at in range(MAX_NODES + 7))
    findings = tuple(finding(FindingKind.DUPLICATE_ID, name) for name in names)
    after = replace(QUIET, tree=tree_of(names), findings=findings)
    texts = texts_of(QUIET, after)
    assert [one.subject for one in texts[:-1]] == [
        EventSubject("Node", name) for name in names[:MAX_NODES]
    ]
    rest = "duplicate-id appeared at n20, n21, n22, n23, n24 and 2 more: n20 is wrong."
    assert (texts[-1].subject, texts[-1].note) == (FABRIC, rest)


def test_it_groups_findings_of_severity_error_by_kind_and_skips_others() -> None:
    errors = tuple(finding(FindingKind.SWEEP_REFUSED, name) for name in ("s1", "s2"))
    warning = finding(FindingKind.SLOW_LINK, severity=Severity.WARNING)
    after = replace(QUIET, findings=(*errors, warning))
    note = "sweep-refused appeared at s1, s2: s1 is wrong."
    assert texts_of(QUIET, after) == [
        EventText(FABRIC, "SweepRefused", "Appeared", note, is_warning=True)
    ]
    note = "sweep-refused gone at s1, s2"
    assert texts_of(after, QUIET) == [
        EventText(FABRIC, "SweepRefused", "Gone", note, is_warning=False)
    ]


def test_it_escapes_and_shortens_foreign_text() -> None:
    nasty = finding(FindingKind.SWEEP_REFUSED, "\x1b[31m" + "x" * 5000)
    (text,) = texts_of(QUIET, replace(QUIET, findings=(nasty,)))
    assert text.note.isprintable()
    assert len(text.note) <= 1024


def test_it_treats_unreadable_times_as_old() -> None:
    odd = READY.conditions[0].model_copy(update={"last_transition_time": "some time ago, I think"})
    naive = datetime(2000, 1, 1, tzinfo=UTC)
    assert list(build_event_texts(None, replace(READY, conditions=(odd,)), started_at=naive)) == []
