"""The port of the page: its connections, their deadlines, and its certificates.

The certificates are read again when their files change, as those of gRPC are.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from threading import Thread
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from generator.rpc.auth.key_files import read_key_file
from generator.rpc.auth.tls import TlsFiles
from runtime.listener import open_listener
from runtime.values import Address
from topology.model.errors import ConfigError

log = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 64
"""A further one ends an old one."""
_MAX_REQUESTS: Final = 2 * MAX_CONNECTIONS
"""Requests at the same time, also of connections that were ended; further ones get status 503."""
_BACKLOG: Final = 16
"""Connections that are accepted before the next one is served; each costs a descriptor."""
MAX_HEAD_BYTES: Final = 32 << 10
"""Size of the head of a request: its first line and its headers."""
SILENT_S: Final = 10.0
"""The longest time of a TLS handshake, and from it, or from an answer, to the end of the head of
the next request."""
CONNECTION_S: Final = 120.0
"""The longest life of a connection; a browser opens another one."""
_GRACE_S: Final = 3
_JOIN_S: Final = 5.0


class _BoundedProtocol(H11Protocol):
    """A connection that ends after some time, whatever its client does.

    The library's own limit begins anew with each byte, so that a slow head never ends.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the library's
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(SILENT_S, self._drop_silent)
        self._end_timer = self.loop.call_later(CONNECTION_S, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_timer.cancel()
        self._end_timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._head_timer.cancel()
        self._head_timer = self.loop.call_later(SILENT_S, self._drop_silent)
        super().on_response_complete()

    def shutdown(self) -> None:
        """End at once if no answer is on its way: a silent client would delay a closing by TLS."""
        super().shutdown()
        self._drop_silent()

    @property
    def _cycle(self) -> RequestResponseCycle | None:
        """The last request; the type of the library leaves out that there may be none."""
        return getattr(self, "cycle", None)

    def _drop_silent(self) -> None:
        if self._cycle is None or self._cycle.response_complete:
            self.transport.abort()


class _BoundedLoop(asyncio.SelectorEventLoop):
    """Gives each TLS handshake a short deadline: the library's is 60 s."""

    def create_server(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - as the library's
        """Listen, with the deadline."""
        if options.get("ssl") is not None:
            options.setdefault("ssl_handshake_timeout", SILENT_S)
        return super().create_server(*args, **options)


class PageHttpServer:
    """Serves an application from its construction until `stop`, in a thread of its own."""

    def __init__(self, address: Address, app: ASGIApp, tls: TlsFiles | None) -> None:
        """Bind and start.

        Args:
            address: the address to listen on; port 0 takes a free port.
            app: answers requests.
            tls: None: without TLS.

        Raises:
            ConfigError: the address cannot be bound, or a file cannot be used.
        """
        context = build_renewed_context(tls) if tls else None
        try:
            listener = open_listener(address, MAX_CONNECTIONS)
        except OSError as error:
            raise ConfigError(f"cannot listen on {address}: {error.strerror or error}") from error
        host, port = listener.getsockname()[:2]
        self.address = Address(str(host), int(port))
        """The bound address, with the real port."""
        config = uvicorn.Config(
            app,
            http=_BoundedProtocol,
            loop=f"{__name__}:{_BoundedLoop.__name__}",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="error",  # a client cannot fill the log with requests that are refused
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MAX_REQUESTS,
            backlog=_BACKLOG,
            h11_max_incomplete_event_size=MAX_HEAD_BYTES,
            timeout_graceful_shutdown=_GRACE_S,
            ssl_context_factory=(lambda _config, _default: context) if context else None,
        )
        self._server = uvicorn.Server(config)
        self._thread = Thread(target=self._run, args=(listener,), name="page", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Accept no more connections, and end the open ones within some seconds."""
        self._server.should_exit = True
        self._thread.join(_JOIN_S)

    def _run(self, listener: socket.socket) -> None:
        try:
            self._server.run(sockets=[listener])
        except Exception as error:
            log.exception("page server ended", extra={"error": str(error)})
        finally:
            listener.close()


def build_renewed_context(files: TlsFiles) -> ssl.SSLContext:
    """Return a context whose connections use the files as they are when they begin.

    A file that cannot be used is logged once, and the last good files stay in use.

    Raises:
        ConfigError: a file cannot be used.
    """
    renewal = _Renewal(files)
    context = _read_context(files)
    context.sni_callback = renewal.choose  # in every handshake, also of a client that names no host
    return context


class _Renewal:
    """Gives each connection the context of the present files; all calls are in one thread."""

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._versions = self._files.read_versions()
        self._renewed: ssl.SSLContext | None = None

    def choose(
        self, connection: ssl.SSLObject, _name: str | None, _first: ssl.SSLContext
    ) -> int | None:
        """Replace the context of a connection that begins, if the files have changed."""
        versions = self._files.read_versions()
        if versions != self._versions:
            self._versions = versions
            try:
                self._renewed = _read_context(self._files)
            except ConfigError as error:
                log.warning(
                    "new certificates not usable, previous ones kept", extra={"error": str(error)}
                )
        if self._renewed is not None:
            connection.context = self._renewed
        return None


def _read_context(files: TlsFiles) -> ssl.SSLContext:
    for file in filter(None, files):
        read_key_file(file)  # the library reads a file to its end, whatever its size
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(files.cert, files.key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"{files.cert}: {error}") from error
    if files.client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(files.client_ca)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"{files.client_ca}: {error}") from error
    return context
