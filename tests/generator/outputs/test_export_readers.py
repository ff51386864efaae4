"""Every format is read back: it shows the tree that it was rendered from, or is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.outputs.catalog import Export, render_export
from generator.outputs.formats import ExportFormat, ExportSettings, FlavorSpec, LabelFamily
from tests.effort import examples
from tests.generator.outputs.export_readers import find_export_problem
from tests.generator.outputs.trees import trees
from topology.model.errors import ConfigError
from topology.model.tree import (
    DomainSpec,
    TopologyTree,
    Unplaced,
    build_tree,
    without_nodes,
)

SETTINGS = ExportSettings(
    label_families=tuple(LabelFamily), flavor=FlavorSpec("gpu", {"node-role": "gpu"})
)
HOSTILE = ("Rack_1,A", "x" * 64, "y" * 254, "n[1-4]", "a b", 'q"];', "\x1b[2J", "z" + "1" * 20, "é")
TREE = build_tree(
    [
        DomainSpec("spine-1", 2, None, ("direct-1",)),
        DomainSpec("leaf-1", 1, "spine-1", ("n1", "n2")),
        DomainSpec("leaf-2", 1, "spine-1", ("n3", "n4")),
        DomainSpec("island-1", 1, None, ("n5",)),
    ],
    tiers=("leaf", "spine"),
    unplaced=[Unplaced("lost-1", "no report")],
)


def rename(tree: TopologyTree, names: dict[str, str]) -> TopologyTree:
    specs = [
        DomainSpec(
            row.name,
            row.tier,
            None if row.parent is None else tree.domains[row.parent].name,
            tuple(names.get(node, node) for node in row.nodes),
        )
        for row in tree.domains
    ]
    unplaced = [Unplaced(names.get(row.node, row.node), row.reason) for row in tree.unplaced]
    return build_tree(specs, tiers=tree.tiers, unplaced=unplaced)


@st.composite
def named_trees(draw: st.DrawFn) -> TopologyTree:
    """Draw a tree in which some nodes have names that some readers cannot hold."""
    tree = draw(trees())
    lost = draw(st.lists(st.sampled_from(("u1", "u2")), unique=True))
    tree = replace(tree, unplaced=tuple(Unplaced(node, "no report") for node in sorted(lost)))
    nodes = draw(st.permutations(tree.all_nodes))
    names = draw(st.lists(st.sampled_from(HOSTILE), unique=True, max_size=len(nodes)))
    return rename(tree, dict(zip(nodes, names, strict=False)))


@settings(max_examples=examples(200), deadline=None)
@given(named_trees(), st.sampled_from(ExportFormat))
def test_any_tree_is_read_back_from_every_format(tree: TopologyTree, chosen: ExportFormat) -> None:
    export = render_export(tree, chosen, SETTINGS)
    shown = without_nodes(tree, export.left_out)
    assert {*export.left_out} <= {*HOSTILE}
    is_drawn = chosen in {ExportFormat.DOT, ExportFormat.GRAPHML}
    assert export.is_empty is (not shown.nodes and not is_drawn)
    assert export.is_empty or find_export_problem(export, tree, chosen, SETTINGS) == ""


def drop_row(export: Export) -> Export:
    return export._replace(documents=export.documents[:-1])


def repeat_row(export: Export) -> Export:
    return export._replace(documents=(*export.documents, export.documents[-1]))


def swap(old: str, new: str) -> Callable[[Export], Export]:
    """Return the change of a text in the whole export."""

    def change(export: Export) -> Export:
        documents: tuple[Any, ...] = tuple(
            json.loads(json.dumps(document).replace(old, new)) for document in export.documents
        )
        text = None if export.text is None else export.text.replace(old, new)
        assert (documents, text) != (export.documents, export.text)
        return export._replace(documents=documents, text=text)

    return change


WRONG = [
    pytest.param("hypernodes", drop_row, "other nodes", id="a domain is missing"),
    pytest.param(
        "hypernodes",
        swap('"name": "leaf-1", "labels"', '"name": "leaf-9", "labels"'),
        "leaf-1, which does not exist",
        id="a child is missing",
    ),
    pytest.param("hypernodes", swap('"name": "n1"', '"name": "n2"'), "n2", id="a member twice"),
    pytest.param("hypernodes", swap('"tier": 2', '"tier": 1'), "tier", id="tiers of one height"),
    pytest.param("labels", drop_row, "missing: lost-1", id="a node without labels"),
    pytest.param("labels", repeat_row, "listed twice: lost-1", id="labels twice"),
    pytest.param("labels", swap("leaf-0002", "leaf-0001"), "tier leaf", id="leaves of one value"),
    pytest.param("labels", swap('tier-0": "leaf-0001', 'tier-0": "x'), "several", id="two values"),
    pytest.param("kueue", swap(".io/leaf", ".io/rack"), "label keys", id="a key no node has"),
    pytest.param(
        "kueue",
        swap('topologyName": "toponaut', 'topologyName": "x'),
        "does not exist",
        id="a flavor of no Topology",
    ),
    pytest.param("kai", swap('"alias": "leaf"', '"alias": "spine"'), "alias", id="an alias twice"),
    pytest.param(
        "koordinator",
        swap('parentTopologyLayer": "SpineLayer', 'parentTopologyLayer": "X'),
        "label keys",
        id="a lost layer",
    ),
    pytest.param("grove", swap(".io/spine", ".io/row"), "label keys", id="another level"),
    pytest.param(
        "slurm-tree",
        swap("SwitchName=leaf-1 ", "SwitchName=leaf-9 "),
        "leaf-1",
        id="a child without a line",
    ),
    pytest.param("slurm-tree", swap("n[3-4]", "n4"), "missing: n3", id="a node of no switch"),
    pytest.param("slurm-tree", swap("n[1-2]", "n[1-3]"), "n3 is there twice", id="a node twice"),
    pytest.param("slurm-block", swap("n[3-4]", "n4,n9"), "missing: n3", id="a node of no block"),
    pytest.param(
        "slurm-block", swap("BlockSizes=1", "BlockSizes=2"), "fewer", id="a size too large"
    ),
    pytest.param(
        "slurm-yaml",
        swap("switch: leaf-1", "switch: leaf-9"),
        "leaf-1",
        id="a child without an entry",
    ),
    pytest.param(
        "slurm-yaml", swap("block: leaf-1", "block: leaf-2"), "leaf-2", id="a block twice"
    ),
    pytest.param("slinky", swap("tree:leaf-1", "tree:leaf-9"), "n1", id="a unit that is not there"),
    pytest.param("slinky", drop_row, "missing", id="a node without a unit"),
    pytest.param("nfd", swap("leaf-0002", "leaf-0001"), "tier leaf", id="features of one value"),
    pytest.param("configmap", swap("n5", "n6"), "differs", id="a tree with another node"),
    pytest.param(
        "topograph", swap("leaf-0002", "leaf-0001"), "tier leaf", id="layers of one value"
    ),
    pytest.param("dot", swap("v0 -- v", "v99 -- v"), "does not exist", id="an edge to no vertex"),
    pytest.param(
        "dot", swap("n1", 'n1"];\n  x ['), "neither a vertex", id="a name that ends its label"
    ),
    pytest.param(
        "graphml",
        swap('target="v9"', 'target="v8"'),
        "several",
        id="a vertex with two parents",
    ),
    pytest.param("graphml", swap(">n1<", ">n2<"), "other names", id="a node twice in a drawing"),
]


@pytest.mark.parametrize(("chosen", "change", "problem"), WRONG)
def test_an_export_that_shows_another_tree_is_found(
    chosen: str, change: Callable[[Export], Export], problem: str
) -> None:
    kind = ExportFormat(chosen)
    good = render_export(TREE, kind, SETTINGS)
    assert find_export_problem(good, TREE, kind, SETTINGS) == ""
    assert problem in find_export_problem(change(good), TREE, kind, SETTINGS)


def test_every_format_is_changed_here() -> None:
    assert {row.values[0] for row in WRONG} == {row.value for row in ExportFormat}


REFUSED = [
    pytest.param("hypernodes", "Leaf_1", id="a name that no HyperNode can have"),
    pytest.param("hypernodes", "l" * 254, id="a name that is too long"),
    pytest.param("slurm-tree", "unplaced-lost-1", id="a switch like that of an unplaced node"),
]


@pytest.mark.parametrize(("chosen", "name"), REFUSED)
def test_a_tree_that_a_format_cannot_show_is_refused(chosen: str, name: str) -> None:
    tree = build_tree(
        [DomainSpec(name, 1, None, ("n1",))],
        tiers=("leaf",),
        unplaced=[Unplaced("lost-1", "no report")],
    )
    with pytest.raises(ConfigError, match=f"{chosen} cannot show this tree: "):
        render_export(tree, ExportFormat(chosen), SETTINGS)
