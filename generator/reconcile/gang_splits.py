"""Domains that a plan would split under a running gang. Pure.

A gang was placed by the domains that existed then. While it runs, a domain that contains two or
more of its nodes is not split without an approval: pods of the gang that restart would be placed
by another tree than the rest of the gang.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from generator.objects.pods import Gang
from generator.reconcile.tree_decision import find_node_domains
from topology.model.ids import natural_key
from topology.model.tree import TopologyTree

_NO_TIER: Final = 1 << 31
"""Above every tier."""


class GangSplit(NamedTuple):
    """A domain whose nodes of one gang would no longer share a domain."""

    gang: str
    domain: str
    num_nodes: int
    """Nodes of the gang in the domain."""


def find_splits(
    gangs: Collection[Gang], before: TopologyTree, after: TopologyTree
) -> Iterator[GangSplit]:
    """Yield the domains that a plan would split: per gang the lowest one, then the first by name.

    A domain is not split if the gang's nodes in it share it afterwards, or share another domain
    of the same tier or a lower one. Cost: O(nodes of gangs times tiers).

    Args:
        gangs: running gangs.
        before: the tree that was decided last.
        after: the tree of the plan.
    """
    if not gangs:
        return
    domains, domains_after = find_node_domains(before), find_node_domains(after)
    tiers_before = {domain.name: domain.tier for domain in before.domains}
    tiers_after = {domain.name: domain.tier for domain in after.domains}
    for gang in sorted(gangs):
        shared: dict[str, list[str]] = {}
        for node in gang.nodes:
            for domain in domains.get(node, ()):
                shared.setdefault(domain, []).append(node)
        for name in sorted(shared, key=lambda domain: (tiers_before[domain], natural_key(domain))):
            nodes = shared[name]
            common = frozenset.intersection(
                *(domains_after.get(node, frozenset()) for node in nodes)
            )
            tiers = [tiers_after[domain] for domain in common]
            is_whole = name in common or min(tiers, default=_NO_TIER) <= tiers_before[name]
            if len(nodes) > 1 and not is_whole:
                yield GangSplit(gang.name, name, len(nodes))
                break
