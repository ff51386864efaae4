"""Volcano's HyperNodes: what they are, the tree as HyperNodes, HyperNodes as a tree, and lint."""

from generator.outputs.hypernode.forest import HyperNodeTree, build_hypernode_tree
from generator.outputs.hypernode.lint import lint, find_structure_problems
from generator.outputs.hypernode.model import (
    OWN_LABELS,
    PADDING_LABEL,
    PLACEHOLDER,
    SOURCE_LABEL,
    HyperNode,
    Member,
    MemberType,
    is_object_name,
    parse_manifest,
    render_manifest,
)
from generator.outputs.hypernode.render import render_hypernodes

__all__ = [
    "OWN_LABELS",
    "PADDING_LABEL",
    "PLACEHOLDER",
    "SOURCE_LABEL",
    "HyperNode",
    "HyperNodeTree",
    "Member",
    "MemberType",
    "is_object_name",
    "lint",
    "parse_manifest",
    "render_hypernodes",
    "render_manifest",
    "find_structure_problems",
    "build_hypernode_tree",
]
