"""Renders the labels of each node: the domain of every tier, or a value that no other node has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from generator.outputs.domain_names import name_domains
from generator.outputs.node_labels.values import UNPLACED_PREFIX, build_label_values
from generator.outputs.owned_object import OwnedObject
from topology.model.tree import TopologyTree


class NodeLabels(NamedTuple):
    """The values of one node."""

    node: str
    values: tuple[str, ...]
    """One per tier, lowest first; never empty."""
    is_placed: bool = True


def render_node_labels(tree: TopologyTree, *, is_padded: bool = True) -> tuple[NodeLabels, ...]:
    """Return the values of every node: placed nodes in tree order, then the unplaced ones.

    An unplaced node has the same value in each tier, which is its own: consumers that leave out
    nodes without a label still see it, and none takes it for a neighbor of another node.
    Cost: O(nodes x tiers).

    Args:
        tree: the tree.
        is_padded: whether numbers in values get four digits.
    """
    domains = name_domains(tree)
    unplaced = [row.node for row in tree.unplaced]
    names = {name: None for row in domains.values() for name in row}
    alone = {node: f"{UNPLACED_PREFIX}{node}" for node in unplaced}
    value_of = build_label_values(
        [*names, *alone.values()], taken={*domains, *unplaced}, is_padded=is_padded
    )
    placed = [
        NodeLabels(node, tuple(value_of[name] for name in row)) for node, row in domains.items()
    ]
    num_tiers = max(1, len(tree.tiers))
    rest = [
        NodeLabels(node, (value_of[alone[node]],) * num_tiers, is_placed=False) for node in unplaced
    ]
    return (*placed, *rest)


def render_label_objects(
    tree: TopologyTree, keys: Sequence[Sequence[str]], *, is_padded: bool = True
) -> tuple[OwnedObject, ...]:
    """Return the labels of every node, as parts of Node objects.

    Args:
        tree: the tree.
        keys: the keys of each tier, lowest first, from `list_label_keys`. A tree without tiers has
            none, and no labels.
        is_padded: whether numbers in values get four digits.
    """
    if not keys:
        return ()
    return tuple(
        OwnedObject("v1", "Node", row.node, labels=_build_labels(row, keys))
        for row in render_node_labels(tree, is_padded=is_padded)
    )


def _build_labels(row: NodeLabels, keys: Sequence[Sequence[str]]) -> Mapping[str, str]:
    pairs = zip(keys, row.values, strict=True)
    return {key: value for names, value in reversed([*pairs]) for key in names}
