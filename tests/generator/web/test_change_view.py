"""The changes of the page: the held plan as before and after, and what moved when."""

from __future__ import annotations

import json
from typing import Any

from generator.history.history_file import FindingLife, Generation
from generator.history.tree_changes import compare_names
from generator.objects.fabric import HeldPlan
from generator.web.change_view import (
    MAX_BOXES,
    MAX_CHANGES,
    MAX_STEPS,
    HeldChange,
    TreeHistory,
    build_change_view,
    build_plan_diagram,
)
from generator.web.page_document import build_page_document
from tests.generator.history.test_changes import BEFORE, finding_of, tree_of
from topology.model.tree import DomainSpec, TopologyTree, build_tree

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
    past = TreeHistory((Generation(2, 200, AFTER), Generation(1, 100, BEFORE)), (), 100)
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
    view = build_change_view(None, TreeHistory(trees, (), 1))
    assert len(view["steps"]) == MAX_STEPS
    assert len(view["steps"][0]["changes"]) == MAX_CHANGES
    assert view["steps"][0]["numChanges"] > MAX_CHANGES


def test_findings_have_the_times_at_which_they_began_and_ended() -> None:
    lives = (
        FindingLife(finding_of("new"), 300, None),
        FindingLife(finding_of("gone"), 100, 200),
    )
    changes = build_change_view(None, TreeHistory((), lives, 100))
    document = build_page_document(
        AFTER, None, [finding_of("new"), finding_of("unseen")], changes=changes
    )
    assert [row["beganS"] for row in document["findings"]] == [300, 0]
    (gone,) = document["changes"]["gone"]
    assert (gone["device"], gone["beganS"], gone["endedS"]) == ("gone", 100, 200)
    assert "began" not in document["changes"]


def test_names_of_nodes_are_escaped() -> None:
    hostile = tree_of({"a": ("n1\u202e\x1b[31m",)})
    past = TreeHistory((Generation(2, 200, hostile), Generation(1, 100, BEFORE)), (), 100)
    text = json.dumps(build_change_view(None, past), ensure_ascii=False)
    assert "\x1b" not in text
    assert "\u202e" not in text


def draw(before: TopologyTree, after: TopologyTree) -> dict[str, Any]:
    return build_plan_diagram(before, after, compare_names(before, after))


def test_nodes_that_go_the_same_way_are_one_flow() -> None:
    before = tree_of({"a": ("n1", "n2", "n3"), "b": ("n4",), "c": ("n5",)})
    after = tree_of({"a": ("n1",), "b": ("n2", "n3", "n4"), "c": ("n5",)})
    drawing = draw(before, after)
    assert [(box["name"], box["nodes"]) for box in drawing["before"]] == [("a", 3), ("b", 1)]
    assert [(box["name"], box["nodes"]) for box in drawing["after"]] == [("a", 1), ("b", 3)]
    assert drawing["flows"] == [[0, 1, 2]]
    assert drawing["numOthers"] == 0


def test_nodes_that_leave_the_tree_or_enter_it_have_one_end() -> None:
    before = tree_of({"a": ("n1", "n2")}, unplaced=("n3",))
    after = tree_of({"a": ("n1", "n3")}, unplaced=("n2",))
    assert sorted(draw(before, after)["flows"]) == [[-1, 0, 1], [0, -1, 1]]


def test_a_domain_that_moves_is_drawn_without_a_flow() -> None:
    drawing = draw(tree_of({"a": ("n1",)}), tree_of({"b": ("n1",)}))
    assert [box["name"] for box in drawing["before"]] == ["a"]
    assert [box["name"] for box in drawing["after"]] == ["b"]
    assert drawing["flows"] == [[0, 0, 1]]


def test_of_many_domains_those_with_the_most_nodes_that_move_are_drawn() -> None:
    leaves = {f"leaf-{at}": (f"n{at}", f"m{at}") for at in range(MAX_BOXES + 10)}
    before = tree_of({**leaves, "big": ("b1", "b2", "b3")})
    after = tree_of(
        {
            **{name: nodes[:1] for name, nodes in leaves.items()},
            "big": ("b1",),
            "new": ("b2", "b3", *(nodes[1] for nodes in leaves.values())),
        }
    )
    drawing = draw(before, after)
    assert len(drawing["before"]) == len(drawing["after"]) == MAX_BOXES
    assert "big" in {box["name"] for box in drawing["before"]}
    assert "new" in {box["name"] for box in drawing["after"]}
    assert drawing["numOthers"] > 0
    assert sum(flow[2] for flow in drawing["flows"]) == len(leaves) + 2


def test_hostile_names_are_escaped() -> None:
    drawing = draw(tree_of({"a\x1b": ("n1",)}), tree_of({"b\u202e": ("n1",)}))
    assert "\x1b" not in drawing["before"][0]["name"]
    assert "\u202e" not in drawing["after"][0]["name"]
