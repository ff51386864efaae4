"""How a client reports servers that are absent, of another kind, late or broken."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import pytest

from generator.rpc.client import PARSE_LOGGER, PlacementClient, PlacementServerError, Retries
from generator.rpc.limits import MAX_MESSAGE_BYTES
from generator.rpc.status_errors import ERROR_DOMAIN, CallFailure, FailureKind, encode_status
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from tests.generator.rpc.clusters import request_for
from tests.generator.rpc.servers import SOON_S, scripted
from topology.model.errors import ConfigError, PlacementRequestError, TopologyError

ONCE = Retries(max_attempts=1)
FAILING = [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK]


@contextmanager
def speaking(words: bytes) -> Iterator[PlacementClient]:
    """Yield a client of a server that sends other bytes than gRPC and closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        is_over = threading.Event()

        def speak() -> None:
            while True:
                connection, _ = listening.accept()
                with connection:
                    if is_over.is_set():
                        return
                    connection.sendall(words)

        thread = threading.Thread(target=speak)
        thread.start()
        try:
            with PlacementClient(f"127.0.0.1:{listening.getsockname()[1]}", SOON_S) as client:
                yield client
        finally:
            is_over.set()
            socket.create_connection(listening.getsockname()).close()
            thread.join(SOON_S)


@pytest.mark.parametrize(
    "words",
    [b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n"],
    ids=["a web server", "an SSH server"],
)
def test_it_distinguishes_another_protocol_from_no_server(words: bytes) -> None:
    with speaking(words) as client, pytest.raises(ConfigError, match="is not a gRPC server"):
        client.place(request_for(1))


def test_it_logs_one_line_for_an_unreadable_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        scripted(lambda _, __: b"\xff\xff\xff", serialize=bytes) as client,
        pytest.raises(PlacementServerError, match="INTERNAL"),
    ):
        client.place(request_for(1))
    (record,) = (record for record in caplog.records if record.name == PARSE_LOGGER)
    assert (record.levelname, record.exc_info) == ("WARNING", None)


def test_it_translates_every_status() -> None:
    codes = iter(FAILING)

    def answer(_: pb.PlaceRequest, context: grpc.ServicerContext) -> pb.PlaceResponse:
        context.abort(next(codes), "\x1b[31mred")

    with scripted(answer, retries=ONCE) as client:
        for code in FAILING:
            with pytest.raises(TopologyError) as caught:
                client.place(request_for(1))
            assert client.address in str(caught.value), code
            assert str(caught.value).isprintable(), code


def test_it_translates_every_failure() -> None:
    kinds = iter(FailureKind)

    def answer(_: pb.PlaceRequest, context: grpc.ServicerContext) -> pb.PlaceResponse:
        kind = next(kinds)
        context.abort_with_status(encode_status(CallFailure(kind, f"as it is: {kind}")))

    with scripted(answer, retries=ONCE) as client:
        for kind in FailureKind:
            with pytest.raises(TopologyError, match=f"as it is: {kind}"):
                client.place(request_for(1))


@pytest.mark.parametrize("raw", [b"\xff\xff", ERROR_DOMAIN.encode()], ids=repr)
def test_it_ignores_unknown_error_details(raw: bytes) -> None:
    def answer(_: pb.PlaceRequest, context: grpc.ServicerContext) -> pb.PlaceResponse:
        context.set_trailing_metadata((("grpc-status-details-bin", raw),))
        context.abort(grpc.StatusCode.INTERNAL, "broken")

    with scripted(answer) as client, pytest.raises(PlacementServerError, match="INTERNAL: broken"):
        client.place(request_for(1))


def test_it_advises_how_to_start_a_missing_server() -> None:
    with PlacementClient("127.0.0.1:1", SOON_S) as client, pytest.raises(ConfigError) as caught:
        client.place(request_for(1))
    assert "at 127.0.0.1:1: start one with toponaut serve" in str(caught.value)


def test_it_recognizes_another_grpc_server() -> None:
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with (
        PlacementClient(f"127.0.0.1:{port}", SOON_S) as client,
        pytest.raises(ConfigError, match="is not a placement server"),
    ):
        client.place(request_for(1))
    server.stop(0).wait()


def test_it_gives_up_at_its_deadline() -> None:
    late = r"gave no answer within 0\.05 s"
    with (
        scripted(_wait_for_end, timeout_s=0.05) as client,
        pytest.raises(PlacementServerError, match=late),
    ):
        client.place(request_for(1))


def _wait_for_end(_: pb.PlaceRequest, context: grpc.ServicerContext) -> pb.PlaceResponse:
    ended = threading.Event()
    if not context.add_callback(ended.set):
        return pb.PlaceResponse()
    ended.wait(SOON_S)
    return pb.PlaceResponse()


def test_it_refuses_answers_of_a_later_version() -> None:
    reason = pb.Reason.FromString(b"\x08\x63")  # kind 99
    later = pb.PlaceResponse(placement=pb.Placement(reason=reason))
    other = "has another version"
    with (
        scripted(lambda _, __: later) as client,
        pytest.raises(PlacementServerError, match=other),
    ):
        client.place(request_for(1))


def test_it_sends_no_message_above_the_limit_of_a_server() -> None:
    asked = request_for(1, gang="x" * MAX_MESSAGE_BYTES)
    with (
        PlacementClient("127.0.0.1:1", 1.0) as client,
        pytest.raises(PlacementRequestError, match=r"^spec: takes 4194\d+ bytes"),
    ):
        client.place(asked)
