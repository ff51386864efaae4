"""The settings for writing in the Fabric object, and the effect of typing errors."""

from typing import Any

import pytest

from generator.objects.fabric import ChangeBudget
from generator.objects.write_policy import (
    APPROVED_PLAN_ANNOTATION,
    WritePolicy,
    check_approval,
    parse_write_policy,
)
from tests.generator.folders import with_approval
from topology.model.errors import ConfigError

HASH = "0123456789abcdef"


def fabric(**spec: object) -> dict[str, Any]:
    return {
        "apiVersion": "toponaut.io/v1alpha1",
        "kind": "Fabric",
        "metadata": {"name": "default"},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(None, WritePolicy(), id="there is no object"),
        pytest.param({"spec": None, "metadata": []}, WritePolicy(), id="there is nothing in it"),
        pytest.param(
            fabric(changeBudget={"nodesPercent": 30, "releaseAfterSeconds": 600}),
            WritePolicy(ChangeBudget(nodes_percent=30, release_after_seconds=600)),
            id="it has a budget",
        ),
        pytest.param(fabric(paused=True), WritePolicy(is_paused=True), id="it is paused"),
        pytest.param(fabric(paused=False), WritePolicy(), id="it is not paused"),
        pytest.param(
            {"metadata": {"annotations": {APPROVED_PLAN_ANNOTATION: HASH}}},
            WritePolicy(approved_plan=HASH),
            id="a plan is approved",
        ),
    ],
)
def test_it_reads_the_policy_where(document: dict[str, Any] | None, expected: WritePolicy) -> None:
    assert parse_write_policy(document) == expected


@pytest.mark.parametrize(
    ("spec", "expected", "why"),
    [
        pytest.param(
            {"changeBudget": {"nodesPercent": 101}, "paused": False},
            WritePolicy(is_paused=True),
            "changeBudget",
            id="a budget over 100 %",
        ),
        pytest.param(
            {"changeBudget": {"nodes": 5}},
            WritePolicy(is_paused=True),
            "nodes",
            id="an unknown field",
        ),
        pytest.param(
            {"changeBudget": [10]}, WritePolicy(is_paused=True), "changeBudget", id="a list"
        ),
        pytest.param(
            {"paused": "yes", "changeBudget": {"nodesPercent": 5}},
            WritePolicy(ChangeBudget(nodes_percent=5), is_paused=True),
            "it counts as true",
            id="a pause in other words",
        ),
    ],
)
def test_it_reports_and_replaces(spec: dict[str, object], expected: WritePolicy, why: str) -> None:
    found = parse_write_policy(fabric(**spec))
    assert found._replace(problems=(), unknown="") == expected
    (problem,) = found.problems
    assert why in str(problem)
    assert "Fabric default" in str(problem)


WRONG_SPECS: list[object] = [{"changeBudget": {"nodesPercent": 101}}, "changeBudget: 5", [1]]


@pytest.mark.parametrize("spec", WRONG_SPECS)
def test_it_writes_nothing_by_a_budget_that_was_never_good(spec: object) -> None:
    document = fabric() | {"spec": spec}
    first = parse_write_policy(document)
    again = parse_write_policy(document, first)
    assert first.is_paused
    assert again.is_paused
    assert "nothing is written until it is corrected" in str(again.problems[0])
    mended = parse_write_policy(fabric(changeBudget={"nodesPercent": 1}), again)
    assert mended == WritePolicy(ChangeBudget(nodes_percent=1))


@pytest.mark.parametrize("spec", WRONG_SPECS)
def test_a_wrong_budget_leaves_the_last_good_one(spec: object) -> None:
    good = parse_write_policy(fabric(changeBudget={"nodesPercent": 1}))
    found = parse_write_policy(fabric() | {"spec": spec}, good)
    assert (found.budget, found.is_paused, found.unknown) == (good.budget, False, "")
    assert "the last good value counts" in str(found.problems[0])


@pytest.mark.parametrize("approved", ["", "yes", "0123", HASH.upper(), HASH * 5, 7, f"{HASH}\n"])
def test_it_ignores_an_approval_that_is_no_hash(approved: object) -> None:
    document = {
        "metadata": {"name": "default", "annotations": {APPROVED_PLAN_ANNOTATION: approved}}
    }
    found = parse_write_policy(document)
    assert found.approved_plan == ""
    assert len(found.problems) == 1


@pytest.mark.parametrize("text", ["", "yes", "\x1b[31m", HASH.upper()])
def test_it_refuses_to_approve_text_that_is_no_hash(text: str) -> None:
    with pytest.raises(ConfigError, match="is not the hash of a plan"):
        check_approval(None, text)


@pytest.mark.parametrize(
    ("held", "approved", "plan", "why"),
    [
        pytest.param(HASH, None, HASH, "", id="the held plan"),
        pytest.param(HASH, HASH[::-1], HASH, "", id="the held plan after a wrong approval"),
        pytest.param(HASH, None, HASH[::-1], f"plan {HASH} is held", id="another than the held"),
        pytest.param(None, None, HASH, "", id="no server shows which one is held"),
        pytest.param(None, HASH[::-1], HASH, "is approved already", id="another is approved"),
        pytest.param(None, HASH, HASH, "", id="the approved one again"),
        pytest.param(None, None, "zzz", "is not the hash", id="no hash"),
    ],
)
def test_it_approves_the_held_plan_alone(
    held: str | None, approved: str | None, plan: str, why: str
) -> None:
    document = fabric() if approved is None else with_approval(fabric(), approved)
    if held is not None:
        document = {**document, "status": {"held": {"hash": held, "since": "2026-11-01T00:00:00Z"}}}
    if not why:
        check_approval(document, plan)
        return
    with pytest.raises(ConfigError, match=why):
        check_approval(document, plan)
