"""Stable names for domains: carried over from the last generation, else made from the switches.

A domain keeps its name while most of its nodes stay together; so replacing a switch, adding a
leaf or another order of enumeration renames nothing else. Every name is a DNS-1123 label of at
most 63 characters, as HyperNode names and Volcano's admission policy want.
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
    """A domain before it has a name."""

    tier: int
    tier_name: str
    nodes: frozenset[str]
    """All nodes below it."""
    switches: tuple[str, ...]
    """Names of its switches that a person gave; empty where none has one."""
    lowest_id: str
    """Lowest id of its switches, or its first node without any."""


def assign_names(domains: Sequence[UnnamedDomain], previous: TopologyTree | None) -> list[str]:
    """Return one unique name per domain, in the order given.

    Deterministic in the set of domains. Cost: O(nodes · tiers + domains log domains).
    """
    names = _carry_over(domains, previous)
    taken = set(names.values())
    order = sorted(
        (at for at in range(len(domains)) if at not in names),
        key=lambda at: (domains[at].tier, sorted(domains[at].nodes)),
    )
    wanted = {at: _derive_name(domains[at]) for at in order}
    counts = Counter(wanted.values())
    for at in order:
        name = wanted[at]
        if counts[name] > 1 or name in taken:
            name = _append_hash(name, domains[at])
        while name in taken:  # two domains of one tier cannot hash alike, a kept name could
            name = _append_hash(name, domains[at])
        names[at] = name
        taken.add(name)
    return [names[at] for at in range(len(domains))]


def _carry_over(domains: Sequence[UnnamedDomain], previous: TopologyTree | None) -> dict[int, str]:
    """Match domains to the last generation's by the nodes they share, tier by tier."""
    if previous is None:
        return {}
    old_at: dict[tuple[int, str], int] = {
        (domain.tier, node): at
        for at, domain in enumerate(previous.domains)
        for node in previous.nodes_of(domain)
    }
    shared: Counter[tuple[int, int]] = Counter()
    for at, domain in enumerate(domains):
        shared.update(
            (at, old)
            for node in domain.nodes
            if (old := old_at.get((domain.tier, node))) is not None
        )
    ranked = sorted(
        shared.items(), key=lambda row: (-row[1], previous.domains[row[0][1]].name, row[0])
    )
    names: dict[int, str] = {}
    used: set[int] = set()
    for (at, old), count in ranked:
        size = previous.domains[old].stop - previous.domains[old].start
        keeps = 2 * count > min(size, len(domains[at].nodes))
        if keeps and at not in names and old not in used:
            names[at] = previous.domains[old].name
            used.add(old)
    return names


def _derive_name(domain: UnnamedDomain) -> str:
    common = derive_common_name(domain.switches)
    name = common or f"{domain.tier_name}-{domain.lowest_id}"
    return (
        _to_dns_label(name) or _to_dns_label(f"{domain.tier_name}-{domain.lowest_id}") or "domain"
    )


def derive_common_name(names: Iterable[str]) -> str:
    """Return what names share, with the range of each number in which they differ.

    leaf-p01-r0 … leaf-p01-r7 give `leaf-p01-r0-7`, rail-01-07 … rail-04-07 `rail-01-04-07`;
    numbers are padded with zeros to equal width, so that sort order is adjacency. Ends where the
    names differ otherwise; empty when no letter would be left.
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
    """Return a name as a DNS-1123 label, cut to length; empty when nothing usable is left."""
    folded = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return folded[:MAX_NAME].strip("-")


def _append_hash(name: str, domain: UnnamedDomain) -> str:
    seed = "\0".join([name, str(domain.tier), domain.lowest_id, *sorted(domain.nodes)])
    suffix = hashlib.sha256(seed.encode()).hexdigest()[:_HASH_CHARS]
    return f"{name[: MAX_NAME - _HASH_CHARS - 1].rstrip('-')}-{suffix}"
