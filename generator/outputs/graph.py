"""The tree as a plain document or a drawing, for tools that read neither labels nor HyperNodes.

- The TopologyTree, or any text, in a ConfigMap: as text while it is small, else packed.
- topograph's JSON: each node with the domains above it, the nearest first. Source: topograph 1.0,
  the output of its `graph` engine.
- The languages of Graphviz (DOT) and GraphML. Names are foreign text, so every one is quoted or
  escaped. Source: https://graphviz.org/doc/info/lang.html and
  http://graphml.graphdrawing.org/specification.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from typing import Any, Final, NamedTuple
from xml.etree import ElementTree as ET

from generator.kube.resources import CONFIG_MAPS
from generator.outputs.formats import ExportSettings
from generator.outputs.node_labels import render_node_labels
from generator.outputs.owned_object import OwnedObject
from topology.model.errors import ConfigError, show
from topology.model.tree import TopologyTree, render_tree

KEY: Final = "tree.json"
PACKED_KEY: Final = "tree.json.gz"
_MAX_TEXT_BYTES: Final = 512 << 10
MAX_BYTES: Final = 1000 << 10
"""A ConfigMap holds at most 1 MiB with everything in it."""


def render_tree_config_map(tree: TopologyTree, settings: ExportSettings) -> tuple[OwnedObject, ...]:
    """Return the ConfigMap.

    Raises:
        ConfigError: the tree is too large for one object, also when packed.
    """
    text = json.dumps(render_tree(tree), ensure_ascii=True, separators=(",", ":"))
    fields: dict[str, Any] = {"data": {KEY: text}}
    if len(text) > _MAX_TEXT_BYTES:
        packed = b64encode(gzip.compress(text.encode(), mtime=0)).decode()
        if len(packed) > MAX_BYTES:
            raise ConfigError(
                f"the packed tree has {len(packed)} bytes, and a ConfigMap holds {MAX_BYTES}"
            )
        fields = {"binaryData": {PACKED_KEY: packed}}
    return (OwnedObject(CONFIG_MAPS, settings.name, fields, namespace=settings.namespace),)


def render_text_config_map(text: str, *, key: str, settings: ExportSettings) -> OwnedObject:
    """Return a ConfigMap with one text, as a program mounts it.

    Raises:
        ConfigError: the text is too large for one object.
    """
    size = len(text.encode())
    if size > MAX_BYTES:
        raise ConfigError(f"{key} has {size} bytes, and a ConfigMap holds {MAX_BYTES}")
    fields = {"data": {key: text}}
    return OwnedObject(CONFIG_MAPS, settings.name, fields, namespace=settings.namespace)


def render_topograph(tree: TopologyTree, _settings: ExportSettings) -> str:
    """Return the text; placed nodes are in tree order, and unplaced nodes have no layers."""
    instances = [
        {"id": row.node, "network_layers": [*row.values] if row.is_placed else [], "labels": {}}
        for row in render_node_labels(tree)
    ]
    return json.dumps({"instances": instances}, indent=2) + "\n"


_NAMESPACE: Final = "http://graphml.graphdrawing.org/xmlns"
MAX_LABEL: Final = 200
NODE: Final = "node"
"""The kind of nodes; no tier may have this name."""


class _Vertex(NamedTuple):
    name: str
    kind: str
    """The name of the tier, or `node`."""
    parent: int
    """Position of the domain above in the list of vertices; -1 at the top."""


def render_dot(tree: TopologyTree, _settings: ExportSettings) -> str:
    """Return the tree in Graphviz's language, highest tier on top."""
    lines = ["graph toponaut {", "  node [shape=box];"]
    for at, vertex in enumerate(_list_vertices(tree)):
        shape = ", shape=plaintext" if vertex.kind == NODE else ""
        lines.append(f'  v{at} [label="{_escape(vertex.kind)}\\n{_escape(vertex.name)}"{shape}];')
        if vertex.parent >= 0:
            lines.append(f"  v{vertex.parent} -- v{at};")
    return "\n".join([*lines, "}"]) + "\n"


def _escape(text: str) -> str:
    return show(text, MAX_LABEL).replace("\\", "\\\\").replace('"', '\\"')


def render_graphml(tree: TopologyTree, _settings: ExportSettings) -> str:
    """Return the tree as GraphML, with the kind and the name of each vertex as attributes."""
    root = ET.Element("graphml", xmlns=_NAMESPACE)
    for key in ("kind", "name"):
        attributes = {"id": key, "for": "node", "attr.name": key, "attr.type": "string"}
        ET.SubElement(root, "key", attributes)
    graph = ET.SubElement(root, "graph", id="toponaut", edgedefault="undirected")
    vertices = _list_vertices(tree)
    for at, vertex in enumerate(vertices):
        element = ET.SubElement(graph, "node", id=f"v{at}")
        ET.SubElement(element, "data", key="kind").text = show(vertex.kind)
        ET.SubElement(element, "data", key="name").text = show(vertex.name, MAX_LABEL)
    for at, vertex in enumerate(vertices):
        if vertex.parent >= 0:
            ET.SubElement(graph, "edge", source=f"v{vertex.parent}", target=f"v{at}")
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _list_vertices(tree: TopologyTree) -> list[_Vertex]:
    """Return the domains, highest tier first, then their nodes, then the unplaced nodes."""
    last = len(tree.domains) - 1
    vertices = [
        _Vertex(
            domain.name,
            tree.tiers[domain.tier - 1],
            -1 if domain.parent is None else last - domain.parent,
        )
        for domain in reversed(tree.domains)
    ]
    vertices += [
        _Vertex(node, NODE, last - at)
        for at, domain in enumerate(tree.domains)
        for node in domain.nodes
    ]
    vertices += [_Vertex(row.node, NODE, -1) for row in tree.unplaced]
    return vertices
