import re

from hypothesis import given, settings

from generator.outputs.hypernode.forest import build_hypernode_tree, render_hypernodes
from generator.outputs.hypernode.lint import lint_hypernodes
from generator.outputs.hypernode.model import OWN_LABELS, HyperNode, parse_manifest, render_manifest
from tests.effort import examples
from tests.generator.outputs.trees import TIERS, trees
from topology.model.tree import DomainSpec, TopologyTree, Unplaced, build_tree, host_partitions

modest = settings(max_examples=examples(100), deadline=None)


def rendered(*specs: DomainSpec) -> dict[str, HyperNode]:
    made = render_hypernodes(build_tree(specs, tiers=TIERS))
    assert lint_hypernodes(made) == ()
    return {found.name: found for found in made}


def members(found: HyperNode) -> list[str]:
    return [member.name for member in found.members]


def test_it_makes_one_hypernode_per_domain_of_an_even_tree() -> None:
    made = rendered(
        DomainSpec("pod", 2, None),
        DomainSpec("leaf-10", 1, "pod", ("n10", "n9")),
        DomainSpec("leaf-9", 1, "pod", ("n1",)),
    )
    assert list(made) == ["leaf-9", "leaf-10", "pod"]
    assert members(made["leaf-10"]) == ["n9", "n10"]
    assert members(made["pod"]) == ["leaf-9", "leaf-10"]
    assert {found.labels for found in made.values()} == {OWN_LABELS}
    assert [found.tier_name for found in made.values()] == ["leaf", "leaf", "spine"]


def test_it_pads_a_domain_whose_parent_is_several_tiers_up() -> None:
    made = rendered(DomainSpec("top", 4, None), DomainSpec("leaf", 1, "top", ("n1",)))
    assert {name: members(found) for name, found in made.items()} == {
        "leaf": ["n1"],
        "leaf-pad2": ["leaf"],
        "leaf-pad3": ["leaf-pad2"],
        "top": ["leaf-pad3"],
    }
    assert [found.is_padding for found in made.values()] == [False, True, True, False]


def test_it_pads_below_nodes_that_are_directly_in_a_higher_domain() -> None:
    made = rendered(DomainSpec("pod", 3, None, ("n1", "n2")), DomainSpec("l", 2, "pod", ("n3",)))
    assert {name: members(found) for name, found in made.items()} == {
        "l-pad1": ["n3"],
        "pod-pad1": ["n1", "n2"],
        "l": ["l-pad1"],
        "pod-pad2": ["pod-pad1"],
        "pod": ["l", "pod-pad2"],
    }


def test_it_gives_padding_another_name_if_a_domain_has_it() -> None:
    made = rendered(
        DomainSpec("top", 3, None),
        DomainSpec("leaf", 1, "top", ("n1",)),
        DomainSpec("leaf-pad2", 1, None, ("n2",)),
    )
    (pad,) = (found.name for found in made.values() if found.is_padding)
    assert re.fullmatch(r"leaf-pad2-[0-9a-f]{10}", pad)


def test_it_shortens_long_names_of_padding_to_the_limit() -> None:
    name = "x" * 47 + "-" + "y" * 15
    made = rendered(DomainSpec("top", 3, None), DomainSpec(name, 1, "top", ("n1",)))
    (pad,) = (found.name for found in made.values() if found.is_padding)
    assert re.fullmatch(r"x{47}-pad2-[0-9a-f]{10}", pad)


def test_it_omits_domains_without_nodes_and_unplaced_nodes() -> None:
    tree = build_tree(
        [
            DomainSpec("pod", 2, None),
            DomainSpec("empty", 1, "pod"),
            DomainSpec("leaf", 1, "pod", ("n1",)),
            DomainSpec("bare", 2, None),
        ],
        tiers=TIERS[:2],
        unplaced=[Unplaced("n2", "undecided")],
    )
    made = {found.name: members(found) for found in render_hypernodes(tree)}
    assert made == {"leaf": ["n1"], "pod": ["leaf"]}


def test_it_writes_exact_matches_and_our_labels() -> None:
    (leaf,) = rendered(DomainSpec("leaf", 1, None, ("n1",))).values()
    assert render_manifest(leaf) == {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {
            "name": "leaf",
            "labels": {
                "app.kubernetes.io/managed-by": "toponaut",
                "volcano.sh/network-topology-source": "toponaut",
            },
        },
        "spec": {
            "tier": 1,
            "tierName": "leaf",
            "members": [{"type": "Node", "selector": {"exactMatch": {"name": "n1"}}}],
        },
    }


@modest
@given(tree=trees())
def test_it_keeps_every_rule_of_volcano_for_any_tree(tree: TopologyTree) -> None:
    made = render_hypernodes(tree)
    assert lint_hypernodes(made) == ()
    leaves = [node for found in made if found.tier == 1 for node in found.nodes]
    assert sorted(leaves) == sorted(tree.nodes)


@modest
@given(tree=trees())
def test_it_is_undone_by_reading_the_tree_back(tree: TopologyTree) -> None:
    back = build_hypernode_tree(render_hypernodes(tree))
    assert back.problems == ()
    assert back.tree.nodes == tree.nodes
    kept = {domain.name for domain in tree.domains if domain.start < domain.stop}
    assert {domain.name for domain in back.tree.domains} == kept
    for before, after in zip(host_partitions(tree), host_partitions(back.tree), strict=False):
        assert before - {frozenset()} == after


@modest
@given(tree=trees())
def test_it_survives_its_manifests(tree: TopologyTree) -> None:
    made = render_hypernodes(tree)
    assert tuple(parse_manifest(render_manifest(found)) for found in made) == made
