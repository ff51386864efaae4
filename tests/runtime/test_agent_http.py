"""The pages of an agent, asked as kubelets, Prometheus and people with ill intent do."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from http import HTTPStatus

import pytest

from agent.settings import ListenAddress
from runtime.http import MAX_CONNECTIONS, MAX_REQUEST_BYTES, Page, PageServer
from topology.model.errors import ConfigError

LARGE = b"x" * (4 << 20)
DEADLINE_S = 30


def broken() -> Page:
    raise RuntimeError("no page today")


@pytest.fixture
def server() -> Iterator[PageServer]:
    pages = {
        "/ok": lambda: Page(b"fine\n"),
        "/no": lambda: Page(b"ill\n", HTTPStatus.SERVICE_UNAVAILABLE),
        "/large": lambda: Page(LARGE),
        "/broken": broken,
    }
    server = PageServer(ListenAddress("127.0.0.1", 0), pages)
    yield server
    server.stop()


def ask(server: PageServer, path: str, method: str = "GET") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(*server.address, timeout=DEADLINE_S)
    connection.request(method, path)
    with connection.getresponse() as answer:
        found = answer.status, answer.read()
    connection.close()
    return found


def send(server: PageServer, request: bytes) -> bytes:
    """Return all that comes back."""
    with connect(server) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def connect(server: PageServer) -> socket.socket:
    return socket.create_connection(server.address, timeout=DEADLINE_S)


@pytest.mark.parametrize(
    ("path", "method", "answer"),
    [
        ("/ok", "GET", (200, b"fine\n")),
        ("/ok?verbose", "GET", (200, b"fine\n")),
        ("/ok", "HEAD", (200, b"")),
        ("/no", "GET", (503, b"ill\n")),
        ("/nowhere", "GET", (404, b"not found\n")),
        ("/ok", "POST", (405, b"only GET and HEAD\n")),
        ("/large", "GET", (200, LARGE)),
    ],
)
def test_it_answers(server: PageServer, path: str, method: str, answer: tuple[int, bytes]) -> None:
    assert ask(server, path, method) == answer


def test_it_survives_a_page_that_fails(
    server: PageServer, caplog: pytest.LogCaptureFixture
) -> None:
    assert ask(server, "/broken") == (500, b"internal error\n")
    assert [one.message for one in caplog.records] == ["page failed"]
    assert ask(server, "/ok")[0] == 200


@pytest.mark.parametrize(
    "request_bytes",
    [
        pytest.param(b"\r\n\r\n", id="nothing"),
        pytest.param(b"GET /ok\r\n\r\n", id="no version"),
        pytest.param(b"GET /ok FTP/1\r\n\r\n", id="another protocol"),
        pytest.param(b"\xff\x00\xff\r\n\r\n", id="bytes"),
        pytest.param(b"G" * (MAX_REQUEST_BYTES + 1), id="a line without end"),
    ],
)
def test_it_refuses_what_makes_no_sense(server: PageServer, request_bytes: bytes) -> None:
    assert send(server, request_bytes).startswith(b"HTTP/1.1 400 ")


def test_it_takes_a_request_in_pieces(server: PageServer) -> None:
    with connect(server) as connection:
        connection.sendall(b"GET /ok HT")
        assert ask(server, "/ok")[0] == 200
        connection.sendall(b"TP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 OK\r\n")


def test_it_answers_others_whoever_is_silent_or_reads_nothing(server: PageServer) -> None:
    slow = [connect(server) for _ in range(3 * MAX_CONNECTIONS)]
    for connection in slow[::2]:
        try:
            connection.sendall(b"GET /large HTTP/1.1\r\n\r\n")
        except OSError:
            continue  # it had to make room already
    for _ in range(5):
        assert ask(server, "/ok")[0] == 200
    for connection in slow:
        connection.close()


def test_it_survives_clients_that_leave_early(server: PageServer) -> None:
    for request in (b"", b"GET /ok", b"GET /large HTTP/1.1\r\n\r\n"):
        with connect(server) as connection:
            connection.sendall(request)
    assert ask(server, "/ok")[0] == 200


def test_it_cannot_listen_where_another_does(server: PageServer) -> None:
    with pytest.raises(ConfigError, match=r"cannot listen on 127\.0\.0\.1:\d+: .*in use"):
        PageServer(server.address, {})


def test_it_can_listen_everywhere() -> None:
    server = PageServer(ListenAddress("", 0), {"/ok": lambda: Page(b"")})
    try:
        with socket.create_connection(("127.0.0.1", server.address.port), timeout=DEADLINE_S):
            pass
    finally:
        server.stop()


def test_it_ends_with_connections_open(server: PageServer) -> None:
    with connect(server) as connection:
        connection.sendall(b"GET /ok")
        server.stop()
        try:
            assert connection.recv(1) == b""
        except ConnectionResetError:
            return  # it had not read all that was sent
