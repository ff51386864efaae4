"""Problems in a set of HyperNodes of any owner, and what Volcano's scheduler does with each.

Volcano's schema and webhook validate one object at a time. They do not check cycles, single
parents or the order of tiers, and a violation stops or crashes the scheduler. On the nodes of a
cluster, the nodes that each selector selects are checked too; without nodes, the selectors alone.

Source: volcano-sh/volcano v1.15: pkg/scheduler/api/hyper_node_info.go, the plugin
network-topology-aware, pkg/webhooks/admission/hypernodes, and the optional admission policy
installer/helm/chart/volcano/policy/hypernodes-validating.yaml.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import pairwise
from types import MappingProxyType
from typing import Final, NamedTuple

from generator.outputs.hypernode.model import (
    MAX_MEMBER_NAME,
    PLACEHOLDER,
    HyperNode,
    Member,
    MemberType,
    sort_members,
)
from generator.outputs.hypernode.selectors import (
    Labels,
    MemberSelector,
    Selection,
    find_refused_bracket,
)
from generator.outputs.owned_object import is_object_name
from topology.model.errors import list_some, show
from topology.model.ids import natural_key


class ProblemKind(StrEnum):
    """What is wrong."""

    INVALID_OBJECT = "invalid-object"
    DUPLICATE_NAME = "duplicate-name"
    NO_MEMBERS = "no-members"
    DUPLICATE_MEMBER = "duplicate-member"
    MISSING_CHILD = "missing-child"
    SEVERAL_PARENTS = "several-parents"
    CYCLE = "cycle"
    TIER_ORDER = "tier-order"
    TIER_GAP = "tier-gap"
    TIER_NAME = "tier-name"
    NODES_ABOVE_TIER_1 = "nodes-above-tier-1"
    SHARED_NODE = "shared-node"
    PLACEHOLDER = "placeholder"
    NAME = "name"
    RESERVED_NAME = "reserved-name"
    ADMISSION_POLICY = "admission-policy"
    INEXACT_MEMBERS = "inexact-members"
    INEXACT_CHILD = "inexact-child"
    INVALID_SELECTOR = "invalid-selector"
    EMPTY_SELECTION = "empty-selection"
    BROAD_PATTERN = "broad-pattern"
    UNKNOWN_NODE = "unknown-node"
    UNLISTED_NODES = "unlisted-nodes"


EFFECTS: Final[Mapping[ProblemKind, str]] = MappingProxyType(
    {
        ProblemKind.INVALID_OBJECT: "the API server or the webhook refuses it",
        ProblemKind.DUPLICATE_NAME: "the object that is applied last replaces the other",
        ProblemKind.NO_MEMBERS: "the webhook refuses it",
        ProblemKind.DUPLICATE_MEMBER: "remove the repeated member",
        ProblemKind.MISSING_CHILD: "the scheduler crashes at the next job with a topology",
        ProblemKind.SEVERAL_PARENTS: "the scheduler places no job with a topology",
        ProblemKind.CYCLE: "the scheduler places no job with a topology",
        ProblemKind.TIER_ORDER: "limits on tiers select the wrong HyperNodes",
        ProblemKind.TIER_GAP: "the scores of nodes become noise",
        ProblemKind.TIER_NAME: "highestTierName selects a tier at random",
        ProblemKind.NODES_ABOVE_TIER_1: "the scores of these nodes are wrong",
        ProblemKind.SHARED_NODE: "the scheduler takes one of them at random",
        ProblemKind.PLACEHOLDER: "run toponaut apply again",
        ProblemKind.NAME: "the API server refuses it",
        ProblemKind.RESERVED_NAME: "Volcano's own discovery fails in every round",
        ProblemKind.ADMISSION_POLICY: "Volcano's admission policy (custom.vap_enable) refuses it",
        ProblemKind.INEXACT_MEMBERS: "the members change with the names or labels of nodes",
        ProblemKind.INEXACT_CHILD: "the scheduler drops this member",
        ProblemKind.INVALID_SELECTOR: "the webhook refuses it, or it selects nothing",
        ProblemKind.EMPTY_SELECTION: "no job is placed there",
        ProblemKind.BROAD_PATTERN: "anchor the pattern with ^ and $",
        ProblemKind.UNKNOWN_NODE: "the scheduler ignores this member",
        ProblemKind.UNLISTED_NODES: "no job with a topology is placed there",
    }
)
"""The effect of a problem, or its repair, by kind."""


class HyperNodeProblem(NamedTuple):
    """One problem of a set of HyperNodes."""

    kind: ProblemKind
    subject: str
    """The HyperNode, node or tier, escaped."""
    line: str
    """The whole problem on one line, escaped."""

    @property
    def text(self) -> str:
        """The problem without its subject."""
        return self.line.removeprefix(f"{self.subject}: ")


_MAX_SHOWN: Final = 5
_VOLCANO_NAMES = re.compile(r"leaf-hn-.*|spine-hn|hypernode-.*-tier.*")


def lint_hypernodes(hypernodes: Sequence[HyperNode]) -> tuple[str, ...]:
    """Return one line per violation of an assumption of Volcano's scheduler or of its API."""
    problems = find_problems(hypernodes)
    return tuple(row.line for row in problems if row.kind is not ProblemKind.ADMISSION_POLICY)


def find_problems(hypernodes: Sequence[HyperNode]) -> tuple[HyperNodeProblem, ...]:
    """Return the violations of the assumptions of Volcano, and of its optional admission policy.

    Accepts any set, also with cycles. The order depends on the content only.
    Cost: O(n log n) in members.
    """
    ordered = sorted(
        hypernodes, key=lambda hypernode: (hypernode.tier, natural_key(hypernode.name))
    )
    return (
        *_find_structure_problems(ordered),
        *_find_tier_problems(ordered),
        *_find_node_problems(ordered),
        *_find_name_problems(ordered),
    )


def find_structure_problems(hypernodes: Sequence[HyperNode]) -> tuple[str, ...]:
    """Return why a set is not a forest of non-empty HyperNodes with ascending tiers."""
    return tuple(problem.line for problem in _find_structure_problems(hypernodes))


def _find_structure_problems(hypernodes: Sequence[HyperNode]) -> Iterator[HyperNodeProblem]:
    by_name = {hypernode.name: hypernode for hypernode in hypernodes}
    names = Counter(hypernode.name for hypernode in hypernodes)
    for name, num in names.items():
        if num > 1:
            yield _build(ProblemKind.DUPLICATE_NAME, name, f"{num} HyperNodes have this name")
    parents: dict[str, list[str]] = {}
    for hypernode in hypernodes:
        if not hypernode.members and not hypernode.num_inexact_members:
            yield _build(ProblemKind.NO_MEMBERS, hypernode.name, "has no members")
        yield from _find_duplicates(hypernode)
        for child in dict.fromkeys(hypernode.children):
            parents.setdefault(child, []).append(hypernode.name)
            yield from _find_child_problems(hypernode, child, by_name)
    for child, above in parents.items():
        if len(above) > 1:
            shown = list_some(above, _MAX_SHOWN)
            yield _build(ProblemKind.SEVERAL_PARENTS, child, f"has {len(above)} parents: {shown}")
    for cycle in _find_cycles(by_name):
        yield HyperNodeProblem(ProblemKind.CYCLE, cycle[0], _render_cycle(cycle))


def _build(kind: ProblemKind, subject: str, text: str) -> HyperNodeProblem:
    return HyperNodeProblem(kind, show(subject), f"{show(subject)}: {text}")


def find_cycle_problems(by_name: Mapping[str, HyperNode]) -> list[str]:
    """Return one line per cycle, such as `cycle: a > b > a`; shortens long cycles."""
    return [_render_cycle(cycle) for cycle in _find_cycles(by_name)]


def _render_cycle(cycle: Sequence[str]) -> str:
    return f"cycle: {' > '.join(_shorten_cycle(cycle))}"


def _shorten_cycle(cycle: Sequence[str], limit: int = 8) -> list[str]:
    if len(cycle) <= limit:
        return list(cycle)
    return [*cycle[: limit - 1], f"… {len(cycle) - limit} more …", cycle[-1]]


def _find_cycles(by_name: Mapping[str, HyperNode]) -> list[tuple[str, ...]]:
    """Return the cycles of membership, each as `a, b, a`.

    Returns at least one of several cycles that share HyperNodes. Cost: O(members).
    """
    below = {
        name: [child for child in hypernode.children if child in by_name]
        for name, hypernode in by_name.items()
    }
    above: dict[str, list[str]] = {name: [] for name in below}
    for name, children in below.items():
        for child in children:
            above[child].append(name)
    # Remove HyperNodes without remaining children, repeatedly. Each that remains has a child that
    # remains.
    remaining = {name: len(children) for name, children in below.items()}
    ready = [name for name, num in remaining.items() if not num]
    while ready:
        name = ready.pop()
        del remaining[name]
        for parent in above[name]:
            remaining[parent] -= 1
            if not remaining[parent]:
                ready.append(parent)
    return _walk_cycles(
        {
            name: min(child for child in below[name] if child in remaining)
            for name in sorted(remaining)
        }
    )


def _walk_cycles(step: Mapping[str, str]) -> list[tuple[str, ...]]:
    cycles = []
    visited: set[str] = set()
    for start in step:
        path: dict[str, None] = {}
        name = start
        while name not in visited:
            visited.add(name)
            path[name] = None
            name = step[name]
        if name in path:
            walked = list(path)
            cycles.append((*walked[walked.index(name) :], name))
    return cycles


def _find_duplicates(hypernode: HyperNode) -> Iterator[HyperNodeProblem]:
    if len(set(hypernode.members)) < len(hypernode.members):
        for member, num in Counter(hypernode.members).items():
            if num > 1:
                text = f"lists {member.type} {show(member.name)} {num} times"
                yield _build(ProblemKind.DUPLICATE_MEMBER, hypernode.name, text)


def _find_child_problems(
    hypernode: HyperNode, child: str, by_name: Mapping[str, HyperNode]
) -> Iterator[HyperNodeProblem]:
    if child not in by_name:
        text = f"lists HyperNode {show(child)}, which does not exist"
        yield _build(ProblemKind.MISSING_CHILD, hypernode.name, text)
        return
    tier = by_name[child].tier
    subject, member = f"tier {hypernode.tier}", f"its member {child}"
    if tier >= hypernode.tier:
        text = f"{subject} is not above tier {tier} of {member}"
        yield _build(ProblemKind.TIER_ORDER, hypernode.name, text)
    elif tier < hypernode.tier - 1:
        text = f"{subject} is more than one above tier {tier} of {member}"
        yield _build(ProblemKind.TIER_GAP, hypernode.name, text)


def _find_tier_problems(ordered: Sequence[HyperNode]) -> Iterator[HyperNodeProblem]:
    yield from (
        _build(ProblemKind.TIER_GAP, hypernode.name, "tier 0, the lowest must be 1")
        for hypernode in ordered
        if not hypernode.tier
    )
    tiers = sorted({hypernode.tier for hypernode in ordered if hypernode.tier})
    for below, tier in pairwise([0, *tiers]):
        if tier > below + 1:
            line = f"tier {tier} is used, but no HyperNode has tier {tier - 1}"
            yield HyperNodeProblem(ProblemKind.TIER_GAP, f"tier {tier}", line)
    named = {(hypernode.tier_name, hypernode.tier) for hypernode in ordered if hypernode.tier_name}
    tiers_of: dict[str, list[str]] = {}
    names_of: dict[int, list[str]] = {}
    for name, tier in sorted(named):
        tiers_of.setdefault(name, []).append(str(tier))
        names_of.setdefault(tier, []).append(show(name))
    for name, used in tiers_of.items():
        if len(used) > 1:
            line = f"tier name {show(name)} is used at tiers {list_some(used, _MAX_SHOWN)}"
            yield HyperNodeProblem(ProblemKind.TIER_NAME, show(name), line)
    for tier, names in names_of.items():
        if len(names) > 1:
            line = f"tier {tier} has several names: {list_some(names, _MAX_SHOWN)}"
            yield HyperNodeProblem(ProblemKind.TIER_NAME, f"tier {tier}", line)


def _find_node_problems(ordered: Sequence[HyperNode]) -> Iterator[HyperNodeProblem]:
    parents: dict[str, list[str]] = {}
    for hypernode in ordered:
        if PLACEHOLDER in (member.name for member in hypernode.members):
            text = f"has the member {PLACEHOLDER}, left by an interrupted plan"
            yield _build(ProblemKind.PLACEHOLDER, hypernode.name, text)
        if hypernode.nodes and hypernode.tier > 1:
            text = f"lists nodes at tier {hypernode.tier}; they belong in tier 1"
            yield _build(ProblemKind.NODES_ABOVE_TIER_1, hypernode.name, text)
        for node in dict.fromkeys(hypernode.nodes):
            parents.setdefault(node, []).append(hypernode.name)
    for node, names in parents.items():
        if len(names) > 1:
            shown = list_some(names, _MAX_SHOWN)
            text = f"is in {len(names)} HyperNodes: {shown}"
            yield _build(ProblemKind.SHARED_NODE, f"node {show(node)}", text)


def is_usable_name(name: str) -> bool:
    """Return whether Toponaut may write a HyperNode of this name."""
    is_short = is_object_name(name) and len(name) <= MAX_MEMBER_NAME
    return is_short and not _VOLCANO_NAMES.fullmatch(name)


def _find_name_problems(ordered: Sequence[HyperNode]) -> Iterator[HyperNodeProblem]:
    for hypernode in ordered:
        yield from _find_long_names(hypernode)
        if not is_object_name(hypernode.name):
            yield _build(ProblemKind.NAME, hypernode.name, "not a lower-case DNS-1123 name")
        if hypernode.is_ours and _VOLCANO_NAMES.fullmatch(hypernode.name):
            text = "Volcano's own discovery uses such names"
            yield _build(ProblemKind.RESERVED_NAME, hypernode.name, text)
        if hypernode.num_inexact_members:
            text = f"{hypernode.num_inexact_members} members are not selected by exact names"
            yield _build(ProblemKind.INEXACT_MEMBERS, hypernode.name, text)
        for node in hypernode.nodes:
            if not is_object_name(node):
                text = f"member {show(node)} is not a lower-case DNS-1123 name"
                yield _build(ProblemKind.NAME, hypernode.name, text)


def _find_long_names(hypernode: HyperNode) -> Iterator[HyperNodeProblem]:
    """Yield the members whose names the admission policy takes for too long."""
    for member in hypernode.members:
        if len(member.name) > MAX_MEMBER_NAME:
            text = f"member {show(member.name)} has more than {MAX_MEMBER_NAME} characters"
            yield _build(ProblemKind.ADMISSION_POLICY, hypernode.name, text)


_REPLACED: Final = frozenset({ProblemKind.INEXACT_MEMBERS})
"""Kinds of `lint` that are replaced by those of each selector."""


def resolve_selectors(hypernode: HyperNode, nodes: Mapping[str, Labels]) -> HyperNode:
    """Return a HyperNode with the nodes that it selects as exact members.

    Omits HyperNodes by pattern or labels, which Volcano drops. Cost: O(selectors · nodes).

    Args:
        hypernode: a HyperNode of any owner.
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
        []
        if nodes is None
        else [*_find_membership_problems(ordered, checked, nodes, unlisted=unlisted)]
    )
    return (*problems, *selector_problems, *node_problems)


def _is_dropped_child(problem: HyperNodeProblem, ordered: Sequence[HyperNode]) -> bool:
    """Return whether a HyperNode is empty only after its selectors were resolved."""
    return problem.kind is ProblemKind.NO_MEMBERS and any(
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
        yield _build(ProblemKind.INEXACT_CHILD, hypernode.name, text)
    if selection.problem:
        yield _build(ProblemKind.INVALID_SELECTOR, hypernode.name, selection.problem)
        return
    bracket = find_refused_bracket(selector.pattern)
    if bracket:
        text = f"{selector} has unequal numbers of {bracket[0]} and {bracket[1]}"
        yield _build(ProblemKind.ADMISSION_POLICY, hypernode.name, text)
    if nodes is None or selector.is_child:
        return
    if not selection.nodes:
        text = f"{selector} selects none of {len(nodes)} nodes"
        yield _build(ProblemKind.EMPTY_SELECTION, hypernode.name, text)
    if 0 < len(selection.partly) < len(selection.nodes):
        shown = list_some(map(show, selection.partly), _MAX_SHOWN)
        text = f"{selector} also matches a part of {shown}"
        yield _build(ProblemKind.BROAD_PATTERN, hypernode.name, text)


def _find_membership_problems(
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
            yield _build(ProblemKind.UNKNOWN_NODE, hypernode.name, f"no such node: {shown}")
        if real.nodes and len(unknown) == len(real.nodes) and not real.children:
            yield _build(ProblemKind.EMPTY_SELECTION, hypernode.name, "has no node of the cluster")
        if is_forest and hypernode.selectors and nodes.keys() <= set(real.nodes):
            text = f"selects every one of {len(nodes)} nodes"
            yield _build(ProblemKind.BROAD_PATTERN, hypernode.name, text)
    missing = [name for name in nodes if name not in listed and name not in unlisted]
    if missing and ordered:
        shown = list_some(map(show, missing), _MAX_SHOWN)
        line = f"nodes: {len(missing)} of {len(nodes)} nodes are in no HyperNode: {shown}"
        yield HyperNodeProblem(ProblemKind.UNLISTED_NODES, "nodes", line)
