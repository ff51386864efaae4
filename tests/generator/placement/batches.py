"""Batches of gangs on small clusters, and the properties of any answer to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from generator.placement.answer import Placement
from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import Snapshot, build_snapshot
from generator.placement.request import PlacementRequest, parse_request
from topology.model.tree import API_VERSION, DomainSpec, build_tree

LEAF, SPINE = 1, 8
"""Span of one domain of each tier."""


def snapshot_of(spines: Sequence[Sequence[Sequence[int]]], slots: int = 1) -> Snapshot:
    """Return a cluster, given the free slots of each node by spine and leaf."""
    specs: list[DomainSpec] = []
    nodes: dict[str, NodeSpec] = {}
    for spine, leaves in enumerate(spines):
        specs.append(DomainSpec(f"spine-{spine}", 2, None))
        for leaf, free in enumerate(leaves):
            names = [f"node-{spine}-{leaf}-{index}" for index in range(len(free))]
            for name, left in zip(names, free, strict=True):
                nodes[name] = NodeSpec(name, {"slots": slots}, free={"slots": left})
            specs.append(DomainSpec(f"leaf-{spine}-{leaf}", 1, f"spine-{spine}", tuple(names)))
    return build_snapshot(build_tree(specs, tiers=("leaf", "spine")), nodes)


def gang(name: str, *counts: int, slots: int = 1, **spec: Any) -> PlacementRequest:  # noqa: ANN401 - a document's
    """Return a gang with groups of these sizes that may lie anywhere."""
    groups = [
        {"name": f"g{index}", "count": count, "request": {"slots": slots}}
        for index, count in enumerate(counts)
    ]
    return request_of({"gang": name, "groups": groups} | spec)


def request_of(spec: Mapping[str, Any]) -> PlacementRequest:
    """Return the request of a spec, across islands."""
    document = {
        "apiVersion": API_VERSION,
        "kind": "PlacementRequest",
        "spec": {"across_islands": True, **spec},
    }
    return parse_request(document)


def nodes_of(placement: Placement) -> list[str]:
    """Return the node of every placed pod."""
    return [node for row in placement.assignment.values() for node in row if node is not None]


def span_of(placements: Sequence[Placement]) -> int:
    """Return the span of gangs over leaves and spines, from the names of their nodes."""
    span = 0
    for placement in placements:
        paths = [node.split("-")[1:3] for node in nodes_of(placement)]
        span += LEAF * len({(spine, leaf) for spine, leaf in paths})
        span += SPINE * len({spine for spine, _ in paths})
    return span


def slots_taken(
    requests: Sequence[PlacementRequest], placements: Sequence[Placement]
) -> Counter[str]:
    """Return the slots that gangs use on each node."""
    taken: Counter[str] = Counter()
    for request, placement in zip(requests, placements, strict=True):
        for group in request.groups if placement.is_feasible else ():
            need = dict(group.request).get("slots", 0)
            for node in placement.assignment[group.name]:
                if node is not None:
                    taken[node] += need
    return taken


def fits(
    snapshot: Snapshot, requests: Sequence[PlacementRequest], placements: Sequence[Placement]
) -> bool:
    """Return whether no node is used beyond its free slots."""
    taken = slots_taken(requests, placements)
    return all(
        count <= int(snapshot.free[0, snapshot.position_of[node]]) for node, count in taken.items()
    )
