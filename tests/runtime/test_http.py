"""The port of metrics and health, and clients that misbehave."""

from __future__ import annotations

import contextlib
import http.client
import socket
from collections.abc import Iterator
from http import HTTPStatus

import pytest

from runtime.addresses import Address, parse_address
from runtime.generator_http import MAX_CONNECTIONS, Page, PageServer
from topology.model.errors import ConfigError

SOON_S = 30.0
LARGE = b"x" * (8 << 20)


def broken(_: str) -> Page:
    raise RuntimeError("no page today")


@pytest.fixture
def server() -> Iterator[PageServer]:
    pages = {
        "/ok": lambda _: Page(b"ok\n"),
        "/large": lambda _: Page(LARGE),
        "/broken": broken,
        "/no": lambda _: Page(b"no\n", HTTPStatus.SERVICE_UNAVAILABLE),
    }
    running = PageServer("127.0.0.1:0", pages)
    yield running
    running.stop()


def ask(server: PageServer, path: str, method: str = "GET") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(server.address, timeout=SOON_S)
    with contextlib.closing(connection):
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read()


def connect(server: PageServer) -> socket.socket:
    host, port = parse_address(server.address)
    return socket.create_connection((host, port), timeout=SOON_S)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/ok", (200, b"ok\n"), id="a page"),
        pytest.param("/ok?a=b", (200, b"ok\n"), id="a page with a query"),
        pytest.param("/no", (503, b"no\n"), id="a page that says no"),
        pytest.param("/", (404, b"not found\n"), id="no page"),
        pytest.param("/../ok", (404, b"not found\n"), id="a path with dots"),
        pytest.param("//[ok", (404, b"not found\n"), id="an address that is none"),
        pytest.param("/broken", (500, b"internal error\n"), id="a page that cannot be made"),
    ],
)
def test_it_answers(server: PageServer, path: str, expected: tuple[int, bytes]) -> None:
    assert ask(server, path) == expected


def test_it_answers_the_head_alone(server: PageServer) -> None:
    assert ask(server, "/ok", "HEAD") == (200, b"")


def test_it_takes_no_other_methods(server: PageServer) -> None:
    assert ask(server, "/ok", "POST")[0] == 501


def test_it_answers_beside_more_silent_clients_than_it_bears(server: PageServer) -> None:
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connect(server)) for _ in range(MAX_CONNECTIONS + 3)]
        silent[-1].sendall(b"GET /ok HT")
        assert ask(server, "/ok") == (200, b"ok\n")
        assert silent[0].recv(1) == b"", "the oldest made room"


def test_it_answers_after_clients_that_read_nothing_or_vanish(server: PageServer) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            one = stack.enter_context(connect(server))
            one.sendall(b"GET /large HTTP/1.0\r\n\r\n")
        connect(server).close()
        assert ask(server, "/ok") == (200, b"ok\n")
    assert ask(server, "/large") == (200, LARGE)


@pytest.mark.parametrize("words", [b"\x16\x03\x01\x02\x00\x01", b"GET\r\n\r\n", b"\r\n" * 4])
def test_it_survives_what_is_no_request(server: PageServer, words: bytes) -> None:
    with connect(server) as client:
        client.sendall(words)
        client.shutdown(socket.SHUT_WR)
        while client.recv(4096):
            pass
    assert ask(server, "/ok") == (200, b"ok\n")


def test_it_stops_within_moments_beside_an_open_connection() -> None:
    server = PageServer("localhost:0", {})
    with connect(server) as client:
        assert ask(server, "/")[0] == 404, "and so the connection before has been taken"
        server.stop()
        assert client.recv(1) == b""
    with pytest.raises(OSError, match="refused"):
        connect(server)


def test_it_listens_on_all_addresses_where_no_host_is_given() -> None:
    server = PageServer(":0", {"/ok": lambda _: Page(b"ok\n")})
    port = parse_address(server.address).port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SOON_S)
    with contextlib.closing(connection):
        connection.request("GET", "/ok")
        assert connection.getresponse().status == 200
    server.stop()


def test_it_says_which_address_is_taken(server: PageServer) -> None:
    with pytest.raises(ConfigError, match=f"cannot listen on {server.address}"):
        PageServer(server.address, {})


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (":8080", Address("", 8080)),
        ("192.0.2.1:8080", Address("192.0.2.1", 8080)),
        ("[::1]:1", Address("::1", 1)),
        ("some.host:65535", Address("some.host", 65535)),
    ],
)
def test_it_takes_addresses_apart(text: str, parts: Address) -> None:
    assert parse_address(text) == parts
    assert str(parts) == text


@pytest.mark.parametrize(
    "text",
    [
        *("8080", "", "host", "host:", "host:65536", "host:-1", "a\nb"),
        *("[::1", "[::1]x:1", "[host]:1", "host:1:2", "http://host:1", "host:\u0661"),
    ],
)
def test_it_refuses_as_no_address(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_address(text)
    assert "\n" not in str(caught.value)
