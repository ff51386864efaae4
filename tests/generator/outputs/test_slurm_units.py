"""Slurm's switches and blocks of a tree, and their files."""

from collections.abc import Mapping

import pytest
import yaml
from hypothesis import given

from generator.outputs.slurm import (
    SlurmSwitch,
    build_blocks,
    build_switches,
    list_unusable_names,
    render_block_config,
    render_tree_config,
    render_yaml_config,
)
from tests.generator.outputs.trees import trees
from topology.model.name_ranges import expand_names
from topology.model.tree import DomainSpec, TopologyTree, Unplaced, build_tree

TIERS = ("leaf", "spine", "core")


def read_tree(text: str) -> dict[str, Mapping[str, tuple[str, ...]]]:
    """Return the units of a topology.conf, in order."""
    units: dict[str, Mapping[str, tuple[str, ...]]] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        (_, name), *rest = (word.split("=") for word in line.split(" "))
        assert name not in units
        units[name] = {key: expand_names(value) for key, value in rest}
    return units


def nodes_below(units: Mapping[str, Mapping[str, tuple[str, ...]]], name: str) -> tuple[str, ...]:
    found = list(units[name].get("Nodes", ()))
    for child in units[name].get("Switches", ()):
        found += nodes_below(units, child)
    return tuple(found)


@given(trees())
def test_the_switches_are_the_domains(tree: TopologyTree) -> None:
    units = read_tree(render_tree_config(build_switches(tree)))
    assert all(len(unit) == 1 for unit in units.values()), "nodes or switches, never both"
    children = [child for unit in units.values() for child in unit.get("Switches", ())]
    assert len(children) == len(set(children)), "a switch has one parent"
    assert set(children) <= set(units)
    nodes = [node for unit in units.values() for node in unit.get("Nodes", ())]
    assert sorted(nodes) == sorted(tree.nodes)
    below = {name: set(nodes_below(units, name)) for name in units}
    for domain in tree.domains:
        if domain.stop > domain.start:
            assert set(tree.nodes_of(domain)) in below.values()


@given(trees())
def test_the_blocks_hold_every_node_once(tree: TopologyTree) -> None:
    layout = build_blocks(tree)
    nodes = [node for block in layout.blocks for node in block.nodes]
    assert sorted(nodes) == sorted(tree.nodes)
    assert all(len(block.nodes) >= layout.sizes[0] for block in layout.blocks)
    ratios = [upper / lower for lower, upper in zip(layout.sizes, layout.sizes[1:], strict=False)]
    assert all(ratio == 2 for ratio in ratios)
    for size in layout.sizes[1:]:
        group = size // layout.sizes[0]
        for at in range(0, len(layout.blocks), group):
            run = {node for block in layout.blocks[at : at + group] for node in block.nodes}
            for domain in tree.domains:
                own = set(tree.nodes_of(domain))
                assert not own & run or own <= run or run <= own


def build_pods(leaves: tuple[int, ...]) -> TopologyTree:
    """Return a tree of spines with so many leaves each, two nodes a leaf."""
    specs = [DomainSpec("core", 3, None)]
    for spine, num in enumerate(leaves):
        specs.append(DomainSpec(f"s{spine}", 2, "core"))
        specs += [
            DomainSpec(
                f"l{spine}-{leaf}", 1, f"s{spine}", (f"n{spine}-{leaf}a", f"n{spine}-{leaf}b")
            )
            for leaf in range(num)
        ]
    return build_tree(specs, tiers=TIERS)


SIZES = [
    pytest.param((2, 2), (2, 4, 8), id="pairs of leaves under each spine"),
    pytest.param((4, 4), (2, 4, 8, 16), id="four leaves under each spine"),
    pytest.param((3, 3), (2,), id="three leaves are no power of two"),
    pytest.param((2, 4), (2, 4), id="spines of other sizes"),
    pytest.param((1, 1, 1, 1), (2, 4, 8), id="one leaf under each spine"),
    pytest.param((1,), (2,), id="one block"),
]


@pytest.mark.parametrize(("leaves", "sizes"), SIZES)
def test_sizes_follow_the_tree(leaves: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    assert build_blocks(build_pods(leaves)).sizes == sizes


def test_a_domain_with_nodes_and_children_has_a_switch_for_its_nodes() -> None:
    tree = build_tree(
        [DomainSpec("s", 2, None, ("direct",)), DomainSpec("l", 1, "s", ("a", "b"))], tiers=TIERS
    )
    assert build_switches(tree) == (
        SlurmSwitch("s", switches=("l", "s-pad1")),
        SlurmSwitch("s-pad1", nodes=("direct",)),
        SlurmSwitch("l", nodes=("a", "b")),
    )


def test_islands_and_unplaced_nodes_are_roots() -> None:
    tree = build_tree(
        [DomainSpec("l1", 1, None, ("a",)), DomainSpec("l2", 1, None, ("b",))],
        tiers=("leaf",),
        unplaced=[Unplaced("lost", "no report")],
    )
    assert render_tree_config(build_switches(tree)).splitlines()[1:] == [
        "SwitchName=l1 Nodes=a",
        "SwitchName=l2 Nodes=b",
        "SwitchName=unplaced-lost Nodes=lost",
    ]
    assert render_block_config(build_blocks(tree)).splitlines()[1:] == [
        "# No block, because their place is unknown: lost",
        "BlockName=l1 Nodes=a",
        "BlockName=l2 Nodes=b",
        "BlockSizes=1,2",
    ]


def test_names_that_slurm_cannot_hold() -> None:
    tree = build_tree([DomainSpec("a[1]", 1, None, ("n1", "n,2", "n 3", "n[4]"))], tiers=("leaf",))
    assert list_unusable_names(tree) == ("n 3", "n,2", "n[4]")
    (switch,) = build_switches(tree)
    assert switch.nodes == ("n1",)
    assert not set("[], ") & set(switch.name)


def test_the_yaml_file_has_both_topologies() -> None:
    tree = build_pods((2, 2))
    tree_part, block_part = yaml.safe_load(
        render_yaml_config(build_switches(tree), build_blocks(tree))
    )
    assert (tree_part["cluster_default"], block_part["cluster_default"]) == (True, False)
    assert tree_part["tree"]["switches"][0] == {"switch": "core", "children": "s[0-1]"}
    assert block_part["block"]["block_sizes"] == [2, 4, 8]
    assert block_part["block"]["blocks"][0] == {"block": "l0-0", "nodes": "n0-0a,n0-0b"}


def test_an_empty_tree_has_no_unit() -> None:
    tree = build_tree([], tiers=("leaf",))
    assert build_switches(tree) == ()
    assert build_blocks(tree).sizes == ()
    assert yaml.safe_load(render_yaml_config((), build_blocks(tree)))[0]["tree"]["switches"] == []
