"""Short builders of requests, clusters and clocks for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.placement.cluster.nodes import NodeSpec, RunningGang, RunningPods
from generator.placement.cluster.snapshot import Snapshot, build_snapshot
from generator.placement.request import PlacementRequest, parse_request
from topology.model.tree import API_VERSION, DomainSpec, TopologyTree, build_tree


class ReadingClock:
    """A clock that advances on every read, by a second unless another step is given."""

    def __init__(self, step_s: float = 1.0) -> None:
        self.now_s, self._step_s = 0.0, step_s

    def __call__(self) -> float:
        self.now_s += self._step_s
        return self.now_s


def document(**spec: object) -> dict[str, Any]:
    """Return a request document; without groups it requests two pods."""
    groups = {"groups": [{"name": "workers", "count": 2}]}
    return {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": groups | spec}


def request(**spec: object) -> PlacementRequest:
    """Return a parsed request."""
    return parse_request(document(**spec))


def workers(count: int, **row: object) -> list[dict[str, Any]]:
    """Return one group with this many pods."""
    return [{"name": "workers", "count": count, **row}]


def racks(*sizes: int, per_block: int = 2) -> TopologyTree:
    """Return racks with this many nodes, `per_block` racks in a block; nodes are n0, n1, …"""
    blocks = -(-len(sizes) // per_block)
    specs = [DomainSpec(f"b{block}", 2, None) for block in range(blocks)]
    first = 0
    for index, size in enumerate(sizes):
        names = tuple(f"n{first + k}" for k in range(size))
        specs.append(DomainSpec(f"r{index}", 1, f"b{index // per_block}", names))
        first += size
    return build_tree(specs, tiers=("rack", "block"))


def cluster(
    tree: TopologyTree, nodes: Mapping[str, NodeSpec] | None = None, **gangs: list[str]
) -> Snapshot:
    """Return a snapshot; each gang runs one pod on each of its nodes."""
    running = [
        RunningGang(gang, tuple(RunningPods(node) for node in on)) for gang, on in gangs.items()
    ]
    return build_snapshot(tree, nodes or {}, running)
