"""The names of a domain in outputs: each finds its domain."""

from hypothesis import given

from generator.outputs.domain_names import find_domain, list_other_names
from generator.outputs.node_labels import name_domains, render_node_labels
from generator.outputs.slurm import build_switches
from tests.generator.outputs.trees import trees
from topology.model.tree import DomainSpec, TopologyTree, build_tree


@given(trees())
def test_every_label_value_of_a_domain_finds_it(tree: TopologyTree) -> None:
    for is_padded in (True, False):
        for row in render_node_labels(tree, is_padded=is_padded):
            for name, value in zip(name_domains(tree)[row.node], row.values, strict=True):
                own = [at for at, one in enumerate(tree.domains) if one.name == name]
                other = [at for at, one in enumerate(tree.domains) if one.name == value]
                assert find_domain(tree, value) == next(iter(other or own), None)


def test_a_name_that_slurm_cannot_hold_is_among_the_names_of_its_domain() -> None:
    tree = build_tree([DomainSpec("null", 1, None, ("n1",))], tiers=("leaf",))
    (switch,) = build_switches(tree)
    assert switch.name in list_other_names(tree)["null"]
    assert find_domain(tree, switch.name) == 0


def test_the_own_name_of_a_domain_comes_before_the_label_value_of_another() -> None:
    specs = [DomainSpec(name, 1, None, (f"n-{name}",)) for name in ("leaf-1", "leaf-0001")]
    tree = build_tree(specs, tiers=("leaf",))
    for at, row in enumerate(tree.domains):
        assert find_domain(tree, row.name) == at
        for other in list_other_names(tree)[row.name]:
            assert find_domain(tree, other) == at
    assert find_domain(tree, "leaf-2") is None
