"""The probe-and-metrics server: a few small pages over HTTP, for kubelets and Prometheus.

One thread serves all connections, so a slow, silent or disconnected client holds only a socket, and
only for some seconds. A connection carries one request; the server reads its first line and its
`Accept` header.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from threading import Thread
from typing import Final, NamedTuple

from runtime.listener import BoundedListener, open_listener
from runtime.stop import Stop
from runtime.values import Address
from topology.model.errors import ConfigError

log = logging.getLogger(__name__)

TEXT: Final = "text/plain; charset=utf-8"
MAX_CONNECTIONS: Final = 16
"""Connections of one server; a further one ends an old one."""
DEADLINE_S: Final = 5.0
"""The longest life of a connection."""
MAX_REQUEST_BYTES: Final = 8 << 10
_HEAD_END: Final = b"\r\n\r\n"
_JOIN_S: Final = 5.0


class Page(NamedTuple):
    """The answer to a request."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = TEXT


Render = Callable[[str], Page]
"""Renders a page. Takes the `Accept` header, or an empty text; the server's thread calls it."""


class PageServer:
    """Serves pages from its construction until `stop`."""

    def __init__(self, address: Address, pages: Mapping[str, Render]) -> None:
        """Bind and start.

        Args:
            address: the address to listen on; port 0 takes a free port.
            pages: the pages by path, such as `/metrics`.

        Raises:
            ConfigError: the address cannot be bound.
        """
        self._pages = pages
        try:
            listener = open_listener(address, MAX_CONNECTIONS)
        except OSError as error:
            reason = error.strerror or str(error)
            raise ConfigError(f"cannot listen on {address}: {reason}") from error
        host, port = listener.getsockname()[:2]
        self.address = Address(str(host), int(port))
        """The bound address, with the real port."""
        self._stop = Stop()
        self._thread = Thread(
            target=lambda: asyncio.run(self._serve(listener)), name="pages", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Accept no more connections, and close the open ones."""
        self._stop.set()
        self._thread.join(_JOIN_S)

    async def _serve(self, listener: BoundedListener) -> None:
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._stop, stopped.set)
        server = await asyncio.start_server(
            self._serve_client,
            sock=listener,
            limit=MAX_REQUEST_BYTES - len(_HEAD_END),
            backlog=MAX_CONNECTIONS,
        )
        await stopped.wait()
        loop.remove_reader(listener)  # a connection that is being accepted needs the open server
        listener.end_all()
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others)
        server.close()

    async def _serve_client(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.transport.set_write_buffer_limits(0)  # so that `drain` waits for the last byte
        try:
            # A client that leaves, or is too slow, is no error of the server.
            with suppress(TimeoutError, asyncio.IncompleteReadError, OSError):
                async with asyncio.timeout(DEADLINE_S):
                    writer.write(self._answer(await _read_head(reader)))
                    await writer.drain()
        finally:
            writer.transport.abort()

    def _answer(self, head: str) -> bytes:
        """Return the whole answer to the head of a request."""
        first, _, fields = head.partition("\r\n")
        words = first.split(" ")
        page = self._page(words, _accepted(fields))
        answer = (
            f"HTTP/1.1 {page.status.value} {page.status.phrase}\r\n"
            f"Content-Type: {page.content_type}\r\n"
            f"Content-Length: {len(page.body)}\r\n"
            "Connection: close\r\n\r\n"
        )
        return answer.encode() + (b"" if words[0] == "HEAD" else page.body)

    def _page(self, words: list[str], accept: str) -> Page:
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


async def _read_head(reader: asyncio.StreamReader) -> str:
    """Return the head of a request; empty if it is too long."""
    try:
        return (await reader.readuntil(_HEAD_END)).decode("latin-1")
    except asyncio.LimitOverrunError:
        return ""


def _accepted(fields: str) -> str:
    """Return the value of the first `Accept` header, empty without one."""
    for line in fields.split("\r\n"):
        name, _, value = line.partition(":")
        if name.lower() == "accept":
            return value.strip()
    return ""
