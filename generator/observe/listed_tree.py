"""A tree limited to the listed nodes, under their listed names. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from generator.objects.inventory import Inventory
from topology.identity.node_names import build_node_names
from topology.model.tree import (
    TopologyTree,
    Unplaced,
    with_node_names,
    without_nodes,
)


def restrict_to_listed(tree: TopologyTree, inventory: Inventory, *, reason: str) -> TopologyTree:
    """Return the tree of the listed nodes.

    Args:
        tree: any tree.
        inventory: the listed nodes.
        reason: why a listed node that the tree lacks is unplaced.
    """
    known, listed = set(tree.all_nodes), {node.name for node in inventory.nodes}
    restricted = without_nodes(tree, known - listed)
    missing = (Unplaced(node, reason) for node in listed - known)
    return replace(restricted, unplaced=tuple(sorted((*restricted.unplaced, *missing))))


def name_as_listed(tree: TopologyTree, inventory: Inventory) -> TopologyTree:
    """Return the tree with each node renamed to the listed node that its name means.

    If two nodes mean the same listed node, both keep their names. Listed nodes found this way are
    no longer unplaced. A tree that was saved without a list has the names that hosts give
    themselves.
    """
    known = build_node_names(inventory.ids_by_node, tree.nodes)
    listed = {node.name for node in inventory.nodes}
    meant = {node: node if node in listed else known.find(node) or node for node in tree.nodes}
    counts = Counter(meant.values())
    if all(node == name for node, name in meant.items()):
        return tree
    names = {node: meant[node] if counts[meant[node]] == 1 else node for node in tree.nodes}
    return with_node_names(tree, names, [row for row in tree.unplaced if row.node not in counts])
