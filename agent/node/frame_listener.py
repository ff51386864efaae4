"""Listens for LLDP frames in the background, because they come only every 30 s.

One thread receives on all ports and keeps the table of neighbors; a round takes a snapshot of the
table. The thread never sends. The sockets come from an `Interfaces` argument, so this module
itself needs no privilege.
"""

from __future__ import annotations

import errno
import logging
import selectors
import socket
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from runtime.clock import Clock
from topology.model.errors import ParseError
from topology.model.facts import Neighbor
from topology.sources.lldp.lldpdu import parse_frame
from topology.sources.lldp.neighbor_table import NeighborTable

log = logging.getLogger(__name__)

LINK_CHECK_S: Final = 1.0
"""How soon the listener notices a pulled cable."""
MAX_BURST: Final = 64
"""Frames read from one port in a row, so that a flood on one port does not starve the others."""


class PortSocket(Protocol):
    """An open socket of one port."""

    def fileno(self) -> int:
        """Return a descriptor that is readable when a frame has arrived."""

    def receive(self) -> bytes | None:
        """Return the next frame, or None if none has arrived.

        Raises:
            OSError: the port is down (ENETDOWN), or was removed.
        """

    def close(self) -> None:
        """Close the socket."""


class Interfaces(Protocol):
    """The ports of this machine."""

    def explain_refusal(self) -> str | None:
        """Return why no port can be opened, or None if ports can be opened."""

    def index(self, port: str) -> int | None:
        """Return a port's index, or None without such a port; a recreated port gets another."""

    def has_link(self, port: str) -> bool:
        """Return whether the port has a link; True if the driver does not report it."""

    def open(self, port: str) -> PortSocket:
        """Open a socket that receives the frames of a port.

        Raises:
            OSError: the port cannot be opened; PermissionError without the right to listen.
        """


class _OpenPort(NamedTuple):
    port: str
    ifindex: int


@dataclass(frozen=True, slots=True)
class ListenerSnapshot:
    """The state of the listener at one moment."""

    neighbors: tuple[tuple[str, tuple[Neighbor, ...]], ...]
    """(port, its neighbors), in natural order of the ports."""
    errors: tuple[ParseError, ...]
    crowded_ports: tuple[str, ...]
    """Ports with more neighbors than the table holds."""
    num_ports: int
    """The number of open ports."""
    listened_s: float
    """Seconds since the first port was opened."""


class Listener:
    """Listens on the ports of this node. Only one thread at a time may call its methods."""

    def __init__(self, interfaces: Interfaces, clock: Clock) -> None:
        """Open nothing yet."""
        self._interfaces = interfaces
        self._clock = clock
        self._sockets: dict[_OpenPort, PortSocket] = {}
        self._table = NeighborTable()
        self._since_s: float | None = None
        self._thread: threading.Thread | None = None
        # Closing this end stops the thread, which owns the port sockets while it runs.
        self._wake: socket.socket | None = None

    def explain_refusal(self) -> str | None:
        """Return why this node cannot listen, or None if it can."""
        return self._interfaces.explain_refusal()

    def listen(self, ports: Iterable[str]) -> None:
        """Listen on these ports and no others; cheap if nothing changed.

        A port that cannot be opened is skipped until the next call.

        Raises:
            PermissionError: this process may not listen.
        """
        indexes = ((port, self._interfaces.index(port)) for port in ports)
        required = {_OpenPort(port, index) for port, index in indexes if index is not None}
        if required == set(self._sockets) and (self._thread is None or self._thread.is_alive()):
            return
        self._end_thread()
        for open_port in set(self._sockets) - required:
            self._sockets.pop(open_port).close()
            self._table = self._table.remove_port(open_port.port)
        for open_port in sorted(required - set(self._sockets)):
            self._open(open_port)
        if self._sockets:
            self._start_thread()

    def snapshot(self) -> ListenerSnapshot:
        """Return the neighbors and the errors so far."""
        now_s, table = self._clock.monotonic(), self._table
        return ListenerSnapshot(
            neighbors=table.neighbors(at_s=now_s),
            errors=table.errors(at_s=now_s),
            crowded_ports=tuple(port for port, _ in table.count_left_out()),
            num_ports=len(self._sockets),
            listened_s=0.0 if self._since_s is None else now_s - self._since_s,
        )

    def stop(self) -> None:
        """Close every socket and clear the table."""
        self._end_thread()
        while self._sockets:
            self._sockets.popitem()[1].close()
        self._table, self._since_s = NeighborTable(), None

    def _open(self, open_port: _OpenPort) -> None:
        try:
            self._sockets[open_port] = self._interfaces.open(open_port.port)
        except PermissionError:
            self.stop()
            raise
        except OSError as error:
            log.debug("port not opened", extra={"port": open_port.port, "error": str(error)})
            return
        if self._since_s is None:
            self._since_s = self._clock.monotonic()

    def _start_thread(self) -> None:
        self._wake, wake_end = socket.socketpair()
        self._thread = threading.Thread(
            target=self._run, args=(wake_end,), name="frames", daemon=True
        )
        self._thread.start()

    def _end_thread(self) -> None:
        if self._thread is None or self._wake is None:
            return
        self._wake.close()
        self._thread.join()
        self._thread = self._wake = None

    def _run(self, wake_end: socket.socket) -> None:
        with wake_end, selectors.DefaultSelector() as selector:
            selector.register(wake_end, selectors.EVENT_READ)
            for open_port, port_socket in self._sockets.items():
                selector.register(port_socket, selectors.EVENT_READ, open_port)
            checked_s = self._clock.monotonic()
            while True:
                for key, _ in selector.select(LINK_CHECK_S):
                    if key.fileobj is wake_end:
                        return
                    if not self._drain(key.data):
                        selector.unregister(key.fileobj)
                if self._clock.monotonic() - checked_s >= LINK_CHECK_S:
                    self._forget_unplugged()
                    checked_s = self._clock.monotonic()

    def _drain(self, open_port: _OpenPort) -> bool:
        """Read the frames of a port; return whether the port can receive more."""
        port_socket = self._sockets[open_port]
        for _ in range(MAX_BURST):
            try:
                raw = port_socket.receive()
            except OSError as error:
                self._table = self._table.remove_port(open_port.port)
                return error.errno == errno.ENETDOWN
            if raw is None:
                break
            frame = parse_frame(raw, source=open_port.port)
            now_s = self._clock.monotonic()
            self._table = self._table.add_frame(open_port.port, frame, at_s=now_s)
        return True

    def _forget_unplugged(self) -> None:
        for open_port in self._sockets:
            if open_port.port in self._table.ports and not self._interfaces.has_link(
                open_port.port
            ):
                self._table = self._table.remove_port(open_port.port)
