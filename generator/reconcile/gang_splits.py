"""Running gangs, and the domains that a plan would split under them. Pure.

A gang was placed by the domains that existed then. While it runs, a domain that holds two or more
of its nodes is not taken apart unasked: they would be told apart by a tree that the gang was not
placed by, and what restarts of it would be placed elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from generator.objects.pods import Gang
from generator.outputs.hypernode import HyperNode
from generator.reconcile.node_domains import NodeDomains
from topology.model.ids import natural_key

_NO_TIER: Final = 1 << 31
"""Above every tier."""


class GangSplit(NamedTuple):
    """A domain that would no longer hold all nodes of a gang that it holds now."""

    gang: str
    domain: str
    num_nodes: int
    """Of the gang, in the domain."""


def find_splits(
    gangs: Iterable[Gang],
    *,
    before: Mapping[str, HyperNode],
    domains: NodeDomains,
    after: Mapping[str, HyperNode],
    domains_after: NodeDomains,
) -> Iterator[GangSplit]:
    """Yield the domains that a plan would split, at most one a gang: the lowest, then by name.

    A domain is whole where its nodes of the gang share it afterwards, or share another one of its
    tier or lower. Cost: O(nodes of gangs times tiers).
    """
    for gang in sorted(gangs):
        shared: dict[str, list[str]] = {}
        for node in gang.nodes:
            for domain in domains.get(node, ()):
                shared.setdefault(domain, []).append(node)
        for name in sorted(shared, key=lambda one: (before[one].tier, natural_key(one))):
            nodes = shared[name]
            common = frozenset.intersection(*(domains_after.get(one, frozenset()) for one in nodes))
            tiers = [after[one].tier for one in common]
            is_whole = name in common or min(tiers, default=_NO_TIER) <= before[name].tier
            if len(nodes) > 1 and not is_whole:
                yield GangSplit(gang.name, name, len(nodes))
                break
