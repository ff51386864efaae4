"""The probe-and-metrics server: a few small pages over HTTP, for kubelets and Prometheus.

One thread serves every connection as bytes come and go, so a client that is slow, silent or gone
holds a socket for some seconds and nothing else. Where too many connections are open, the oldest
is closed. Each connection is one request, of which the first line and `Accept` count.
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

from runtime.stop import Stop
from runtime.values import Address
from topology.model.errors import ConfigError

log = logging.getLogger(__name__)

TEXT: Final = "text/plain; charset=utf-8"
MAX_CONNECTIONS: Final = 16
"""Of each address."""
DEADLINE_S: Final = 5.0
"""From the start of a connection to its end."""
MAX_REQUEST_BYTES: Final = 8 << 10
_READ_BYTES: Final = 4 << 10
_BACKLOG: Final = 128
_JOIN_S: Final = 5.0


class Page(NamedTuple):
    """An answer."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = TEXT


Render = Callable[[str], Page]
"""Makes the page; takes the `Accept` header, empty without one. The server's thread calls it."""


@dataclass(slots=True)
class _PageConnection:
    """One connection: a request that grows, then an answer that shrinks."""

    connection: socket.socket
    deadline_s: float
    request: bytearray = field(default_factory=bytearray)
    answer: memoryview | None = None

    def read(self) -> bool:
        """Take what has come; return whether the head of the request is whole, or too long.

        Raises:
            OSError: the client is gone.
        """
        piece = self.connection.recv(_READ_BYTES)
        if not piece:
            raise ConnectionResetError("gone before its request was whole")
        self.request += piece
        return b"\r\n\r\n" in self.request or len(self.request) > MAX_REQUEST_BYTES

    def write(self) -> bool:
        """Send what fits; return whether that was all.

        Raises:
            OSError: the client is gone.
        """
        if self.answer:
            self.answer = self.answer[self.connection.send(self.answer) :]
        return not self.answer


class PageServer:
    """Serves pages from its first moment until it is stopped."""

    def __init__(
        self,
        address: Address,
        pages: Mapping[str, Render],
        *,
        other_methods: HTTPStatus = HTTPStatus.METHOD_NOT_ALLOWED,
    ) -> None:
        """Bind and start.

        Args:
            address: where to listen; port 0 takes a free one.
            pages: by path, such as `/metrics`.
            other_methods: the status for methods other than GET and HEAD.

        Raises:
            ConfigError: the address cannot be bound.
        """
        self._pages = pages
        self._other_methods = other_methods
        try:
            self._listener = _listen(address)
        except OSError as error:
            reason = error.strerror or str(error)
            raise ConfigError(f"cannot listen on {address}: {reason}") from error
        host, port = self._listener.getsockname()[:2]
        self.address = Address(str(host), int(port))
        """As bound, with the real port."""
        self._stop = Stop()
        self._open: dict[socket.socket, _PageConnection] = {}  # oldest first
        self._thread = Thread(target=self._serve, name="pages", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Take no more connections, and break those that are open."""
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
                for exchange in [one for one in self._open.values() if one.connection in ready]:
                    self._continue(exchange, selector)
            for exchange in list(self._open.values()):
                self._drop(exchange, selector)

    def _left_s(self) -> float | None:
        """Return the time until the first connection is late; None without connections."""
        ends = [one.deadline_s for one in self._open.values()]
        return max(min(ends) - monotonic(), 0.0) if ends else None

    def _accept(self, selector: selectors.BaseSelector) -> None:
        with suppress(OSError):
            connection, _ = self._listener.accept()
            connection.settimeout(0)
            if len(self._open) >= MAX_CONNECTIONS:
                self._drop(next(iter(self._open.values())), selector)
            self._open[connection] = _PageConnection(connection, monotonic() + DEADLINE_S)
            selector.register(connection, selectors.EVENT_READ)

    def _continue(self, exchange: _PageConnection, selector: selectors.BaseSelector) -> None:
        try:
            if exchange.answer is None:
                if not exchange.read():
                    return
                exchange.answer = memoryview(self._answer(bytes(exchange.request)))
                selector.modify(exchange.connection, selectors.EVENT_WRITE)
            if not exchange.write():
                return
        except BlockingIOError:
            return
        except OSError:
            pass  # the client is gone, which is no problem of the server
        self._drop(exchange, selector)

    def _drop_late(self, selector: selectors.BaseSelector) -> None:
        now_s = monotonic()
        for exchange in [one for one in self._open.values() if one.deadline_s <= now_s]:
            self._drop(exchange, selector)

    def _drop(self, exchange: _PageConnection, selector: selectors.BaseSelector) -> None:
        del self._open[exchange.connection]
        selector.unregister(exchange.connection)
        exchange.connection.close()

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
        except Exception as error:  # a page that fails once must not end the thread
            log.exception("page failed", extra={"path": path, "error": str(error)})
            return Page(b"internal error\n", HTTPStatus.INTERNAL_SERVER_ERROR)


def health_page(problem: Callable[[], str]) -> Render:
    """Return a page for a probe: `ok`, or status 503 and the problem where there is one."""

    def render(_accept: str) -> Page:
        found = problem()
        if found:
            return Page(f"{found}\n".encode(), HTTPStatus.SERVICE_UNAVAILABLE)
        return Page(b"ok\n")

    return render


def _accepted(fields: str) -> str:
    """Return the value of the first `Accept` header, empty without one."""
    for line in fields.split("\r\n"):
        name, _, value = line.partition(":")
        if name.lower() == "accept":
            return value.strip()
    return ""


def _listen(address: Address) -> socket.socket:
    any_host = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"  # noqa: S104 - as asked
    host = address.host or any_host
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind((host, address.port))
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    listener.settimeout(0)
    return listener
