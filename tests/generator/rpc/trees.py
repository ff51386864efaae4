"""How a caller of TopologyService builds a tree: from pages, or from a watch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from generator.rpc.toponaut.v1 import topology_pb2 as pb
from tests.generator.rpc.servers import SOON_S, Stubs
from topology.model.tree import DomainSpec, TopologyTree, Unplaced, build_tree


class SeenTree(NamedTuple):
    tree: TopologyTree
    revision: str


class Rows:
    """The rows of a tree; the first row of a domain since the last tree replaces it."""

    def __init__(self) -> None:
        self._domains: dict[str, DomainSpec] = {}
        self._unplaced: dict[str, str] = {}
        self._begun: set[str] = set()

    def put(self, message: pb.GetTopologyResponse | pb.WatchTopologyResponse) -> None:
        if isinstance(message, pb.WatchTopologyResponse):
            for name in message.removed_domains:
                del self._domains[name]
            for node in message.removed_unplaced:
                del self._unplaced[node]
        for row in message.domains:
            first = self._domains[row.name] if row.name in self._begun else None
            self._begun.add(row.name)
            self._domains[row.name] = DomainSpec(
                row.name,
                row.tier,
                row.parent or None,
                (*(first.nodes if first else ()), *row.nodes),
                switches=first.switches if first else tuple(row.switches),
                margin=row.margin,
            )
        self._unplaced |= {row.node: row.reason for row in message.unplaced}

    def build(self, message: pb.GetTopologyResponse | pb.WatchTopologyResponse) -> SeenTree:
        self._begun.clear()
        tree = build_tree(
            self._domains.values(),
            tiers=tuple(message.tiers),
            plane=message.plane,
            unplaced=[Unplaced(*row) for row in self._unplaced.items()],
        )
        return SeenTree(tree, message.revision)


def read_tree(stubs: Stubs) -> SeenTree:
    """Read all pages."""
    rows, request = Rows(), pb.GetTopologyRequest()
    while True:
        page = stubs.topology.GetTopology(request, timeout=SOON_S)
        rows.put(page)
        request.page_token = page.next_page_token
        if not page.next_page_token:
            return rows.build(page)


def watch_trees(stubs: Stubs, timeout_s: float = SOON_S) -> Iterator[SeenTree]:
    """Yield the tree, and each newer tree, until the caller closes the iterator."""
    rows = Rows()
    call = stubs.topology.WatchTopology(pb.WatchTopologyRequest(), timeout=timeout_s)
    try:
        for step in call:
            rows.put(step)
            if step.kind == pb.WATCH_KIND_SYNCED:
                yield rows.build(step)
    finally:
        call.cancel()
