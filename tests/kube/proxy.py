"""A proxy between a client and the real API server, which fails as a test says."""

import contextlib
import http.client
import json
import re
import select
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Self

from tests.lab.api_server import ApiServer

_DROPPED = frozenset({"connection", "transfer-encoding", "content-length", "host"})
_PIECE = 65536


@dataclass(frozen=True, slots=True)
class Fault:
    """What the proxy does with a request instead of forwarding it, or in addition."""

    status: int = 0
    """Answer with this status; 0 forwards the request."""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b'{"kind":"Status","message":"injected","reason":"Injected"}'
    cut_after: int | None = None
    """Break the connection after this number of bytes of the body; 0 breaks before the answer."""
    is_silent: bool = False
    """Accept the request, forward nothing and answer nothing."""
    lines: tuple[bytes, ...] = ()
    """Answer with a stream of these lines instead of the server's answer."""
    is_lost: bool = False
    """Forward the request, but break the connection instead of answering."""
    delay_s: float = 0.0
    """Seconds to wait before forwarding the request."""


class FaultProxy:
    """A TLS server with the real server's certificate; each fault is used once."""

    def __init__(self, api: ApiServer, *, retry_after_s: int | None = None) -> None:
        """Start to forward everything.

        Args:
            api: the real server.
            retry_after_s: what a busy server asks a client to wait; the server's own by default.
        """
        self.retry_after = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
        self.requests: list[str] = []
        """`METHOD path?query` of each request, in order."""
        self._api = api
        self._lock = Lock()
        self._faults: list[tuple[re.Pattern[str], Fault]] = []
        self._standing: list[tuple[re.Pattern[str], Fault]] = []
        self._open: set[socket.socket] = set()
        self._ended = Event()
        self._client_tls = ssl.create_default_context(cafile=str(api.ca))
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(api.folder / "server.crt", api.folder / "server.key")
        self._server = _Server(self, tls)
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *ended: object) -> None:
        """Stop, and break every connection."""
        self._ended.set()
        self._server.shutdown()
        self.cut()
        self._server.server_close()
        self._thread.join(timeout=10)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"https://127.0.0.1:{self._server.server_address[1]}"

    def fail(self, pattern: str, *faults: Fault) -> None:
        """Let the next requests that match `METHOD path?query` fail, one fault each."""
        with self._lock:
            self._faults += [(re.compile(pattern), fault) for fault in faults]

    def plague(self, pattern: str, fault: Fault) -> None:
        """Let every request that matches fail from now on."""
        with self._lock:
            self._standing.append((re.compile(pattern), fault))

    def vanish(self) -> None:
        """Break every connection, and every new one too."""
        self.plague("", Fault(cut_after=0))
        self.cut()

    def relent(self) -> None:
        """Remove all faults."""
        with self._lock:
            self._faults.clear()
            self._standing.clear()

    def cut(self) -> None:
        """Break every connection at once."""
        with self._lock:
            broken, self._open = self._open, set()
        for connection in broken:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    @property
    def num_open(self) -> int:
        """Connections of clients."""
        with self._lock:
            return len(self._open)

    def count(self, pattern: str) -> int:
        """Return the number of matching requests so far."""
        return sum(1 for request in list(self.requests) if re.search(pattern, request))

    def take_fault(self, asked: str) -> Fault | None:
        """Record a request and return its fault."""
        with self._lock:
            self.requests.append(asked)
            at = next((at for at, (one, _) in enumerate(self._faults) if one.search(asked)), None)
            if at is not None:
                return self._faults.pop(at)[1]
            return next((fault for one, fault in self._standing if one.search(asked)), None)

    @contextlib.contextmanager
    def holding(self, connection: socket.socket) -> Iterator[None]:
        """Let `cut` break this connection within the context."""
        with self._lock:
            self._open.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(connection)

    def ask_server(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[http.client.HTTPSConnection, http.client.HTTPResponse]:
        """Forward a request and return the server's unread answer."""
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self._api.port, timeout=600, context=self._client_tls
        )
        try:
            connection.request(method, path, body, headers)
            return connection, connection.getresponse()
        except BaseException:
            connection.close()
            raise

    def hold(self, delay_s: float) -> None:
        """Let a request wait, but not beyond the end."""
        if delay_s:
            self._ended.wait(delay_s)

    def await_end(self, connection: socket.socket) -> None:
        """Return once the client or the test has given up."""
        while not self._ended.is_set():
            if connection.fileno() < 0 or select.select([connection], [], [], 0.02)[0]:
                return


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, proxy: FaultProxy, tls: ssl.SSLContext) -> None:
        self.proxy = proxy
        self.tls = tls
        super().__init__(("127.0.0.1", 0), _Exchange)

    def handle_error(self, request: object, client_address: object) -> None:
        """Log nothing: broken connections are expected."""


class _Exchange(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        self.request = self.server.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def handle(self) -> None:
        with self.server.proxy.holding(self.connection), contextlib.suppress(OSError):
            super().handle()

    def finish(self) -> None:
        with contextlib.suppress(OSError):
            super().finish()
        self.connection.close()

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def _pass_on(self) -> None:
        proxy = self.server.proxy
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else None
        fault = proxy.take_fault(f"{self.command} {self.path}") or Fault()
        proxy.hold(fault.delay_s)
        if fault.is_silent:
            proxy.await_end(self.connection)
        elif fault.lines:
            self._answer(200, {}, iter(fault.lines), fault)
            return
        elif fault.status:
            self._answer(fault.status, fault.headers, iter([fault.body]), fault)
            return
        elif fault.cut_after != 0:
            self._relay(body, fault)
            return
        self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass_on  # noqa: N815 - the library's names

    def _relay(self, body: bytes | None, fault: Fault) -> None:
        headers = {key: value for key, value in self.headers.items() if key.lower() not in _DROPPED}
        asked = self.server.proxy.ask_server(self.command, self.path, body, headers)
        # An answer that says it closes the connection keeps the socket for itself.
        with contextlib.closing(asked[0]), contextlib.closing(asked[1]):
            if fault.is_lost:
                asked[1].read()
                self.close_connection = True
                return
            kept = {
                key: self.server.proxy.retry_after.get(key, value)
                for key, value in asked[1].getheaders()
                if key.lower() not in _DROPPED
            }
            pieces = iter(lambda: asked[1].read1(_PIECE), b"")
            self._answer(asked[1].status, kept, pieces, fault)

    def _answer(
        self, status: int, headers: dict[str, str], pieces: Iterator[bytes], fault: Fault
    ) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        sent = 0
        for piece in pieces:
            cut = piece if fault.cut_after is None else piece[: fault.cut_after - sent]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(cut), cut))
            self.wfile.flush()
            sent += len(cut)
            if len(cut) < len(piece):
                self.close_connection = True
                return
        self.wfile.write(b"0\r\n\r\n")


def status_body(code: int, reason: str, message: str) -> bytes:
    """Return the Status object that the API server sends with an error."""
    return json.dumps(
        {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    ).encode()
