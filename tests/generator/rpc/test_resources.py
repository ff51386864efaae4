"""Quantities over gRPC: whole numbers and fractions, as texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import grpc
import pytest

from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import build_snapshot
from generator.rpc.published_state import PublishedState
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from tests.generator.rpc.clusters import place_message, request_for, tree_of
from tests.generator.rpc.servers import SOON_S, Stubs, serving

CORES_63850M = {"slots": 1, "cpu": 63_850}


@pytest.fixture
def stubs() -> Iterator[Stubs]:
    nodes = {name: NodeSpec(name, CORES_63850M) for name in ("a1", "a2")}
    published = PublishedState(build_snapshot(tree_of(("a1", "a2")), nodes))
    with serving(published) as server, grpc.insecure_channel(server.address) as channel:
        yield Stubs(channel)


def spec(request: Mapping[str, str], count: int = 1) -> pb.PlacementSpec:
    return pb.PlacementSpec(groups=[pb.Group(name="w", count=count, request=request)])


def test_a_pod_that_requests_nothing_keeps_doing_so(stubs: Stubs) -> None:
    message = place_message(request_for(9, groups=[{"name": "w", "count": 9, "request": {}}]))
    assert message.spec.groups[0].request == {"slots": "0"}
    assert stubs.placement.Place(message, timeout=SOON_S).placement.feasible


def test_it_counts_capacity_in_millicores(stubs: Stubs) -> None:
    def count(cpu: str) -> int:
        message = pb.CapacityRequest(request={"cpu": cpu})
        return stubs.placement.Capacity(message, timeout=SOON_S).domains[0].pods

    assert count("7900m") == 16
    assert count("8") == 14


def test_it_takes_the_millicores_of_running_pods(stubs: Stubs) -> None:
    def fits(millicores: int) -> bool:
        used = {"cpu": f"{millicores}m"}
        running = [pb.RunningPods(node=node, request=used) for node in ("a1", "a2")]
        message = pb.PlaceRequest(
            spec=spec({"cpu": "7900m"}, count=16), running=running, take_running=True
        )
        return bool(stubs.placement.Place(message, timeout=SOON_S).placement.feasible)

    assert fits(63_850 - 8 * 7900)
    assert not fits(63_851 - 8 * 7900)
