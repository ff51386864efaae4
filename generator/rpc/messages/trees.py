"""Trees and findings as protobuf messages, and trees back; what changed from one to the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from generator.rpc.toponaut.v1 import topology_pb2 as pb
from topology.model.facts import Finding, FindingKind, PortName, Severity
from topology.model.tree import Domain, DomainSpec, TopologyTree, Unplaced, build_tree

MOST_NODES: Final = 4096
"""Of a domain in one row; names have at most 253 characters, so a row stays below 1.1 MB."""
SEVERITIES: Final = {
    severity: pb.Severity.Value(f"SEVERITY_{severity.name}") for severity in Severity
}
_SEVERITIES_BACK: Final = {number: severity for severity, number in SEVERITIES.items()}


def _domain_row(tree: TopologyTree, domain: Domain, first: int) -> pb.Domain:
    """Return the row of a domain; where very many nodes are directly in it, one of several."""
    return pb.Domain(
        name=domain.name,
        tier=domain.tier,
        parent="" if domain.parent is None else tree.domains[domain.parent].name,
        nodes=domain.nodes[first : first + MOST_NODES],
        switches=domain.switches if first == 0 else (),
        margin=domain.margin,
    )


def tree_rows(tree: TopologyTree, start: int = 0) -> Iterator[pb.Domain | pb.UnplacedNode]:
    """Yield the rows of a tree from a position on: its domains, then its unplaced nodes."""
    for domain, first in islice(_places(tree), start, None):
        if domain is None:
            yield unplaced_row(tree.unplaced[first])
        else:
            yield _domain_row(tree, domain, first)


def num_rows(tree: TopologyTree) -> int:
    """Return the number of rows of a tree; O(domains)."""
    return sum(1 for _ in _places(tree))


def _places(tree: TopologyTree) -> Iterator[tuple[Domain | None, int]]:
    """Yield what each row is made of: a domain and its first node, or an unplaced node."""
    for domain in tree.domains:
        for first in range(0, max(len(domain.nodes), 1), MOST_NODES):
            yield domain, first
    for at in range(len(tree.unplaced)):
        yield None, at


def unplaced_row(gone: Unplaced) -> pb.UnplacedNode:
    """Return the row of a node in no domain."""
    return pb.UnplacedNode(node=gone.node, reason=gone.reason)


class Change(NamedTuple):
    """What leads from one tree to another."""

    rows: Iterator[pb.Domain | pb.UnplacedNode]
    """New or changed."""
    removed_domains: tuple[str, ...]
    removed_unplaced: tuple[str, ...]


def change(before: TopologyTree, after: TopologyTree) -> Change:
    """Return what changed; O(domains + nodes)."""
    had, has = _by_name(before), _by_name(after)
    was = {gone.node: gone.reason for gone in before.unplaced}
    is_now = {gone.node: gone.reason for gone in after.unplaced}

    def rows() -> Iterator[pb.Domain | pb.UnplacedNode]:
        for domain, first in _places(after):
            if domain is None:
                gone = after.unplaced[first]
                if was.get(gone.node) != gone.reason:
                    yield unplaced_row(gone)
            elif had.get(domain.name) != has[domain.name]:
                yield _domain_row(after, domain, first)

    return Change(
        rows(),
        tuple(name for name in had if name not in has),
        tuple(node for node in was if node not in is_now),
    )


def _by_name(tree: TopologyTree) -> dict[str, tuple[object, ...]]:
    """Return what tells domains apart, whatever their place among the others."""
    return {
        one.name: (
            one.tier,
            None if one.parent is None else tree.domains[one.parent].name,
            one.nodes,
            one.switches,
            one.margin,
        )
        for one in tree.domains
    }


class TreeParts:
    """A tree that comes in parts."""

    def __init__(self) -> None:
        """Begin with no tree."""
        self._domains: dict[str, DomainSpec] = {}
        self._unplaced: dict[str, str] = {}
        self._fresh: set[str] = set()

    def put(self, domains: Iterable[pb.Domain], unplaced: Iterable[pb.UnplacedNode]) -> None:
        """Take rows; a domain's first one since `tree` replaces it, further ones add nodes."""
        for row in domains:
            known = self._domains[row.name] if row.name in self._fresh else None
            self._fresh.add(row.name)
            self._domains[row.name] = DomainSpec(
                name=row.name,
                tier=row.tier,
                parent=row.parent or None,
                nodes=(*(known.nodes if known else ()), *row.nodes),
                switches=known.switches if known else tuple(row.switches),
                margin=row.margin,
            )
        self._unplaced |= {row.node: row.reason for row in unplaced}

    def drop(self, domains: Iterable[str], unplaced: Iterable[str]) -> None:
        """Forget what is gone."""
        for name in domains:
            self._domains.pop(name, None)
        for node in unplaced:
            self._unplaced.pop(node, None)

    def tree(self, plane: str, tiers: Iterable[str]) -> TopologyTree:
        """Return the tree that was told so far.

        Raises:
            InvariantError: what was told is no forest.
        """
        self._fresh.clear()
        unplaced = [Unplaced(node, reason) for node, reason in self._unplaced.items()]
        return build_tree(
            self._domains.values(), tiers=tuple(tiers), plane=plane, unplaced=unplaced
        )


def finding_message(finding: Finding) -> pb.Finding:
    """Return a finding as a message."""
    return pb.Finding(
        kind=finding.kind.value,
        device=finding.device,
        port=finding.port,
        severity=SEVERITIES[finding.severity],
        message=finding.message,
        ports=[_port_message(port) for port in finding.ports],
        swaps=[
            pb.Swap(first=_port_message(first), second=_port_message(second))
            for first, second in finding.swap
        ],
        since=finding.since,
    )


def finding_of(message: pb.Finding) -> Finding:
    """Return the finding of a message.

    Raises:
        ValueError: it is of a kind or severity that this version does not know.
    """
    if message.severity not in _SEVERITIES_BACK:
        raise ValueError(f"{message.severity} is no severity of this version")
    return Finding(
        kind=FindingKind(message.kind),
        device=message.device,
        port=message.port if message.HasField("port") else None,
        severity=_SEVERITIES_BACK[message.severity],
        message=message.message,
        ports=tuple(_port_of(row) for row in message.ports),
        swap=tuple((_port_of(row.first), _port_of(row.second)) for row in message.swaps),
        since=message.since if message.HasField("since") else None,
    )


def _port_message(port: PortName) -> pb.PortName:
    return pb.PortName(device=port.device, port=port.port)


def _port_of(message: pb.PortName) -> PortName:
    return PortName(message.device, message.port)
