"""Renders topograph's graph: each node with the domains above it, the nearest first.

Source: topograph 1.0, the output of its `graph` engine.
"""

from __future__ import annotations

from typing import Any

from generator.outputs.node_labels import render_node_labels
from topology.model.tree import TopologyTree


def render_topograph(tree: TopologyTree) -> dict[str, Any]:
    """Return the document; placed nodes are in tree order, and unplaced nodes have no layers."""
    instances = [
        {"id": row.node, "network_layers": [*row.values] if row.is_placed else [], "labels": {}}
        for row in render_node_labels(tree)
    ]
    return {"instances": instances}
