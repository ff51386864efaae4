"""What is wrong with a set of HyperNodes, ours, foreign or mixed.

Volcano's schema and webhook look at one object at a time; acyclicity, single parents, the order
of tiers and the like are checked by nobody, and breaking them stops or crashes its scheduler.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from generator.outputs.hypernode.model import (
    MAX_MEMBER_NAME,
    PLACEHOLDER,
    HyperNode,
    is_object_name,
)
from topology.model.errors import show
from topology.model.ids import natural_key

_VOLCANO_NAMES = re.compile(r"leaf-hn-.*|spine-hn|hypernode-.*-tier.*")


def lint(hypernodes: Sequence[HyperNode]) -> tuple[str, ...]:
    """Return one line per violation of what Volcano's scheduler takes for granted.

    Takes any set, cyclic ones too. The order follows from the content alone.
    Cost: O(n log n) in members.
    """
    ordered = sorted(hypernodes, key=lambda found: (found.tier, natural_key(found.name)))
    return (
        *find_structure_problems(ordered),
        *_find_tier_problems(ordered),
        *_find_node_problems(ordered),
        *_find_name_problems(ordered),
    )


def find_structure_problems(hypernodes: Sequence[HyperNode]) -> tuple[str, ...]:
    """Return what keeps a set from being a forest of non-empty HyperNodes with rising tiers."""
    by_name = {found.name: found for found in hypernodes}
    names = Counter(found.name for found in hypernodes)
    problems = [
        f"{name}: {num} HyperNodes have this name" for name, num in names.items() if num > 1
    ]
    parents: dict[str, list[str]] = {}
    for found in hypernodes:
        if not found.members and not found.num_inexact_members:
            problems.append(f"{found.name}: has no members")
        problems.extend(_find_duplicates(found))
        for child in dict.fromkeys(found.children):
            parents.setdefault(child, []).append(found.name)
            problems.extend(_find_child_problems(found, child, by_name))
    problems.extend(
        f"{show(child)}: has {len(above)} parents: {_shorten_names(above)}"
        for child, above in parents.items()
        if len(above) > 1
    )
    return (*problems, *find_cycle_problems(by_name))


def find_cycle_problems(by_name: Mapping[str, HyperNode]) -> list[str]:
    """Return one line per cycle, as `cycle: a > b > a`, long ones cut in the middle."""
    return [f"cycle: {' > '.join(_shorten_cycle(cycle))}" for cycle in _find_cycles(by_name)]


def _shorten_cycle(cycle: Sequence[str], limit: int = 8) -> list[str]:
    if len(cycle) <= limit:
        return list(cycle)
    return [*cycle[: limit - 1], f"… {len(cycle) - limit} more …", cycle[-1]]


def _find_cycles(by_name: Mapping[str, HyperNode]) -> list[tuple[str, ...]]:
    """Return cycles of membership, each as `a, b, a`; none where there is none.

    Of cycles that share HyperNodes at least one is named. Cost: O(members).
    """
    below = {
        name: [child for child in found.children if child in by_name]
        for name, found in by_name.items()
    }
    above: dict[str, list[str]] = {name: [] for name in below}
    for name, children in below.items():
        for child in children:
            above[child].append(name)
    # What no childless HyperNode hangs from is peeled off; each that stays has a child that stays.
    left = {name: len(children) for name, children in below.items()}
    ready = [name for name, num in left.items() if not num]
    while ready:
        name = ready.pop()
        del left[name]
        for parent in above[name]:
            left[parent] -= 1
            if not left[parent]:
                ready.append(parent)
    return _walk_cycles({name: min(c for c in below[name] if c in left) for name in sorted(left)})


def _walk_cycles(step: Mapping[str, str]) -> list[tuple[str, ...]]:
    cycles = []
    seen: set[str] = set()
    for start in step:
        path: dict[str, None] = {}
        name = start
        while name not in seen:
            seen.add(name)
            path[name] = None
            name = step[name]
        if name in path:
            walked = list(path)
            cycles.append((*walked[walked.index(name) :], name))
    return cycles


def _find_duplicates(found: HyperNode) -> Iterator[str]:
    if len(set(found.members)) < len(found.members):
        for member, num in Counter(found.members).items():
            if num > 1:
                yield f"{found.name}: lists {member.type} {show(member.name)} {num} times"


def _find_child_problems(
    found: HyperNode, child: str, by_name: Mapping[str, HyperNode]
) -> Iterator[str]:
    if child not in by_name:
        yield f"{found.name}: lists HyperNode {show(child)}, which does not exist"
        return
    tier = by_name[child].tier
    if tier >= found.tier:
        yield f"{found.name}: tier {found.tier} is not above tier {tier} of its member {child}"
    elif tier < found.tier - 1:
        yield f"{found.name}: tier {found.tier} is not next to tier {tier} of its member {child}"


def _find_tier_problems(ordered: Sequence[HyperNode]) -> Iterator[str]:
    yield from (
        f"{found.name}: tier 0, the lowest must be 1" for found in ordered if not found.tier
    )
    tiers = sorted({found.tier for found in ordered if found.tier})
    for below, tier in pairwise([0, *tiers]):
        if tier > below + 1:
            yield f"tier {tier} is used, but no HyperNode has tier {tier - 1}"
    named = {(found.tier_name, found.tier) for found in ordered if found.tier_name}
    tiers_of: dict[str, list[str]] = {}
    names_of: dict[int, list[str]] = {}
    for name, tier in sorted(named):
        tiers_of.setdefault(name, []).append(str(tier))
        names_of.setdefault(tier, []).append(show(name))
    for name, used in tiers_of.items():
        if len(used) > 1:
            yield f"tier name {show(name)} is used at tiers {_shorten_names(used)}"
    for tier, names in names_of.items():
        if len(names) > 1:
            yield f"tier {tier} has several names: {_shorten_names(names)}"


def _find_node_problems(ordered: Sequence[HyperNode]) -> Iterator[str]:
    homes: dict[str, list[str]] = {}
    for found in ordered:
        if PLACEHOLDER in (member.name for member in found.members):
            yield f"{found.name}: holds {PLACEHOLDER}, left by an interrupted plan"
        if found.nodes and found.tier > 1:
            yield f"{found.name}: lists nodes at tier {found.tier}; they belong in tier 1"
        for node in dict.fromkeys(found.nodes):
            homes.setdefault(node, []).append(found.name)
    for node, names in homes.items():
        if len(names) > 1:
            yield f"node {show(node)}: is in {len(names)} HyperNodes: {_shorten_names(names)}"


def _find_name_problems(ordered: Sequence[HyperNode]) -> Iterator[str]:
    for found in ordered:
        if not is_object_name(found.name) or len(found.name) > MAX_MEMBER_NAME:
            yield f"{show(found.name)}: not a DNS-1123 name of at most {MAX_MEMBER_NAME} characters"
        if found.is_ours and _VOLCANO_NAMES.fullmatch(found.name):
            yield f"{found.name}: such names are given by Volcano's own discovery"
        if found.num_inexact_members:
            yield f"{found.name}: {found.num_inexact_members} members are not selected by exact names"
        for node in found.nodes:
            if len(node) > MAX_MEMBER_NAME or not is_object_name(node):
                yield (
                    f"{found.name}: member {show(node)} is not a lower-case DNS-1123 name"
                    f" of at most {MAX_MEMBER_NAME} characters"
                )


def _shorten_names(names: Iterable[str], limit: int = 5) -> str:
    shown = list(names)
    more = f" and {len(shown) - limit} more" if len(shown) > limit else ""
    return ", ".join(shown[:limit]) + more
