"""Renders a tree as the desired HyperNodes: one per domain, padded to equal depth.

Volcano scores a node through its tier-1 HyperNode, and expects a child exactly one tier below its
parent. So a chain of single-child HyperNodes (padding) fills the missing tiers of a branch. There
is no virtual root: Volcano adds its own.

Padding is named `DOMAIN-pad<tier>`. DOMAIN is the domain below the chain or, for nodes that are
directly in a domain above tier 1, that domain. If the name is longer than 63 characters or the name
of a real domain, DOMAIN is shortened and a hash of (DOMAIN, tier) is appended. So the name depends
only on its domain and changes only with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import count

from generator.outputs.hypernode.model import (
    MAX_MEMBER_NAME,
    PADDING_LABELS,
    HyperNode,
    Member,
    MemberType,
    sort_members,
)
from topology.model.ids import natural_key
from topology.model.tree import Domain, TopologyTree

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
