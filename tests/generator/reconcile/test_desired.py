"""From a tree to planned HyperNodes: what Volcano cannot hold never stops the rest."""

import pytest

from generator.observe.observation import Observation
from generator.outputs.hypernode.forest import render_hypernodes
from generator.outputs.hypernode.model import HyperNode
from generator.reconcile.desired import plan_tree_changes
from topology.model.tree import DomainSpec, TopologyTree, build_tree

LONG = "gpu-node-0000.cluster-a.building-1.prod.internal.operator-net.example"


def build(**leaves: tuple[str, ...]) -> TopologyTree:
    specs = [DomainSpec(name, 1, "spine-1", nodes) for name, nodes in leaves.items()]
    return build_tree([DomainSpec("spine-1", 2, None), *specs], tiers=("leaf", "spine"))


def observed(tree: TopologyTree) -> tuple[HyperNode, ...]:
    return tuple(render_hypernodes(tree))


def test_a_node_with_more_than_63_characters_is_a_member() -> None:
    planned = plan_tree_changes(Observation(build(a=(LONG, "n1")), ()), ())
    assert planned.problems == ()
    assert planned.desired is not None
    assert planned.desired.nodes == (LONG, "n1")


def test_a_host_that_is_no_node_is_left_out_with_its_domain_and_named() -> None:
    planned = plan_tree_changes(Observation(build(a=("Rack_1,A",), b=("n1",)), ()), ())
    (problem,) = planned.problems
    assert "no node can have such a name: Rack_1,A" in problem.problem
    assert planned.desired is not None
    assert [row.name for row in planned.desired.domains] == ["b", "spine-1"]


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        pytest.param(build(a=("Rack_1,A",)), "Rack_1,A", id="no usable node"),
        pytest.param(
            build(**{"leaf-hn-0": ("n1",)}), "Volcano would refuse them", id="a reserved name"
        ),
    ],
)
def test_what_gives_no_valid_set_changes_nothing(tree: TopologyTree, said: str) -> None:
    planned = plan_tree_changes(Observation(tree, ()), observed(build(b=("n1",))))
    assert (planned.actions, planned.desired) == ((), None)
    (problem,) = planned.problems
    assert said in problem.problem
    assert "2 HyperNodes stay unchanged" in problem.problem
