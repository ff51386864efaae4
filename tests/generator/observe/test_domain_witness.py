"""Cables compared with a second witness: moved nodes, finer and coarser trees, unknown nodes."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from generator.observe.domain_witness import WitnessKind, compare_witness
from topology.model.tree import DomainSpec, TopologyTree, Unplaced, build_tree

NODES = [f"n{at:02d}" for at in range(24)]


def tree_of(*tiers: Mapping[str, str], unplaced: tuple[Unplaced, ...] = ()) -> TopologyTree:
    """Return the tree of the domain of each node per tier, lowest first."""
    specs = {}
    for at, tier in enumerate(tiers):
        for node, name in tier.items():
            parent = tiers[at + 1][node] if at + 1 < len(tiers) else None
            nodes = tuple(key for key, found in tier.items() if found == name and not at)
            specs[name] = DomainSpec(name, at + 1, parent, nodes)
    names = ("leaf", "spine", "core")[: len(tiers)]
    return build_tree(specs.values(), tiers=names, unplaced=unplaced)


def groups(size: int, prefix: str) -> dict[str, str]:
    return {node: f"{prefix}{at // size}" for at, node in enumerate(NODES)}


CABLES = tree_of(groups(6, "leaf-"), groups(12, "spine-"))


def test_other_names_of_the_same_tree_agree() -> None:
    diff = compare_witness(CABLES, tree_of(groups(6, "rack"), groups(12, "row")))
    assert diff == ((), 24)


def test_finer_and_coarser_witnesses_agree() -> None:
    assert compare_witness(CABLES, tree_of(groups(3, "half"))).rows == ()
    assert compare_witness(CABLES, tree_of(groups(2, "third"), groups(6, "rack"))).rows == ()
    assert compare_witness(CABLES, tree_of(groups(24, "zone"))).rows == ()
    assert compare_witness(CABLES, tree_of(groups(12, "row"))).rows == ()


def test_it_names_a_node_with_the_label_of_another_leaf() -> None:
    witness = tree_of(groups(6, "rack") | {"n00": "rack3"})
    (row,) = compare_witness(CABLES, witness).rows
    assert row[:-1] == (
        WitnessKind.OTHER_DOMAIN, "n00", "leaf", "rack3", "leaf-3", "leaf-0", "rack0",
    )  # fmt: skip


def test_it_names_a_node_with_a_label_of_its_own() -> None:
    witness = tree_of(groups(6, "rack") | {"n00": "alone"})
    assert [row.node for row in compare_witness(CABLES, witness).rows] == ["n00"]


def test_it_names_nodes_that_only_one_of_the_two_places() -> None:
    rack = groups(6, "rack")
    del rack["n01"]
    rack["n99"] = "rack0"
    diff = compare_witness(CABLES, tree_of(rack, unplaced=(Unplaced("n01", "has no label"),)))
    assert [(row.kind, row.node, row.reason) for row in diff.rows] == [
        (WitnessKind.NOT_IN_WITNESS, "n01", "has no label"),
        (WitnessKind.NOT_IN_CABLES, "n99", "no cable of it is known"),
    ]
    assert diff.num_agreed == 23


def test_a_tier_that_agrees_with_none_is_one_row() -> None:
    wild = {node: f"w{at % 6}" for at, node in enumerate(NODES)}
    diff = compare_witness(CABLES, tree_of(wild))
    assert [(row.kind, row.node) for row in diff.rows] == [(WitnessKind.OTHER_TIER, "leaf")]


@given(st.sets(st.sampled_from(NODES), max_size=4), st.permutations(range(4)))
def test_it_finds_exactly_the_few_nodes_that_moved(moved: set[str], names: list[int]) -> None:
    rack = {node: f"rack{names[at // 6]}" for at, node in enumerate(NODES)}
    for node in moved:
        rack[node] = f"rack{names[(NODES.index(node) // 6 + 1) % 4]}"
    per_leaf = [sum(NODES.index(node) // 6 == leaf for node in moved) for leaf in range(4)]
    diff = compare_witness(CABLES, tree_of(rack))
    if max(per_leaf) < 2:
        assert {row.node for row in diff.rows} == moved
    assert diff.num_agreed + len(diff.rows) == 24
