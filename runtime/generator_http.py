"""A few pages over HTTP, for machines that ask often and for a moment: metrics and health.

Each connection is one request. Only so many are open at once, and where one more comes the oldest
makes room: clients that are slow, silent or gone cost a thread for some seconds, never the page.
"""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, Final, NamedTuple

from runtime.addresses import Address, parse_address
from topology.model.errors import ConfigError

log = logging.getLogger(__name__)

TEXT: Final = "text/plain; charset=utf-8"
MAX_CONNECTIONS: Final = 16
IDLE_S: Final = 5.0
"""Longest silence of a client, and longest time that it may take for the answer."""
_JOIN_S: Final = 5.0


class Page(NamedTuple):
    """An answer."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = TEXT


Render = Callable[[str], Page]
"""Makes the page; takes the `Accept` header. Any thread may call it, several at once."""


class PageServer:
    """Serves pages from its first moment until it is stopped."""

    def __init__(self, address: str, pages: Mapping[str, Render]) -> None:
        """Bind and start.

        Args:
            address: `HOST:PORT`; no host is all addresses, port 0 takes a free one.
            pages: by path, such as `/metrics`.

        Raises:
            ConfigError: this is no address, or it cannot be had.
        """
        wanted = parse_address(address)
        try:
            self._server = _Server(wanted, pages)
        except OSError as error:
            raise ConfigError(f"cannot listen on {wanted}: {error.strerror or error}") from error
        host, port = self._server.server_address[:2]
        self.address = str(Address(str(host), int(port)))
        """As bound, with the real port."""
        self._thread = Thread(target=self._server.serve, name="pages", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Take no more connections, and break those that are open."""
        self._server.end()
        self._thread.join(_JOIN_S)
        self._server.server_close()
        self._server.cut()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = MAX_CONNECTIONS

    def __init__(self, address: Address, pages: Mapping[str, Render]) -> None:
        self.pages = pages
        self._lock = Lock()
        self._open: dict[socket.socket, None] = {}  # in order of their coming
        self._is_ending = False
        everywhere = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"  # noqa: S104 - as asked
        host = address.host or everywhere
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, address.port), _Exchange)

    def server_bind(self) -> None:
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # The parent's asks the name service for the name of the address.
        super(ThreadingHTTPServer, self).server_bind()

    def serve(self) -> None:
        """Take connections; unlike the library's loop it need not wake up to see its end."""
        while not self._is_ending:
            self.handle_request()

    def end(self) -> None:
        """Let `serve` return."""
        self._is_ending = True
        _break(self.socket)  # wakes who waits for a connection

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the library's
        with self._lock:
            excess = len(self._open) + 1 - MAX_CONNECTIONS
            oldest = list(self._open)[: max(0, excess)]
            for one in oldest:
                del self._open[one]
            self._open[request] = None
        for one in oldest:
            _break(one)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - the library's
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def cut(self) -> None:
        """Break every connection."""
        with self._lock:
            broken = list(self._open)
            self._open.clear()
        for one in broken:
            _break(one)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the library's
        """Say nothing: clients that vanish are none of our business."""


def _break(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Exchange(BaseHTTPRequestHandler):
    """One request."""

    server: _Server
    timeout = IDLE_S
    server_version = "toponaut"
    sys_version = ""

    def do_GET(self) -> None:
        page = self._page()
        self.send_response(page.status)
        self.send_header("Content-Type", page.content_type)
        self.send_header("Content-Length", str(len(page.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(page.body)

    do_HEAD = do_GET  # noqa: N815 - the library's name

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's
        """Say nothing: these are asked every few seconds."""

    def _page(self) -> Page:
        render = self.server.pages.get(self.path.partition("?")[0])
        if render is None:
            return Page(b"not found\n", HTTPStatus.NOT_FOUND)
        try:
            return render(self.headers.get("Accept", ""))
        except Exception as error:  # the page of one moment must not cost the server
            log.exception("page failed", extra={"path": self.path, "error": str(error)})
            return Page(b"internal error\n", HTTPStatus.INTERNAL_SERVER_ERROR)
