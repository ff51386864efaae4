"""Labels of nodes: keys, values, and one value per tier for every node."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.outputs.formats import ExportSettings, LabelFamily
from generator.outputs.node_labels import (
    build_label_values,
    build_tier_keys,
    list_label_keys,
    name_domains,
    render_label_objects,
    render_node_labels,
)
from tests.generator.outputs.trees import trees
from topology.model.errors import ConfigError
from topology.model.tree import DomainSpec, TopologyTree, Unplaced, build_tree

VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_]{0,61}[A-Za-z0-9])?\Z")
TIERS = ("leaf", "spine")


def with_unplaced(tree: TopologyTree) -> TopologyTree:
    specs = [
        DomainSpec(
            domain.name,
            domain.tier,
            None if domain.parent is None else tree.domains[domain.parent].name,
            domain.nodes,
        )
        for domain in tree.domains
    ]
    unplaced = (Unplaced("lost-1", "no report"), Unplaced("lost-2", "no report"))
    return build_tree(specs, tiers=tree.tiers, unplaced=unplaced)


@given(trees())
def test_every_node_has_a_valid_value_per_tier(tree: TopologyTree) -> None:
    rows = render_node_labels(with_unplaced(tree))
    assert [row.node for row in rows] == [*tree.nodes, "lost-1", "lost-2"]
    assert all(VALUE.match(value) for row in rows for value in row.values)
    assert {len(row.values) for row in rows} == {len(tree.tiers)}


@given(trees())
def test_nodes_share_a_value_exactly_where_they_share_a_domain(tree: TopologyTree) -> None:
    values = {row.node: row.values for row in render_node_labels(with_unplaced(tree))}
    for tier in range(1, len(tree.tiers) + 1):
        domain_of = {
            node: domain.name
            for domain in tree.domains
            if domain.tier == tier
            for node in tree.nodes_of(domain)
        }
        for first, own in domain_of.items():
            for second, other in domain_of.items():
                shares = values[first][tier - 1] == values[second][tier - 1]
                assert shares == (own == other)


@given(trees())
def test_a_value_has_one_value_above(tree: TopologyTree) -> None:
    rows = [row.values for row in render_node_labels(with_unplaced(tree))]
    for lower in range(len(tree.tiers) - 1):
        assert len({row[lower:] for row in rows}) == len({row[lower] for row in rows})


@given(trees())
def test_an_unplaced_node_shares_its_value_with_no_node(tree: TopologyTree) -> None:
    rows = render_node_labels(with_unplaced(tree))
    values = [value for row in rows for value in set(row.values)]
    lost = [row for row in rows if not row.is_placed]
    assert all(values.count(row.values[0]) == 1 for row in lost)


def test_an_island_and_a_shallow_branch_are_padded() -> None:
    tree = build_tree(
        [
            DomainSpec("s1", 2, None, ("direct",)),
            DomainSpec("l1", 1, "s1", ("a",)),
            DomainSpec("l2", 1, None, ("b",)),
        ],
        tiers=(*TIERS, "core"),
    )
    assert name_domains(tree) == {
        "a": ("l1", "s1", "s1-pad3"),
        "b": ("l2", "l2-pad2", "l2-pad3"),
        "direct": ("s1-pad1", "s1", "s1-pad3"),
    }


NAMES = [
    pytest.param(["leaf-2", "leaf-10"], ["leaf-0002", "leaf-0010"], id="numbers are padded"),
    pytest.param(["leaf-00002"], ["leaf-00002"], id="a long number stays"),
    pytest.param(["r1.pod-2"], None, id="a dot becomes a dash, with a hash"),
    pytest.param(["leaf-1", "leaf-01"], None, id="two names of one value"),
    pytest.param(["x" * 80, "x" * 81], None, id="long names"),
    pytest.param(["root"], None, id="the name that KAI uses for the whole tree"),
    pytest.param(["taken"], None, id="the name of a node"),
    pytest.param(["---", "é", ""], None, id="names without a usable character"),
]


@pytest.mark.parametrize(("names", "values"), NAMES)
def test_it_makes_values(names: list[str], values: list[str] | None) -> None:
    made = build_label_values(names, taken={"taken"})
    if values is not None:
        assert [made[name] for name in names] == values
    assert len(set(made.values())) == len(names)
    assert all(VALUE.match(value) for value in made.values())
    assert not {"taken", "root"} & set(made.values())
    assert not any("." in value for value in made.values())


@given(st.lists(st.text(max_size=90), unique=True, max_size=8))
def test_values_are_unique_and_do_not_depend_on_order(names: list[str]) -> None:
    made = build_label_values(names)
    assert len(set(made.values())) == len(names)
    assert all(VALUE.match(value) for value in made.values())
    assert dict(build_label_values(reversed(names))) == dict(made)


def test_text_order_is_the_order_of_numbers() -> None:
    names = [f"pod-{pod}-leaf-{leaf}" for pod in (1, 2, 10) for leaf in (1, 9, 10, 999)]
    made = build_label_values(names)
    assert sorted(made.values()) == [made[name] for name in names]


def test_numbers_stay_as_they_are_where_an_admin_says_so() -> None:
    names = ["rack-7", "rack-10", "row"]
    assert list(build_label_values(names, is_padded=False).values()) == names


def test_keys_are_those_of_the_tiers_and_of_other_tools() -> None:
    families = (LabelFamily.NVIDIA, LabelFamily.TOPOGRAPH)
    assert list_label_keys(("leaf", "spine", "core", "top"), families=families) == (
        (
            "topology.toponaut.io/leaf",
            "network.topology.nvidia.com/leaf",
            "fabric.topograph.run/tier-0",
        ),
        (
            "topology.toponaut.io/spine",
            "network.topology.nvidia.com/spine",
            "fabric.topograph.run/tier-1",
        ),
        (
            "topology.toponaut.io/core",
            "network.topology.nvidia.com/core",
            "fabric.topograph.run/tier-2",
        ),
        ("topology.toponaut.io/top", "fabric.topograph.run/tier-3"),
    )


BAD_KEYS = [
    pytest.param(("leaf",), "Upper.io", "not a label prefix", id="an upper-case prefix"),
    pytest.param(("leaf",), "", "not a label prefix", id="no prefix"),
    pytest.param(("leaf",), "topology.kubernetes.io", "belongs to Kubernetes", id="its prefix"),
    pytest.param(("top of rack",), "a.io", "cannot be in a label key", id="a space in a tier"),
    pytest.param(("leaf",), "a" * 59, "64 characters", id="a long key"),
]


@pytest.mark.parametrize(("tiers", "prefix", "words"), BAD_KEYS)
def test_it_refuses_keys(tiers: tuple[str, ...], prefix: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build_tier_keys(tiers, prefix)


def test_it_refuses_one_key_for_two_tiers() -> None:
    prefix, families = "fabric.topograph.run", (LabelFamily.TOPOGRAPH,)
    with pytest.raises(ConfigError, match=r"fabric\.topograph\.run/tier-1 would carry the tiers"):
        list_label_keys(("tier-1", "tier-2"), prefix=prefix, families=families)
    same = list_label_keys(("tier-0", "tier-1"), prefix=prefix, families=families)
    assert same == ((f"{prefix}/tier-0",), (f"{prefix}/tier-1",))


def test_the_labels_of_a_node_go_from_the_highest_tier_down() -> None:
    tree = build_tree(
        [DomainSpec("s", 2, None), DomainSpec("l", 1, "s", ("n",))],
        tiers=TIERS,
        unplaced=[Unplaced("m", "no report")],
    )
    placed, lost = render_label_objects(tree, ExportSettings())
    assert list(placed.labels.items()) == [
        ("topology.toponaut.io/spine", "s"),
        ("topology.toponaut.io/leaf", "l"),
    ]
    assert set(lost.labels.values()) == {"unplaced-m"}


def test_a_tree_without_tiers_has_no_labels() -> None:
    tree = build_tree([], tiers=(), unplaced=[Unplaced("a", "no report")])
    assert render_label_objects(tree, ExportSettings()) == ()
