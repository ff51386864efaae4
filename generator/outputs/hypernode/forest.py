"""A tree as HyperNodes, padded to equal depth, and the tree of any HyperNodes.

Volcano scores a node through its tier-1 HyperNode, and expects a child exactly one tier below its
parent. So a chain of single-child HyperNodes (padding) fills the missing tiers of a branch. There
is no virtual root: Volcano adds its own.

Padding is named `DOMAIN-pad<tier>`. DOMAIN is the domain below the chain or, for nodes that are
directly in a domain above tier 1, that domain. If the name is longer than 63 characters or the name
of a real domain, DOMAIN is shortened and a hash of (DOMAIN, tier) is appended. So the name depends
only on its domain and changes only with it.

The reverse skips bad members and nodes and reports each; the rest of the set still makes a tree. It
removes the padding of Toponaut, so that rendering a tree and reading it back gives the same tree.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from generator.outputs.hypernode.lint import find_cycle_problems
from generator.outputs.hypernode.model import (
    MAX_MEMBER_NAME,
    PADDING_LABELS,
    HyperNode,
    Member,
    MemberType,
    sort_members,
)
from topology.model.errors import show
from topology.model.ids import natural_key
from topology.model.tree import (
    Domain,
    DomainSpec,
    TopologyTree,
    TreeOrigin,
    Unplaced,
    build_tree,
    find_tier_name_problem,
)

HASH_CHARS = 10


def render_hypernodes(tree: TopologyTree) -> tuple[HyperNode, ...]:
    """Return the desired HyperNodes, sorted by tier and natural name.

    Omits domains without nodes, and unplaced nodes.
    Cost: O(n log n) in domains and nodes.
    """
    forest = _HyperNodeRenderer(tree, frozenset(domain.name for domain in tree.domains))
    hypernodes = [
        hypernode
        for domain in tree.domains
        if domain.start < domain.stop
        for hypernode in forest.render(domain)
    ]
    return tuple(
        sorted(hypernodes, key=lambda hypernode: (hypernode.tier, natural_key(hypernode.name)))
    )


@dataclass(frozen=True, slots=True)
class _HyperNodeRenderer:
    tree: TopologyTree
    domain_names: AbstractSet[str]
    """Names of the tree's domains, which padding must not use."""

    def render(self, domain: Domain) -> list[HyperNode]:
        """Return the HyperNode of a domain, and the padding directly below it."""
        nodes = tuple(Member(MemberType.NODE, name) for name in domain.nodes)
        if domain.tier == 1:
            return [self._build_hypernode(domain, nodes)]
        chains: list[list[HyperNode]] = []
        tops: list[Member] = []
        for child in (self.tree.domains[index] for index in domain.children):
            if child.start < child.stop:
                gap = range(child.tier + 1, domain.tier)
                chains.append(
                    self._build_padding(child.name, (_build_child_member(child.name),), gap)
                )
                tops.append(_build_child_member(chains[-1][-1].name if gap else child.name))
        if nodes:
            chains.append(self._build_padding(domain.name, nodes, range(1, domain.tier)))
            tops.append(_build_child_member(chains[-1][-1].name))
        padding = [hypernode for chain in chains for hypernode in chain]
        return [*padding, self._build_hypernode(domain, sort_members(tops))]

    def _build_hypernode(self, domain: Domain, members: tuple[Member, ...]) -> HyperNode:
        return HyperNode(domain.name, domain.tier, self.tree.tiers[domain.tier - 1], members)

    def _build_padding(
        self, name: str, members: tuple[Member, ...], tiers: range
    ) -> list[HyperNode]:
        """Return one HyperNode per tier, lowest first; the lowest has the members."""
        chain = []
        for tier in tiers:
            pad = build_padding_name(name, tier, self.domain_names)
            chain.append(HyperNode(pad, tier, self.tree.tiers[tier - 1], members, PADDING_LABELS))
            members = (_build_child_member(pad),)
        return chain


def _build_child_member(name: str) -> Member:
    return Member(MemberType.HYPERNODE, name)


def build_padding_name(name: str, tier: int, used_names: AbstractSet[str]) -> str:
    """Return the name of the padding of a domain in a tier; it is no name of a real domain."""
    plain = f"{name}-pad{tier}"
    if len(plain) <= MAX_MEMBER_NAME and plain not in used_names:
        return plain
    hashed = (
        _shorten_name(name, f"-pad{tier}-{_hash_text(f'{name}/{tier}/{salt}')}") for salt in count()
    )
    return next(candidate for candidate in hashed if candidate not in used_names)


def _shorten_name(name: str, suffix: str) -> str:
    return name[: MAX_MEMBER_NAME - len(suffix)].rstrip("-.") + suffix


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_CHARS]


MAX_TIER = 64
"""Far above any fabric. A limit is needed because a tree has an entry for every tier."""


class HyperNodeTree(NamedTuple):
    """A tree, and the problems of the HyperNodes."""

    tree: TopologyTree
    problems: tuple[str, ...]
    """One line per skipped HyperNode, member or node."""


def build_hypernode_tree(
    hypernodes: Iterable[HyperNode], *, has_islands: bool = False
) -> HyperNodeTree:
    """Return the forest of the HyperNodes; their order does not matter.

    Toponaut's own show which domains share no cable; those of others show that if `has_islands`.

    The tiers of the tree are numbered from 1, also where those of the HyperNodes begin at 0.

    Skips and reports: tiers below 0 or above `MAX_TIER`; a second HyperNode with the same name;
    members that do not exist, are not of a lower tier (every cycle has one), or already have a
    parent (the parent with the lower tier, then the first name, keeps them); and HyperNodes without
    nodes below. A node in several tiers belongs to the lowest. A node in two HyperNodes of that
    tier is unplaced.
    """
    problems: list[str] = []
    by_name = _select_usable(hypernodes, problems)
    problems.extend(find_cycle_problems(by_name))
    parents = _find_parents(by_name, problems)
    parent_of_node, unplaced = _find_node_parents(by_name, problems)
    nodes: dict[str, list[str]] = {}
    for node, parent in parent_of_node.items():
        nodes.setdefault(_find_real_ancestor(parent, by_name, parents), []).append(node)
    alive = _with_ancestors(nodes, parents)
    padding = {
        name for name, hypernode in by_name.items() if hypernode.is_padding and name in parents
    }
    problems.extend(
        f"{name}: has no nodes below"
        for name in by_name
        if name not in alive and name not in padding
    )
    first_number = min((row.tier for row in by_name.values()), default=1) and 1
    specs = [
        DomainSpec(
            name=name,
            tier=hypernode.tier - first_number + 1,
            parent=_find_real_ancestor(parents[name], by_name, parents)
            if name in parents
            else None,
            nodes=tuple(nodes.get(name, ())),
        )
        for name, hypernode in by_name.items()
        if name in alive and name not in padding
    ]
    tiers = _find_tier_names(by_name.values(), first_number, problems)
    is_ours = all(row.is_ours for row in by_name.values())
    origin = TreeOrigin(first_number=first_number, has_islands=has_islands or is_ours)
    tree = build_tree(specs, tiers=tiers, unplaced=unplaced, origin=origin)
    return HyperNodeTree(tree, tuple(problems))


def _select_usable(hypernodes: Iterable[HyperNode], problems: list[str]) -> dict[str, HyperNode]:
    """Return the HyperNodes by name, sorted by tier and natural name."""
    by_name: dict[str, HyperNode] = {}
    for hypernode in sorted(hypernodes, key=_sort_key):
        if not 0 <= hypernode.tier <= MAX_TIER:
            problems.append(
                f"{hypernode.name}: tier {hypernode.tier} is not within 0 to {MAX_TIER}"
            )
        elif hypernode.name in by_name:
            problems.append(f"{hypernode.name}: listed twice, the second is skipped")
        else:
            by_name[hypernode.name] = hypernode
        if hypernode.num_inexact_members:
            problems.append(
                f"{hypernode.name}: {hypernode.num_inexact_members} members "
                "without an exact name are skipped"
            )
    return by_name


def _sort_key(hypernode: HyperNode) -> tuple[object, ...]:
    return hypernode.tier, natural_key(hypernode.name), hypernode.tier_name, hypernode.members


def _find_parents(by_name: Mapping[str, HyperNode], problems: list[str]) -> dict[str, str]:
    parents: dict[str, str] = {}
    for name, hypernode in by_name.items():
        for child in dict.fromkeys(hypernode.children):
            if child not in by_name:
                problems.append(f"{name}: member {show(child)} does not exist")
            elif by_name[child].tier >= hypernode.tier:
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
    for name, hypernode in by_name.items():
        for node in dict.fromkeys(hypernode.nodes):
            claims.setdefault(node, []).append(name)
    parent_of_node: dict[str, str] = {}
    unplaced = []
    for node, names in claims.items():
        lowest = [name for name in names if by_name[name].tier == by_name[names[0]].tier]
        if len(names) > 1:
            problems.append(f"node {show(node)}: listed by {', '.join(names)}")
        if len(lowest) == 1:
            parent_of_node[node] = lowest[0]
        else:
            unplaced.append(Unplaced(node, f"listed by {', '.join(lowest)}"))
    return parent_of_node, unplaced


def _find_real_ancestor(
    name: str, by_name: Mapping[str, HyperNode], parents: Mapping[str, str]
) -> str:
    """Return the nearest HyperNode, from this one up, that is not padding (or has no parent)."""
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


def _find_tier_names(
    hypernodes: Iterable[HyperNode], first_number: int, problems: list[str]
) -> tuple[str, ...]:
    """Return a name per tier: the first tier name in its HyperNodes, or `tier-<n>`."""
    chosen: dict[int, str] = {}
    for hypernode in hypernodes:
        if not hypernode.tier_name or chosen.get(hypernode.tier) == hypernode.tier_name:
            continue
        problem = find_tier_name_problem((hypernode.tier_name,))
        if problem is not None:
            problems.append(f"{hypernode.name}: tier name of tier {hypernode.tier}: {problem}")
        elif hypernode.tier in chosen or hypernode.tier_name in chosen.values():
            problems.append(
                f"{hypernode.name}: tier name {show(hypernode.tier_name)} of tier {hypernode.tier} "
                "conflicts with another HyperNode"
            )
        else:
            chosen[hypernode.tier] = hypernode.tier_name
    highest = max((hypernode.tier for hypernode in hypernodes), default=0)
    return tuple(chosen.get(tier, f"tier-{tier}") for tier in range(first_number, highest + 1))
