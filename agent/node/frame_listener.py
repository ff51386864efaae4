"""Listens on ports for frames, beside the rounds: LLDP comes every 30 s, a round asks any time.

One thread hears all ports and keeps the table of neighbors; a round takes the table as it is.
The thread never sends. What opens a port's ear is an argument, so this needs no privilege.
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
"""How soon a cable that was pulled is noticed."""
MAX_BURST: Final = 64
"""Frames of one port in a row; a flood on one leaves the others their turn."""


class PortSocket(Protocol):
    """An open socket of one port."""

    def fileno(self) -> int:
        """Return the descriptor that gets readable when a frame is there."""

    def receive(self) -> bytes | None:
        """Return the next frame, None when there is none.

        Raises:
            OSError: the port is down (ENETDOWN), or gone.
        """

    def close(self) -> None:
        """Stop hearing."""


class Interfaces(Protocol):
    """The ports of this machine."""

    def explain_refusal(self) -> str | None:
        """Return why no port can be opened, None when they can."""

    def index(self, port: str) -> int | None:
        """Return a port's index, None where there is none; one that is made anew has another."""

    def has_link(self, port: str) -> bool:
        """Return whether the cable has a signal, as far as the port tells."""

    def open(self, port: str) -> PortSocket:
        """Return an ear on a port.

        Raises:
            OSError: it cannot be opened; PermissionError without the right to listen.
        """


class _OpenPort(NamedTuple):
    port: str
    ifindex: int


@dataclass(frozen=True, slots=True)
class ListenerSnapshot:
    """What was heard so far."""

    neighbors: tuple[tuple[str, tuple[Neighbor, ...]], ...]
    """(port, its neighbors), in natural order of the ports."""
    errors: tuple[ParseError, ...]
    crowded_ports: tuple[str, ...]
    """Ports that have more neighbors than there is room for."""
    num_ports: int
    """How many ports are listened on."""
    listened_s: float
    """Since the first of them was opened."""


class Listener:
    """The ears of this node. Its methods are called by one thread at a time."""

    def __init__(self, interfaces: Interfaces, clock: Clock) -> None:
        """Open nothing yet."""
        self._interfaces = interfaces
        self._clock = clock
        self._sockets: dict[_OpenPort, PortSocket] = {}
        self._table = NeighborTable()
        self._since_s: float | None = None
        self._thread: threading.Thread | None = None
        # A byte here ends the thread; the ears are its own while it runs.
        self._wake: socket.socket | None = None

    def explain_refusal(self) -> str | None:
        """Return why nothing can be heard on this node, None when it can."""
        return self._interfaces.explain_refusal()

    def listen(self, ports: Iterable[str]) -> None:
        """Listen on these ports and no others; cheap when nothing changed.

        A port that cannot be opened is left out until the next call.

        Raises:
            PermissionError: this process may not listen.
        """
        indexes = ((port, self._interfaces.index(port)) for port in ports)
        wanted = {_OpenPort(port, index) for port, index in indexes if index is not None}
        if wanted == set(self._sockets) and (self._thread is None or self._thread.is_alive()):
            return
        self._end_thread()
        for place in set(self._sockets) - wanted:
            self._sockets.pop(place).close()
            self._table = self._table.remove_port(place.port)
        for place in sorted(wanted - set(self._sockets)):
            self._open(place)
        if self._sockets:
            self._start_thread()

    def snapshot(self) -> ListenerSnapshot:
        """Return what was heard so far."""
        now_s, table = self._clock.monotonic(), self._table
        return ListenerSnapshot(
            neighbors=table.neighbors(at_s=now_s),
            errors=table.errors(at_s=now_s),
            crowded_ports=tuple(port for port, _ in table.count_left_out()),
            num_ports=len(self._sockets),
            listened_s=0.0 if self._since_s is None else now_s - self._since_s,
        )

    def stop(self) -> None:
        """Close every ear and forget what was heard."""
        self._end_thread()
        while self._sockets:
            self._sockets.popitem()[1].close()
        self._table, self._since_s = NeighborTable(), None

    def _open(self, place: _OpenPort) -> None:
        try:
            self._sockets[place] = self._interfaces.open(place.port)
        except PermissionError:
            self.stop()
            raise
        except OSError as error:
            log.debug("port not opened", extra={"port": place.port, "error": str(error)})
            return
        if self._since_s is None:
            self._since_s = self._clock.monotonic()

    def _start_thread(self) -> None:
        self._wake, woken = socket.socketpair()
        self._thread = threading.Thread(target=self._run, args=(woken,), name="frames", daemon=True)
        self._thread.start()

    def _end_thread(self) -> None:
        if self._thread is None or self._wake is None:
            return
        self._wake.close()
        self._thread.join()
        self._thread = self._wake = None

    def _run(self, woken: socket.socket) -> None:
        with woken, selectors.DefaultSelector() as selector:
            selector.register(woken, selectors.EVENT_READ)
            for place, ear in self._sockets.items():
                selector.register(ear, selectors.EVENT_READ, place)
            checked_s = self._clock.monotonic()
            while True:
                for key, _ in selector.select(LINK_CHECK_S):
                    if key.fileobj is woken:
                        return
                    if not self._drain(key.data):
                        selector.unregister(key.fileobj)
                if self._clock.monotonic() - checked_s >= LINK_CHECK_S:
                    self._forget_unplugged()
                    checked_s = self._clock.monotonic()

    def _drain(self, place: _OpenPort) -> bool:
        """Take what a port has heard; return whether it can hear on."""
        ear = self._sockets[place]
        for _ in range(MAX_BURST):
            try:
                raw = ear.receive()
            except OSError as error:
                self._table = self._table.remove_port(place.port)
                return error.errno == errno.ENETDOWN
            if raw is None:
                break
            frame = parse_frame(raw, source=place.port)
            now_s = self._clock.monotonic()
            self._table = self._table.add_frame(place.port, frame, at_s=now_s)
        return True

    def _forget_unplugged(self) -> None:
        for place in self._sockets:
            if place.port in self._table.ports and not self._interfaces.has_link(place.port):
                self._table = self._table.remove_port(place.port)
