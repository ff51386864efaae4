"""Reads an export back, and finds how it differs from the tree: the referee of every format.

A format that Toponaut reads is parsed and compared. Of the others, the names are checked: each node
appears once, and every reference has its target.
"""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final
from xml.etree import ElementTree as ET

from generator.objects.topology_levels import parse_topology_levels
from generator.observe.labelled_tree import build_labelled_tree
from generator.outputs.catalog import Export
from generator.outputs.formats import ExportFormat, ExportSettings
from generator.outputs.graph import MAX_LABEL
from generator.outputs.hypernode.forest import build_hypernode_tree
from generator.outputs.hypernode.lint import find_structure_problems
from generator.outputs.hypernode.model import parse_manifest
from generator.outputs.nfd import FEATURE, NODE_LABEL
from generator.outputs.node_labels import build_tier_keys, list_label_keys, name_domains
from generator.outputs.slinky import ANNOTATION
from generator.outputs.slurm import (
    BLOCK_TOPOLOGY,
    TREE_TOPOLOGY,
    SlurmTopology,
    build_blocks,
    build_switches,
    find_slurm_problem,
)
from tests.generator.outputs.slurm_reader import parse_topology_conf, parse_topology_yaml
from topology.model.errors import ConfigError, list_some, show
from topology.model.ids import HOSTNAME_LABEL
from topology.model.tree import TopologyTree, parse_tree, without_nodes

_MAX_SHOWN: Final = 3
_DOT_TEXT: Final = r'(?:[^"\\]|\\[\\"])*'
_DOT_LINE: Final = re.compile(
    r"graph toponaut \{|  node \[shape=box\];|\}|  v(?P<above>[0-9]+) -- v(?P<below>[0-9]+);|"
    rf'  v(?P<id>[0-9]+) \[label="{_DOT_TEXT}\\n(?P<name>{_DOT_TEXT})"(?:, shape=plaintext)?\];'
)
_SPACE: Final = "{http://graphml.graphdrawing.org/xmlns}"


def find_export_problem(
    export: Export, tree: TopologyTree, chosen: ExportFormat, settings: ExportSettings
) -> str:
    """Return the first difference between an export and the tree; empty if there is none."""
    shown = without_nodes(tree, export.left_out)
    try:
        return next(_READERS[chosen](export, shown, settings), "")
    except (ConfigError, ValueError, KeyError) as error:
        return str(error)


def _read_hypernodes(
    export: Export, tree: TopologyTree, _settings: ExportSettings
) -> Iterator[str]:
    rows = [parse_manifest(document) for document in export.documents]
    yield from find_structure_problems(rows)
    read = build_hypernode_tree(rows)
    yield from read.problems
    if _list_domains(read.tree) != _list_domains(tree):
        yield "the HyperNodes have other nodes than the domains"


def _list_domains(tree: TopologyTree) -> dict[str, tuple[int, frozenset[str]]]:
    rows = {row.name: (row.tier, frozenset(tree.nodes_of(row))) for row in tree.domains}
    return {name: row for name, row in rows.items() if row[1]}


def _read_labels(export: Export, tree: TopologyTree, settings: ExportSettings) -> Iterator[str]:
    rows = [(row["metadata"]["name"], row["metadata"]["labels"]) for row in export.documents]
    keys = list_label_keys(
        tree.tiers, prefix=settings.label_prefix, families=settings.label_families
    )
    yield from _compare_labels(rows, [row[0] for row in keys], tree)
    for node, labels in rows:
        if any(labels[key] != labels[row[0]] for row in keys for key in row):
            yield f"node {node} has several values for one tier"


def _read_features(export: Export, tree: TopologyTree, _settings: ExportSettings) -> Iterator[str]:
    rows = [
        (
            row["metadata"]["labels"][NODE_LABEL],
            row["spec"]["features"]["attributes"][FEATURE]["elements"],
        )
        for row in export.documents
    ]
    return _compare_labels(rows, tree.tiers, tree, has_unplaced=False)


def _read_topograph(export: Export, tree: TopologyTree, _settings: ExportSettings) -> Iterator[str]:
    rows = [
        (row["id"], dict(zip(tree.tiers, row["network_layers"], strict=False)))
        for row in json.loads(export.text or "")["instances"]
    ]
    return _compare_labels(rows, tree.tiers, tree)


def _compare_labels(
    rows: Sequence[tuple[str, Mapping[str, str]]],
    keys: Sequence[str],
    tree: TopologyTree,
    *,
    has_unplaced: bool = True,
) -> Iterator[str]:
    """Yield the differences between labels of nodes and the domains, padding included.

    Args:
        rows: each node with its labels.
        keys: the key of each tier, lowest first.
        tree: what the labels should show.
        has_unplaced: whether nodes without a place are listed as well.
    """
    yield from _compare_nodes(
        [node for node, _ in rows], tree.all_nodes if has_unplaced else tree.nodes
    )
    read = build_labelled_tree(dict(rows), keys[::-1], tier_names=tree.tiers)
    yield from read.problems
    names = name_domains(tree)
    for at, tier in enumerate(tree.tiers):
        domains: dict[str, set[str]] = {}
        for node, row in names.items():
            domains.setdefault(row[at], set()).add(node)
        found = [row for row in read.tree.domains if row.tier == at + 1]
        if {frozenset(read.tree.nodes_of(row)) for row in found} != {
            *map(frozenset, domains.values())
        }:
            yield f"the values of tier {tier} are shared by other nodes than its domains have"


def _compare_nodes(names: Sequence[str], expected: Iterable[str]) -> Iterator[str]:
    """Yield nodes that are listed twice, are missing, or are not in the tree."""
    wanted = frozenset(expected)
    repeated = [name for name, number in Counter(names).items() if number > 1]
    for what, found in (
        ("listed twice", repeated),
        ("missing", sorted(wanted.difference(names))),
        ("not in the tree", sorted({*names} - wanted)),
    ):
        if found:
            yield f"{what}: {list_some(map(show, found), _MAX_SHOWN)}"


def _read_levels(export: Export, tree: TopologyTree, settings: ExportSettings) -> Iterator[str]:
    keys = build_tier_keys(tree.tiers, settings.label_prefix)
    topology = export.documents[0]
    read = parse_topology_levels(json.dumps(topology).encode(), source=topology["kind"])
    if [key for key in read if key != HOSTNAME_LABEL] != [*reversed(keys)]:
        yield "its levels are not the label keys of the tiers"
    aliases = [row["alias"] for row in topology["spec"].get("levels", ()) if "alias" in row]
    if len({*aliases, *read}) < len(aliases) + len(read):
        yield "an alias is listed twice, or is a label key"
    for row in export.documents[1:]:
        if row["spec"]["topologyName"] != topology["metadata"]["name"]:
            yield f"{row['kind']} names a Topology that does not exist"


def _read_slurm_tree(
    export: Export, tree: TopologyTree, _settings: ExportSettings
) -> Iterator[str]:
    return _compare_switches(parse_topology_conf(export.text or ""), tree)


def _read_slurm_block(
    export: Export, tree: TopologyTree, _settings: ExportSettings
) -> Iterator[str]:
    return _compare_blocks(parse_topology_conf(export.text or ""), tree)


def _read_slurm_yaml(
    export: Export, tree: TopologyTree, _settings: ExportSettings
) -> Iterator[str]:
    read = parse_topology_yaml(export.text or "")
    yield from _compare_switches(read, tree)
    yield from _compare_blocks(read, tree)


def _compare_switches(read: SlurmTopology, tree: TopologyTree) -> Iterator[str]:
    yield from filter(None, [find_slurm_problem(read)])
    yield from _compare_nodes([node for row in read.switches for node in row.nodes], tree.all_nodes)
    below = {*read.list_nodes_below().values()}
    for domain in tree.domains:
        if domain.start < domain.stop and frozenset(tree.nodes_of(domain)) not in below:
            yield f"no switch has the nodes of {show(domain.name)}"


def _compare_blocks(read: SlurmTopology, tree: TopologyTree) -> Iterator[str]:
    yield from filter(None, [find_slurm_problem(read)])
    yield from _compare_nodes([node for row in read.blocks for node in row.nodes], tree.nodes)
    if {frozenset(row.nodes) for row in read.blocks} != {*_list_direct_nodes(tree)}:
        yield "the blocks have other nodes than the domains"


def _list_direct_nodes(tree: TopologyTree) -> list[frozenset[str]]:
    return [frozenset(row.nodes) for row in tree.domains if row.nodes]


def _read_slinky(export: Export, tree: TopologyTree, _settings: ExportSettings) -> Iterator[str]:
    specs = {row["metadata"]["name"]: _parse_spec(row) for row in export.documents}
    yield from _compare_nodes([row["metadata"]["name"] for row in export.documents], tree.nodes)
    units = {
        TREE_TOPOLOGY: {node: row.name for row in build_switches(tree) for node in row.nodes},
        BLOCK_TOPOLOGY: {node: row.name for row in build_blocks(tree).blocks for node in row.nodes},
    }
    for node, spec in specs.items():
        if spec != {topology: units[topology].get(node) for topology in units}:
            yield f"node {node} names another unit than topology.yaml has"


def _parse_spec(document: Mapping[str, Any]) -> dict[str, str]:
    spec = document["metadata"]["annotations"][ANNOTATION]
    return dict(pair.split(":") for pair in spec.split(","))


def _read_config_map(
    export: Export, tree: TopologyTree, _settings: ExportSettings
) -> Iterator[str]:
    (document,) = export.documents
    packed = document.get("binaryData")
    texts = document.get("data") or {}
    (raw,) = (
        [gzip.decompress(b64decode(text)) for text in packed.values()] if packed else texts.values()
    )
    if parse_tree(json.loads(raw)) != tree:
        yield "its TopologyTree differs from the tree"


def _read_dot(export: Export, tree: TopologyTree, _settings: ExportSettings) -> Iterator[str]:
    lines = (export.text or "").split("\n")
    rows = [row for line in lines if (row := _DOT_LINE.fullmatch(line))]
    if len(rows) != len(lines) - 1 or lines[-1]:
        yield "a line is neither a vertex nor an edge"
    names = {row["id"]: re.sub(r"\\(.)", r"\1", row["name"]) for row in rows if row["id"]}
    edges = [(row["above"], row["below"]) for row in rows if row["above"]]
    yield from _compare_graph(names, edges, tree)


def _read_graphml(export: Export, tree: TopologyTree, _settings: ExportSettings) -> Iterator[str]:
    root = ET.fromstring(export.text or "")  # noqa: S314 - it was rendered here
    names = {
        row.get("id", ""): data.text or ""
        for row in root.iter(f"{_SPACE}node")
        for data in row
        if data.get("key") == "name"
    }
    edges = [(row.get("source", ""), row.get("target", "")) for row in root.iter(f"{_SPACE}edge")]
    yield from _compare_graph(names, edges, tree)


def _compare_graph(
    names: Mapping[str, str], edges: Sequence[tuple[str, str]], tree: TopologyTree
) -> Iterator[str]:
    """Yield the differences between a drawing and the tree.

    Args:
        names: the name at each vertex.
        edges: the vertices above and below.
        tree: what is drawn.
    """
    wanted = (*(row.name for row in tree.domains), *tree.all_nodes)
    if Counter(names.values()) != Counter(show(name, MAX_LABEL) for name in wanted):
        yield "it has other names than the tree"
    roots = sum(row.parent is None for row in tree.domains) + len(tree.unplaced)
    below = {edge[1] for edge in edges}
    if not {edge[0] for edge in edges} | below <= names.keys():
        yield "an edge names a vertex that does not exist"
    if not len(below) == len(edges) == len(wanted) - roots:
        yield "a vertex has no parent, or several"


_Reader = Callable[[Export, TopologyTree, ExportSettings], Iterator[str]]
"""Yields how an export differs from the tree, and raises ValueError or KeyError on another form."""
_READERS: Final[Mapping[ExportFormat, _Reader]] = MappingProxyType(
    {
        ExportFormat.HYPERNODES: _read_hypernodes,
        ExportFormat.LABELS: _read_labels,
        ExportFormat.KUEUE: _read_levels,
        ExportFormat.KAI: _read_levels,
        ExportFormat.KOORDINATOR: _read_levels,
        ExportFormat.GROVE: _read_levels,
        ExportFormat.SLURM_TREE: _read_slurm_tree,
        ExportFormat.SLURM_BLOCK: _read_slurm_block,
        ExportFormat.SLURM_YAML: _read_slurm_yaml,
        ExportFormat.SLINKY: _read_slinky,
        ExportFormat.NFD: _read_features,
        ExportFormat.CONFIG_MAP: _read_config_map,
        ExportFormat.TOPOGRAPH: _read_topograph,
        ExportFormat.DOT: _read_dot,
        ExportFormat.GRAPHML: _read_graphml,
    }
)
