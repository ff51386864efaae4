"""Problems of HyperNodes on the nodes of a cluster: what each selector selects.

Without nodes, only the selectors themselves are checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from generator.outputs.hypernode.lint import find_problems
from generator.outputs.hypernode.model import HyperNode, Member, MemberType, sort_members
from generator.outputs.hypernode.problems import HyperNodeProblem
from generator.outputs.hypernode.problems import ProblemKind as Kind
from generator.outputs.hypernode.selectors import (
    Labels,
    MemberSelector,
    Selection,
    find_refused_bracket,
)
from topology.model.errors import list_some, show
from topology.model.ids import natural_key

_MAX_SHOWN: Final = 5
_REPLACED: Final = frozenset({Kind.INEXACT_MEMBERS})
"""Kinds of `lint` that are replaced by those of each selector."""


def resolve_selectors(hypernode: HyperNode, nodes: Mapping[str, Labels]) -> HyperNode:
    """Return a HyperNode with the nodes that it selects as exact members.

    Omits HyperNodes by pattern or labels, which Volcano drops. Cost: O(selectors · nodes).

    Args:
        hypernode: of any owner.
        nodes: the labels of each node of the cluster.
    """
    names = {node for selector in hypernode.selectors for node in selector.select(nodes).nodes}
    return _with_selected(hypernode, names)


def _with_selected(hypernode: HyperNode, names: Collection[str]) -> HyperNode:
    if not hypernode.num_inexact_members:
        return hypernode
    selected = {Member(MemberType.NODE, name) for name in names}
    return replace(
        hypernode,
        members=sort_members({*hypernode.members, *selected}),
        num_inexact_members=0,
        selectors=(),
    )


def find_set_problems(
    hypernodes: Sequence[HyperNode],
    nodes: Mapping[str, Labels] | None = None,
    *,
    unlisted: Collection[str] = (),
) -> tuple[HyperNodeProblem, ...]:
    """Return the problems of a set of HyperNodes, also of their selectors.

    Args:
        hypernodes: the set, of any owners.
        nodes: the labels of each node of the cluster; None if the nodes are unknown.
        unlisted: nodes that need no HyperNode, because no job runs there.
    """
    ordered = sorted(hypernodes, key=lambda row: (row.tier, natural_key(row.name)))
    selector_problems: list[HyperNodeProblem] = []
    checked = []
    for hypernode in ordered:
        names: set[str] = set()
        for selector in hypernode.selectors:
            selection = selector.select(nodes)
            names.update(selection.nodes)
            selector_problems += _find_selector_problems(hypernode, selector, selection, nodes)
        checked.append(hypernode if nodes is None else _with_selected(hypernode, names))
    problems = [
        problem
        for problem in find_problems(checked)
        if problem.kind not in _REPLACED and not _is_dropped_child(problem, ordered)
    ]
    node_problems = (
        [] if nodes is None else [*_find_node_problems(ordered, checked, nodes, unlisted=unlisted)]
    )
    return (*problems, *selector_problems, *node_problems)


def _is_dropped_child(problem: HyperNodeProblem, ordered: Sequence[HyperNode]) -> bool:
    """Return whether a HyperNode is empty only after its selectors were resolved."""
    return problem.kind is Kind.NO_MEMBERS and any(
        row.name == problem.subject and row.num_inexact_members for row in ordered
    )


def _find_selector_problems(
    hypernode: HyperNode,
    selector: MemberSelector,
    selection: Selection,
    nodes: Mapping[str, Labels] | None,
) -> Iterator[HyperNodeProblem]:
    if selector.is_child:
        text = "selects HyperNodes, and Volcano takes them by exactMatch only"
        yield _build(Kind.INEXACT_CHILD, hypernode.name, text)
    if selection.problem:
        yield _build(Kind.INVALID_SELECTOR, hypernode.name, selection.problem)
        return
    bracket = find_refused_bracket(selector.pattern)
    if bracket:
        text = f"{selector} has unequal numbers of {bracket[0]} and {bracket[1]}"
        yield _build(Kind.ADMISSION_POLICY, hypernode.name, text)
    if nodes is None or selector.is_child:
        return
    if not selection.nodes:
        text = f"{selector} selects none of {len(nodes)} nodes"
        yield _build(Kind.EMPTY_SELECTION, hypernode.name, text)
    if 0 < len(selection.partly) < len(selection.nodes):
        shown = list_some(map(show, selection.partly), _MAX_SHOWN)
        text = f"{selector} also matches a part of {shown}"
        yield _build(Kind.BROAD_PATTERN, hypernode.name, text)


def _find_node_problems(
    ordered: Sequence[HyperNode],
    resolved: Sequence[HyperNode],
    nodes: Mapping[str, Labels],
    *,
    unlisted: Collection[str],
) -> Iterator[HyperNodeProblem]:
    listed: set[str] = set()
    is_forest = len(nodes) > 1 and sum(row.tier == 1 for row in ordered) > 1
    for hypernode, real in zip(ordered, resolved, strict=True):
        unknown = [name for name in hypernode.nodes if name not in nodes]
        listed.update(real.nodes)
        if unknown:
            shown = list_some(map(show, unknown), _MAX_SHOWN)
            yield _build(Kind.UNKNOWN_NODE, hypernode.name, f"no such node: {shown}")
        if real.nodes and len(unknown) == len(real.nodes) and not real.children:
            yield _build(Kind.EMPTY_SELECTION, hypernode.name, "has no node of the cluster")
        if is_forest and hypernode.selectors and nodes.keys() <= set(real.nodes):
            text = f"selects every one of {len(nodes)} nodes"
            yield _build(Kind.BROAD_PATTERN, hypernode.name, text)
    missing = [name for name in nodes if name not in listed and name not in unlisted]
    if missing and ordered:
        shown = list_some(map(show, missing), _MAX_SHOWN)
        line = f"nodes: {len(missing)} of {len(nodes)} nodes are in no HyperNode: {shown}"
        yield HyperNodeProblem(Kind.UNLISTED_NODES, "nodes", line)


def _build(kind: Kind, subject: str, text: str) -> HyperNodeProblem:
    return HyperNodeProblem(kind, show(subject), f"{show(subject)}: {text}")
