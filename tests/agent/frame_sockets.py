"""Fake ports of a machine, with real sockets, so that the real listener thread runs."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from topology.sources.lldp.lldpdu import ETHERTYPE, GROUPS

DEADLINE_S = 10
_SENDER = bytes.fromhex("02aa00000011")


def frame(name: str = "leaf1", *, port: str = "swp1", ttl_s: int = 120, more: bytes = b"") -> bytes:
    """Return a frame of a switch."""
    tlvs = (
        (1, b"\x04" + _SENDER),
        (2, b"\x05" + port.encode()),
        (3, ttl_s.to_bytes(2, "big")),
        (5, name.encode()),
    )
    body = b"".join((kind << 9 | len(value)).to_bytes(2, "big") + value for kind, value in tlvs)
    return GROUPS[0] + _SENDER + ETHERTYPE.to_bytes(2, "big") + body + more + b"\0\0"


@dataclass
class SetClock:
    """A clock that stands still until it is set."""

    seconds: float = 1000.0

    def now(self) -> datetime:
        """Return the time of day."""
        return datetime.fromtimestamp(self.seconds, UTC)

    def monotonic(self) -> float:
        """Return the seconds that were set."""
        return self.seconds


class FakePortSocket:
    """One end of a socket pair; the test sends into the other."""

    def __init__(self) -> None:
        self.mouth, self._ear = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._ear.settimeout(0)
        self.drained = threading.Event()
        self.error: OSError | None = None
        self.is_closed = False

    def fileno(self) -> int:
        return self._ear.fileno()

    def receive(self) -> bytes | None:
        try:
            raw = self._ear.recv(2048)
        except BlockingIOError:
            self.drained.set()
            return None
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        return raw

    def close(self) -> None:
        self.is_closed = True
        self.mouth.close()
        self._ear.close()


@dataclass
class FakeInterfaces:
    """Ports by name; a port without an index does not exist."""

    indexes: dict[str, int]
    reason: str | None = None
    error: OSError | None = None
    unlinked: set[str] = field(default_factory=set)
    ears: dict[str, FakePortSocket] = field(default_factory=dict)
    num_opened: int = 0

    def explain_refusal(self) -> str | None:
        return self.reason

    def index(self, port: str) -> int | None:
        return self.indexes.get(port)

    def has_link(self, port: str) -> bool:
        return port not in self.unlinked

    def open(self, port: str) -> FakePortSocket:
        if self.error is not None:
            raise self.error
        self.num_opened += 1
        self.ears[port] = FakePortSocket()
        return self.ears[port]

    def say(self, port: str, *frames: bytes) -> None:
        """Let frames arrive at a port; they are heard when this returns."""
        ear = self.ears[port]
        for raw in frames:
            ear.drained.clear()
            ear.mouth.send(raw)
            assert ear.drained.wait(DEADLINE_S), "nobody listens"


def await_that(is_so: Callable[[], bool]) -> None:
    """Wait until a condition holds; fail at the deadline."""
    pause, until = threading.Event(), time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < until, "not before the deadline"
        pause.wait(0.01)
