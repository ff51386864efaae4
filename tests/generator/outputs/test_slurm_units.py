"""Slurm's switches and blocks of a tree, and their files."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from generator.outputs.slurm import (
    SlurmSwitch,
    SlurmTopology,
    build_blocks,
    build_switches,
    find_slurm_problem,
    is_other_type,
    is_slurm_name,
    render_block_config,
    render_renamed,
    render_tree_config,
    render_yaml_config,
)
from tests.generator.outputs.slurm_reader import parse_topology_conf, parse_topology_yaml
from tests.generator.outputs.trees import trees
from topology.model.name_ranges import expand_names
from topology.model.tree import DomainSpec, TopologyTree, TreeOrigin, Unplaced, build_tree

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


def test_domains_that_may_share_cables_have_one_root() -> None:
    tree = build_tree(
        [
            DomainSpec("s1", 2, None),
            DomainSpec("l1", 1, "s1", ("a",)),
            DomainSpec("toponaut-root", 1, None, ("b",)),
        ],
        tiers=TIERS,
        unplaced=[Unplaced("lost", "no label")],
        origin=TreeOrigin(has_islands=False),
    )
    root, *others = build_switches(tree)
    assert set(root.switches) == {"s1", "toponaut-root"}
    assert root.name not in {row.name for row in others}
    assert others[-1] == SlurmSwitch("unplaced-lost", nodes=("lost",))
    assert build_switches(replace(tree, origin=TreeOrigin())) == tuple(others)


NAMES = [
    ("n1", True),
    ("gpu-01.rack-2.example", True),
    ("1", True),
    ("x" * 63, True),
    ("x" * 64, False),
    ("", False),
    ("-n1", False),
    ("n 3", False),
    ("n,2", False),
    ("n[4]", False),
    ("n\n", False),
    ("n#5", False),
    ("n=6", False),
    ("nœud", False),
    ("n" + "9" * 19, True),
    ("n" + "9" * 20, False),
    ("9" * 20 + "n", True),
]


@pytest.mark.parametrize(("name", "can_hold"), NAMES)
def test_names_that_slurm_can_hold(name: str, *, can_hold: bool) -> None:
    assert is_slurm_name(name) is can_hold


@pytest.mark.parametrize("name", [name for name, can_hold in NAMES if not can_hold])
def test_a_domain_whose_name_slurm_cannot_hold_gets_another(name: str) -> None:
    specs = [DomainSpec("s", 2, None), DomainSpec(name, 1, "s", ("n1",))]
    spine, leaf = build_switches(build_tree(specs, tiers=TIERS))
    assert spine.switches == (leaf.name,)
    assert is_slurm_name(leaf.name)


OTHER_TYPES = (
    *("null", "NULL", "y", "Yes", "n", "no", "t", "TRUE", "f", "false", "on", "Off", "~"),
    *("123", "007", "1_000", "1e5", "1.5", "1.", ".5", "0x1f", "0X1F", "0x1p3", "0b11", "0o17"),
    *("inf", "Infinity", "nan", "-inf", "+1", ".nan", "2001-12-14", "9" * 32),
)
TEXTS = ("1-2", "0x", "1e", "e5", "nul", "onn", "leaf-1", "1.2.3", "0xg", "a1", "10g", "inf1", "tt")


def is_read_as_text(text: str) -> bool:
    """Return whether PyYAML (YAML 1.1), and Slurm as data.c converts, both read it as a text."""
    if not isinstance(yaml.safe_load(text), str):
        return False
    if text.lower() in {"null", "y", "yes", "t", "true", "on", "n", "no", "f", "false", "off"}:
        return False
    for convert in (float, float.fromhex if text[:2].lower() == "0x" else float):
        try:
            convert(text)
        except (ValueError, OverflowError):
            continue
        return False
    return not text.startswith("~")


@pytest.mark.parametrize("text", OTHER_TYPES)
def test_it_knows_what_is_read_as_another_type(text: str) -> None:
    assert is_other_type(text)


@pytest.mark.parametrize("text", TEXTS)
def test_it_keeps_what_is_read_as_a_text(text: str) -> None:
    assert not is_other_type(text)
    assert is_read_as_text(text)


names = st.text("01789abefilnoprstuxy_.-NOTX", min_size=1, max_size=8).filter(is_slurm_name)


@given(names)
@example("0x1p-2")
@example("1_0.5_0e+7")
def test_a_text_is_one_for_every_reader(name: str) -> None:
    assert is_other_type(name) or is_read_as_text(name)


@given(st.lists(names | st.sampled_from(OTHER_TYPES), min_size=3, max_size=6, unique=True))
def test_no_name_in_the_yaml_file_is_read_as_another_type(drawn: list[str]) -> None:
    leaves = [DomainSpec(name, 1, "the top", (f"n{at}",)) for at, name in enumerate(drawn[1:])]
    alone = DomainSpec(drawn[0], 1, "the top", ("on",))
    tree = build_tree([DomainSpec("the top", 2, None), *leaves, alone], tiers=TIERS)
    switches, layout = build_switches(tree), build_blocks(tree)
    text = render_yaml_config(switches, layout)
    topologies = yaml.safe_load(text)
    rows = [*topologies[0]["tree"]["switches"], *topologies[1]["block"]["blocks"]]
    assert all(is_read_as_text(value) for row in rows for value in row.values())
    assert len({row.name for row in switches}) == len(switches) == len(drawn) + 1
    assert parse_topology_yaml(text) == SlurmTopology(switches, layout.blocks, layout.sizes)
    renamed = {name for name in (*drawn, "the top") if name not in {row.name for row in switches}}
    lines = render_renamed(tree).splitlines()
    assert {line[2:].partition(" is named ")[0] for line in lines} == renamed


def test_a_yaml_file_whose_names_slurm_converts_is_refused() -> None:
    with pytest.raises(ValueError, match="'null'"):
        parse_topology_yaml("- tree: {switches: [{switch: 'null', nodes: a}]}")


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


def test_both_files_are_read_back_as_they_were_written() -> None:
    tree = build_pods((2, 2))
    switches, layout = build_switches(tree), build_blocks(tree)
    whole = SlurmTopology(switches, layout.blocks, layout.sizes)
    assert parse_topology_conf(render_tree_config(switches)).switches == switches
    assert parse_topology_conf(render_block_config(layout))[1:] == whole[1:]
    assert parse_topology_yaml(render_yaml_config(switches, layout)) == whole
    assert find_slurm_problem(whole) == ""
    assert whole.list_nodes_below()["core"] == {*tree.nodes}


@pytest.mark.parametrize("text", ["SwitchName", "SwitchName=", "SwitchName=s Nodes=n[", "Nodes"])
def test_a_line_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"KEY=VALUE|no name"):
        parse_topology_conf(text)


@pytest.mark.parametrize("text", ["[", "- {tree: 1}", "- {block: {blocks: []}}"])
def test_a_yaml_file_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_topology_yaml(text)


CHAIN = "\n".join(f"SwitchName=s{at} Switches=s{at + 1}" for at in range(20))
FATAL = [
    pytest.param("SwitchName=s Switches=l[0-1]\nSwitchName=l1 Nodes=a", "l0", id="a missing child"),
    pytest.param("SwitchName=s Switches=s", "loop", id="a switch in itself"),
    pytest.param("SwitchName=s Switches=t\nSwitchName=t Switches=s", "loop", id="a loop"),
    pytest.param(f"{CHAIN}\nSwitchName=s20 Nodes=a", "20 levels", id="too many levels"),
    pytest.param(
        "SwitchName=s Nodes=a\nSwitchName=s Nodes=b", "s is there twice", id="a name twice"
    ),
    pytest.param("SwitchName=s Nodes=a Switches=t", "either", id="nodes and switches"),
    pytest.param("SwitchName=s", "either", id="an empty switch"),
    pytest.param(
        "SwitchName=s Switches=l\nSwitchName=t Switches=l\nSwitchName=l Nodes=a",
        "l has several parents",
        id="two parents",
    ),
    pytest.param("SwitchName=s Nodes=a,a", "node a is there twice", id="a node twice"),
    pytest.param(f"SwitchName=s{'1' * 20} Nodes=a", "cannot hold", id="a number beyond 64 bits"),
    pytest.param("BlockName=b Nodes=a", "sizes", id="blocks without sizes"),
    pytest.param("BlockName=b Nodes=a\nBlockSizes=2", "fewer nodes", id="a block below the base"),
    pytest.param("BlockName=b Nodes=a,b\nBlockSizes=2,6", "powers of two", id="an odd multiple"),
    pytest.param("BlockName=b Nodes=a,b\nBlockSizes=2,1", "powers of two", id="falling sizes"),
    pytest.param(
        "BlockName=b Nodes=a\nBlockName=b Nodes=c\nBlockSizes=1", "twice", id="equal blocks"
    ),
]


@pytest.mark.parametrize(("text", "problem"), FATAL)
def test_it_finds_what_stops_slurmctld(text: str, problem: str) -> None:
    assert problem in find_slurm_problem(parse_topology_conf(text))
