"""Domains whose HyperNode no API server can store, because it lists every member. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from topology.model.errors import show
from topology.model.facts import Finding, FindingKind, Severity, finding_about
from topology.model.tree import TopologyTree

MAX_MEMBER_BYTES: Final = 1_400_000
"""etcd refuses requests above 1.5 MiB (`--max-request-bytes`); the rest of the object is small."""
_BYTES_PER_MEMBER: Final = len('{"type":"Node","selector":{"exactMatch":{"name":""}}},') + 6


class LargeDomain(NamedTuple):
    """A domain that no API server can store as a HyperNode."""

    name: str
    problem: str
    """Why, and what a person should do; one line."""


def find_large_domains(tree: TopologyTree) -> Iterator[LargeDomain]:
    """Yield each domain whose HyperNode cannot be written. Cost: O(nodes + domains)."""
    for domain in tree.domains:
        names = domain.nodes or tuple(tree.domains[child].name for child in domain.children)
        num_bytes = sum(map(len, names)) + _BYTES_PER_MEMBER * len(names)
        if num_bytes > MAX_MEMBER_BYTES:
            problem = (
                f"domain {show(domain.name)} has {len(names)} members: its HyperNode would take "
                f"{num_bytes} bytes, and an API server stores at most 1.5 MiB. Check its cables, "
                "and which plane they are in"
            )
            yield LargeDomain(domain.name, problem)


def derive_size_findings(domains: Iterable[LargeDomain]) -> Iterator[Finding]:
    """Yield a finding per domain, about the domain by its name."""
    for domain in domains:
        yield finding_about(
            FindingKind.DOMAIN_TOO_LARGE,
            [show(domain.name)],
            severity=Severity.ERROR,
            message=f"{domain.problem}. Nothing is planned until it is smaller.",
        )
