"""The port of the page: its limits, deadlines and certificates."""

from __future__ import annotations

import gzip
import http.client
import resource
import socket
import ssl
import struct
import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

from generator.server.page_port import PagePort
from generator.web import http_server
from generator.web.http_server import MAX_CONNECTIONS, MAX_HEAD_BYTES, PageHttpServer
from generator.web.live_document import LiveDocument, PackedDocument
from generator.web.site import PageSite
from runtime.values import Address
from tests.generator.rpc.credentials import Pki, Tokens
from tests.generator.web.sites import ANY_PORT, SOON_S, TREE, Site, outcome_of, serving, sources_of
from tests.lab.certificates import Authority
from topology.model.errors import ConfigError


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


def connect(site: Site) -> socket.socket:
    return socket.create_connection(site.host_port, SOON_S)


def read_all(connection: socket.socket) -> bytes:
    """Return what comes until the server closes the connection, or resets it."""
    found = b""
    with suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            found += piece
    return found


def context_for(pki: Pki, name: str = "") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=pki.ca)
    context.check_hostname = False
    if name:
        context.load_cert_chain(*pki.client(name))
    return context


def test_a_silent_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "SILENT_S", 0.1)
    with serving() as site, connect(site) as connection:
        assert read_all(connection) == b""


def test_a_connection_that_never_ends_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "CONNECTION_S", 0.3)
    with serving() as site, connect(site) as connection:
        connection.sendall(b"GET /login HTTP/1.1\r\nHost: localhost\r\n\r\nGET /")
        assert b" 303 " in read_all(connection)


def test_a_tls_handshake_has_a_deadline(pki: Pki, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "SILENT_S", 0.1)
    with serving(tls=pki.files) as site, connect(site) as connection:
        assert read_all(connection) == b""


def test_the_head_of_a_request_is_bounded() -> None:
    with serving() as site, connect(site) as connection:
        line = b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "
        connection.sendall(line + b"x" * (2 * MAX_HEAD_BYTES))
        assert b" 400 " in connection.recv(65536)


def test_slow_heads_leave_room_for_others() -> None:
    with serving() as site, ExitStack() as stack:
        slow = [stack.enter_context(connect(site)) for _ in range(2 * MAX_CONNECTIONS)]
        for connection in slow:
            connection.sendall(b"GET /page.css HTTP/1.1\r\n")
        assert [site.ask("/page.css").status for _ in range(3)] == [200] * 3


def test_a_slow_head_is_closed_also_after_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "SILENT_S", 0.3)
    with serving() as site, connect(site) as connection:
        connection.sendall(b"GET /login HTTP/1.1\r\nHost: localhost\r\n\r\nGET /")
        assert b" 303 " in read_all(connection)


class LargeDocument(LiveDocument):
    """A document of which many copies do not fit in memory."""

    content = gzip.compress(b" " * (64 << 20), 1)

    def render(self) -> PackedDocument:
        return PackedDocument(self.content, '"tag"')


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def serve_large_document() -> PageHttpServer:
    document = LargeDocument(sources_of(), clock=time.monotonic)
    app = PageSite(document, None, is_local=True).build_app()
    return PageHttpServer(Address("127.0.0.1", 0), app, None)


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_clients_that_read_nothing_cost_little(coding: str) -> None:
    server = serve_large_document()
    before = peak_bytes()
    asked = f"GET /document.json HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: {coding}\r\n\r\n"
    with ExitStack() as stack:
        opened = [
            stack.enter_context(socket.create_connection(server.address, SOON_S))
            for _ in range(MAX_CONNECTIONS - 4)
        ]
        for connection in opened:
            connection.sendall(asked.encode())
        for connection in opened:
            assert connection.recv(12) == b"HTTP/1.1 200"
        assert peak_bytes() - before < (150 << 20)
    with closing(http.client.HTTPConnection(*server.address, timeout=SOON_S)) as client:
        client.request("GET", "/document.json", headers={"Accept-Encoding": coding})
        body = client.getresponse().read()
    assert len(gzip.decompress(body) if coding == "gzip" else body) == 64 << 20
    server.stop()


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_clients_that_go_away_fill_no_log(coding: str, caplog: pytest.LogCaptureFixture) -> None:
    server = serve_large_document()
    asked = f"GET /document.json HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: {coding}\r\n\r\n"
    for _ in range(20):
        with closing(socket.create_connection(server.address, SOON_S)) as connection:
            connection.sendall(asked.encode())
            connection.recv(12)
            reset = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
    server.stop()
    assert not [record for record in caplog.records if record.name == "asyncio"]


def test_a_certificate_that_was_renewed_is_used(pki: Pki) -> None:
    with serving(tls=pki.files, context=context_for(pki)) as site:
        site.show(outcome_of(TREE))
        before = ssl.get_server_certificate(site.host_port)
        pki.renew()
        assert ssl.get_server_certificate(site.host_port) != before
        assert site.ask("/document.json").status == 200
        renewed = ssl.get_server_certificate(site.host_port)
        pki.write("tls.crt", b"damaged")
        assert ssl.get_server_certificate(site.host_port) == renewed


def test_with_an_authority_of_clients_it_needs_both_certificate_and_token(pki: Pki) -> None:
    files = pki.files._replace(client_ca=pki.ca)
    tokens = Tokens({"alice": None})
    with serving(tokens, tls=files, context=context_for(pki, "anna")) as site:
        site.show(outcome_of(TREE))
        assert site.ask("/document.json").status == 401
        assert site.ask("/document.json", Authorization="Bearer alice").status == 200
        stranger = Site(site.port, context_for(pki))
        with pytest.raises((ssl.SSLError, ConnectionError)):
            stranger.ask("/document.json", Authorization="Bearer alice")


def test_an_authority_of_clients_that_was_replaced_is_no_longer_trusted(pki: Pki) -> None:
    other = Authority("other")
    authorities = pki.write("clients.crt", pki.authority.pem)
    files = pki.files._replace(client_ca=authorities)
    with serving(tls=files, context=context_for(pki, "anna")) as site:
        site.show(outcome_of(TREE))
        assert site.ask("/document.json").status == 200
        pki.write("clients.crt", other.pem)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            site.ask("/document.json")


@pytest.mark.parametrize("broken", ["tls.crt", "tls.key", "ca.crt"])
def test_a_file_that_cannot_be_used_is_a_clear_error(pki: Pki, broken: str) -> None:
    files = pki.files._replace(client_ca=pki.ca)
    pki.write(broken, b"damaged")
    with pytest.raises(ConfigError):
        PagePort(ANY_PORT, sources_of(), tls=files, tokens=None)


def test_an_address_in_use_is_a_clear_error() -> None:
    with serving() as site, pytest.raises(ConfigError, match="cannot listen"):
        PagePort(site.port.address, sources_of(), tls=None, tokens=None)


def test_after_its_end_it_accepts_nothing() -> None:
    with serving() as site:
        assert site.ask("/login").status == 303
    with pytest.raises(ConnectionRefusedError):
        connect(site)
