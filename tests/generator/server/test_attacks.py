"""A server whose callers want to stop it for everybody else: real sockets, a process of its own.

Each test is an attack that once succeeded. The honest caller beside it is another connection, as on
this machine every connection is a caller.
"""

from __future__ import annotations

import http.client
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import uuid4

import grpc
import pytest

from generator.cli.exit_codes import ExitCode
from generator.rpc.client import PlacementClient
from generator.rpc.limits import CROWDED_STALL_S, HANDSHAKE_S, MAX_CONNECTIONS, NUM_THREADS
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from generator.rpc.toponaut.v1 import placement_pb2_grpc
from generator.server.server import SHUTDOWN_S
from generator.web.http_server import MAX_CONNECTIONS as MAX_PAGE_CONNECTIONS
from tests.generator.rpc.clusters import request_for
from tests.generator.rpc.servers import Silent
from tests.generator.scenes import Scene
from tests.generator.server.programs import SOON_S, Serving, serving
from tests.lab.wait import wait_until
from topology.synthetic import FabricKind, SyntheticSpec

pytestmark = pytest.mark.xdist_group("attacks")  # one server for all

HOUR_S = 3600.0
PROMPT_S = 5.0
"""An honest call beside an attack takes less; alone it takes milliseconds."""
MAX_DESCRIPTORS = 1024
"""The usual soft limit."""
NUM_SOCKETS = MAX_DESCRIPTORS + 76
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""The first bytes of a gRPC connection, after which the client sends its settings."""
MAX_LOG_BYTES = 200_000
"""Of the rounds that run meanwhile, ten a second; what was wrong wrote megabytes a second."""
FABRIC = SyntheticSpec(FabricKind.RAIL, 64, rails=2, radix=16)
HARD = pb.PlacementSpec(
    groups=[pb.Group(name=f"g{at}", count=2 + at * 5 % 8, min=1) for at in range(16)]
)
"""Its exact search takes seconds."""


@contextmanager
def attacked(folder: Path) -> Iterator[Serving]:
    """Run a server that may open as many descriptors as is usual, until it serves."""
    scene = Scene.of(folder, FABRIC)
    scene.store()
    options = ("--health-listen", "127.0.0.1:0")
    with serving(scene, *options, max_descriptors=MAX_DESCRIPTORS) as server:
        server.wait_serving()
        yield server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with attacked(tmp_path_factory.mktemp("attacked")) as running:
        yield running


@contextmanager
def connection(address: str) -> Iterator[placement_pb2_grpc.PlacementServiceStub]:
    """Yield the stub of a connection that no other caller shares."""
    options = (("grpc.use_local_subchannel_pool", 1),)
    with grpc.insecure_channel(address, options=options) as channel:
        yield placement_pb2_grpc.PlacementServiceStub(channel)


def open_sockets(stack: ExitStack, address: str, num: int, first: bytes = b"") -> None:
    """Open connections that send some bytes and nothing more."""
    host, _, port = address.rpartition(":")
    for _ in range(num):
        opened = stack.enter_context(socket.create_connection((host, int(port)), SOON_S))
        if first:
            opened.sendall(first)


def place_promptly(server: Serving, within_s: float = PROMPT_S) -> None:
    """Check that an honest caller gets its answers soon, also for a reservation."""
    with connection(server.address) as stub:
        spec = pb.PlacementSpec(groups=[pb.Group(name="w", count=1)], gang=str(uuid4()))
        assert stub.Place(pb.PlaceRequest(spec=spec), timeout=within_s).placement.proved
        asked = pb.ReserveRequest(spec=spec, request_id=str(uuid4()))
        if stub.Reserve(asked, timeout=within_s).HasField("reservation"):
            stub.Release(pb.ReleaseRequest(id=asked.request_id), timeout=within_s)


def livez(server: Serving) -> int:
    with closing(http.client.HTTPConnection(server.port_of("health"), timeout=PROMPT_S)) as client:
        client.request("GET", "/livez")
        return client.getresponse().status


@pytest.mark.parametrize("method", ["Candidates", "Place", "Reserve"])
def test_callers_with_hard_gangs_stop_no_other(server: Serving, method: str) -> None:
    with ExitStack() as stack:
        stubs = [stack.enter_context(connection(server.address)) for _ in range(NUM_THREADS)]
        calls = []
        for at in range(NUM_THREADS * NUM_THREADS):
            spec = pb.PlacementSpec(gang=f"hard-{uuid4()}", groups=HARD.groups)
            asked = {
                "Candidates": pb.CandidatesRequest(spec=spec, max_candidates=64),
                "Place": pb.PlaceRequest(spec=spec),
                "Reserve": pb.ReserveRequest(spec=spec, request_id=str(uuid4())),
            }[method]
            call = getattr(stubs[at % NUM_THREADS], method)
            calls.append(call.future(asked, timeout=HOUR_S))
        place_promptly(server)
        for call in calls:
            call.cancel()
        place_promptly(server)


def test_calls_that_send_nothing_stop_no_other(server: Serving) -> None:
    silent = Silent()
    options = (("grpc.use_local_subchannel_pool", 1),)
    with ExitStack() as stack:
        stack.callback(silent.end)
        for _ in range(NUM_THREADS // 2):
            channel = stack.enter_context(grpc.insecure_channel(server.address, options=options))
            send: Any = channel.stream_unary("/toponaut.v1.PlacementService/Place")
            for _ in range(10):
                send.future(silent, timeout=HOUR_S)
        place_promptly(server, CROWDED_STALL_S + PROMPT_S)


def test_streams_of_hard_gangs_stop_no_call(server: Serving) -> None:
    with connection(server.address) as stub:
        message = pb.PlaceBatchRequest(specs=[HARD])
        streams = [stub.PlaceBatch(iter([message]), timeout=HOUR_S) for _ in range(64)]
        place_promptly(server)
        for stream in streams:
            stream.cancel()


@pytest.mark.parametrize("late_s", [0, 0.5], ids=["exactly", "rounded up by the client"])
def test_a_deadline_of_an_hour_is_accepted(server: Serving, late_s: float) -> None:
    with PlacementClient(server.address, HOUR_S + late_s) as client:
        assert client.place(request_for(1)).is_proved


@pytest.mark.long
def test_it_ends_in_time_while_searches_run(tmp_path: Path) -> None:
    with attacked(tmp_path) as server, connection(server.address) as stub:
        asked = pb.CandidatesRequest(spec=HARD, max_candidates=64)
        calls = [stub.Candidates.future(asked, timeout=HOUR_S) for _ in range(2 * NUM_THREADS)]
        place_promptly(server)
        started_s = time.monotonic()
        assert server.stop(signal.SIGTERM) == ExitCode.OK
        assert time.monotonic() - started_s < SHUTDOWN_S
        assert server.log[-1]["event"] == "generator stopped"
        assert all(call.done() or call.cancel() for call in calls)


def test_connections_that_send_nothing_leave_room_for_others(server: Serving) -> None:
    size = server.log_file.stat().st_size
    with connection(server.address) as stub, ExitStack() as stack:
        asked = pb.PlaceRequest(spec=pb.PlacementSpec(groups=[pb.Group(name="w", count=1)]))
        assert stub.Place(asked, timeout=SOON_S).placement.proved
        for first in (b"", PREFACE):
            open_sockets(stack, server.address, NUM_SOCKETS // 2, first)
        assert stub.Place(asked, timeout=PROMPT_S).placement.proved
        assert livez(server) == HTTPStatus.OK
        assert server.count_descriptors() < MAX_CONNECTIONS + 256
        wait_until(
            lambda: "" if can_place(server) else "refused",
            deadline_s=2 * HANDSHAKE_S,
            what="a new caller is served, as the connections end",
        )
    assert server.log_file.stat().st_size - size < MAX_LOG_BYTES


def can_place(server: Serving) -> bool:
    with connection(server.address) as stub:
        asked = pb.PlaceRequest(spec=pb.PlacementSpec(groups=[pb.Group(name="w", count=1)]))
        try:
            return bool(stub.Place(asked, timeout=1).placement.proved)
        except grpc.RpcError:
            return False


@pytest.mark.parametrize("what", ["page", "health"])
def test_sockets_at_an_http_port_leave_room_for_others(server: Serving, what: str) -> None:
    size = server.log_file.stat().st_size
    form = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\nto"
    with ExitStack() as stack:
        for first in (b"", b"GET /document.json HTTP/1.1\r\n", form):
            open_sockets(stack, server.port_of(what), NUM_SOCKETS // 3, first)
        assert server.read_page("document.json").startswith(b"{")
        assert livez(server) == HTTPStatus.OK
        place_promptly(server)
        assert server.count_descriptors() < 2 * MAX_PAGE_CONNECTIONS + 128
    assert server.log_file.stat().st_size - size < MAX_LOG_BYTES
