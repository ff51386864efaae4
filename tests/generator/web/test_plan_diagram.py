"""The drawing of a held plan: what it touches, and which nodes go from where to where."""

from __future__ import annotations

from typing import Any

from generator.history.tree_changes import compare_trees
from generator.web.plan_diagram import MAX_BOXES, build_plan_diagram
from tests.generator.history.test_changes import tree_of
from topology.model.tree import TopologyTree


def draw(before: TopologyTree, after: TopologyTree) -> dict[str, Any]:
    return build_plan_diagram(before, after, compare_trees(before, after))


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
