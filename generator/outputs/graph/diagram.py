"""Renders the tree as a graph of domains and nodes: for Graphviz (DOT), and as GraphML.

Names are foreign text, so every one is quoted or escaped.

Source: https://graphviz.org/doc/info/lang.html and http://graphml.graphdrawing.org/specification.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from xml.etree import ElementTree as ET

from topology.model.errors import show
from topology.model.tree import TopologyTree

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


def render_dot(tree: TopologyTree) -> str:
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


def render_graphml(tree: TopologyTree) -> str:
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
