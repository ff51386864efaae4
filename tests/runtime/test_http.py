"""The probe-and-metrics server, with requests of kubelets, Prometheus and hostile clients."""

from __future__ import annotations

import contextlib
import http.client
import socket
from collections.abc import Iterator
from http import HTTPStatus

import pytest

from runtime import http as pages
from runtime.http import MAX_CONNECTIONS, MAX_REQUEST_BYTES, Page, PageServer, health_page
from runtime.values import Address
from topology.model.errors import ConfigError

DEADLINE_S = 30.0
LARGE = b"x" * (8 << 20)
LOCAL = Address("127.0.0.1", 0)


def broken(_: str) -> Page:
    raise RuntimeError("no page today")


@pytest.fixture
def server() -> Iterator[PageServer]:
    pages = {
        "/ok": lambda _: Page(b"ok\n"),
        "/no": lambda _: Page(b"no\n", HTTPStatus.SERVICE_UNAVAILABLE),
        "/large": lambda _: Page(LARGE),
        "/accept": lambda accept: Page(accept.encode()),
        "/broken": broken,
    }
    server = PageServer(LOCAL, pages)
    yield server
    server.stop()


def ask(server: PageServer, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(*server.address, timeout=DEADLINE_S)
    with contextlib.closing(connection):
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()


def send(server: PageServer, request: bytes) -> bytes:
    """Send bytes and return the whole answer."""
    with connect(server) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def connect(server: PageServer) -> socket.socket:
    return socket.create_connection(server.address, timeout=DEADLINE_S)


@pytest.mark.parametrize(
    ("path", "method", "answer"),
    [
        pytest.param("/ok", "GET", (200, b"ok\n"), id="a page"),
        pytest.param("/ok?a=b", "GET", (200, b"ok\n"), id="a page with a query"),
        pytest.param("/ok?verbose", "GET", (200, b"ok\n"), id="a page with a bare query"),
        pytest.param("/ok", "HEAD", (200, b""), id="the head of a page"),
        pytest.param("/no", "GET", (503, b"no\n"), id="a page that refuses"),
        pytest.param("/large", "GET", (200, LARGE), id="a large page"),
        pytest.param("/", "GET", (404, b"not found\n"), id="no page"),
        pytest.param("/../ok", "GET", (404, b"not found\n"), id="a path with dots"),
        pytest.param("//[ok", "GET", (404, b"not found\n"), id="an invalid address"),
        pytest.param("/ok", "POST", (405, b"only GET and HEAD\n"), id="another method"),
    ],
)
def test_it_answers(server: PageServer, path: str, method: str, answer: tuple[int, bytes]) -> None:
    assert ask(server, path, method) == answer


@pytest.mark.parametrize("name", ["Accept", "accept", "ACCEPT"])
def test_it_passes_the_accept_header_to_the_page(server: PageServer, name: str) -> None:
    assert ask(server, "/accept", **{"X-Accept": "no", name: "text/plain;q=0.5"}) == (
        200,
        b"text/plain;q=0.5",
    )
    assert ask(server, "/accept") == (200, b"")


def test_it_survives_a_page_that_fails(
    server: PageServer, caplog: pytest.LogCaptureFixture
) -> None:
    assert ask(server, "/broken") == (500, b"internal error\n")
    assert [record.message for record in caplog.records] == ["page failed"]
    assert ask(server, "/ok")[0] == 200


@pytest.mark.parametrize(
    "request_bytes",
    [
        pytest.param(b"\r\n\r\n", id="nothing"),
        pytest.param(b"\r\n" * 4, id="empty lines"),
        pytest.param(b"GET\r\n\r\n", id="no path"),
        pytest.param(b"GET /ok\r\n\r\n", id="no version"),
        pytest.param(b"GET /ok FTP/1\r\n\r\n", id="another protocol"),
        pytest.param(b"\xff\x00\xff\r\n\r\n", id="bytes"),
        pytest.param(b"G" * (MAX_REQUEST_BYTES + 1), id="a line without end"),
    ],
)
def test_it_refuses_a_malformed_request(server: PageServer, request_bytes: bytes) -> None:
    assert send(server, request_bytes).startswith(b"HTTP/1.1 400 ")


def test_it_survives_a_client_that_starts_tls_and_gives_up(server: PageServer) -> None:
    with connect(server) as client:
        client.sendall(b"\x16\x03\x01\x02\x00\x01")
        client.shutdown(socket.SHUT_WR)
        while client.recv(4096):
            pass
    assert ask(server, "/ok") == (200, b"ok\n")


def test_it_accepts_a_request_in_pieces(server: PageServer) -> None:
    with connect(server) as connection:
        connection.sendall(b"GET /ok HT")
        assert ask(server, "/ok")[0] == 200
        connection.sendall(b"TP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 OK\r\n")


def test_it_closes_the_oldest_of_too_many_silent_connections(server: PageServer) -> None:
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connect(server)) for _ in range(MAX_CONNECTIONS + 3)]
        silent[-1].sendall(b"GET /ok HT")
        assert ask(server, "/ok") == (200, b"ok\n")
        assert silent[0].recv(1) == b""


def test_it_closes_a_connection_whose_head_is_slow(
    server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "DEADLINE_S", 0.2)
    with connect(server) as connection, contextlib.suppress(ConnectionError):
        connection.settimeout(0.01)
        while True:
            connection.sendall(b"G")
            with contextlib.suppress(TimeoutError):
                assert connection.recv(1) == b""
                break
    assert ask(server, "/ok")[0] == 200


def test_it_answers_while_others_are_silent_or_read_nothing(server: PageServer) -> None:
    slow = [connect(server) for _ in range(3 * MAX_CONNECTIONS)]
    for connection in slow[::2]:
        try:
            connection.sendall(b"GET /large HTTP/1.1\r\n\r\n")
        except OSError:
            continue  # it was closed as one of the oldest
    for _ in range(5):
        assert ask(server, "/ok")[0] == 200
    for connection in slow:
        connection.close()
    assert ask(server, "/large") == (200, LARGE)


def test_it_survives_clients_that_leave_early(server: PageServer) -> None:
    for request in (b"", b"GET /ok", b"GET /large HTTP/1.1\r\n\r\n"):
        with connect(server) as connection:
            connection.sendall(request)
    assert ask(server, "/ok")[0] == 200


def test_it_reports_an_address_in_use(server: PageServer) -> None:
    with pytest.raises(ConfigError, match=rf"cannot listen on {server.address}: .*in use"):
        PageServer(server.address, {})


def test_it_listens_on_all_addresses_without_a_host() -> None:
    server = PageServer(Address("", 0), {"/ok": lambda _: Page(b"ok\n")})
    connection = http.client.HTTPConnection("127.0.0.1", server.address.port, timeout=DEADLINE_S)
    with contextlib.closing(connection):
        connection.request("GET", "/ok")
        assert connection.getresponse().status == 200
    server.stop()


def test_it_stops_within_moments_while_a_connection_is_open() -> None:
    server = PageServer(Address("localhost", 0), {})
    with connect(server) as client:
        assert ask(server, "/")[0] == 404, "so the connection before is accepted"
        server.stop()
        assert client.recv(1) == b""
    with pytest.raises(OSError, match="refused"):
        connect(server)


def test_it_stops_in_the_middle_of_a_request(server: PageServer) -> None:
    with connect(server) as connection:
        connection.sendall(b"GET /ok")
        server.stop()
        try:
            assert connection.recv(1) == b""
        except ConnectionResetError:
            return  # the server had not read all that was sent


@pytest.mark.parametrize(
    ("problem", "answer"),
    [("", (200, b"ok\n")), ("no round ended", (503, b"no round ended\n"))],
)
def test_it_answers_a_probe(problem: str, answer: tuple[int, bytes]) -> None:
    page = health_page(lambda: problem)("")
    assert (page.status, page.body) == answer
