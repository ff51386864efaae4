"""The server and its client over a real loopback connection."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from typing import Any, cast

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from generator.placement.cluster.nodes import RunningGang, RunningPods
from generator.rpc.client import PlacementClient, PlacementServerError
from generator.rpc.limits import (
    MAX_CALLER_THREADS,
    MAX_CALLER_WAITING,
    MAX_MESSAGE_BYTES,
)
from generator.rpc.published_state import PublishedState
from generator.rpc.server import PLACEMENT_SERVICE, PlacementServer
from generator.rpc.status_errors import FailureKind, decode_failure
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from generator.rpc.toponaut.v1 import placement_pb2_grpc
from tests.generator.rpc.clusters import (
    Gate,
    gated,
    place_message,
    request_for,
    snapshot_of,
)
from topology.model.errors import ConfigError

pytestmark = pytest.mark.wheel

ANY_PORT = "127.0.0.1:0"
SOON_S = 10.0
LATE_S = 300.0
"""Long enough for many calls on a busy machine."""
SNAPSHOT = snapshot_of(("a1", "a2"), ("b1", "b2", "b3"))


@pytest.fixture
def published() -> PublishedState:
    return PublishedState(SNAPSHOT)


@pytest.fixture
def server(published: PublishedState) -> Iterator[PlacementServer]:
    running = PlacementServer(ANY_PORT, published)
    yield running
    running.stop(deadline_s=0)


@pytest.fixture
def client(server: PlacementServer) -> Iterator[PlacementClient]:
    with PlacementClient(server.address, SOON_S) as made:
        yield made


@pytest.fixture
def channel(server: PlacementServer) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server.address) as made:
        yield made


def failed_call(channel: grpc.Channel, message: pb.PlaceRequest, **options: Any) -> grpc.Call:  # noqa: ANN401 - gRPC's
    """Return a call that must fail."""
    with pytest.raises(grpc.RpcError) as caught:
        placement_pb2_grpc.PlacementServiceStub(channel).Place(message, **options)
    return cast("grpc.Call", caught.value)


def test_it_answers_from_the_newest_snapshot(
    client: PlacementClient, published: PublishedState
) -> None:
    published.snapshot = snapshot_of(("c1",))
    assert client.place(request_for(1)).assignment == {"w": ("c1",)}


def test_it_uses_one_snapshot_for_a_whole_query(
    client: PlacementClient, published: PublishedState
) -> None:
    gate = Gate()
    published.snapshot = gated(SNAPSHOT, gate)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(client.place, request_for(1))
        assert gate.arrivals.acquire(timeout=SOON_S)
        published.snapshot = snapshot_of(("c1",))
        gate.open()
        assert answer.result(SOON_S).assignment == {"w": ("a1",)}


def test_it_is_unavailable_until_a_tree_is_known(
    client: PlacementClient, channel: grpc.Channel, published: PublishedState
) -> None:
    published.snapshot = None
    call = failed_call(channel, place_message(request_for(1)), timeout=SOON_S)
    assert call.code() is grpc.StatusCode.UNAVAILABLE
    with pytest.raises(PlacementServerError, match="tree is not known yet"):
        client.place(request_for(1))


def test_it_refuses_a_deadline_of_a_day(channel: grpc.Channel) -> None:
    call = failed_call(channel, place_message(request_for(1)), timeout=86_400.0)
    failure = decode_failure(call)
    assert failure is not None
    assert failure.kind is FailureKind.DEADLINE_MISSING


def test_it_uses_the_indices_of_running_pods_for_slices(
    client: PlacementClient,
) -> None:
    slices = [{"size": 2, "tier": "leaf", "indexed": True}]
    request = request_for(2, groups=[{"name": "w", "count": 2, "slices": slices}])
    for first, second in (("a1", "b1"), ("b1", "a1")):
        pods = (RunningPods(first, indices=(0,)), RunningPods(second, indices=(3,)))
        found = client.place(request, RunningGang("self", pods), take_running=True)
        leaves = [str(node)[0] for node in found.assignment["w"]]
        assert leaves == [first[0], second[0]]


def test_it_limits_the_search_to_the_remaining_time(published: PublishedState) -> None:
    hours = count(step=3600)
    server = PlacementServer(ANY_PORT, published, clock=lambda: float(next(hours)))
    groups = [{"name": "a", "count": 2, "required": "leaf"}, {"name": "b", "count": 2}]
    try:
        with PlacementClient(server.address, SOON_S) as client:
            assert not client.place(request_for(1, groups=groups)).is_proved
    finally:
        server.stop(deadline_s=0)


def test_it_hides_internal_errors_from_clients(
    channel: grpc.Channel, published: PublishedState, caplog: pytest.LogCaptureFixture
) -> None:
    published.snapshot = replace(SNAPSHOT, levels=cast("Any", "a secret"))
    with caplog.at_level(logging.ERROR):
        call = failed_call(channel, place_message(request_for(1)), timeout=SOON_S)
    assert call.code() is grpc.StatusCode.INTERNAL
    assert call.details() == "internal error; see the server's log"
    assert [record.getMessage() for record in caplog.records] == ["call failed"]
    assert caplog.records[0].exc_info


@pytest.mark.parametrize(
    ("num_bytes", "code"),
    [
        pytest.param(MAX_MESSAGE_BYTES, grpc.StatusCode.RESOURCE_EXHAUSTED, id="above the cap"),
        pytest.param(MAX_MESSAGE_BYTES // 2, grpc.StatusCode.INVALID_ARGUMENT, id="below the cap"),
    ],
)
def test_it_reads_no_message(channel: grpc.Channel, num_bytes: int, code: grpc.StatusCode) -> None:
    message = pb.PlaceRequest(spec=pb.PlacementSpec(gang="x" * num_bytes))
    assert failed_call(channel, message, timeout=SOON_S).code() is code


def test_it_reports_an_oversized_answer(client: PlacementClient, published: PublishedState) -> None:
    long = tuple(f"{at:0200}" for at in range(MAX_MESSAGE_BYTES // 200))
    published.snapshot = snapshot_of(long)
    with pytest.raises(PlacementServerError, match=r"the answer has \d+ bytes"):
        client.place(request_for(len(long)))


def test_it_refuses_calls_beyond_its_limit(
    channel: grpc.Channel, published: PublishedState
) -> None:
    """One call more than a caller may have: whichever is the last to arrive is refused."""
    gate = Gate()
    published.snapshot = gated(SNAPSHOT, gate)
    stub = placement_pb2_grpc.PlacementServiceStub(channel)
    message = place_message(request_for(1))
    is_refused = threading.Event()
    calls = []
    for _ in range(MAX_CALLER_THREADS + MAX_CALLER_WAITING + 1):
        calls.append(stub.Place.future(message, timeout=LATE_S))
        calls[-1].add_done_callback(lambda _: is_refused.set())
    assert is_refused.wait(LATE_S)
    gate.open()
    codes = Counter(call.code() for call in cast("list[grpc.Call]", calls))
    assert codes == {
        grpc.StatusCode.RESOURCE_EXHAUSTED: 1,
        grpc.StatusCode.OK: MAX_CALLER_THREADS + MAX_CALLER_WAITING,
    }


def health(channel: grpc.Channel, service: str) -> int:
    check = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    found: health_pb2.HealthCheckResponse = check(
        health_pb2.HealthCheckRequest(service=service), timeout=SOON_S
    )
    return found.status


@pytest.mark.parametrize("service", ["", PLACEMENT_SERVICE])
def test_it_is_healthy_after_set_serving(
    server: PlacementServer, channel: grpc.Channel, service: str
) -> None:
    assert health(channel, service) == health_pb2.HealthCheckResponse.NOT_SERVING
    server.set_serving()
    assert health(channel, service) == health_pb2.HealthCheckResponse.SERVING


def test_it_lets_a_call_finish_while_it_stops(published: PublishedState) -> None:
    server = PlacementServer(ANY_PORT, published)
    gate = Gate()
    published.snapshot = gated(SNAPSHOT, gate)
    with PlacementClient(server.address, SOON_S) as client, ThreadPoolExecutor(2) as pool:
        answer = pool.submit(client.place, request_for(1))
        assert gate.arrivals.acquire(timeout=SOON_S)
        stopped = pool.submit(server.stop, deadline_s=SOON_S)
        gate.open()
        assert answer.result(SOON_S).is_feasible
        stopped.result(SOON_S)
        with pytest.raises(ConfigError, match="no server answers at 127"):
            client.place(request_for(1))


def test_it_describes_itself_to_tools(channel: grpc.Channel) -> None:
    ask = channel.stream_stream(
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    asked = reflection_pb2.ServerReflectionRequest(list_services="")
    (answer,) = ask(iter([asked]), timeout=SOON_S)
    names = {service.name for service in answer.list_services_response.service}
    assert {PLACEMENT_SERVICE, "grpc.health.v1.Health"} <= names


def test_it_does_not_share_its_port(server: PlacementServer) -> None:
    with pytest.raises(ConfigError, match="is another server running"):
        PlacementServer(server.address, PublishedState())


def test_it_refuses_to_listen_for_other_machines() -> None:
    with pytest.raises(ConfigError, match="is not a loopback address"):
        PlacementServer("0.0.0.0:0", PublishedState())
