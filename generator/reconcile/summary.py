"""What the status of the Fabric object tells of a tree and its findings, in numbers. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from generator.objects.fabric import MAX_TIERS, FindingCount, TierCount
from topology.model.facts import Finding
from topology.model.tree import TopologyTree


def parse_tree_generation(document: Mapping[str, Any] | None) -> int:
    """Return the generation of the tree that a Fabric object tells, 0 where it tells none."""
    status = document.get("status") if document else None
    found = status.get("generation") if isinstance(status, Mapping) else None
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0


def parse_spec_generation(document: Mapping[str, Any] | None) -> int | None:
    """Return the generation of the spec, None where nobody counts it, as in a folder."""
    metadata = document.get("metadata") if document else None
    found = metadata.get("generation") if isinstance(metadata, Mapping) else None
    return found if isinstance(found, int) else None


def summarise(tree: TopologyTree, findings: Iterable[Finding]) -> dict[str, Any]:
    """Return the fields of a status that tell of a tree. Cost: O(domains + findings)."""
    return {
        "tiers": [
            one.model_dump(mode="json", by_alias=True) for one in _count_tiers(tree) if one.domains
        ],
        "unplaced": len(tree.unplaced),
        "findings": [
            one.model_dump(mode="json", by_alias=True) for one in count_findings(findings)
        ],
    }


def count_findings(findings: Iterable[Finding]) -> tuple[FindingCount, ...]:
    """Return how often each kind is there, sorted by kind and severity."""
    counts = Counter((one.kind.value, one.severity) for one in findings)
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
