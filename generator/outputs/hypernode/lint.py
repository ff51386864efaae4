"""Problems in a set of HyperNodes, from Toponaut or others.

Volcano's schema and webhook validate one object at a time. They do not check cycles, single
parents or the order of tiers, and a violation stops or crashes the scheduler.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from generator.outputs.hypernode.model import MAX_MEMBER_NAME, PLACEHOLDER, HyperNode
from generator.outputs.hypernode.problems import HyperNodeProblem
from generator.outputs.hypernode.problems import ProblemKind as Kind
from generator.outputs.object_names import is_object_name
from topology.model.errors import list_some, show
from topology.model.ids import natural_key

_MAX_SHOWN: Final = 5
_VOLCANO_NAMES = re.compile(r"leaf-hn-.*|spine-hn|hypernode-.*-tier.*")


def lint_hypernodes(hypernodes: Sequence[HyperNode]) -> tuple[str, ...]:
    """Return one line per violation of an assumption of Volcano's scheduler or of its API."""
    problems = find_problems(hypernodes)
    return tuple(row.line for row in problems if row.kind is not Kind.ADMISSION_POLICY)


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
            yield _build(Kind.DUPLICATE_NAME, name, f"{num} HyperNodes have this name")
    parents: dict[str, list[str]] = {}
    for hypernode in hypernodes:
        if not hypernode.members and not hypernode.num_inexact_members:
            yield _build(Kind.NO_MEMBERS, hypernode.name, "has no members")
        yield from _find_duplicates(hypernode)
        for child in dict.fromkeys(hypernode.children):
            parents.setdefault(child, []).append(hypernode.name)
            yield from _find_child_problems(hypernode, child, by_name)
    for child, above in parents.items():
        if len(above) > 1:
            shown = list_some(above, _MAX_SHOWN)
            yield _build(Kind.SEVERAL_PARENTS, child, f"has {len(above)} parents: {shown}")
    for cycle in _find_cycles(by_name):
        yield HyperNodeProblem(Kind.CYCLE, cycle[0], _render_cycle(cycle))


def _build(kind: Kind, subject: str, text: str) -> HyperNodeProblem:
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
        {name: min(c for c in below[name] if c in remaining) for name in sorted(remaining)}
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
                yield _build(Kind.DUPLICATE_MEMBER, hypernode.name, text)


def _find_child_problems(
    hypernode: HyperNode, child: str, by_name: Mapping[str, HyperNode]
) -> Iterator[HyperNodeProblem]:
    if child not in by_name:
        text = f"lists HyperNode {show(child)}, which does not exist"
        yield _build(Kind.MISSING_CHILD, hypernode.name, text)
        return
    tier = by_name[child].tier
    subject, member = f"tier {hypernode.tier}", f"its member {child}"
    if tier >= hypernode.tier:
        text = f"{subject} is not above tier {tier} of {member}"
        yield _build(Kind.TIER_ORDER, hypernode.name, text)
    elif tier < hypernode.tier - 1:
        text = f"{subject} is more than one above tier {tier} of {member}"
        yield _build(Kind.TIER_GAP, hypernode.name, text)


def _find_tier_problems(ordered: Sequence[HyperNode]) -> Iterator[HyperNodeProblem]:
    yield from (
        _build(Kind.TIER_GAP, hypernode.name, "tier 0, the lowest must be 1")
        for hypernode in ordered
        if not hypernode.tier
    )
    tiers = sorted({hypernode.tier for hypernode in ordered if hypernode.tier})
    for below, tier in pairwise([0, *tiers]):
        if tier > below + 1:
            line = f"tier {tier} is used, but no HyperNode has tier {tier - 1}"
            yield HyperNodeProblem(Kind.TIER_GAP, f"tier {tier}", line)
    named = {(hypernode.tier_name, hypernode.tier) for hypernode in ordered if hypernode.tier_name}
    tiers_of: dict[str, list[str]] = {}
    names_of: dict[int, list[str]] = {}
    for name, tier in sorted(named):
        tiers_of.setdefault(name, []).append(str(tier))
        names_of.setdefault(tier, []).append(show(name))
    for name, used in tiers_of.items():
        if len(used) > 1:
            line = f"tier name {show(name)} is used at tiers {list_some(used, _MAX_SHOWN)}"
            yield HyperNodeProblem(Kind.TIER_NAME, show(name), line)
    for tier, names in names_of.items():
        if len(names) > 1:
            line = f"tier {tier} has several names: {list_some(names, _MAX_SHOWN)}"
            yield HyperNodeProblem(Kind.TIER_NAME, f"tier {tier}", line)


def _find_node_problems(ordered: Sequence[HyperNode]) -> Iterator[HyperNodeProblem]:
    parents: dict[str, list[str]] = {}
    for hypernode in ordered:
        if PLACEHOLDER in (member.name for member in hypernode.members):
            text = f"has the member {PLACEHOLDER}, left by an interrupted plan"
            yield _build(Kind.PLACEHOLDER, hypernode.name, text)
        if hypernode.nodes and hypernode.tier > 1:
            text = f"lists nodes at tier {hypernode.tier}; they belong in tier 1"
            yield _build(Kind.NODES_ABOVE_TIER_1, hypernode.name, text)
        for node in dict.fromkeys(hypernode.nodes):
            parents.setdefault(node, []).append(hypernode.name)
    for node, names in parents.items():
        if len(names) > 1:
            shown = list_some(names, _MAX_SHOWN)
            text = f"is in {len(names)} HyperNodes: {shown}"
            yield _build(Kind.SHARED_NODE, f"node {show(node)}", text)


def is_usable_name(name: str) -> bool:
    """Return whether Toponaut may write a HyperNode of this name."""
    is_short = is_object_name(name) and len(name) <= MAX_MEMBER_NAME
    return is_short and not _VOLCANO_NAMES.fullmatch(name)


def _find_name_problems(ordered: Sequence[HyperNode]) -> Iterator[HyperNodeProblem]:
    for hypernode in ordered:
        yield from _find_long_names(hypernode)
        if not is_object_name(hypernode.name):
            yield _build(Kind.NAME, hypernode.name, "not a lower-case DNS-1123 name")
        if hypernode.is_ours and _VOLCANO_NAMES.fullmatch(hypernode.name):
            text = "Volcano's own discovery uses such names"
            yield _build(Kind.RESERVED_NAME, hypernode.name, text)
        if hypernode.num_inexact_members:
            text = f"{hypernode.num_inexact_members} members are not selected by exact names"
            yield _build(Kind.INEXACT_MEMBERS, hypernode.name, text)
        for node in hypernode.nodes:
            if not is_object_name(node):
                text = f"member {show(node)} is not a lower-case DNS-1123 name"
                yield _build(Kind.NAME, hypernode.name, text)


def _find_long_names(hypernode: HyperNode) -> Iterator[HyperNodeProblem]:
    """Yield the members whose names the admission policy takes for too long."""
    for member in hypernode.members:
        if len(member.name) > MAX_MEMBER_NAME:
            text = f"member {show(member.name)} has more than {MAX_MEMBER_NAME} characters"
            yield _build(Kind.ADMISSION_POLICY, hypernode.name, text)
