"""Domains whose HyperNode no API server can store, because it lists every member. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from topology.model.errors import show
from topology.model.tree import TopologyTree

MAX_MEMBER_BYTES: Final = 1_400_000
"""etcd refuses requests above 1.5 MiB (`--max-request-bytes`); the rest of the object is small."""
_BYTES_PER_MEMBER: Final = len('{"type":"Node","selector":{"exactMatch":{"name":""}}},') + 6


def describe_large_domains(tree: TopologyTree) -> Iterator[str]:
    """Yield why the HyperNode of a domain cannot be written. Cost: O(nodes + domains)."""
    for domain in tree.domains:
        names = domain.nodes or tuple(tree.domains[child].name for child in domain.children)
        num_bytes = sum(map(len, names)) + _BYTES_PER_MEMBER * len(names)
        if num_bytes > MAX_MEMBER_BYTES:
            yield (
                f"domain {show(domain.name)} has {len(names)} members: its HyperNode would take "
                f"{num_bytes} bytes, and an API server stores at most 1.5 MiB. Check its cables, "
                "and which plane they are in"
            )
