"""The tiers and findings of a tree in numbers, for the status of the Fabric object. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from generator.objects.fabric import MAX_TIERS, FindingCount, TierCount
from topology.model.facts import Finding
from topology.model.tree import TopologyTree


def parse_tree_generation(document: Mapping[str, Any] | None) -> int:
    """Return the generation of the tree in a Fabric object's status, 0 if it has none."""
    status = document.get("status") if document else None
    generation = status.get("generation") if isinstance(status, Mapping) else None
    return (
        generation
        if isinstance(generation, int) and not isinstance(generation, bool) and generation > 0
        else 0
    )


def parse_spec_generation(document: Mapping[str, Any] | None) -> int | None:
    """Return the generation of the spec, None if the store does not count it, as in a folder."""
    metadata = document.get("metadata") if document else None
    generation = metadata.get("generation") if isinstance(metadata, Mapping) else None
    return generation if isinstance(generation, int) else None


def summarise(tree: TopologyTree, findings: Iterable[Finding]) -> dict[str, Any]:
    """Return the status fields that describe a tree. Cost: O(domains + findings)."""
    return {
        "tiers": [
            tier.model_dump(mode="json", by_alias=True)
            for tier in _count_tiers(tree)
            if tier.domains
        ],
        "unplaced": len(tree.unplaced),
        "findings": [
            count.model_dump(mode="json", by_alias=True) for count in count_findings(findings)
        ],
    }


def count_findings(findings: Iterable[Finding]) -> tuple[FindingCount, ...]:
    """Return the number of findings of each kind and severity, sorted by both."""
    counts = Counter((finding.kind.value, finding.severity) for finding in findings)
    return tuple(
        FindingCount(kind=kind, severity=severity, count=num)
        for (kind, severity), num in sorted(counts.items())
    )


def _count_tiers(tree: TopologyTree) -> Iterable[TierCount]:
    domains: Counter[int] = Counter(domain.tier for domain in tree.domains)
    nodes: Counter[int] = Counter()
    for domain in tree.domains:
        nodes[domain.tier] += domain.stop - domain.start
    for tier, name in enumerate(tree.tiers[:MAX_TIERS], 1):
        yield TierCount(tier=tier, name=name, domains=domains[tier], nodes=nodes[tier])
