"""Slurm's topology.conf, as a tree or as blocks, and topology.yaml with both.

Slurm knows nodes by its own NodeName; here it is the name of the node in the tree. Names of units
(the switches of topology/tree, the blocks of topology/block) are those of the domains, and of the
padding where a domain has both nodes and children, which a line of Slurm cannot have. All nodes of
a tree must have names that Slurm can hold. Slurm reads topology.yaml since 25.05 and then ignores
topology.conf. Long lists of nodes stay on one line: Slurm has no limit there.

Source: topology.conf(5) and topology.yaml(5) of Slurm 22.05 to 26.05; hostlist.c, which reads the
number at the end of a name as 64 bits, so that a longer one becomes another name;
DATA_PARSE_FROM_STR in data_parser.h of Slurm 25.11, which converts every text of topology.yaml that
looks like a number, a boolean or null, quoted or not, and data.c, which says what looks like one;
the fatal errors in src/plugins/topology/tree/switch_record.c and block/block_record.c.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import yaml

from generator.outputs.hypernode.forest import build_padding_name
from generator.outputs.node_labels import UNPLACED_PREFIX, hash_value
from topology.model.errors import show
from topology.model.name_ranges import fold_names
from topology.model.tree import TopologyTree

_NAME: Final = re.compile(r"(?!.*[0-9]{20}\Z)[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z", re.ASCII)
_OTHER_TYPE: Final = re.compile(
    r"null|y|yes|n|no|t|true|f|false|on|off|[-+]?(inf|infinity|\.inf|nan|\.nan)|~.*|"
    r"[-+]?([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9_]+)(e[-+]?[0-9]+)?|"
    r"[-+]?(0x[0-9a-f_.]+(p[-+]?[0-9]+)?|0b[01_]+|0o[0-7_]+)|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}",
    re.ASCII | re.IGNORECASE,
)
_ROOT: Final = "toponaut-root"
"""The switch above all domains; no switch of the fabric."""


class SlurmSwitch(NamedTuple):
    """A switch of topology/tree: either nodes or switches are below it."""

    name: str
    nodes: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()


class SlurmBlock(NamedTuple):
    """A block of topology/block."""

    name: str
    nodes: tuple[str, ...]


class BlockLayout(NamedTuple):
    """The blocks in tree order, and the sizes that Slurm plans with."""

    sizes: tuple[int, ...]
    """Nodes of the base block and of aggregates of 2, 4, 8 ... base blocks, ascending."""
    blocks: tuple[SlurmBlock, ...]
    left_out: tuple[str, ...] = ()
    """Nodes without a block, because their place is unknown."""


def is_slurm_name(name: str) -> bool:
    """Return whether Slurm's hostlists can hold a name."""
    return _NAME.match(name) is not None


def is_other_type(text: str) -> bool:
    """Return whether Slurm, or another reader of YAML 1.1 or 1.2, may read a text as no text."""
    return _OTHER_TYPE.fullmatch(text) is not None


def list_renamed_domains(tree: TopologyTree) -> list[tuple[str, str]]:
    """Return the domains whose unit has another name than the domain, with both, in tree order."""
    return [row for row in _name_units(tree).items() if row[0] != row[1]]


def build_switches(tree: TopologyTree) -> tuple[SlurmSwitch, ...]:
    """Return the switches, highest first, so that a reader meets a switch before its children.

    An island is a root of its own, and so is an unplaced node: no job spans two roots. If the
    source of the tree shows no islands, one root joins the placed nodes.
    Cost: O(n log n) in domains and nodes.
    """
    names = _name_units(tree)
    taken = frozenset(names.values())
    below = _build_root(tree, names)
    for domain in sorted(tree.domains, key=lambda domain: (-domain.tier, domain.start)):
        if domain.start == domain.stop:
            continue
        children = [
            names[tree.domains[child].name]
            for child in domain.children
            if tree.domains[child].start < tree.domains[child].stop
        ]
        name, nodes = names[domain.name], domain.nodes
        if children and nodes:
            side = _name_unit(build_padding_name(domain.name, 1, taken))
            below.append(SlurmSwitch(name, switches=(*children, side)))
            below.append(SlurmSwitch(side, nodes=nodes))
        else:
            below.append(SlurmSwitch(name, nodes=nodes, switches=tuple(children)))
    alone = [row.node for row in tree.unplaced]
    return (
        *below,
        *(SlurmSwitch(_name_unit(f"{UNPLACED_PREFIX}{node}"), nodes=(node,)) for node in alone),
    )


def _build_root(tree: TopologyTree, names: Mapping[str, str]) -> list[SlurmSwitch]:
    """Return the switch above domains that may share cables although no domain joins them."""
    tops = [
        names[domain.name]
        for domain in tree.domains
        if domain.parent is None and domain.start < domain.stop
    ]
    if tree.origin.has_islands or len(tops) < 2:  # noqa: PLR2004 - one needs no root above it
        return []
    root = _ROOT if _ROOT not in names.values() else hash_value("/".join(tops))
    return [SlurmSwitch(root, switches=tuple(tops))]


def build_blocks(tree: TopologyTree) -> BlockLayout:
    """Return a block per domain of tier 1, and one per domain above that has nodes of its own.

    The base size is the size of the smallest block, because Slurm refuses a smaller block. Slurm
    joins 2, 4, 8 ... consecutive blocks. A joined size is listed only if every such run of blocks
    lies in one domain or consists of whole domains.
    """
    names = _name_units(tree)
    domains = [domain for domain in tree.domains if domain.nodes]
    domains.sort(key=lambda domain: domain.start)
    blocks = [SlurmBlock(names[domain.name], domain.nodes) for domain in domains]
    left_out = tuple(row.node for row in tree.unplaced)
    return BlockLayout(_choose_sizes(tree, blocks), tuple(blocks), left_out)


def _choose_sizes(tree: TopologyTree, blocks: list[SlurmBlock]) -> tuple[int, ...]:
    """Return the size of the smallest block, and of the aggregates that fit the tree."""
    if not blocks:
        return ()
    base = min(len(block.nodes) for block in blocks)
    sizes = [base]
    position = {node: at for at, node in enumerate(tree.nodes)}
    starts = [position[block.nodes[0]] for block in blocks]
    spans = [
        (bisect_left(starts, domain.start), bisect_left(starts, domain.stop))
        for domain in tree.domains
    ]
    group = 2
    while len(blocks) % group == 0 and all(_fits(span, group) for span in spans):
        sizes.append(base * group)
        group *= 2
    return tuple(sizes)


def _fits(span: tuple[int, int], group: int) -> bool:
    """Return whether no run of blocks lies partly inside and partly outside of a domain.

    Args:
        span: the first block of the domain, and the first block after it.
        group: the number of blocks of a run; runs start at multiples of it.
    """
    start, stop = span
    first_run, last_run = start - start % group, stop - stop % group
    is_start_whole = start == first_run or stop <= first_run + group
    return is_start_whole and (stop == last_run or start >= last_run)


def _name_units(tree: TopologyTree) -> Mapping[str, str]:
    """Return Slurm's name of each domain."""
    return {domain.name: _name_unit(domain.name) for domain in tree.domains}


def _name_unit(name: str) -> str:
    """Return the name where Slurm takes it as it is, else one that ends in a hash."""
    tried = (name, hash_value(name), hash_value(f"unit-{name}"))
    return next(name for name in tried if is_slurm_name(name) and not is_other_type(name))


TREE_TOPOLOGY: Final = "toponaut-tree"
BLOCK_TOPOLOGY: Final = "toponaut-block"
"""Names of the topologies in topology.yaml; a node's own topology refers to them."""
_HEADER: Final = "# Written by toponaut export: changes by hand are lost.\n"
_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_MAX_WIDTH: Final = 1 << 20


def render_tree_config(switches: Sequence[SlurmSwitch]) -> str:
    """Return topology.conf for TopologyPlugin=topology/tree; an empty fabric has no switch."""
    return _HEADER + "".join(f"{_render_switch(switch)}\n" for switch in switches)


def _render_switch(switch: SlurmSwitch) -> str:
    if switch.nodes:
        return f"SwitchName={switch.name} Nodes={fold_names(switch.nodes)}"
    return f"SwitchName={switch.name} Switches={fold_names(switch.switches)}"


def render_block_config(layout: BlockLayout) -> str:
    """Return topology.conf for TopologyPlugin=topology/block."""
    lines = [f"BlockName={block.name} Nodes={fold_names(block.nodes)}" for block in layout.blocks]
    if layout.sizes:
        lines.append(f"BlockSizes={','.join(map(str, layout.sizes))}")
    if layout.left_out:
        lines.insert(
            0, f"# No block, because their place is unknown: {fold_names(layout.left_out)}"
        )
    return _HEADER + "".join(f"{line}\n" for line in lines)


def render_yaml_config(switches: Sequence[SlurmSwitch], layout: BlockLayout) -> str:
    """Return topology.yaml with a tree, which is the default, and with blocks."""
    topologies: list[dict[str, Any]] = [
        {
            "topology": TREE_TOPOLOGY,
            "cluster_default": True,
            "tree": {"switches": [_build_switch_row(switch) for switch in switches]},
        }
    ]
    if layout.blocks:
        blocks = [
            {"block": block.name, "nodes": _fold_as_text(block.nodes)} for block in layout.blocks
        ]
        topologies.append(
            {
                "topology": BLOCK_TOPOLOGY,
                "cluster_default": False,
                "block": {"block_sizes": [*layout.sizes], "blocks": blocks},
            }
        )
    body = yaml.dump(topologies, Dumper=_DUMPER, sort_keys=False, width=_MAX_WIDTH)
    return f"---\n{_HEADER}{body}"


def render_renamed(tree: TopologyTree) -> str:
    """Return a comment for each domain whose switch or block has another name."""
    rows = list_renamed_domains(tree)
    return "".join(f"# {show(name)} is named {renamed} here\n" for name, renamed in rows)


def _build_switch_row(switch: SlurmSwitch) -> dict[str, str]:
    if switch.nodes:
        return {"switch": switch.name, "nodes": _fold_as_text(switch.nodes)}
    return {"switch": switch.name, "children": _fold_as_text(switch.switches)}


def _fold_as_text(names: Sequence[str]) -> str:
    """Return a list of names, with a comma if YAML reads the list as another type than text.

    hostlist.c ignores a comma at the end of a list, so node names do not change.
    """
    folded = fold_names(names)
    return f"{folded}," if is_other_type(folded) else folded


_MAX_PASSES: Final = 20
"""In each, Slurm resolves switches whose children are resolved; then it gives up."""
_MAX_SIZES: Final = 16


class SlurmTopology(NamedTuple):
    """The units of a topology.conf or topology.yaml, in order."""

    switches: tuple[SlurmSwitch, ...] = ()
    blocks: tuple[SlurmBlock, ...] = ()
    sizes: tuple[int, ...] = ()

    def list_nodes_below(self) -> dict[str, frozenset[str]]:
        """Return all nodes below each switch, without those that Slurm cannot resolve."""
        below: dict[str, frozenset[str]] = {}
        for _ in range(_MAX_PASSES):
            for row in self.switches:
                if row.name not in below and all(child in below for child in row.switches):
                    lower = (below[child] for child in row.switches)
                    below[row.name] = frozenset(row.nodes).union(*lower)
        return below


def find_slurm_problem(topology: SlurmTopology) -> str:
    """Return the first error for which slurmctld does not start; empty if there is none."""
    problems = chain(_find_switch_problems(topology), _find_block_problems(topology))
    return next(problems, "")


def _find_switch_problems(topology: SlurmTopology) -> Iterator[str]:
    switches = topology.switches
    names = [row.name for row in switches]
    children = [child for row in switches for child in row.switches]
    yield from _find_name_problems("switch", names)
    yield from _find_name_problems("node", [node for row in switches for node in row.nodes])
    yield from (f"switch {name} has several parents" for name in _list_repeated(children))
    for row in switches:
        if bool(row.nodes) == bool(row.switches):
            yield f"switch {show(row.name)} needs either nodes or switches"
    for name in sorted({*children} - {*names}):
        yield f"switch {show(name)} is a child without a line of its own"
    for name in sorted({*names} - topology.list_nodes_below().keys()):
        yield f"switch {show(name)} is in a loop, or in a tree of more than {_MAX_PASSES} levels"


def _find_block_problems(topology: SlurmTopology) -> Iterator[str]:
    blocks, sizes = topology.blocks, topology.sizes
    yield from _find_name_problems("block", [row.name for row in blocks])
    yield from _find_name_problems("node", [node for row in blocks for node in row.nodes])
    if bool(blocks) != bool(sizes):
        yield "blocks need sizes, and sizes blocks"
    for row in blocks:
        if len(row.nodes) < sizes[0]:
            yield f"block {show(row.name)} has fewer nodes than the base size {sizes[0]}"
    allowed = [sizes[0] << level for level in range(_MAX_SIZES)] if sizes else []
    if list(sizes) != [size for size in allowed if size in sizes]:
        yield f"block sizes {sizes} are not the base size times powers of two, ascending"


def _find_name_problems(kind: str, names: Sequence[str]) -> Iterator[str]:
    yield from (f"{kind} {show(name)} is there twice" for name in _list_repeated(names))
    for name in names:
        if not is_slurm_name(name):
            yield f"Slurm cannot hold the name of {kind} {show(name)}"


def _list_repeated(names: Iterable[str]) -> list[str]:
    return [name for name, number in Counter(names).items() if number > 1]
