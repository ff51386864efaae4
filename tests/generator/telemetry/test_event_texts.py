"""What is told of a round: what changed, once, and nothing that only stands."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from generator.objects.fabric import ConditionType
from generator.reconcile.plan import Action, Op
from generator.reconcile.result import RoundOutcome
from generator.telemetry.event_texts import (
    FABRIC,
    MAX_NODES,
    EventText,
    EventSubject,
    build_event_texts,
)
from tests.generator.rpc.clusters import tree_of
from tests.generator.telemetry.outcomes import BUSY, HELD, NOW, condition, finding
from topology.model.facts import FindingKind, Severity

STARTED = datetime.fromisoformat(NOW) - timedelta(hours=1)
LATER = datetime.fromisoformat(NOW) + timedelta(seconds=1)
QUIET = RoundOutcome(0.1, tree=BUSY.tree)
READY = replace(QUIET, conditions=(condition(ConditionType.READY, is_true=True),))


def told(before: RoundOutcome | None, after: RoundOutcome) -> list[EventText]:
    return list(build_event_texts(before, after, started_at=STARTED))


@pytest.mark.parametrize("outcome", [QUIET, READY, BUSY], ids=["nothing", "ready", "busy"])
def test_it_tells_nothing_of_what_only_stands(outcome: RoundOutcome) -> None:
    standing = replace(outcome, completed_actions=(), completed_plan="")
    assert told(standing, standing) == []


def test_it_tells_nothing_of_a_round_that_failed() -> None:
    assert told(READY, RoundOutcome(1.0, is_failed=True)) == []


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
def test_it_tells_that_a_condition_turned(
    *, kind: ConditionType, is_true: bool, reason: str, is_warning: bool
) -> None:
    before = replace(QUIET, conditions=(condition(kind, is_true=not is_true),))
    after = replace(QUIET, conditions=(condition(kind, is_true=is_true, reason=reason),))
    note = f"{kind} is {is_true}: it is so"
    assert told(before, after) == [EventText(FABRIC, reason, "Reconcile", note, is_warning)]


def test_it_tells_another_reason_but_not_another_message() -> None:
    (one,) = READY.conditions
    reworded = replace(READY, conditions=(one.model_copy(update={"message": "in other words"}),))
    assert told(READY, reworded) == []
    elsewhy = replace(READY, conditions=(one.model_copy(update={"reason": "Otherwise"}),))
    assert [notice.reason for notice in told(READY, elsewhy)] == ["Otherwise"]


def test_it_tells_of_the_first_round_what_turned_since_the_start() -> None:
    turned = replace(BUSY, completed_plan="")
    assert [one.reason for one in told(None, turned)] == ["Because", "PlanHeld"]
    assert list(build_event_texts(None, turned, started_at=LATER)) == []


def test_it_tells_a_held_plan_with_its_hash_until_another_is_held() -> None:
    blocked = condition(ConditionType.CHANGE_BLOCKED, is_true=True)
    held = replace(QUIET, held=HELD, conditions=(blocked,))
    (notice,) = told(QUIET, held)
    assert (notice.reason, notice.is_warning) == ("PlanHeld", True)
    assert notice.note.startswith("it is so; it has 1 creates, 2 updates, 3 deletes")
    assert told(held, held) == []
    other = replace(held, held=HELD.model_copy(update={"hash": "f" * 16}))
    assert [one.reason for one in told(held, other)] == ["PlanHeld"]
    assert told(held, QUIET) == [], "that it ended is told by what ended it"


@pytest.mark.parametrize(
    ("is_approved", "reason"), [(False, "PlanCarriedOut"), (True, "ApprovedPlanCarriedOut")]
)
def test_it_tells_that_a_plan_was_carried_out(*, is_approved: bool, reason: str) -> None:
    actions = (*BUSY.completed_actions, Action(Op.DELETE, "l2", 1, "gone", None))
    done = replace(
        QUIET, completed_actions=actions, completed_plan="0123456789abcdef", is_approved=is_approved
    )
    note = "plan 0123456789abcdef is carried out: 1 create, 1 delete"
    assert told(QUIET, done) == [EventText(FABRIC, reason, "Apply", note, is_warning=False)]


def test_it_tells_a_node_that_its_ids_are_taken_from_it() -> None:
    after = replace(QUIET, findings=(finding(FindingKind.DUPLICATE_ID, "a2"),))
    about = EventSubject("Node", "a2")
    note = "a2 is wrong."
    assert told(QUIET, after) == [
        EventText(about, "Quarantined", "Quarantine", note, is_warning=True)
    ]
    (gone,) = told(after, QUIET)
    assert (gone.subject, gone.note) == (FABRIC, "duplicate-id gone at a2")


def test_it_tells_few_nodes_by_themselves_and_the_others_together() -> None:
    names = tuple(f"n{at}" for at in range(MAX_NODES + 7))
    findings = tuple(finding(FindingKind.DUPLICATE_ID, name) for name in names)
    after = replace(QUIET, tree=tree_of(names), findings=findings)
    notices = told(QUIET, after)
    assert [one.subject for one in notices[:-1]] == [
        EventSubject("Node", name) for name in names[:MAX_NODES]
    ]
    rest = "duplicate-id appeared at n20, n21, n22, n23, n24 and 2 more: n20 is wrong."
    assert (notices[-1].subject, notices[-1].note) == (FABRIC, rest)


def test_it_tells_grave_findings_of_a_kind_together_and_no_others() -> None:
    graves = tuple(finding(FindingKind.SWEEP_REFUSED, name) for name in ("s1", "s2"))
    light = finding(FindingKind.SLOW_LINK, severity=Severity.WARNING)
    after = replace(QUIET, findings=(*graves, light))
    note = "sweep-refused appeared at s1, s2: s1 is wrong."
    assert told(QUIET, after) == [
        EventText(FABRIC, "SweepRefused", "Appeared", note, is_warning=True)
    ]
    note = "sweep-refused gone at s1, s2"
    assert told(after, QUIET) == [EventText(FABRIC, "SweepRefused", "Gone", note, is_warning=False)]


def test_it_shows_no_foreign_text_as_it_is_nor_all_of_it() -> None:
    nasty = finding(FindingKind.SWEEP_REFUSED, "\x1b[31m" + "x" * 5000)
    (notice,) = told(QUIET, replace(QUIET, findings=(nasty,)))
    assert notice.note.isprintable()
    assert len(notice.note) <= 1024


def test_it_takes_times_that_are_none_for_old() -> None:
    odd = READY.conditions[0].model_copy(update={"last_transition_time": "some time ago, I think"})
    naive = datetime(2000, 1, 1, tzinfo=UTC)
    assert list(build_event_texts(None, replace(READY, conditions=(odd,)), started_at=naive)) == []
