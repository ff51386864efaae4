"""Trees, changes of trees, and findings as protobuf messages."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from generator.rpc.toponaut.v1 import topology_pb2 as pb
from generator.rpc.toponaut.v1.placement_pb2 import UnplacedNode
from topology.model.facts import Finding, PortName, Severity
from topology.model.tree import Domain, TopologyTree, Unplaced

MAX_ROW_NODES: Final = 4096
"""Nodes per row of a domain; names have at most 253 characters, so a row is below 1.1 MB."""
SEVERITIES: Final = {
    severity: pb.Severity.Value(f"SEVERITY_{severity.name}") for severity in Severity
}


def _encode_domain(tree: TopologyTree, domain: Domain, first: int) -> pb.Domain:
    """Return a row of a domain; a domain with very many nodes of its own has several rows."""
    return pb.Domain(
        name=domain.name,
        tier=domain.tier,
        parent="" if domain.parent is None else tree.domains[domain.parent].name,
        nodes=domain.nodes[first : first + MAX_ROW_NODES],
        switches=domain.switches if first == 0 else (),
        margin=domain.margin,
    )


def encode_tree_rows(tree: TopologyTree, start: int = 0) -> Iterator[pb.Domain | UnplacedNode]:
    """Yield the rows of a tree from a position on: its domains, then its unplaced nodes."""
    for domain, first in islice(_iterate_positions(tree), start, None):
        if domain is None:
            yield encode_unplaced(tree.unplaced[first])
        else:
            yield _encode_domain(tree, domain, first)


def count_rows(tree: TopologyTree) -> int:
    """Return the number of rows of a tree; O(domains)."""
    return sum(1 for _ in _iterate_positions(tree))


def _iterate_positions(tree: TopologyTree) -> Iterator[tuple[Domain | None, int]]:
    """Yield the content of each row: a domain and its first node, or an unplaced node."""
    for domain in tree.domains:
        for first in range(0, max(len(domain.nodes), 1), MAX_ROW_NODES):
            yield domain, first
    for index in range(len(tree.unplaced)):
        yield None, index


def encode_unplaced(unplaced: Unplaced) -> UnplacedNode:
    """Return the row of a node that is in no domain."""
    return UnplacedNode(node=unplaced.node, reason=unplaced.reason)


class TreeChange(NamedTuple):
    """The difference between two trees."""

    changed_rows: Iterator[pb.Domain | UnplacedNode]
    """Rows of new or changed domains and unplaced nodes."""
    removed_domains: tuple[str, ...]
    removed_unplaced: tuple[str, ...]


def compare_trees(before: TopologyTree, after: TopologyTree) -> TreeChange:
    """Return the difference between two trees; O(domains + nodes)."""
    before_domains, after_domains = _index_domains(before), _index_domains(after)
    before_reasons = {unplaced.node: unplaced.reason for unplaced in before.unplaced}
    after_reasons = {unplaced.node: unplaced.reason for unplaced in after.unplaced}

    def rows() -> Iterator[pb.Domain | UnplacedNode]:
        for domain, first in _iterate_positions(after):
            if domain is None:
                unplaced = after.unplaced[first]
                if before_reasons.get(unplaced.node) != unplaced.reason:
                    yield encode_unplaced(unplaced)
            elif before_domains.get(domain.name) != after_domains[domain.name]:
                yield _encode_domain(after, domain, first)

    return TreeChange(
        rows(),
        tuple(name for name in before_domains if name not in after_domains),
        tuple(node for node in before_reasons if node not in after_reasons),
    )


def _index_domains(tree: TopologyTree) -> dict[str, tuple[object, ...]]:
    """Return the properties of each domain by name, independent of its index."""
    return {
        domain.name: (
            domain.tier,
            None if domain.parent is None else tree.domains[domain.parent].name,
            domain.nodes,
            domain.switches,
            domain.margin,
        )
        for domain in tree.domains
    }


def encode_finding(finding: Finding) -> pb.Finding:
    """Return a finding as a message."""
    return pb.Finding(
        kind=finding.kind.value,
        device=finding.device,
        port=finding.port,
        severity=SEVERITIES[finding.severity],
        message=finding.message,
        ports=[_encode_port(port) for port in finding.ports],
        swaps=[
            pb.Swap(first=_encode_port(first), second=_encode_port(second))
            for first, second in finding.swap
        ],
        since=finding.since,
    )


def _encode_port(port: PortName) -> pb.PortName:
    return pb.PortName(device=port.device, port=port.port)
