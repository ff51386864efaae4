"""Clients that send malformed data, send nothing, read nothing, or vanish."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, TypeAlias

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2

from generator.rpc.calls import CallInterceptor, StallWatch
from generator.rpc.client import METHODS, PlacementClient
from generator.rpc.limits import (
    MAX_CALLER_OTHER_STREAMS,
    MAX_CALLER_STREAMS,
    MAX_CALLER_THREADS,
    MAX_STREAMS,
)
from generator.rpc.messages.requests import encode_request
from generator.rpc.published_state import PublishedState
from generator.rpc.server import PlacementServer
from generator.rpc.status_errors import FailureKind
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from generator.rpc.toponaut.v1 import topology_pb2 as tb
from tests.generator.rpc.clusters import place_message, request_for, snapshot_of
from tests.generator.rpc.servers import ANY_PORT, SOON_S, Silent, Stubs, failed, serving

PLACE = "/toponaut.v1.PlacementService/Place"
REFLECT = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
LEAVES = (("a1", "a2"), ("b1", "b2", "b3"))
ECHO = "/tests.Raw/Echo"
STREAM = "/tests.Raw/Repeat"
LOOPBACK = "127.0.0.1"
MIB = 1 << 20
Raw: TypeAlias = "grpc.UnaryUnaryMultiCallable[bytes, bytes]"


@pytest.fixture
def published() -> PublishedState:
    return PublishedState(snapshot_of(*LEAVES))


@pytest.fixture
def server(published: PublishedState) -> Iterator[PlacementServer]:
    with serving(published) as running:
        yield running


@pytest.fixture
def channel(server: PlacementServer) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server.address) as made:
        yield made


@pytest.fixture
def stubs(channel: grpc.Channel) -> Stubs:
    return Stubs(channel)


def spec(**fields: Any) -> pb.PlacementSpec:  # noqa: ANN401 - any field
    fields.setdefault("groups", [pb.Group(name="w", count=1)])
    return pb.PlacementSpec(**fields)


def test_it_names_the_field_of_a_malformed_gang(stubs: Stubs) -> None:
    bad = spec(groups=[pb.Group(name="w", count=-1)])
    calls: list[tuple[Any, Any, str]] = [
        (stubs.placement.Place, pb.PlaceRequest(spec=bad), "spec"),
        (stubs.placement.PlaceBatch, iter([pb.PlaceBatchRequest(specs=[bad])]), "specs[0]"),
        (stubs.placement.Candidates, pb.CandidatesRequest(spec=bad), "spec"),
        (stubs.topology.WatchFeasible, tb.WatchFeasibleRequest(spec=bad), "spec"),
    ]
    for call, message, path in calls:
        code, failure = failed(call, message)
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert failure.field == f"{path}.groups[0].count"


@pytest.mark.parametrize(
    ("rows", "field"),
    [
        pytest.param([pb.RunningPods()], "running[0].node", id="no node"),
        pytest.param([pb.RunningPods(node="a1", count=-1)], "running[0].count", id="negative pods"),
        pytest.param(
            [pb.RunningPods(node="a1"), pb.RunningPods(node="a1", group="x")],
            "running[1].group",
            id="no group",
        ),
        pytest.param(
            [pb.RunningPods(node="a1", request={"gpu": str(2**62)})],
            "running[0].request.gpu",
            id="a huge quantity",
        ),
        pytest.param([pb.RunningPods(node="a1")] * 5000, "running", id="very many rows"),
        pytest.param(
            [pb.RunningPods(node="a1", count=2, indices=[1])],
            "running[0].indices",
            id="fewer indices than pods",
        ),
        pytest.param(
            [pb.RunningPods(node="a1", indices=[-1])],
            "running[0].indices[0]",
            id="an index below 0",
        ),
    ],
)
def test_it_refuses_running_pods_with(stubs: Stubs, rows: list[pb.RunningPods], field: str) -> None:
    code, failure = failed(stubs.placement.Place, pb.PlaceRequest(spec=spec(), running=rows))
    assert (code, failure.field) == (grpc.StatusCode.INVALID_ARGUMENT, field)


def test_it_accepts_running_pods_on_unknown_nodes(stubs: Stubs) -> None:
    message = pb.PlaceRequest(spec=spec(), running=[pb.RunningPods(node="gone")])
    assert stubs.placement.Place(message, timeout=SOON_S).placement.feasible


def test_it_requires_a_deadline_for_every_method(channel: grpc.Channel) -> None:
    for method in METHODS.values():
        name = f"/{method.containing_service.full_name}/{method.name}"
        code, failure = failed(channel.stream_stream(name), iter([b""]), timeout=None)
        assert code is grpc.StatusCode.INVALID_ARGUMENT, name
        assert failure.kind is FailureKind.DEADLINE_MISSING, name


@pytest.mark.parametrize("raw", [b"\xff", b"\x0a\x05abc"], ids=repr)
@pytest.mark.parametrize("method", ["Place", "PlaceBatch"])
def test_it_refuses_bytes_that_are_no_message(
    channel: grpc.Channel, caplog: pytest.LogCaptureFixture, method: str, raw: bytes
) -> None:
    call: Any = channel.stream_stream(f"/toponaut.v1.PlacementService/{method}")
    code, failure = failed(call, iter([raw]))
    assert (code, failure.kind) == (grpc.StatusCode.INVALID_ARGUMENT, FailureKind.INVALID_REQUEST)
    assert not caplog.records


def test_it_refuses_unreadable_bytes_within_a_stream(channel: grpc.Channel) -> None:
    call: Any = channel.stream_stream("/toponaut.v1.PlacementService/PlaceBatch")
    good = pb.PlaceBatchRequest(specs=[spec()]).SerializeToString()
    code, failure = failed(call, iter([good, b"\xff"]))
    assert (code, failure.kind) == (grpc.StatusCode.INVALID_ARGUMENT, FailureKind.INVALID_REQUEST)


def test_it_refuses_a_call_without_a_message(channel: grpc.Channel) -> None:
    _, failure = failed(channel.stream_unary(PLACE), iter(()))
    assert failure.problem == "expected a message"


def test_it_serves_other_clients_while_some_send_nothing(
    channel: grpc.Channel, server: PlacementServer
) -> None:
    silent = Silent()
    call: Any = channel.stream_unary(PLACE)
    waiting = [call.future(silent, timeout=SOON_S) for _ in range(MAX_CALLER_THREADS)]
    with PlacementClient(server.address, SOON_S) as client:
        assert client.place(request_for(1)).is_feasible
    for one in waiting:
        one.cancel()
    silent.end()


class Impatient(NamedTuple):
    """A server with a short limit for stalled calls."""

    channel: grpc.Channel
    is_over: threading.Event
    """Whether a stream has ended."""


@contextmanager
def impatient(behavior: Callable[[bytes, grpc.ServicerContext], bytes]) -> Iterator[Impatient]:
    """Yield a server that cancels a call after a stall of a tenth of a second."""
    stalling = StallWatch(stall_s=0.1, check_period_s=0.02)
    calls = CallInterceptor(lambda _duration_s: None, stall_watch=stalling)
    running = grpc.server(ThreadPoolExecutor(1), interceptors=[calls])
    method = grpc.unary_unary_rpc_method_handler(behavior, bytes, bytes)
    is_over = threading.Event()

    def repeat(raw: bytes, _: grpc.ServicerContext) -> Iterator[bytes]:
        try:
            yield from [raw] * 1000
        finally:
            is_over.set()

    many = grpc.unary_stream_rpc_method_handler(repeat, bytes, bytes)
    rows = {"Echo": method, "Repeat": many}
    handlers = grpc.method_handlers_generic_handler("tests.Raw", rows)
    running.add_generic_rpc_handlers((handlers,))
    port = running.add_insecure_port(ANY_PORT)
    running.start()
    try:
        with grpc.insecure_channel(f"{LOOPBACK}:{port}") as made:
            yield Impatient(made, is_over)
    finally:
        running.stop(0).wait()
        calls.stop()


def test_it_cancels_a_client_that_sends_nothing() -> None:
    silent = Silent()
    with impatient(lambda raw, _: raw) as server:
        call: Any = server.channel.stream_unary(ECHO)
        stalled = call.future(silent, timeout=SOON_S)
        assert call(iter([b"x"]), timeout=SOON_S) == b"x"
        assert stalled.code() is grpc.StatusCode.CANCELLED
        silent.end()


def test_it_cancels_a_client_that_reads_no_answers() -> None:
    with impatient(lambda raw, _: raw) as server:
        call: Any = server.channel.unary_stream(STREAM)
        taking = call(b"x" * MIB, timeout=4 * SOON_S)
        assert server.is_over.wait(SOON_S)
        with pytest.raises(grpc.RpcError):
            list(taking)
        assert taking.code() is grpc.StatusCode.CANCELLED


def test_it_does_not_cancel_a_client_that_waits_for_an_answer() -> None:
    slow = threading.Event()

    def answer(raw: bytes, _: grpc.ServicerContext) -> bytes:
        slow.wait(0.5)
        return raw

    with impatient(answer) as server:
        call: Raw = server.channel.unary_unary(ECHO)
        assert call(b"x", timeout=SOON_S) == b"x"


def test_it_refuses_more_streams_but_answers_calls(stubs: Stubs) -> None:
    request = tb.WatchTopologyRequest()
    watches = [
        stubs.topology.WatchTopology(request, timeout=SOON_S) for _ in range(MAX_CALLER_STREAMS)
    ]
    for watch in watches:
        next(watch)
    code, failure = failed(stubs.topology.WatchTopology, request)
    assert (code, failure.kind) == (grpc.StatusCode.RESOURCE_EXHAUSTED, FailureKind.OVERLOADED)
    assert stubs.placement.Place(place_message(request_for(1)), timeout=SOON_S).placement.feasible
    for watch in watches:
        watch.cancel()
    assert until(lambda: is_watched(stubs))


def test_two_callers_with_all_streams_leave_room_for_others(
    server: PlacementServer, stubs: Stubs
) -> None:
    own_connection = [("grpc.use_local_subchannel_pool", 1)]
    watches = []
    with ExitStack() as stack:
        for _ in range(2):
            made = grpc.insecure_channel(server.address, own_connection)
            watch = Stubs(stack.enter_context(made)).topology.WatchTopology
            for _ in range(MAX_STREAMS // 2):
                watches.append(watch(tb.WatchTopologyRequest(), timeout=SOON_S))
                assert any(row.kind == tb.WATCH_KIND_SYNCED for row in watches[-1])
        kept = stubs.topology.WatchTopology(tb.WatchTopologyRequest(), timeout=SOON_S)
        assert next(kept).kind == tb.WATCH_KIND_INITIAL
        assert until(lambda: not all(one.is_active() for one in watches))
        lost = [one for one in watches if not one.is_active()]
        assert [one.code() for one in lost] == [grpc.StatusCode.CANCELLED]


def is_watched(stubs: Stubs) -> bool:
    """Return whether the server accepts one more stream."""
    watch = stubs.topology.WatchTopology(tb.WatchTopologyRequest(), timeout=SOON_S)
    try:
        return next(watch).kind == tb.WATCH_KIND_INITIAL
    except grpc.RpcError:
        return False
    finally:
        watch.cancel()


def until(is_so: Callable[[], bool]) -> bool:
    """Return whether a condition becomes true within a few seconds."""
    pause = threading.Event()
    return any(is_so() or pause.wait(0.05) for _ in range(600))


def test_it_limits_the_streams_of_reflection(channel: grpc.Channel, stubs: Stubs) -> None:
    ask = channel.stream_stream(
        REFLECT,
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    silent = Silent()

    def questions() -> Iterator[reflection_pb2.ServerReflectionRequest]:
        yield reflection_pb2.ServerReflectionRequest(list_services="")
        next(silent, None)

    opened = [ask(questions(), timeout=SOON_S) for _ in range(MAX_CALLER_OTHER_STREAMS)]
    for one in opened:
        next(one)
    code, _ = failed(ask, questions())
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert is_watched(stubs)
    for one in opened:
        one.cancel()
    silent.end()


def test_it_frees_the_streams_of_a_vanished_client(server: PlacementServer, stubs: Stubs) -> None:
    request = tb.WatchFeasibleRequest(spec=encode_request(request_for(1)))
    with grpc.insecure_channel(server.address) as gone:
        watch = Stubs(gone).topology.WatchFeasible
        opened = [watch(request, timeout=SOON_S) for _ in range(MAX_CALLER_STREAMS)]
        for one in opened:
            next(one)
        assert not is_watched(stubs)
    assert until(lambda: is_watched(stubs))
