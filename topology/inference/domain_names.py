"""Stable names for domains: carried over from the last generation, else made from switch names.

A domain keeps its name while most of its nodes stay together. So replacing a switch, adding a leaf,
or another order of enumeration does not rename other domains. Every name is a DNS-1123 label of at
most 63 characters, as HyperNode names and Volcano's admission policy require.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from topology.model.tree import TopologyTree

MAX_NAME = 63
_HASH_CHARS = 6
_TOKEN = re.compile(r"\d+|[a-z]+|[^a-z\d]+")


@dataclass(frozen=True, slots=True)
class UnnamedDomain:
    """A domain before a name is chosen for it."""

    tier: int
    tier_name: str
    nodes: frozenset[str]
    """All nodes below the domain."""
    switches: tuple[str, ...]
    """Names given to its switches by people; empty unless every switch has one."""
    lowest_id: str
    """Lowest ID of its switches; without any, its first device name."""


def assign_names(domains: Sequence[UnnamedDomain], previous: TopologyTree | None) -> list[str]:
    """Return one unique name per domain, in the order given.

    Deterministic in the set of domains. Cost: O(nodes · tiers + domains log domains).
    """
    names = _carry_over(domains, previous)
    used_names = set(names.values())
    order = sorted(
        (domain_index for domain_index in range(len(domains)) if domain_index not in names),
        key=lambda domain_index: (domains[domain_index].tier, sorted(domains[domain_index].nodes)),
    )
    proposed_names = {domain_index: _derive_name(domains[domain_index]) for domain_index in order}
    counts = Counter(proposed_names.values())
    for domain_index in order:
        name = proposed_names[domain_index]
        if counts[name] > 1 or name in used_names:
            name = _append_hash(name, domains[domain_index])
        # Domains of one tier differ in their hash, but a carried-over name can collide.
        while name in used_names:
            name = _append_hash(name, domains[domain_index])
        names[domain_index] = name
        used_names.add(name)
    return [names[domain_index] for domain_index in range(len(domains))]


def _carry_over(domains: Sequence[UnnamedDomain], previous: TopologyTree | None) -> dict[int, str]:
    """Match domains to those of the last generation by shared nodes, tier by tier."""
    if previous is None:
        return {}
    previous_by_node: dict[tuple[int, str], int] = {
        (domain.tier, node): domain_index
        for domain_index, domain in enumerate(previous.domains)
        for node in previous.nodes_of(domain)
    }
    shared: Counter[tuple[int, int]] = Counter()
    for domain_index, domain in enumerate(domains):
        shared.update(
            (domain_index, previous_index)
            for node in domain.nodes
            if (previous_index := previous_by_node.get((domain.tier, node))) is not None
        )
    ranked = sorted(
        shared.items(), key=lambda row: (-row[1], previous.domains[row[0][1]].name, row[0])
    )
    names: dict[int, str] = {}
    used_previous: set[int] = set()
    for (domain_index, previous_index), count in ranked:
        size = previous.domains[previous_index].stop - previous.domains[previous_index].start
        is_same = 2 * count > min(size, len(domains[domain_index].nodes))
        if is_same and domain_index not in names and previous_index not in used_previous:
            names[domain_index] = previous.domains[previous_index].name
            used_previous.add(previous_index)
    return names


def _derive_name(domain: UnnamedDomain) -> str:
    common = derive_common_name(domain.switches)
    name = common or f"{domain.tier_name}-{domain.lowest_id}"
    return (
        _to_dns_label(name) or _to_dns_label(f"{domain.tier_name}-{domain.lowest_id}") or "domain"
    )


def derive_common_name(names: Iterable[str]) -> str:
    """Return the common part of names, with the range of each number in which they differ.

    leaf-p01-r0 … leaf-p01-r7 give `leaf-p01-r0-7`, rail-01-07 … rail-04-07 `rail-01-04-07`;
    numbers are padded with zeros to equal width, so that neighbors sort next to each other. The
    result ends where the names differ otherwise, and is empty if it would have no letter.
    """
    shared = ""
    for parts in zip_longest(*(_TOKEN.findall(name.lower()) for name in names), fillvalue=""):
        if len(set(parts)) == 1:
            shared += parts[0]
        elif all(part.isdecimal() for part in parts):
            width = max(map(len, parts))
            low, high = min(parts, key=int), max(parts, key=int)
            shared += f"{low.zfill(width)}-{high.zfill(width)}"
        else:
            break
    return shared if re.search(r"[a-z]", shared) else ""


def _to_dns_label(name: str) -> str:
    """Return a name as a DNS-1123 label, cut to length; empty if no valid character is left."""
    folded = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return folded[:MAX_NAME].strip("-")


def _append_hash(name: str, domain: UnnamedDomain) -> str:
    seed = "\0".join([name, str(domain.tier), domain.lowest_id, *sorted(domain.nodes)])
    suffix = hashlib.sha256(seed.encode()).hexdigest()[:_HASH_CHARS]
    return f"{name[: MAX_NAME - _HASH_CHARS - 1].rstrip('-')}-{suffix}"
