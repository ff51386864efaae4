"""The tree that labels describe: paths, unknown places, hostile values and presets."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.observe.labelled_tree import (
    LABEL_PRESETS,
    build_labelled_tree,
    parse_label_keys,
)
from generator.outputs.hypernode import lint_hypernodes, render_hypernodes
from tests.effort import examples
from topology.model.errors import ConfigError
from topology.model.tree import TopologyTree

KEYS = ("x.io/spine", "x.io/leaf")


def labels(spine: str = "s1", leaf: str = "l1") -> dict[str, str]:
    return {"x.io/spine": spine, "x.io/leaf": leaf}


def leaves(tree: TopologyTree) -> dict[str, tuple[str, ...]]:
    return {row.name: row.nodes for row in tree.domains if row.nodes}


def test_it_builds_the_tree_of_the_labels() -> None:
    nodes = {"n1": labels(), "n2": labels(), "n3": labels("s1", "l2"), "n4": labels("s2", "l3")}
    built = build_labelled_tree(nodes, KEYS)
    assert built.tree.tiers == ("leaf", "spine")
    assert built.keys == KEYS[::-1]
    assert leaves(built.tree) == {"l1": ("n1", "n2"), "l2": ("n3",), "l3": ("n4",)}
    assert built.problems == ()
    assert build_labelled_tree(dict(reversed(nodes.items())), KEYS) == built


def test_a_value_under_two_parents_is_two_domains_and_is_named() -> None:
    nodes = {"n1": labels("s1", "r1"), "n2": labels("s2", "r1"), "n3": labels("s2", "r2")}
    built = build_labelled_tree(nodes, KEYS)
    assert sorted(map(len, leaves(built.tree).values())) == [1, 1, 1]
    assert all(name.startswith("r1-") for name in leaves(built.tree) if name != "r2")
    (problem,) = built.problems
    assert problem.startswith("label x.io/leaf: the value 'r1' stands under 2 parents")
    assert problem.endswith(": s1, s2")


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        ({}, "has no label x.io/spine"),
        ({"x.io/spine": "s1"}, "has no label x.io/leaf"),
        (labels(leaf=""), "has no label x.io/leaf"),
        (labels(leaf="no-topology"), "its label x.io/leaf is 'no-topology', which means an"),
        (labels(leaf="unplaced-n1"), "its label x.io/leaf is 'unplaced-n1', which means an"),
        (labels(leaf="\x1b[2J"), r"its label x.io/leaf is '\x1b[2J', which is no value"),
        (labels(leaf="a" * 64), "its label x.io/leaf is 'aaaa"),
    ],
)
def test_a_node_without_a_usable_label_is_unplaced(node: dict[str, str], reason: str) -> None:
    built = build_labelled_tree({"n1": node, "n2": labels()}, KEYS)
    ((name, found),) = built.tree.unplaced
    assert name == "n1"
    assert found.startswith(reason)
    assert found.isprintable()


def test_values_that_are_no_names_of_objects_stay_apart() -> None:
    nodes = {"n1": labels(leaf="Rack_1"), "n2": labels(leaf="rack-1"), "n3": labels(leaf="rack_1")}
    built = build_labelled_tree(nodes, KEYS)
    assert sorted(leaves(built.tree).values()) == [("n1",), ("n2",), ("n3",)]


@pytest.mark.parametrize("name", LABEL_PRESETS)
def test_a_preset_uses_the_keys_that_nodes_have(name: str) -> None:
    keys = parse_label_keys(name)
    nodes = {f"n{at}": {keys[0]: "top", keys[1]: f"l{at // 2}"} for at in range(4)}
    built = build_labelled_tree(nodes, keys)
    assert built.keys == (keys[1], keys[0])
    assert len(leaves(built.tree)) == 2


def test_the_name_of_the_node_is_no_tier() -> None:
    nodes = {"n1": {**labels(), "kubernetes.io/hostname": "n1"}}
    built = build_labelled_tree(nodes, (*KEYS, "kubernetes.io/hostname"))
    assert built.tree.tiers == ("leaf", "spine")


@pytest.mark.parametrize("text", ["", "a,,b", "a,a", "a b", "\x1b", ",".join("abcdefghijklmnopq")])
def test_it_refuses_keys_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match="--node-labels") as caught:
        parse_label_keys(text)
    assert str(caught.value).isprintable()


def test_it_refuses_labels_that_no_node_has() -> None:
    with pytest.raises(ConfigError, match="none of 1 nodes has"):
        build_labelled_tree({"n1": {}}, KEYS)
    with pytest.raises(ConfigError, match="2 label keys need as many names"):
        build_labelled_tree({"n1": labels()}, KEYS, tier_names=("leaf",))


VALUES = st.one_of(
    st.sampled_from(["a", "b", "A", "a_", "a.b", "a-b", "a" * 63, "no-topology", "\x1b", ""]),
    st.text(max_size=5),
)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=12))
def test_any_values_give_a_tree_that_volcano_takes(rows: list[tuple[str, str]]) -> None:
    nodes = {f"n{at}": labels(*row) for at, row in enumerate(rows)}
    built = build_labelled_tree(nodes, KEYS)
    placed = set(built.tree.nodes) | {row.node for row in built.tree.unplaced}
    assert placed == set(nodes)
    assert lint_hypernodes(render_hypernodes(built.tree)) == ()
    by_path = {tuple(nodes[node].values()) for node in built.tree.nodes}
    assert len(leaves(built.tree)) == len(by_path)
    assert all(problem.isprintable() for problem in built.problems)
