"""Volcano's HyperNodes.

- model: one HyperNode, and its manifest in both directions
- render: the HyperNodes of a tree
- forest: the tree of HyperNodes, the reverse of `render`
- lint: problems in a set of HyperNodes
- selector_lint: problems of a set on the nodes of a cluster
- problems: the kinds of problems, and what follows from each
- selectors: members by patterns and labels
- adoption: HyperNodes of others as Toponaut takes them over
- go_patterns: regular expressions as Go reads them, the only module that imports RE2

Imports `topology`, `runtime.lazy_names` and RE2 only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.lazy_names import load_when_used

if TYPE_CHECKING:
    from generator.outputs.hypernode.adoption import Adoption, adopt_hypernodes, select_named
    from generator.outputs.hypernode.forest import HyperNodeTree, build_hypernode_tree
    from generator.outputs.hypernode.lint import find_structure_problems, lint_hypernodes
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
        parse_manifest,
        render_manifest,
        sort_members,
    )
    from generator.outputs.hypernode.problems import EFFECTS, HyperNodeProblem, ProblemKind
    from generator.outputs.hypernode.render import render_hypernodes
    from generator.outputs.hypernode.selector_lint import find_set_problems, resolve_selectors

__all__ = [
    "EFFECTS",
    "OWN_LABELS",
    "PADDING_LABEL",
    "PADDING_LABELS",
    "PLACEHOLDER",
    "SOURCE_LABEL",
    "Adoption",
    "HyperNode",
    "HyperNodeProblem",
    "HyperNodeTree",
    "Member",
    "MemberType",
    "ProblemKind",
    "adopt_hypernodes",
    "build_hypernode_tree",
    "build_unreadable",
    "find_set_problems",
    "find_structure_problems",
    "lint_hypernodes",
    "parse_manifest",
    "render_hypernodes",
    "render_manifest",
    "resolve_selectors",
    "select_named",
    "sort_members",
]

_MODULE_OF = {
    "Adoption": "adoption",
    "EFFECTS": "problems",
    "HyperNode": "model",
    "HyperNodeProblem": "problems",
    "HyperNodeTree": "forest",
    "Member": "model",
    "MemberType": "model",
    "OWN_LABELS": "model",
    "PADDING_LABEL": "model",
    "PADDING_LABELS": "model",
    "PLACEHOLDER": "model",
    "ProblemKind": "problems",
    "SOURCE_LABEL": "model",
    "adopt_hypernodes": "adoption",
    "build_hypernode_tree": "forest",
    "build_unreadable": "model",
    "find_set_problems": "selector_lint",
    "find_structure_problems": "lint",
    "lint_hypernodes": "lint",
    "parse_manifest": "model",
    "render_hypernodes": "render",
    "render_manifest": "model",
    "resolve_selectors": "selector_lint",
    "select_named": "adoption",
    "sort_members": "model",
}

# Few commands check HyperNodes or adopt them.
__getattr__ = load_when_used(__name__, _MODULE_OF)
