from dataclasses import replace

import pytest
from hypothesis import given, settings

from generator.outputs.hypernode.forest import build_hypernode_tree
from generator.outputs.hypernode.lint import lint_hypernodes
from generator.outputs.hypernode.model import (
    PLACEHOLDER,
    SOURCE_LABEL,
    HyperNode,
    Member,
    MemberType,
)
from tests.effort import examples
from tests.generator.reconcile.cluster import hypernode
from tests.generator.reconcile.forests import damaged

LEAF = hypernode("leaf", 1, "n1")
POD = hypernode("pod", 2, "leaf")
LONG = "n" * 64


@pytest.mark.parametrize(
    ("hypernodes", "problem"),
    [
        ([hypernode("a", 2, "b"), hypernode("b", 2, "a")], "cycle: a > b > a"),
        ([hypernode("a", 2, "a")], "cycle: a > a"),
        (
            [hypernode(f"c{at}", 2, f"c{(at + 1) % 10}") for at in range(10)],
            "cycle: c0 > c1 > c2 > c3 > c4 > c5 > c6 > … 3 more … > c0",
        ),
        ([LEAF, POD, hypernode("q", 2, "leaf")], "leaf: has 2 parents: pod, q"),
        (
            [LEAF, *(hypernode(f"p{at}", 2, "leaf") for at in range(7))],
            "leaf: has 7 parents: p0, p1, p2, p3, p4 and 2 more",
        ),
        ([POD], "pod: lists HyperNode leaf, which does not exist"),
        (
            [LEAF, hypernode("pod", 3, "leaf")],
            "pod: tier 3 is more than one above tier 1 of its member leaf",
        ),
        (
            [hypernode("x", 2, "leaf"), LEAF, hypernode("y", 2, "x")],
            "y: tier 2 is not above tier 2 of its member x",
        ),
        ([LEAF, hypernode("x", 3, "leaf")], "tier 3 is used, but no HyperNode has tier 2"),
        ([replace(LEAF, tier=0)], "leaf: tier 0, the lowest must be 1"),
        ([LEAF, replace(LEAF, name="b")], "node n1: is in 2 HyperNodes: b, leaf"),
        ([replace(LEAF, members=LEAF.members * 2)], "leaf: lists Node n1 2 times"),
        ([replace(LEAF, members=())], "leaf: has no members"),
        ([LEAF, LEAF], "leaf: 2 HyperNodes have this name"),
        (
            [LEAF, replace(POD, tier_name="tier-1")],
            "tier name tier-1 is used at tiers 1, 2",
        ),
        (
            [LEAF, hypernode("b", 1, "n2"), replace(hypernode("c", 1, "n3"), tier_name="rack")],
            "tier 1 has several names: rack, tier-1",
        ),
        (
            [LEAF, replace(POD, members=(*POD.members, Member(MemberType.NODE, "n2")))],
            "pod: lists nodes at tier 2; they belong in tier 1",
        ),
        (
            [hypernode("leaf", 1, PLACEHOLDER)],
            f"leaf: has the member {PLACEHOLDER}, left by an interrupted plan",
        ),
        ([replace(LEAF, num_inexact_members=2)], "leaf: 2 members are not selected by exact names"),
        (
            [hypernode("leaf", 1, "N1")],
            "leaf: member N1 is not a lower-case DNS-1123 name",
        ),
        (
            [hypernode("leaf", 1, LONG * 4)],
            f"leaf: member {LONG}{LONG[:56]}… is not a lower-case DNS-1123 name",
        ),
        ([hypernode("a_b", 1, "n1")], "a_b: not a lower-case DNS-1123 name"),
        ([hypernode("leaf-hn-0", 1, "n1")], "leaf-hn-0: Volcano's own discovery uses such names"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_it_reports_each_broken_rule(hypernodes: list[HyperNode], problem: str) -> None:
    assert [line for line in lint_hypernodes(hypernodes) if line.startswith(problem)]
    assert lint_hypernodes(hypernodes[::-1]) == lint_hypernodes(hypernodes)


def test_it_reports_nothing_for_a_valid_or_empty_set() -> None:
    assert lint_hypernodes([POD, LEAF]) == ()
    assert lint_hypernodes([]) == ()


def test_it_allows_volcano_its_own_names() -> None:
    assert (
        lint_hypernodes([HyperNode("leaf-hn-0", 1, "", LEAF.members, ((SOURCE_LABEL, "ufm"),))])
        == ()
    )


def test_it_escapes_hostile_names() -> None:
    assert all(
        line.isprintable() for line in lint_hypernodes([hypernode("leaf", 1, "\x1b[2J\u202e")])
    )


@settings(max_examples=examples(100), deadline=None)
@given(observed=damaged())
def test_it_accepts_any_damaged_set_and_reads_a_tree_from_it(observed: list[HyperNode]) -> None:
    problems, read = lint_hypernodes(observed), build_hypernode_tree(observed)
    if not problems and not any(found.is_padding for found in observed):
        assert read.problems == ()
        assert {domain.name for domain in read.tree.domains} == {one.name for one in observed}
    placed = {node for found in observed for node in found.nodes}
    assert set(read.tree.nodes) <= placed
    assert build_hypernode_tree(observed[::-1]) == read
