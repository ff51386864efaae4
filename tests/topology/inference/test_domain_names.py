"""Names of domains: made from switch names, unique, valid for Kubernetes, and stable."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology.inference.domain_names import (
    MAX_NAME,
    UnnamedDomain,
    assign_names,
    derive_common_name,
)
from topology.model.tree import DomainSpec, TopologyTree, build_tree

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")


def domain(*switches: str, nodes: str = "n1", tier: int = 1, lowest: str = "02aa") -> UnnamedDomain:
    return UnnamedDomain(tier, "leaf", frozenset(nodes.split()), switches, lowest)


def old_tree(**domains: str) -> TopologyTree:
    specs = [
        DomainSpec(name.replace("_", "-"), 1, None, tuple(nodes.split()))
        for name, nodes in domains.items()
    ]
    return build_tree(specs, tiers=("leaf",))


@pytest.mark.parametrize(
    ("names", "common"),
    [
        pytest.param(["leaf-p01-r0", "leaf-p01-r7"], "leaf-p01-r0-7", id="the range of rails"),
        pytest.param(["rail-1-7", "rail-4-7"], "rail-1-4-7", id="a range in the middle"),
        pytest.param(["sp9", "sp10"], "sp09-10", id="numbers padded to one width"),
        pytest.param(["leaf-a", "leaf-b"], "leaf-", id="the part before a letter that differs"),
        pytest.param(["1", "2"], "", id="no common letter"),
        pytest.param([], "", id="no names"),
    ],
)
def test_it_finds_the_common_part_of_names(names: list[str], common: str) -> None:
    assert derive_common_name(names) == common


@pytest.mark.parametrize(
    ("switches", "name"),
    [
        pytest.param(("Leaf_01.Example",), "leaf-01-example", id="folded to a label"),
        pytest.param((), "leaf-02aa", id="the lowest id where no switch has a name"),
        pytest.param(("葉",), "leaf-02aa", id="the lowest id where no letter is left"),
        pytest.param(("../../etc\n\x1b[31m",), "etc-31m", id="hostile text"),
        pytest.param(("x" * 10_000,), "x" * 63, id="a long name cut"),
    ],
)
def test_it_makes_a_name(switches: tuple[str, ...], name: str) -> None:
    assert assign_names([domain(*switches)], None) == [name]


@given(st.lists(st.tuples(st.text(), st.text(), st.text(max_size=5)), max_size=5))
def test_it_makes_unique_labels_of_any_text(rows: list[tuple[str, str, str]]) -> None:
    domains = [
        UnnamedDomain(1, tier_name, frozenset({f"n{at}"}), (switch,), lowest)
        for at, (tier_name, switch, lowest) in enumerate(rows)
    ]
    names = assign_names(domains, None)
    assert len(set(names)) == len(names)
    assert all(LABEL.match(name) and len(name) <= MAX_NAME for name in names)


def test_it_adds_a_hash_to_both_names_that_clash() -> None:
    names = assign_names([domain("leaf.a"), domain("leaf-a", nodes="n2")], None)
    assert all(re.fullmatch(r"leaf-a-[0-9a-f]{6}", name) for name in names)
    assert names[0] != names[1]


def test_it_keeps_names_while_most_nodes_stay() -> None:
    before = old_tree(rack_1="n1 n2 n3", rack_2="n4 n5 n6")
    after = [domain("x", nodes="n4 n5 n6 n3"), domain("y", nodes="n1 n2")]
    assert assign_names(after, before) == ["rack-2", "rack-1"]


def test_it_gives_a_split_domain_s_name_to_the_larger_part() -> None:
    before = old_tree(rack_1="n1 n2 n3 n4 n5")
    after = [domain("x", nodes="n1 n2"), domain("y", nodes="n3 n4 n5")]
    assert assign_names(after, before) == ["x", "rack-1"]


def test_it_adds_a_hash_to_a_new_name_that_an_old_domain_keeps() -> None:
    before = old_tree(leaf_b="n1 n2")
    names = assign_names([domain("leaf-a", nodes="n1 n2"), domain("leaf-b", nodes="n3")], before)
    assert names[0] == "leaf-b"
    assert re.fullmatch(r"leaf-b-[0-9a-f]{6}", names[1])


def test_it_does_not_carry_a_name_to_another_tier() -> None:
    assert assign_names([domain("s", tier=2)], old_tree(rack="n1")) == ["s"]


def test_it_adds_another_hash_if_a_kept_name_is_the_hashed_one() -> None:
    two = [domain("a", nodes="n1"), domain("leaf-b", nodes="n3")]
    first = assign_names(two, old_tree(leaf_b="n1"))[1]
    kept = [domain("a", nodes="n1"), domain("c", nodes="n2"), domain("leaf-b", nodes="n3")]
    before = old_tree(**{"leaf_b": "n1", first.replace("-", "_"): "n2"})
    names = assign_names(kept, before)
    assert len(set(names)) == 3
    assert names[2].startswith("leaf-b-")
