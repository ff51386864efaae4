"""Exact quantities over gRPC: old callers send whole numbers, new ones also fractions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import build_snapshot
from generator.placement.request import parse_request
from generator.rpc.messages.requests import decode_request, encode_request
from generator.rpc.messages.resources import decode_resources, encode_resources
from generator.rpc.published_state import PublishedState
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from tests.generator.rpc.clusters import tree_of
from tests.generator.rpc.servers import SOON_S, Stubs, failed, serving
from topology.model.errors import PlacementRequestError
from topology.model.tree import API_VERSION

CORES_63850M = {"slots": 1, "cpu": 63_850}


@pytest.fixture
def stubs() -> Iterator[Stubs]:
    nodes = {name: NodeSpec(name, CORES_63850M) for name in ("a1", "a2")}
    published = PublishedState(build_snapshot(tree_of(("a1", "a2")), nodes))
    with serving(published) as server, grpc.insecure_channel(server.address) as channel:
        yield Stubs(channel)


def spec(count: int = 1, **resources: Any) -> pb.PlacementSpec:  # noqa: ANN401 - any field
    group = pb.Group(name="w", count=count, request=pb.Resources(**resources))
    return pb.PlacementSpec(groups=[group])


def test_a_fraction_is_sent_exactly_and_rounded_up_for_servers_of_earlier_versions() -> None:
    sent = encode_resources({"cpu": "7900m", "nvidia.com/gpu": 1})
    assert dict(sent.quantities) == {"cpu": 8, "nvidia.com/gpu": 1}
    assert dict(sent.exact) == {"cpu": "7900m"}
    assert decode_resources(sent) == {"cpu": "7900m", "nvidia.com/gpu": 1}


@pytest.mark.parametrize(
    ("resources", "units"),
    [
        pytest.param({"quantities": {"cpu": 8}}, {"cpu": 8000}, id="cores of earlier callers"),
        pytest.param({"exact": {"cpu": "7900m"}}, {"cpu": 7900}, id="millicores"),
        pytest.param(
            {"quantities": {"cpu": 8, "gpu": 1}, "exact": {"cpu": "7900m", "memory": "16Gi"}},
            {"cpu": 7900, "gpu": 1, "memory": 2**34},
            id="both",
        ),
    ],
)
def test_it_reads(resources: dict[str, Any], units: dict[str, int]) -> None:
    (group,) = decode_request(spec(**resources)).groups
    assert dict(group.request) == units


def test_it_keeps_a_request_of_millicores() -> None:
    groups = [{"name": "w", "count": 2, "request": {"cpu": "7900m", "memory": "1.5Ki"}}]
    request = parse_request(
        {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": {"groups": groups}}
    )
    assert decode_request(encode_request(request)) == request


@pytest.mark.parametrize("text", ["", "many", "-1", "1e999", "9" * 5000, "16Ei"], ids=repr)
def test_it_refuses_an_exact_quantity(text: str) -> None:
    with pytest.raises(PlacementRequestError, match="quantity") as caught:
        decode_request(spec(exact={"gpu": text}))
    assert caught.value.field == "groups[0].request.gpu"


def test_it_counts_capacity_in_millicores(stubs: Stubs) -> None:
    def count(**resources: Any) -> int:  # noqa: ANN401 - any field
        message = pb.CapacityRequest(request=pb.Resources(**resources))
        return stubs.placement.Capacity(message, timeout=SOON_S).domains[0].pods

    assert count(exact={"cpu": "7900m"}) == 16
    assert count(quantities={"cpu": 8}) == 14


def test_it_takes_the_millicores_of_running_pods(stubs: Stubs) -> None:
    def fits(millicores: int) -> bool:
        used = pb.Resources(exact={"cpu": f"{millicores}m"})
        running = [pb.RunningPods(node=node, request=used) for node in ("a1", "a2")]
        message = pb.PlaceRequest(
            spec=spec(count=16, exact={"cpu": "7900m"}), running=running, take_running=True
        )
        return bool(stubs.placement.Place(message, timeout=SOON_S).placement.feasible)

    assert fits(63_850 - 8 * 7900)
    assert not fits(63_851 - 8 * 7900)


def test_it_refuses_running_pods_with_a_malformed_quantity(stubs: Stubs) -> None:
    used = pb.Resources(exact={"cpu": "many"})
    message = pb.PlaceRequest(spec=spec(), running=[pb.RunningPods(node="a1", request=used)])
    code, failure = failed(stubs.placement.Place, message)
    assert (code, failure.field) == (grpc.StatusCode.INVALID_ARGUMENT, "running[0].request.cpu")
