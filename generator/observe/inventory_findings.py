"""Findings about entries of the inventory that cannot be used: `unusable-field`. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from generator.objects.inventory import Inventory, ListedNode
from topology.model.errors import list_some, show
from topology.model.facts import Finding, FindingKind, Severity
from topology.model.tree import TopologyTree

_MAX_SHOWN: Final = 3
_MAX_NODES: Final = 1000
"""Nodes with a finding of their own; the number of the others is in one."""
_SUBJECT: Final = "inventory"


def derive_inventory_findings(inventory: Inventory | None) -> Iterator[Finding]:
    """Yield a finding per node with unusable fields, and one for all entries that name no node.

    A list of a million wrong entries gives a thousand findings and their total.
    """
    if inventory is None:
        return
    faulty = [node for node in inventory.nodes if node.problems]
    for node in faulty[:_MAX_NODES]:
        yield _build_finding(
            node.name,
            Severity.WARNING,
            f"The entry of node {node.name} in the list of nodes{_show_place(inventory, node)} "
            f"has faults: {list_some(node.problems, _MAX_SHOWN)}. The node stays listed. "
            "Correct the entry.",
        )
    more = len(faulty) - _MAX_NODES
    if more > 0:
        yield _build_finding(
            _SUBJECT,
            Severity.WARNING,
            f"The entries of {more} more nodes in the list of nodes have faults. The nodes stay "
            "listed. Correct the entries.",
        )
    if inventory.lost:
        shown = list_some((show(problem, 200) for problem in inventory.lost), _MAX_SHOWN)
        yield _build_finding(
            _SUBJECT,
            Severity.ERROR,
            f"The list of nodes has entries that name no node, or lacks its end: {shown}. Correct "
            "the list: until then, no node of a HyperNode is taken for removed.",
        )


def _show_place(inventory: Inventory, node: ListedNode) -> str:
    place = inventory.places.get(node.name)
    return f" ({show(place, 1024)})" if place else ""


def describe_lost_entries(inventory: Inventory | None, previous: TopologyTree | None) -> str:
    """Return why no node may leave its domain: an entry that names no node may be about it.

    Empty if every entry names its node, or if every placed node is listed anyway.

    Args:
        inventory: the listed nodes.
        previous: the tree of the last generation.
    """
    if inventory is None or not inventory.lost or previous is None:
        return ""
    listed = {node.name for node in inventory.nodes}
    missing = [node for node in previous.nodes if node not in listed]
    if not missing:
        return ""
    return (
        f"the list of nodes has entries that name no node or lacks its end, and lacks "
        f"{list_some(map(show, missing), _MAX_SHOWN)}"
    )


def _build_finding(device: str, severity: Severity, message: str) -> Finding:
    return Finding(
        kind=FindingKind.UNUSABLE_FIELD,
        device=device,
        port=None,
        severity=severity,
        message=message,
    )
