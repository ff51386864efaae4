"""A running server on loopback, and gRPC stubs for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import grpc

from generator.rpc.published_state import PublishedState
from generator.rpc.server import PlacementServer
from generator.rpc.status_errors import CallFailure, decode_failure
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
