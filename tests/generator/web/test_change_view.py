"""The changes of the page: the held plan as before and after, and what moved when."""

from __future__ import annotations

import json

from generator.history.history_file import FindingLife, Generation
from generator.objects.fabric import HeldPlan
from generator.web.change_view import (
    MAX_CHANGES,
    MAX_STEPS,
    HeldChange,
    Past,
    build_change_view,
)
from generator.web.page_document import build_page_document
from tests.generator.history.test_changes import BEFORE, finding_of, tree_of
from topology.model.tree import DomainSpec, build_tree

AFTER = tree_of({"a": ("n1",), "b": ("n2", "n3")}, unplaced=("n4",))
PLAN = HeldPlan(hash="0123456789abcdef", since="2026-11-01T00:00:00Z", moved_nodes=1)


def test_a_held_plan_shows_what_it_moves_and_the_command_that_approves_it() -> None:
    command = "toponaut approve --kube 0123456789abcdef"
    held = build_change_view(HeldChange(PLAN, BEFORE, AFTER, command), None)["held"]
    assert (held["plan"], held["movedNodes"], held["command"]) == (PLAN.hash, 1, command)
    assert held["changes"] == [["node", "n2", "a", "b"]]


def test_a_held_plan_changes_no_switch_and_no_node_outside_because_hypernodes_have_none() -> None:
    specs = [
        DomainSpec("a", 1, "spine", nodes=("n1", "n2")),
        DomainSpec("b", 1, "spine", nodes=("n3",)),
        DomainSpec("spine", 2, None),
    ]
    written = build_tree(specs, tiers=("leaf", "spine"))
    held = build_change_view(HeldChange(PLAN, written, AFTER, "approve"), None)["held"]
    assert (held["changes"], held["numChanges"]) == ([["node", "n2", "a", "b"]], 1)


def test_each_step_shows_the_changes_since_the_generation_before() -> None:
    past = Past((Generation(2, 200, AFTER), Generation(1, 100, BEFORE)), (), 100)
    view = build_change_view(None, past)
    assert (view["held"], view["isKnown"], view["beginS"]) == (None, True, 100)
    newest, oldest = view["steps"]
    assert (newest["generation"], newest["numChanges"], newest["nodes"]) == (2, 2, 4)
    assert (oldest["isFirst"], oldest["changes"]) == (True, [])


def test_without_a_history_the_past_is_unknown() -> None:
    view = build_change_view(None, None)
    assert (view["isKnown"], view["steps"], view["gone"]) == (False, [], [])


def test_steps_and_changes_are_bounded() -> None:
    large = tree_of({"a": tuple(f"n{number}" for number in range(MAX_CHANGES + 5))})
    trees = [Generation(at, at, large if at % 2 else BEFORE) for at in range(MAX_STEPS + 9, 0, -1)]
    view = build_change_view(None, Past(trees, (), 1))
    assert len(view["steps"]) == MAX_STEPS
    assert len(view["steps"][0]["changes"]) == MAX_CHANGES
    assert view["steps"][0]["numChanges"] > MAX_CHANGES


def test_findings_have_the_times_at_which_they_began_and_ended() -> None:
    lives = (
        FindingLife(finding_of("new"), 300, None),
        FindingLife(finding_of("gone"), 100, 200),
    )
    changes = build_change_view(None, Past((), lives, 100))
    document = build_page_document(
        AFTER, None, [finding_of("new"), finding_of("unseen")], changes=changes
    )
    assert [row["beganS"] for row in document["findings"]] == [300, 0]
    (gone,) = document["changes"]["gone"]
    assert (gone["device"], gone["beganS"], gone["endedS"]) == ("gone", 100, 200)
    assert "began" not in document["changes"]


def test_names_of_nodes_are_escaped() -> None:
    hostile = tree_of({"a": ("n1\u202e\x1b[31m",)})
    past = Past((Generation(2, 200, hostile), Generation(1, 100, BEFORE)), (), 100)
    text = json.dumps(build_change_view(None, past), ensure_ascii=False)
    assert "\x1b" not in text
    assert "\u202e" not in text
