"""Small clusters, requests, and a snapshot that blocks queries until a gate opens."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from generator.placement.cluster.nodes import RunningGang
from generator.placement.cluster.snapshot import Snapshot, build_snapshot
from generator.rpc.messages.requests import encode_request
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from topology.model.tree import API_VERSION, DomainSpec, TopologyTree, build_tree


def tree_of(*leaves: tuple[str, ...]) -> TopologyTree:
    """Return leaves of nodes below one spine."""
    specs = [DomainSpec(f"leaf-{at}", 1, "spine", nodes) for at, nodes in enumerate(leaves, 1)]
    return build_tree([*specs, DomainSpec("spine", 2, None)], tiers=("leaf", "spine"))


def snapshot_of(*leaves: tuple[str, ...]) -> Snapshot:
    return build_snapshot(tree_of(*leaves), {})


def request_for(count: int, **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - any field
    """Return a document of kind PlacementRequest."""
    spec = {"groups": [{"name": "w", "count": count}], **spec}
    return {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": spec}


def place_message(document: Mapping[str, Any]) -> pb.PlaceRequest:
    return pb.PlaceRequest(spec=encode_request(document))


class Gate(Mapping[str, RunningGang]):
    """A mapping without running gangs; every lookup waits until the gate is open."""

    def __init__(self) -> None:
        self.arrivals = threading.Semaphore(0)
        self._opened = threading.Event()

    def open(self) -> None:
        self._opened.set()

    def __contains__(self, gang: object) -> bool:
        self.arrivals.release()
        assert self._opened.wait(300), "the gate was not opened"
        return False

    def __getitem__(self, gang: str) -> RunningGang:
        raise KeyError(gang)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def gated(snapshot: Snapshot, gate: Gate) -> Snapshot:
    return replace(snapshot, running=gate)
