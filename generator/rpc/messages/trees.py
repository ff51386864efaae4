"""Trees, changes of trees, and findings as protobuf messages, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from generator.rpc.toponaut.v1 import topology_pb2 as pb
from topology.model.facts import Finding, FindingKind, PortName, Severity
from topology.model.tree import Domain, DomainSpec, TopologyTree, Unplaced, build_tree

MAX_ROW_NODES: Final = 4096
"""Nodes per row of a domain; names have at most 253 characters, so a row is below 1.1 MB."""
SEVERITIES: Final = {
    severity: pb.Severity.Value(f"SEVERITY_{severity.name}") for severity in Severity
}
_SEVERITY_BY_NUMBER: Final = {number: severity for severity, number in SEVERITIES.items()}


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


def encode_tree_rows(tree: TopologyTree, start: int = 0) -> Iterator[pb.Domain | pb.UnplacedNode]:
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


def encode_unplaced(unplaced: Unplaced) -> pb.UnplacedNode:
    """Return the row of a node that is in no domain."""
    return pb.UnplacedNode(node=unplaced.node, reason=unplaced.reason)


class TreeChange(NamedTuple):
    """The difference between two trees."""

    changed_rows: Iterator[pb.Domain | pb.UnplacedNode]
    """Rows of new or changed domains and unplaced nodes."""
    removed_domains: tuple[str, ...]
    removed_unplaced: tuple[str, ...]


def compare_trees(before: TopologyTree, after: TopologyTree) -> TreeChange:
    """Return the difference between two trees; O(domains + nodes)."""
    before_domains, after_domains = _index_domains(before), _index_domains(after)
    before_reasons = {unplaced.node: unplaced.reason for unplaced in before.unplaced}
    after_reasons = {unplaced.node: unplaced.reason for unplaced in after.unplaced}

    def rows() -> Iterator[pb.Domain | pb.UnplacedNode]:
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


class TreeAssembler:
    """Assembles a tree from its rows."""

    def __init__(self) -> None:
        """Start with an empty tree."""
        self._domains: dict[str, DomainSpec] = {}
        self._unplaced: dict[str, str] = {}
        self._replaced_names: set[str] = set()

    def put(self, domains: Iterable[pb.Domain], unplaced: Iterable[pb.UnplacedNode]) -> None:
        """Add rows; a domain's first row since `build_tree` replaces it, further rows add nodes."""
        for row in domains:
            earlier = self._domains[row.name] if row.name in self._replaced_names else None
            self._replaced_names.add(row.name)
            self._domains[row.name] = DomainSpec(
                name=row.name,
                tier=row.tier,
                parent=row.parent or None,
                nodes=(*(earlier.nodes if earlier else ()), *row.nodes),
                switches=earlier.switches if earlier else tuple(row.switches),
                margin=row.margin,
            )
        self._unplaced |= {row.node: row.reason for row in unplaced}

    def remove(self, domains: Iterable[str], unplaced: Iterable[str]) -> None:
        """Remove domains and unplaced nodes."""
        for name in domains:
            self._domains.pop(name, None)
        for node in unplaced:
            self._unplaced.pop(node, None)

    def build_tree(self, plane: str, tiers: Iterable[str]) -> TopologyTree:
        """Return the tree of the rows so far.

        Raises:
            InvariantError: the rows do not form a forest.
        """
        self._replaced_names.clear()
        unplaced = [Unplaced(node, reason) for node, reason in self._unplaced.items()]
        return build_tree(
            self._domains.values(), tiers=tuple(tiers), plane=plane, unplaced=unplaced
        )


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


def decode_finding(message: pb.Finding) -> Finding:
    """Return the finding of a message.

    Raises:
        ValueError: this version does not know its kind or severity.
    """
    if message.severity not in _SEVERITY_BY_NUMBER:
        raise ValueError(f"{message.severity} is not a severity of this version")
    return Finding(
        kind=FindingKind(message.kind),
        device=message.device,
        port=message.port if message.HasField("port") else None,
        severity=_SEVERITY_BY_NUMBER[message.severity],
        message=message.message,
        ports=tuple(_decode_port(row) for row in message.ports),
        swap=tuple((_decode_port(row.first), _decode_port(row.second)) for row in message.swaps),
        since=message.since if message.HasField("since") else None,
    )


def _encode_port(port: PortName) -> pb.PortName:
    return pb.PortName(device=port.device, port=port.port)


def _decode_port(message: pb.PortName) -> PortName:
    return PortName(message.device, message.port)
