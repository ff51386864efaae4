"""The probe-and-metrics server: a few small pages over HTTP, for kubelets and Prometheus.

One thread serves all connections, so a slow, silent or disconnected client holds only a socket, and
only for some seconds. A connection carries one request; the server reads its first line and its
`Accept` header.
"""

from __future__ import annotations

import logging
import selectors
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from threading import Thread
from time import monotonic
from typing import Final, NamedTuple

from runtime.listener import open_listener
from runtime.stop import Stop
from runtime.values import Address
from topology.model.errors import ConfigError

log = logging.getLogger(__name__)

TEXT: Final = "text/plain; charset=utf-8"
MAX_CONNECTIONS: Final = 16
"""Of one server; a further one ends an old one."""
DEADLINE_S: Final = 5.0
"""The longest life of a connection."""
MAX_REQUEST_BYTES: Final = 8 << 10
_READ_BYTES: Final = 4 << 10
_JOIN_S: Final = 5.0


class Page(NamedTuple):
    """The answer to a request."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = TEXT


Render = Callable[[str], Page]
"""Renders a page. Takes the `Accept` header, or an empty text; the server's thread calls it."""


@dataclass(slots=True)
class _PageConnection:
    """An open connection: the request received so far, then the rest of the answer."""

    connection: socket.socket
    deadline_s: float
    request: bytearray = field(default_factory=bytearray)
    answer: memoryview | None = None

    def read(self) -> bool:
        """Read what has arrived; return whether the head of the request is complete or too long.

        Raises:
            OSError: the client closed the connection.
        """
        piece = self.connection.recv(_READ_BYTES)
        if not piece:
            raise ConnectionResetError("closed before the request was complete")
        self.request += piece
        return b"\r\n\r\n" in self.request or len(self.request) > MAX_REQUEST_BYTES

    def write(self) -> bool:
        """Send as much as the socket takes; return whether the whole answer is sent.

        Raises:
            OSError: the client closed the connection.
        """
        if self.answer:
            self.answer = self.answer[self.connection.send(self.answer) :]
        return not self.answer


class PageServer:
    """Serves pages from its construction until `stop`."""

    def __init__(
        self,
        address: Address,
        pages: Mapping[str, Render],
        *,
        other_methods: HTTPStatus = HTTPStatus.METHOD_NOT_ALLOWED,
    ) -> None:
        """Bind and start.

        Args:
            address: the address to listen on; port 0 takes a free port.
            pages: by path, such as `/metrics`.
            other_methods: the status for methods other than GET and HEAD.

        Raises:
            ConfigError: the address cannot be bound.
        """
        self._pages = pages
        self._other_methods = other_methods
        try:
            self._listener = open_listener(address, MAX_CONNECTIONS)
        except OSError as error:
            reason = error.strerror or str(error)
            raise ConfigError(f"cannot listen on {address}: {reason}") from error
        host, port = self._listener.getsockname()[:2]
        self.address = Address(str(host), int(port))
        """The bound address, with the real port."""
        self._stop = Stop()
        self._open: dict[socket.socket, _PageConnection] = {}  # oldest first
        self._thread = Thread(target=self._serve, name="pages", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Accept no more connections, and close the open ones."""
        self._stop.set()
        self._thread.join(_JOIN_S)

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector, self._listener:
            for waited in (self._listener, self._stop):
                selector.register(waited, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select(self._left_s())]
                if self._stop in ready:
                    break
                self._drop_late(selector)
                if self._listener in ready:
                    self._accept(selector)
                for client in [item for item in self._open.values() if item.connection in ready]:
                    self._continue(client, selector)
            for client in list(self._open.values()):
                self._drop(client, selector)

    def _left_s(self) -> float | None:
        """Return the seconds until the first deadline of a connection; None without connections."""
        deadlines = [client.deadline_s for client in self._open.values()]
        return max(min(deadlines) - monotonic(), 0.0) if deadlines else None

    def _accept(self, selector: selectors.BaseSelector) -> None:
        with suppress(OSError):
            connection, _ = self._listener.accept()
            connection.settimeout(0)
            self._open[connection] = _PageConnection(connection, monotonic() + DEADLINE_S)
            selector.register(connection, selectors.EVENT_READ)

    def _continue(self, client: _PageConnection, selector: selectors.BaseSelector) -> None:
        try:
            if client.answer is None:
                if not client.read():
                    return
                client.answer = memoryview(self._answer(bytes(client.request)))
                selector.modify(client.connection, selectors.EVENT_WRITE)
            if not client.write():
                return
        except BlockingIOError:
            return
        except OSError:
            pass  # the client closed the connection, which is not an error of the server
        self._drop(client, selector)

    def _drop_late(self, selector: selectors.BaseSelector) -> None:
        now_s = monotonic()
        for client in [item for item in self._open.values() if item.deadline_s <= now_s]:
            self._drop(client, selector)

    def _drop(self, client: _PageConnection, selector: selectors.BaseSelector) -> None:
        del self._open[client.connection]
        selector.unregister(client.connection)
        client.connection.close()

    def _answer(self, request: bytes) -> bytes:
        """Return the whole answer to the head of a request."""
        first, _, fields = request.decode("latin-1").partition("\r\n")
        words = first.split(" ")
        page = self._page(words, _accepted(fields))
        head = (
            f"HTTP/1.1 {page.status.value} {page.status.phrase}\r\n"
            f"Content-Type: {page.content_type}\r\n"
            f"Content-Length: {len(page.body)}\r\n"
            "Connection: close\r\n\r\n"
        )
        return head.encode() + (b"" if words[0] == "HEAD" else page.body)

    def _page(self, words: list[str], accept: str) -> Page:
        match words:
            case ["GET" | "HEAD", path, version] if version.startswith("HTTP/1."):
                render = self._pages.get(path.partition("?")[0])
            case [_, _, version] if version.startswith("HTTP/1."):
                return Page(b"only GET and HEAD\n", self._other_methods)
            case _:
                return Page(b"bad request\n", HTTPStatus.BAD_REQUEST)
        if render is None:
            return Page(b"not found\n", HTTPStatus.NOT_FOUND)
        try:
            return render(accept)
        except Exception as error:  # a page that fails must not end the thread
            log.exception("page failed", extra={"path": path, "error": str(error)})
            return Page(b"internal error\n", HTTPStatus.INTERNAL_SERVER_ERROR)


def health_page(problem: Callable[[], str]) -> Render:
    """Return a page for a probe: `ok`, or status 503 and the problem if there is one."""

    def render(_accept: str) -> Page:
        reason = problem()
        if reason:
            return Page(f"{reason}\n".encode(), HTTPStatus.SERVICE_UNAVAILABLE)
        return Page(b"ok\n")

    return render


def _accepted(fields: str) -> str:
    """Return the value of the first `Accept` header, empty without one."""
    for line in fields.split("\r\n"):
        name, _, value = line.partition(":")
        if name.lower() == "accept":
            return value.strip()
    return ""
