"""Running servers on loopback, real and scripted, and gRPC stubs for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, cast

import grpc

from generator.rpc.client import PlacementClient, Retries
from generator.rpc.published_state import PublishedState
from generator.rpc.server import PLACEMENT_SERVICE, PlacementServer
from generator.rpc.status_errors import CallFailure, decode_failure
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from generator.rpc.toponaut.v1 import placement_pb2_grpc, topology_pb2_grpc

ANY_PORT = "127.0.0.1:0"
SOON_S = 30.0


class Stubs:
    """Stubs of both services on one channel."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.placement = placement_pb2_grpc.PlacementServiceStub(channel)
        self.topology = topology_pb2_grpc.TopologyServiceStub(channel)


class Silent(Iterator[bytes]):
    """Request messages that never arrive."""

    def __init__(self) -> None:
        self._ended = threading.Event()

    def __next__(self) -> bytes:
        self._ended.wait(SOON_S)
        raise StopIteration

    def end(self) -> None:
        self._ended.set()


Answer = Callable[[pb.PlaceRequest, grpc.ServicerContext], Any]


@contextmanager
def scripted(
    answer: Answer,
    *,
    serialize: Callable[[Any], bytes] = pb.PlaceResponse.SerializeToString,
    timeout_s: float = SOON_S,
    retries: Retries = Retries(),  # noqa: B008 - immutable
) -> Iterator[PlacementClient]:
    """Yield a client of a server that answers every call to Place in one way."""
    server = grpc.server(ThreadPoolExecutor(1))
    method = grpc.unary_unary_rpc_method_handler(answer, pb.PlaceRequest.FromString, serialize)
    handlers = grpc.method_handlers_generic_handler(PLACEMENT_SERVICE, {"Place": method})
    server.add_generic_rpc_handlers((handlers,))
    port = server.add_insecure_port(ANY_PORT)
    server.start()
    try:
        with PlacementClient(f"127.0.0.1:{port}", timeout_s, retries=retries) as client:
            yield client
    finally:
        server.stop(0).wait()


@contextmanager
def serving(published: PublishedState) -> Iterator[PlacementServer]:
    server = PlacementServer(ANY_PORT, published)
    try:
        yield server
    finally:
        server.stop(deadline_s=0)


def failed(call: Any, *args: Any, **options: Any) -> tuple[grpc.StatusCode, CallFailure]:  # noqa: ANN401 - gRPC's
    """Return the status and failure of a call that must fail; of a stream, at its first answer."""
    options.setdefault("timeout", SOON_S)
    try:
        found = call(*args, **options)
        if hasattr(found, "__next__"):
            found = list(found)
    except grpc.RpcError as error:
        ended = cast("grpc.Call", error)
        failure = decode_failure(ended)
        assert failure is not None, f"{ended.code()}: {ended.details()}"
        return ended.code(), failure
    raise AssertionError(f"answered: {found}")
