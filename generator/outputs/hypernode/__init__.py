"""Volcano's HyperNodes.

- model: one HyperNode, and its manifest in both directions
- render: the HyperNodes of a tree
- forest: the tree of HyperNodes, the reverse of `render`
- lint: problems in a set of HyperNodes

Imports `topology` only.
"""

from generator.outputs.hypernode.forest import HyperNodeTree, build_hypernode_tree
from generator.outputs.hypernode.lint import find_structure_problems, lint
from generator.outputs.hypernode.model import (
    OWN_LABELS,
    PADDING_LABEL,
    PADDING_LABELS,
    PLACEHOLDER,
    SOURCE_LABEL,
    HyperNode,
    Member,
    MemberType,
    build_unreadable,
    is_object_name,
    parse_manifest,
    render_manifest,
    sort_members,
)
from generator.outputs.hypernode.render import render_hypernodes

__all__ = [
    "OWN_LABELS",
    "PADDING_LABEL",
    "PADDING_LABELS",
    "PLACEHOLDER",
    "SOURCE_LABEL",
    "HyperNode",
    "HyperNodeTree",
    "Member",
    "MemberType",
    "build_hypernode_tree",
    "build_unreadable",
    "find_structure_problems",
    "is_object_name",
    "lint",
    "parse_manifest",
    "render_hypernodes",
    "render_manifest",
    "sort_members",
]
