"""Labels of other writers: which are taken over, which wait, and which stay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from generator.objects.outputs import Output, OutputType
from generator.outputs.formats import LabelFamily
from generator.reconcile.object_plan import (
    LabelChange,
    LabelOwner,
    SeenNode,
    list_written_keys,
    parse_seen_node,
    plan_takeover,
)
from generator.reconcile.rendered import (
    COMPAT_MANAGER,
    RenderedOutput,
    name_manager,
    render_outputs,
)
from topology.model.tree import DomainSpec, build_tree

OWN, COMPAT = name_manager(OutputType.LABELS), COMPAT_MANAGER
TIER_0 = "fabric.topograph.run/tier-0"
LEAF = "topology.toponaut.io/leaf"


@pytest.fixture(scope="module")
def rendered() -> RenderedOutput:
    """Two leaves; Toponaut's own keys and those of topograph."""
    tree = build_tree(
        [
            DomainSpec("rack-a", 1, None, ("n1", "n2")),
            DomainSpec("rack-b", 1, None, ("n3",)),
        ],
        tiers=("leaf",),
    )
    outputs = [Output(type=OutputType.LABELS, compat=(LabelFamily.TOPOGRAPH,))]
    (row,) = render_outputs(tree, outputs, namespace="")
    return row


def nodes_with(**labels: Mapping[str, str]) -> dict[str, SeenNode]:
    return {name: SeenNode(name, values) for name, values in labels.items()}


def test_it_takes_over_the_named_keys_alone(rendered: RenderedOutput) -> None:
    nodes = nodes_with(n1={TIER_0: "rack-a"}, n2={TIER_0: "old"}, n3={"other": "x"})
    found = plan_takeover(rendered, nodes, [TIER_0])
    assert found.takeover.ready == {LabelOwner(COMPAT, "n1"), LabelOwner(COMPAT, "n2")}
    assert found.labels == (
        LabelChange("n1", TIER_0, "rack-a", "rack-a"),
        LabelChange("n2", TIER_0, "old", "rack-a"),
    )
    assert plan_takeover(rendered, nodes, [LEAF]).takeover.ready == set()


def test_a_value_that_would_change_waits_for_the_gang(rendered: RenderedOutput) -> None:
    nodes = nodes_with(n1={TIER_0: "rack-a"}, n2={TIER_0: "old"})
    found = plan_takeover(rendered, nodes, [TIER_0], busy={"n1", "n2"})
    assert found.takeover.ready == {LabelOwner(COMPAT, "n1")}
    assert found.takeover.waiting == {LabelOwner(COMPAT, "n2")}


def test_a_node_with_a_further_key_of_the_output_stays(rendered: RenderedOutput) -> None:
    nodes = nodes_with(n1={TIER_0: "old", "fabric.topograph.run/tier-1": "spine"}, n3={LEAF: "x"})
    found = plan_takeover(rendered, nodes, [TIER_0])
    assert found.takeover.ready == {LabelOwner(COMPAT, "n1")}, "no output writes tier-1"
    both = nodes_with(n1={LEAF: "x", TIER_0: "old"})
    assert plan_takeover(rendered, both, [TIER_0]).takeover.ready == {LabelOwner(COMPAT, "n1")}
    assert set(list_written_keys(rendered)) == {LEAF, TIER_0}


def test_labels_that_are_toponauts_are_not_taken_over_again(rendered: RenderedOutput) -> None:
    fields: dict[str, Any] = {"f:metadata": {"f:labels": {f"f:{LEAF}": {}}}}
    row = {
        "manager": OWN,
        "operation": "Apply",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    metadata = {"name": "n1", "labels": {LEAF: "rack-a"}, "managedFields": [row]}
    seen = parse_seen_node({"metadata": metadata})
    assert seen == SeenNode("n1", {LEAF: "rack-a"}, frozenset({OWN}))
    assert not plan_takeover(rendered, {"n1": seen}, [LEAF]).takeover.ready
