"""HyperNodes, ours or anyone's, as a topology tree: the way back from `render`.

Bad links and nodes cost themselves and are named; the rest of the set still makes a tree.
Padding of ours is taken out again, so that rendering and reading back gives the same tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from generator.outputs.hypernode.lint import find_cycle_problems
from generator.outputs.hypernode.model import HyperNode
from topology.model.errors import show
from topology.model.ids import natural_key
from topology.model.tree import DomainSpec, TopologyTree, Unplaced, build_tree

MAX_TIER = 64
"""Far above any fabric; a tree has an entry for every tier up to the highest."""


class HyperNodeTree(NamedTuple):
    """A tree and what had to be left out of it."""

    tree: TopologyTree
    problems: tuple[str, ...]
    """One line each."""


def build_hypernode_tree(
    hypernodes: Iterable[HyperNode], *, plane: str = "compute"
) -> HyperNodeTree:
    """Return the forest that the HyperNodes describe; their order does not matter.

    Left out and said: tiers below 1 or beyond any fabric, a second HyperNode of a name, members
    that are missing, not below their parent (every cycle has one) or have a parent already (the
    lower tier, then the first name, keeps them), and HyperNodes without nodes below. A node
    listed at several tiers is in the lowest; one listed twice in that tier is unplaced.
    """
    problems: list[str] = []
    by_name = _select_usable(hypernodes, problems)
    problems.extend(find_cycle_problems(by_name))
    parents = _find_parents(by_name, problems)
    homes, unplaced = _find_node_parents(by_name, problems)
    nodes: dict[str, list[str]] = {}
    for node, home in homes.items():
        nodes.setdefault(_find_real_ancestor(home, by_name, parents), []).append(node)
    alive = _with_ancestors(nodes, parents)
    padding = {name for name, found in by_name.items() if found.is_padding and name in parents}
    problems.extend(
        f"{name}: no node below" for name in by_name if name not in alive and name not in padding
    )
    specs = [
        DomainSpec(
            name=name,
            tier=found.tier,
            parent=_find_real_ancestor(parents[name], by_name, parents)
            if name in parents
            else None,
            nodes=tuple(nodes.get(name, ())),
        )
        for name, found in by_name.items()
        if name in alive and name not in padding
    ]
    tiers = _find_tier_names(by_name.values(), problems)
    tree = build_tree(specs, tiers=tiers, plane=plane, unplaced=unplaced)
    return HyperNodeTree(tree, tuple(problems))


def _select_usable(hypernodes: Iterable[HyperNode], problems: list[str]) -> dict[str, HyperNode]:
    """Return the HyperNodes by name, sorted by tier and natural name."""
    by_name: dict[str, HyperNode] = {}
    for found in sorted(hypernodes, key=_sort_key):
        if not 1 <= found.tier <= MAX_TIER:
            problems.append(f"{found.name}: tier {found.tier} is not within 1 to {MAX_TIER}")
        elif found.name in by_name:
            problems.append(f"{found.name}: given twice, the second is left out")
        else:
            by_name[found.name] = found
        if found.num_inexact_members:
            problems.append(
                f"{found.name}: {found.num_inexact_members} members by pattern are left out"
            )
    return by_name


def _sort_key(found: HyperNode) -> tuple[object, ...]:
    return found.tier, natural_key(found.name), found.tier_name, found.members


def _find_parents(by_name: Mapping[str, HyperNode], problems: list[str]) -> dict[str, str]:
    parents: dict[str, str] = {}
    for name, found in by_name.items():
        for child in dict.fromkeys(found.children):
            if child not in by_name:
                problems.append(f"{name}: member {show(child)} does not exist")
            elif by_name[child].tier >= found.tier:
                problems.append(f"{name}: member {child} is not of a lower tier")
            elif child in parents:
                problems.append(f"{name}: member {child} already belongs to {parents[child]}")
            else:
                parents[child] = name
    return parents


def _find_node_parents(
    by_name: Mapping[str, HyperNode], problems: list[str]
) -> tuple[dict[str, str], list[Unplaced]]:
    claims: dict[str, list[str]] = {}
    for name, found in by_name.items():
        for node in dict.fromkeys(found.nodes):
            claims.setdefault(node, []).append(name)
    homes: dict[str, str] = {}
    unplaced = []
    for node, names in claims.items():
        lowest = [name for name in names if by_name[name].tier == by_name[names[0]].tier]
        if len(names) > 1:
            problems.append(f"node {show(node)}: listed by {', '.join(names)}")
        if len(lowest) == 1:
            homes[node] = lowest[0]
        else:
            unplaced.append(Unplaced(node, f"listed by {', '.join(lowest)}"))
    return homes, unplaced


def _find_real_ancestor(
    name: str, by_name: Mapping[str, HyperNode], parents: Mapping[str, str]
) -> str:
    """Return the nearest HyperNode, from this one up, that is no padding (or has no parent)."""
    return next(
        above
        for above in _iterate_ancestors(name, parents)
        if not by_name[above].is_padding or above not in parents
    )


def _iterate_ancestors(name: str, parents: Mapping[str, str]) -> Iterator[str]:
    yield name
    while name in parents:
        name = parents[name]
        yield name


def _with_ancestors(names: Iterable[str], parents: Mapping[str, str]) -> set[str]:
    alive: set[str] = set()
    for name in names:
        for above in _iterate_ancestors(name, parents):
            if above in alive:
                break
            alive.add(above)
    return alive


def _find_tier_names(hypernodes: Iterable[HyperNode], problems: list[str]) -> tuple[str, ...]:
    """Return a name per tier: the first that HyperNodes of the tier have, else `tier-<n>`."""
    chosen: dict[int, str] = {}
    for found in hypernodes:
        if not found.tier_name or chosen.get(found.tier) == found.tier_name:
            continue
        if found.tier in chosen or found.tier_name in chosen.values():
            problems.append(f"{found.name}: tier {found.tier} is not {show(found.tier_name)}")
        else:
            chosen[found.tier] = found.tier_name
    highest = max((found.tier for found in hypernodes), default=0)
    return tuple(chosen.get(tier, f"tier-{tier}") for tier in range(1, highest + 1))
