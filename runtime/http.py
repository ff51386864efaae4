"""A few small pages over HTTP, for kubelets and Prometheus: one thread, whoever asks.

One loop serves every connection as bytes come and go, so a client that is slow, silent or gone
holds a socket for some seconds and nothing else; where too many are open the oldest makes room.
Each connection is one request of which only the first line counts.
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

from agent.settings import ListenAddress
from topology.model.errors import ConfigError

log = logging.getLogger(__name__)

TEXT: Final = "text/plain; charset=utf-8"
MAX_CONNECTIONS: Final = 16
"""Of each address."""
PATIENCE_S: Final = 5.0
"""From a connection's first byte to its end."""
MAX_REQUEST_BYTES: Final = 8 << 10
_READ_BYTES: Final = 4 << 10
_BACKLOG: Final = 128
_JOIN_S: Final = 5.0


class Page(NamedTuple):
    """An answer."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = TEXT


Render = Callable[[], Page]
"""Makes the page; the thread of the pages calls it."""


@dataclass(slots=True)
class _Exchange:
    """One connection: a request that grows, then an answer that shrinks."""

    connection: socket.socket
    until_s: float
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

    def __init__(self, address: ListenAddress, pages: Mapping[str, Render]) -> None:
        """Bind and start.

        Args:
            address: where; port 0 takes a free one.
            pages: by path, such as `/metrics`.

        Raises:
            ConfigError: the address cannot be had.
        """
        self._pages = pages
        try:
            self._listening = _listen(address)
        except OSError as error:
            reason = error.strerror or str(error)
            raise ConfigError(f"cannot listen on {address}: {reason}") from error
        host, port = self._listening.getsockname()[:2]
        self.address = ListenAddress(str(host), int(port))
        """As bound, with the real port."""
        self._told, self._telling = socket.socketpair()
        self._open: dict[socket.socket, _Exchange] = {}  # in order of their coming
        self._thread = Thread(target=self._serve, name="pages", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Take no more connections, and break those that are open."""
        with suppress(OSError):
            self._telling.send(b"x")
        self._thread.join(_JOIN_S)
        self._telling.close()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector, self._listening, self._told:
            for waited in (self._listening, self._told):
                selector.register(waited, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select(self._next_s())]
                if self._told in ready:
                    break
                self._drop_late(selector)
                if self._listening in ready:
                    self._accept(selector)
                for exchange in [one for one in self._open.values() if one.connection in ready]:
                    self._go_on(exchange, selector)
            for exchange in list(self._open.values()):
                self._drop(exchange, selector)

    def _next_s(self) -> float | None:
        """Return how long nothing but a client can happen."""
        ends = [one.until_s for one in self._open.values()]
        return max(min(ends) - monotonic(), 0.0) if ends else None

    def _accept(self, selector: selectors.BaseSelector) -> None:
        with suppress(OSError):
            connection, _ = self._listening.accept()
            connection.settimeout(0)
            if len(self._open) >= MAX_CONNECTIONS:
                self._drop(next(iter(self._open.values())), selector)
            self._open[connection] = _Exchange(connection, monotonic() + PATIENCE_S)
            selector.register(connection, selectors.EVENT_READ)

    def _go_on(self, exchange: _Exchange, selector: selectors.BaseSelector) -> None:
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
            pass  # clients that vanish are none of our business
        self._drop(exchange, selector)

    def _drop_late(self, selector: selectors.BaseSelector) -> None:
        now_s = monotonic()
        for exchange in [one for one in self._open.values() if one.until_s <= now_s]:
            self._drop(exchange, selector)

    def _drop(self, exchange: _Exchange, selector: selectors.BaseSelector) -> None:
        del self._open[exchange.connection]
        selector.unregister(exchange.connection)
        exchange.connection.close()

    def _answer(self, request: bytes) -> bytes:
        """Return the whole answer to a request, of which the first line is looked at."""
        words = request.partition(b"\r\n")[0].decode("latin-1").split(" ")
        is_head = words[0] == "HEAD"
        page = self._page(words)
        head = (
            f"HTTP/1.1 {page.status.value} {page.status.phrase}\r\n"
            f"Content-Type: {page.content_type}\r\n"
            f"Content-Length: {len(page.body)}\r\n"
            "Connection: close\r\n\r\n"
        )
        return head.encode() + (b"" if is_head else page.body)

    def _page(self, words: list[str]) -> Page:
        match words:
            case ["GET" | "HEAD", path, version] if version.startswith("HTTP/1."):
                render = self._pages.get(path.partition("?")[0])
            case [_, _, version] if version.startswith("HTTP/1."):
                return Page(b"only GET and HEAD\n", HTTPStatus.METHOD_NOT_ALLOWED)
            case _:
                return Page(b"bad request\n", HTTPStatus.BAD_REQUEST)
        if render is None:
            return Page(b"not found\n", HTTPStatus.NOT_FOUND)
        try:
            return render()
        except Exception as error:  # the page of one moment must not cost the thread
            log.exception("page failed", extra={"path": path, "error": str(error)})
            return Page(b"internal error\n", HTTPStatus.INTERNAL_SERVER_ERROR)


def _listen(address: ListenAddress) -> socket.socket:
    everywhere = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"  # noqa: S104 - as asked
    host = address.host or everywhere
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server(
        (host, address.port), family=family, dualstack_ipv6=host == "::", backlog=_BACKLOG
    )
    listening.settimeout(0)
    return listening
