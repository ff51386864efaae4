"""The tree that labels describe: paths, unknown places, hostile values and presets."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.observe.label_presets import LABEL_PRESETS
from generator.observe.labelled_tree import build_labelled_tree, parse_label_keys
from generator.outputs.hypernode.forest import render_hypernodes
from generator.outputs.hypernode.lint import lint_hypernodes
from tests.effort import examples
from topology.model.errors import ConfigError
from topology.model.tree import TopologyTree, host_partitions

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
        ({}, "has no label x.io/spine, x.io/leaf"),
        ({"other": "s1"}, "has no label x.io/spine, x.io/leaf"),
        (labels("", ""), "has no label x.io/spine, x.io/leaf"),
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


DEPTHS = [
    pytest.param({"x.io/spine": "s1"}, ("s1",), "", id="no label of the leaf, alone in its spine"),
    pytest.param(labels("s1", ""), ("s1",), "", id="an empty label of the leaf"),
    pytest.param(
        {"x.io/pod": "p0", "x.io/spine": "s0"},
        ("s0", "p0"),
        "label x.io/leaf: nodes lack it, and others of their domain have it: n1",
        id="no label of the leaf, beside nodes of leaves",
    ),
    pytest.param({"x.io/leaf": "l1"}, ("l1",), "", id="no label of the spine"),
    pytest.param(
        {"x.io/pod": "p0", "x.io/leaf": "l1"},
        ("l1", "p0"),
        "label x.io/spine: nodes with a finer label lack it: n1",
        id="no label in the middle",
    ),
]


@pytest.mark.parametrize(("node", "domains", "problem"), DEPTHS)
def test_a_node_of_another_depth_keeps_the_place_that_its_labels_give(
    node: dict[str, str], domains: tuple[str, ...], problem: str
) -> None:
    others = {**labels("s0", "l0"), "x.io/pod": "p0"}
    built = build_labelled_tree({"n1": node, "n2": others}, ("x.io/pod", *KEYS))
    assert built.tree.unplaced == ()
    found = [row.name for row in built.tree.domains if "n1" in built.tree.nodes_of(row)]
    assert tuple(found) == domains
    assert built.problems == ((problem,) if problem else ())


def test_equal_values_with_and_without_a_label_above_are_two_domains_and_are_named() -> None:
    built = build_labelled_tree({"n1": labels("s1", "l1"), "n2": {"x.io/leaf": "l1"}}, KEYS)
    assert sorted(leaves(built.tree).values()) == [("n1",), ("n2",)]
    (problem,) = built.problems
    assert problem.endswith("stands under 2 parents, and counts as as many domains: (none), s1")


def spell_keys(preset: str) -> tuple[str, ...]:
    """Return the keys of a preset, with four numbers where it takes any."""
    return tuple(
        key.replace("*", number)
        for key in LABEL_PRESETS[preset]
        for number in (("12", "3", "1", "0") if key.endswith("*") else ("",))
    )


@pytest.mark.parametrize("preset", LABEL_PRESETS)
def test_every_level_of_a_preset_is_a_tier(preset: str) -> None:
    keys = spell_keys(preset)
    nodes = {
        f"n{at}": {key: f"{level}-{at >> (len(keys) - level)}" for level, key in enumerate(keys)}
        for at in range(2 ** len(keys))
    }
    built = build_labelled_tree(nodes, parse_label_keys(preset))
    assert built.keys == keys[::-1]
    assert (len(built.tree.tiers), built.problems) == (len(keys), ())
    assert [len(row) for row in host_partitions(built.tree)] == [
        2**level for level in reversed(range(len(keys)))
    ]


@pytest.mark.parametrize("preset", LABEL_PRESETS)
@pytest.mark.parametrize("lost", range(3))
def test_a_preset_leaves_out_keys_that_no_node_has(preset: str, lost: int) -> None:
    keys = spell_keys(preset)
    kept = [key for at, key in enumerate(keys) if at % 3 != lost]
    nodes = {f"n{at}": dict.fromkeys(kept, f"v{at // 2}") for at in range(4)}
    if kept:
        built = build_labelled_tree(nodes, parse_label_keys(preset))
        assert (built.keys, built.problems) == (tuple(reversed(kept)), ())


def test_a_number_in_a_preset_must_be_a_number() -> None:
    nodes = {"n1": {"fabric.topograph.run/tier-0": "a", "fabric.topograph.run/tier-x": "b"}}
    built = build_labelled_tree(nodes, parse_label_keys("topograph"))
    assert built.keys == ("fabric.topograph.run/tier-0",)


def test_a_key_that_no_node_has_is_named_if_a_person_gave_it() -> None:
    built = build_labelled_tree({"n1": labels()}, ("x.io/row", *KEYS), tier_names=("a", "b", "c"))
    assert built.tree.tiers == ("a", "b")
    assert built.problems == ("label x.io/row: no node has it",)


@pytest.mark.parametrize("value", ["leaf-hn-0", "spine-hn", "hypernode-a-tier1-x"])
def test_a_name_of_volcanos_own_discovery_is_replaced(value: str) -> None:
    built = build_labelled_tree({"n1": labels(leaf=value)}, KEYS)
    assert lint_hypernodes(render_hypernodes(built.tree)) == ()


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


LEVELS = ("x.io/a", "x.io/b", "x.io/c", "x.io/d")


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(
        st.tuples(*(st.sampled_from(["", "v0", "v1"]) for _ in LEVELS)), min_size=1, max_size=10
    )
)
def test_nodes_of_any_depth_share_the_domains_that_their_labels_share(
    rows: list[tuple[str, ...]],
) -> None:
    nodes = {
        f"n{at}": {key: value for key, value in zip(LEVELS, row, strict=True) if value}
        for at, row in enumerate((*rows, ("v0",) * len(LEVELS)))
    }
    built = build_labelled_tree(nodes, LEVELS)
    assert {row.node for row in built.tree.unplaced} == {
        node for node, row in nodes.items() if not row
    }
    for one, other in combinations(built.tree.nodes, 2):
        shared = [
            row.tier for row in built.tree.domains if {one, other} <= {*built.tree.nodes_of(row)}
        ]
        wanted: list[int] = []
        for at, key in enumerate(LEVELS):
            if nodes[one].get(key) != nodes[other].get(key):
                break
            if key in nodes[one]:
                wanted.insert(0, len(LEVELS) - at)
        assert shared == wanted
    lacking = {
        key for key in LEVELS for problem in built.problems if f"label {key}: nodes" in problem
    }
    for row in nodes.values():
        known = [at for at, key in enumerate(LEVELS) if key in row]
        if known:
            assert {LEVELS[at] for at in range(known[0], known[-1]) if at not in known} <= lacking
