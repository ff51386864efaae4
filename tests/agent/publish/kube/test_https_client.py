"""One request over TLS, with every kind of answer and without an answer."""

from __future__ import annotations

import http.client
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.publish.kube.credentials import ApiCredentials
from agent.publish.kube.https_client import APPLY, MAX_ANSWER_BYTES, ApiClient, ApiRequest
from runtime.retry import Cooldown
from runtime.values import Address
from tests.agent.fakes import FakeClock
from tests.lab.certificates import write_certificates
from topology.model.errors import (
    KubeConflict,
    KubeError,
    KubeForbidden,
    KubeNotFound,
    KubeUnavailable,
)

GET = ApiRequest("GET", "/apis/x?limit=1")
Reply = Callable[[ssl.SSLSocket], None]


class Peer:
    """A TLS server that answers each connection with a given reply, whatever the request."""

    def __init__(self, folder: Path, host: str) -> None:
        self.asked: list[bytes] = []
        self.replies: list[Reply] = []
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listening = socket.create_server((host, 0), family=family)
        self.address = Address(host, self._listening.getsockname()[1])
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(folder / "server.crt", folder / "server.key")
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join(timeout=30)
        self._listening.close()

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self._listening.accept()
            except OSError:
                return
            with plain:
                self._answer(plain)

    def _answer(self, plain: socket.socket) -> None:
        try:
            with self._tls.wrap_socket(plain, server_side=True) as connection:
                self.asked.append(request_from(connection))
                if self.replies:
                    self.replies.pop(0)(connection)
        except OSError:
            return  # the client has gone


def request_from(connection: ssl.SSLSocket) -> bytes:
    """Return a whole request."""
    found = b""
    while b"\r\n\r\n" not in found:
        piece = connection.recv(1 << 16)
        if not piece:
            raise ConnectionResetError
        found += piece
    length = re.search(rb"Content-Length: (\d+)", found)
    whole = found.index(b"\r\n\r\n") + 4 + (int(length[1]) if length else 0)
    while len(found) < whole:
        found += connection.recv(1 << 16)
    return found


def saying(status: str, body: bytes = b"{}", *headers: str) -> Reply:
    """Return a whole answer."""
    head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers])

    def reply(connection: ssl.SSLSocket) -> None:
        connection.sendall(f"{head}\r\n\r\n".encode() + body)

    return reply


def raw(*pieces: bytes) -> Reply:
    """Return an answer of these bytes, after which the connection ends."""

    def reply(connection: ssl.SSLSocket) -> None:
        for piece in pieces:
            connection.sendall(piece)

    return reply


def dripping(connection: ssl.SSLSocket) -> None:
    """Answer a byte at a time forever, each well before any timeout."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    pause = threading.Event()
    while True:
        connection.sendall(b" ")
        pause.wait(0.02)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    write_certificates(folder)
    (folder / "token").write_text("secret-1")
    return folder


@pytest.fixture
def peer(keys: Path) -> Iterator[Peer]:
    peer = Peer(keys, "127.0.0.1")
    yield peer
    peer.close()


class Client:
    """An agent's client of a peer, and the codes that it counted."""

    def __init__(self, address: Address, keys: Path, *, deadline_s: float = 30.0) -> None:
        self.codes: list[str] = []
        self.clock = FakeClock()
        cooldown = Cooldown(self.clock, lambda _, high: high, period_s=60)
        self.server = ApiClient(
            ApiCredentials(address, keys / "token", keys / "ca.crt"),
            cooldown,
            deadline_s=deadline_s,
            on_answer=self.codes.append,
        )

    def refusal(self, request: ApiRequest = GET) -> KubeError:
        with pytest.raises(KubeError) as told:
            self.server.call(request)
        return told.value


def test_it_returns_the_object_of_an_answer(peer: Peer, keys: Path) -> None:
    peer.replies = [saying("201 Created", b'{"a": 1}')]
    client = Client(peer.address, keys)
    asked = ApiRequest("PATCH", "/x", {"b": 2}, {"Content-Type": APPLY})
    assert client.server.call(asked) == {"a": 1}
    (sent,) = peer.asked
    assert sent.startswith(b"PATCH /x HTTP/1.1\r\n")
    for line in (b"Authorization: Bearer secret-1", b"Content-Type: " + APPLY.encode()):
        assert line in sent
    assert f"Host: 127.0.0.1:{peer.address.port}".encode() in sent
    assert sent.endswith(b'\r\n\r\n{"b": 2}')
    assert client.codes == ["201"]


def test_it_reaches_a_server_by_ipv6(keys: Path) -> None:
    try:
        peer = Peer(keys, "::1")
    except OSError as error:
        pytest.skip(f"needs IPv6 on loopback, enable it: {error}")
    peer.replies = [saying("200 OK")]
    assert Client(peer.address, keys).server.call(GET) == {}
    assert f"Host: [::1]:{peer.address.port}".encode() in peer.asked[0]
    peer.close()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("403 Forbidden", KubeForbidden),
        ("404 Not Found", KubeNotFound),
        ("409 Conflict", KubeConflict),
        ("429 Too Many Requests", KubeUnavailable),
        ("500 Internal Server Error", KubeUnavailable),
        ("302 Found", KubeError),
    ],
)
def test_it_raises_the_error_of_a_refusal(
    peer: Peer, keys: Path, status: str, kind: type[KubeError]
) -> None:
    peer.replies = [saying(status, b'{"message": "why"}', "Location: https://elsewhere.invalid/")]
    client = Client(peer.address, keys)
    error = client.refusal()
    assert type(error) is kind
    assert str(error).startswith(f"GET /apis/x: {status[:3]}")
    assert client.codes == [status[:3]]
    assert "secret" not in str(error)


@pytest.mark.parametrize(
    "message",
    [
        "etcdserver: request is too large",
        "rpc error: trying to send message larger than max (3 vs. 2)",
        "failed to create typed patch object: .spec.x: field not declared in schema",
    ],
)
def test_it_recognizes_a_server_error_that_lasts(peer: Peer, keys: Path, message: str) -> None:
    peer.replies = [saying("500 Internal Server Error", f'{{"message": "{message}"}}'.encode())]
    client = Client(peer.address, keys)
    assert not isinstance(client.refusal(), KubeUnavailable)
    assert client.server.blocking_error is None


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(raw(), id="the connection ends"),
        pytest.param(raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"), id="it breaks off"),
        pytest.param(
            raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"), id="in a chunk"
        ),
        pytest.param(raw(b"220 mail.example ESMTP\r\n"), id="another protocol"),
        pytest.param(raw(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n"), id="headers"),
        pytest.param(saying("200 OK", b"<html>"), id="no JSON"),
        pytest.param(saying("200 OK", b"[" * 100_000), id="JSON too deep"),
        pytest.param(saying("200 OK", b"[1]"), id="no object"),
        pytest.param(saying("200 OK", b" " * (MAX_ANSWER_BYTES + 1)), id="too much"),
    ],
)
def test_it_treats_a_malformed_answer_as_no_answer(peer: Peer, keys: Path, reply: Reply) -> None:
    peer.replies = [reply]
    client = Client(peer.address, keys)
    assert type(client.refusal()) is KubeUnavailable
    assert client.server.blocking_error is not None


def test_it_ends_an_answer_that_arrives_too_slowly(peer: Peer, keys: Path) -> None:
    peer.replies = [dripping]
    client = Client(peer.address, keys, deadline_s=0.3)
    assert "no complete answer within 0.3 s" in str(client.refusal())
    assert client.codes == ["none"]


def test_it_trusts_only_certificates_of_its_authority(peer: Peer, tmp_path: Path) -> None:
    write_certificates(tmp_path)
    (tmp_path / "token").write_text("secret")
    assert "CERTIFICATE_VERIFY_FAILED" in str(Client(peer.address, tmp_path).refusal())
    assert peer.asked == []


def test_it_reports_a_refused_connection(keys: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert "refused" in str(Client(Address("127.0.0.1", port), keys).refusal())


def test_it_reads_its_token_again_after_a_401(peer: Peer, tmp_path: Path, keys: Path) -> None:
    for name in ("token", "ca.crt"):
        (tmp_path / name).write_bytes((keys / name).read_bytes())

    def rotate(connection: ssl.SSLSocket) -> None:
        (tmp_path / "token").write_text("secret-2")
        saying("401 Unauthorized")(connection)

    peer.replies = [rotate, saying("200 OK")]
    client = Client(peer.address, tmp_path)
    assert client.server.call(GET) == {}
    assert b"Bearer secret-2" in peer.asked[1]
    peer.replies = [saying("401 Unauthorized")]
    assert type(client.refusal()) is KubeForbidden
    assert len(peer.asked) == 3, "the same token is not tried twice"


def test_it_sends_nothing_during_a_cooldown(peer: Peer, keys: Path) -> None:
    peer.replies = [saying("503 Service Unavailable", b"{}", "Retry-After: 100")]
    client = Client(peer.address, keys)
    first = client.refusal()
    assert first.retry_after_s == 100
    assert client.refusal() is first
    assert len(peer.asked) == 1
    client.clock.seconds += 200
    peer.replies = [saying("200 OK")]
    assert client.server.call(GET) == {}


def test_it_translates_every_exception_of_the_http_library() -> None:
    raised = [one for one in vars(http.client).values() if isinstance(one, type)]
    own = [one for one in raised if issubclass(one, Exception)]
    assert own
    assert all(issubclass(one, http.client.HTTPException | OSError | ValueError) for one in own)
