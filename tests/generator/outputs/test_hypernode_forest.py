from dataclasses import replace

import pytest

from generator.outputs.hypernode.forest import build_hypernode_tree
from generator.outputs.hypernode.model import HyperNode, Member, MemberType
from tests.generator.reconcile.cluster import hypernode
from topology.model.tree import Unplaced

LEAF = hypernode("leaf", 1, "n1", "n2")
POD = hypernode("pod", 2, "leaf")


def shape(hypernodes: list[HyperNode]) -> dict[str, list[str]]:
    """Return each domain's nodes, the direct ones and those below."""
    tree = build_hypernode_tree(hypernodes).tree
    return {domain.name: list(tree.nodes_of(domain)) for domain in tree.domains}


def test_it_reads_foreign_hypernodes_as_a_tree() -> None:
    foreign = [replace(found, labels=(), tier_name="") for found in (LEAF, POD)]
    read = build_hypernode_tree(foreign)
    assert read.problems == ()
    assert read.tree.tiers == ("tier-1", "tier-2")
    assert shape(foreign) == {"leaf": ["n1", "n2"], "pod": ["n1", "n2"]}


@pytest.mark.parametrize(
    ("hypernodes", "problem", "domains"),
    [
        pytest.param(
            [LEAF, POD, hypernode("a", 2, "b"), hypernode("b", 2, "a")],
            "cycle: a > b > a",
            {"leaf", "pod"},
            id="a cycle",
        ),
        pytest.param(
            [LEAF, hypernode("pod", 2, "gone", "leaf")],
            "pod: member gone does not exist",
            {"leaf", "pod"},
            id="a missing member",
        ),
        pytest.param(
            [LEAF, POD, hypernode("q", 2, "leaf")],
            "q: member leaf already belongs to pod",
            {"leaf", "pod"},
            id="a second parent",
        ),
        pytest.param(
            [LEAF, replace(POD, tier=1)],
            "pod: member leaf is not of a lower tier",
            {"leaf"},
            id="a parent that is not above",
        ),
        pytest.param(
            [LEAF, replace(POD, tier=-1)],
            "pod: tier -1 is not within 0 to 64",
            {"leaf"},
            id="a tier below 0",
        ),
        pytest.param(
            [LEAF, replace(POD, tier=10**12)],
            "pod: tier 1000000000000 is not within 0 to 64",
            {"leaf"},
            id="a tier beyond any fabric",
        ),
        pytest.param([LEAF, LEAF], "leaf: listed twice", {"leaf"}, id="a name listed twice"),
        pytest.param(
            [LEAF, HyperNode("x", 1, "", (), num_inexact_members=3)],
            "x: 3 members without an exact name are skipped",
            {"leaf"},
            id="members by pattern",
        ),
        pytest.param(
            [LEAF, hypernode("x", 2, "gone")], "x: has no nodes below", {"leaf"}, id="nothing below"
        ),
        pytest.param(
            [LEAF, replace(POD, tier_name="tier-1")],
            "pod: tier name tier-1 of tier 2 conflicts with another HyperNode",
            {"leaf", "pod"},
            id="a tier name at two tiers",
        ),
    ],
)
def test_it_reports_bad_members_and_keeps_the_rest(
    hypernodes: list[HyperNode], problem: str, domains: set[str]
) -> None:
    read = build_hypernode_tree(hypernodes)
    assert [line for line in read.problems if line.startswith(problem)]
    assert {domain.name for domain in read.tree.domains} == domains
    assert set(read.tree.nodes) == {"n1", "n2"}


def test_it_does_not_guess_between_two_leaves_of_one_node() -> None:
    read = build_hypernode_tree([LEAF, hypernode("other", 1, "n2", "n3")])
    assert read.tree.unplaced == (Unplaced("n2", "listed by leaf, other"),)
    assert read.problems == ("node n2: listed by leaf, other",)
    assert read.tree.nodes == ("n1", "n3")


def test_it_places_a_node_that_is_also_in_a_pod_in_its_leaf() -> None:
    pod = replace(POD, members=(*POD.members, Member(MemberType.NODE, "n1")))
    read = build_hypernode_tree([LEAF, pod])
    assert read.problems == ("node n1: listed by leaf, pod",)
    assert [domain.nodes for domain in read.tree.domains] == [("n1", "n2"), ()]
