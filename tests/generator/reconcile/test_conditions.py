"""Conditions and the held plan in the Fabric object, and when their times change."""

from datetime import UTC, datetime, timedelta

import pytest

from generator.objects.fabric import ChangeBudget
from generator.reconcile.conditions import (
    ConditionChange,
    WriteStatus,
    build_change_blocked,
    build_degraded,
    build_held_plan,
    build_ready,
    is_released,
    merge_conditions,
    parse_write_status,
    with_write_status,
)
from generator.reconcile.decided_tree import TreeStep
from generator.reconcile.guard import PlanEvidence, PlanVerdict, judge_plan
from generator.reconcile.hypernode_plan import plan_changes
from tests.generator.folders import parse_fabric_document
from tests.generator.reconcile.cluster import hypernode, tree_of

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
BEFORE = [hypernode("a", 1, "n1", "n2"), hypernode("b", 1, "n3", "n4", "n5")]
HELD = judge_plan(
    plan_changes(BEFORE[:1], BEFORE),
    TreeStep(tree_of(BEFORE), tree_of(BEFORE[:1])),
    budget=ChangeBudget(),
    evidence=PlanEvidence(),
)
WELL = (build_ready(), build_change_blocked(None), build_degraded((), num_problems=0))


def standing(*outcomes: ConditionChange, verdict: PlanVerdict | None = None) -> WriteStatus:
    held = build_held_plan(verdict, before=None, now=NOON) if verdict else None
    return WriteStatus(merge_conditions((), outcomes, NOON), held)


def test_it_renders_conditions_and_the_held_plan_as_a_valid_fabric() -> None:
    status = standing(*WELL[:1], build_change_blocked(HELD), *WELL[2:], verdict=HELD)
    document = with_write_status({"spec": {"paused": True}, "status": {"sweepers": []}}, status)
    read = parse_fabric_document(document)
    assert [(one.type.value, one.status, one.reason) for one in read.status.conditions] == [
        ("ChangeBlocked", "True", "TooManyNodes"),
        ("Degraded", "False", "EvidenceWhole"),
        ("Ready", "True", "HyperNodesWritten"),
    ]
    assert HELD.hash in read.status.conditions[0].message
    assert read.status.held is not None
    assert (read.status.held.hash, read.status.held.deletes, read.status.held.moved_nodes) == (
        HELD.hash,
        1,
        3,
    )
    assert read.spec.paused
    assert parse_write_status(document) == status


def test_it_removes_a_held_plan_that_is_no_longer_held() -> None:
    document = with_write_status(None, standing(build_change_blocked(HELD), verdict=HELD))
    document = with_write_status(document, standing(build_change_blocked(None)))
    assert "held" not in document["status"]
    assert parse_write_status(document).held is None


def test_it_keeps_the_time_of_a_condition_until_its_status_changes() -> None:
    first = merge_conditions((), WELL, NOON)
    assert merge_conditions(first, WELL, NOON + HOUR) == first
    ill = merge_conditions(first, (build_degraded({"miswire"}, num_problems=0),), NOON + HOUR)
    worse = merge_conditions(
        ill, (build_degraded({"a", "miswire"}, num_problems=1),), NOON + 2 * HOUR
    )
    times = [one.last_transition_time for one in worse]
    assert times == ["2026-07-01T12:00:00Z", "2026-07-01T13:00:00Z", "2026-07-01T12:00:00Z"]
    assert worse[1].message == "findings: a, miswire; some input cannot be used; the log says which"


def test_it_keeps_the_time_at_which_a_plan_was_first_held() -> None:
    first = build_held_plan(HELD, before=None, now=NOON)
    assert build_held_plan(HELD, before=first, now=NOON + HOUR) == first
    other = first.model_copy(update={"hash": "0" * 16})
    assert build_held_plan(HELD, before=other, now=NOON + HOUR).since == "2026-07-01T13:00:00Z"


@pytest.mark.parametrize(
    "since", ["yesterday, twenty chars", "0001-01-01T00:00:00Z", "2099-01-01T00:00:00Z"]
)
def test_a_plan_is_held_from_now_if_its_time_is_unusable_or_ahead(since: str) -> None:
    first = build_held_plan(HELD, before=None, now=NOON)
    edited = first.model_copy(update={"since": since})
    assert not is_released(edited, 0, NOON)
    assert build_held_plan(HELD, before=edited, now=NOON) == first


@pytest.mark.parametrize(
    ("release_after_s", "passed", "expected"),
    [
        (None, 1000 * HOUR, False),
        (3600, HOUR - timedelta(seconds=1), False),
        (3600, HOUR, True),
    ],
)
def test_it_releases_by_time_only_if_the_budget_says_so(
    release_after_s: int | None, passed: timedelta, *, expected: bool
) -> None:
    held = build_held_plan(HELD, before=None, now=NOON)
    assert is_released(held, release_after_s, NOON + passed) is expected


@pytest.mark.parametrize(
    "status",
    [None, "text", {"conditions": "none", "held": 5}, {"conditions": [{"type": "Other"}, None]}],
)
def test_it_treats_unreadable_parts_as_absent(status: object) -> None:
    assert parse_write_status({"status": status}) == WriteStatus()


def test_it_shortens_and_escapes_a_long_message() -> None:
    outcome = build_ready(reason="WriteFailed", message="\x1b[31m" + "x" * 100_000)
    (condition,) = merge_conditions((), (outcome,), NOON)
    assert len(condition.message) < 2000
    assert condition.message.isprintable()
