"""The domain of each node in each tier, with padding where a branch has no domain in a tier.

Consumers that read one value per tier need one in each: two nodes without a value would count as
neighbors. The names are those of the HyperNodes, padding included. An island that ends below the
highest tier continues with padding of its own, so that no two islands merge.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from generator.outputs.hypernode.forest import build_padding_name
from topology.model.tree import Domain, TopologyTree


def name_domains(tree: TopologyTree) -> Mapping[str, tuple[str, ...]]:
    """Return the names of the domains of each placed node, the lowest tier first.

    The keys are in tree order. Every node has as many names as the tree has tiers.
    Cost: O(nodes x tiers).
    """
    used = frozenset(domain.name for domain in tree.domains)

    @cache
    def pad(name: str, tier: int) -> str:
        return build_padding_name(name, tier, used)

    def name_tiers(domain: Domain) -> tuple[str, ...]:
        """Return the names of a node that is directly in a domain."""
        names = [pad(domain.name, tier) for tier in range(1, domain.tier)]
        at: Domain | None = domain
        while at is not None:
            above = None if at.parent is None else tree.domains[at.parent]
            stop = len(tree.tiers) + 1 if above is None else above.tier
            names += [at.name, *(pad(at.name, tier) for tier in range(at.tier + 1, stop))]
            at = above
        return tuple(names)

    rows = {
        node: names
        for domain in tree.domains
        if domain.nodes
        for names in [name_tiers(domain)]
        for node in domain.nodes
    }
    return {node: rows[node] for node in tree.nodes}
