"""Sockets that listen, and a limit of what they accept.

A socket costs a descriptor from the moment that it is accepted, before it has sent a byte. So the
limit is here, below TLS and HTTP.
"""

from __future__ import annotations

import errno
import logging
import resource
import socket
import time
from collections import Counter
from contextlib import suppress
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

from runtime.transition_log import TransitionLog
from runtime.values import Address

log = logging.getLogger(__name__)

MAX_DESCRIPTORS: Final = 65_536
"""Enough for every limit of connections together, and few enough to close one by one."""
_BACKLOG: Final = 1024
"""Connections that wait to be accepted; they cost no descriptor. A further one tries again after
a second, also one of an honest client."""
_PEER_BITS: Final = 64
"""The bits of an IPv6 address that name a peer; a host can choose the rest."""
_FULL: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_PAUSE_S: Final = 0.05


def raise_descriptor_limit() -> None:
    """Let this process open as many descriptors as it may, up to `MAX_DESCRIPTORS`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def find_peer(host: str, port: int) -> str:
    """Return the key of a peer: an IPv4 address, or 64 bits of an IPv6 address.

    If the peer is this machine, the key is the connection: all local programs share the address.
    """
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if address.is_loopback:
        return str(Address(str(address), port))
    if isinstance(address, IPv6Address):
        return str(ip_network((address, _PEER_BITS), strict=False))
    return str(address)


class _AcceptedSocket(socket.socket):
    """An accepted connection; the listener forgets it when it is closed."""

    listener: BoundedListener | None = None

    def close(self) -> None:
        """Close the connection."""
        if self.listener is not None:
            self.listener.forget(self)
            self.listener = None
        super().close()


class BoundedListener(socket.socket):
    """A socket that listens, and ends an old connection for each one above its limit.

    The connection that ends is the oldest of the peer that has the most. So a peer with many
    connections, idle or not, closes its own. Use it in one thread.
    """

    def __init__(self, family: int, max_connections: int) -> None:
        """Open a socket that is not bound yet."""
        super().__init__(family)
        self._max_connections = max_connections
        self._peers: dict[_AcceptedSocket, str] = {}
        """The peers of the connections that count, oldest first."""
        self._num_open = 0
        self._full_log = TransitionLog(log, "full port", level=logging.WARNING)

    def listen(self, _backlog: int = 0) -> None:
        """Listen; asyncio asks for as many waiting connections as it accepts in one turn."""
        super().listen(_BACKLOG)

    def accept(self) -> tuple[socket.socket, object]:
        """Return a new connection and its address; end another one if there are too many.

        Raises:
            BlockingIOError: no connection waits, or none can be opened at present.
            ConnectionAbortedError: so many are open that the new connection stays in the backlog
                until others are closed.
        """
        if self._num_open >= 2 * self._max_connections:  # those that were ended are still there
            raise ConnectionAbortedError(errno.ECONNABORTED, "too many connections")
        try:
            descriptor, address = self._accept()  # type: ignore[attr-defined]  # as in the library
        except OSError as error:
            if error.errno not in _FULL:
                raise
            self._report(error.strerror or str(error))
            if not self._end_one():
                time.sleep(_PAUSE_S)  # nothing here can be ended: do not try again at once
            raise BlockingIOError from error
        connection = _AcceptedSocket(self.family, self.type, self.proto, fileno=descriptor)
        self._num_open += 1
        connection.listener = self
        self._peers[connection] = find_peer(*address[:2])
        if len(self._peers) > self._max_connections:
            self._report(f"{self._max_connections} connections are open")
            self._end_one()
        elif 2 * len(self._peers) <= self._max_connections:
            self._report("")
        return connection, address

    def forget(self, connection: socket.socket) -> None:
        """Stop counting a connection towards the limit."""
        self._num_open -= 1
        self._peers.pop(connection, None)  # type: ignore[call-overload]

    def _end_one(self) -> bool:
        """End the oldest connection of the peer that has the most; return whether there was one."""
        if not self._peers:
            return False
        (peer, _), *_ = Counter(self._peers.values()).most_common(1)
        oldest = next(connection for connection, owner in self._peers.items() if owner == peer)
        self._end(oldest)
        return True

    def end_all(self) -> None:
        """End all connections that count."""
        for connection in tuple(self._peers):
            self._end(connection)

    def _end(self, connection: _AcceptedSocket) -> None:
        del self._peers[connection]  # it no longer counts, and its owner closes it soon
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    def _report(self, problem: str) -> None:
        fields = {"address": str(Address(*self.getsockname()[:2])), "problem": problem}
        self._full_log.update({fields["address"]: fields} if problem else {})


def open_listener(address: Address, max_connections: int) -> BoundedListener:
    """Return a socket that listens, without blocking; an empty host means all addresses.

    Raises:
        OSError: the address cannot be bound.
    """
    any_host = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"  # noqa: S104 - the user asked for all
    host = address.host or any_host
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = BoundedListener(family, max_connections)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind((host, address.port))
        listener.listen()
    except OSError:
        listener.close()
        raise
    listener.settimeout(0)
    return listener
