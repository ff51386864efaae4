"""Who is heard on which port: LLDP frames in, neighbors out, time an argument.

A neighbor is known by (port, chassis id, port id), the ids with their subtypes; its next frame
replaces what it said. It is forgotten when its TTL has passed, or at once when it takes its
leave. Nothing that the wire sends makes the table grow without bound.

Source: IEEE 802.1AB-2016 clause 9.2.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

from topology.model.errors import ParseError
from topology.model.facts import Neighbor
from topology.model.ids import natural_key
from topology.sources.lldp.lldpdu import Frame

MAX_NEIGHBORS: Final = 64
"""Of one port; behind a dumb switch stand some, behind a forger any number."""
REFUSAL_S: Final = 121.0
"""How long an unreadable or refused frame is remembered: the usual TTL."""


class _SenderKey(NamedTuple):
    chassis_id: bytes
    port_id: bytes


class _NeighborEntry(NamedTuple):
    """The last frame of one neighbor."""

    neighbor: Neighbor
    expires_s: float
    error: ParseError | None
    """The first of what could not be read."""


class _RefusedFrame(NamedTuple):
    """The last frame of a port that told no neighbor."""

    error: ParseError
    expires_s: float


class _PortEntry(NamedTuple):
    neighbors: Mapping[_SenderKey, _NeighborEntry] = MappingProxyType({})
    refused: _RefusedFrame | None = None
    num_left_out: int = 0
    """Frames of neighbors for which there was no room."""


@dataclass(frozen=True, slots=True)
class NeighborTable:
    """What all ports hear. Times are seconds of any clock that never goes back."""

    ports: Mapping[str, _PortEntry] = field(default_factory=dict)

    def add_frame(self, port: str, frame: Frame, *, at_s: float) -> NeighborTable:
        """Return the table after a frame; costs as much as the port has neighbors."""
        before = self.ports.get(port, _PortEntry())
        pdu = frame.pdu
        if pdu is None:
            refused = _RefusedFrame(frame.errors[-1], at_s + REFUSAL_S)
            return self._replace_port(port, before._replace(refused=refused))
        key = _SenderKey(pdu.chassis_id, pdu.port_id)
        heard = {name: one for name, one in before.neighbors.items() if at_s < one.expires_s}
        if not pdu.ttl_s:
            heard.pop(key, None)
        elif key in heard or len(heard) < MAX_NEIGHBORS:
            error = frame.errors[0] if frame.errors else None
            heard[key] = _NeighborEntry(pdu.neighbor, at_s + pdu.ttl_s, error)
        else:
            return self._replace_port(port, before._replace(num_left_out=before.num_left_out + 1))
        return self._replace_port(port, before._replace(neighbors=heard))

    def remove_port(self, port: str) -> NeighborTable:
        """Return the table without a port: its cable is out, or the port is gone."""
        return NeighborTable({name: one for name, one in self.ports.items() if name != port})

    def neighbors(self, *, at_s: float) -> tuple[tuple[str, tuple[Neighbor, ...]], ...]:
        """Return (port, its neighbors in the order of their ids), the ports in natural order."""
        found = (
            (
                name,
                tuple(heard.neighbor for _, heard in sorted(self._unexpired(name, at_s).items())),
            )
            for name in self._names()
        )
        return tuple((name, neighbors) for name, neighbors in found if neighbors)

    def errors(self, *, at_s: float) -> tuple[ParseError, ...]:
        """Return what could not be read of the neighbors' last frames, and of refused frames.

        One per neighbor and port at most, so equal frames give equal errors round by round.
        """
        found: list[ParseError] = []
        for name in self._names():
            alive = sorted(self._unexpired(name, at_s).items())
            found += [heard.error for _, heard in alive if heard.error is not None]
            refused = self.ports[name].refused
            if refused is not None and at_s < refused.expires_s:
                found.append(refused.error)
        return tuple(found)

    def count_left_out(self) -> tuple[tuple[str, int], ...]:
        """Return (port, frames left out for want of room), the ports in natural order."""
        counts = ((name, self.ports[name].num_left_out) for name in self._names())
        return tuple((name, count) for name, count in counts if count)

    def _replace_port(self, name: str, port: _PortEntry) -> NeighborTable:
        return NeighborTable({**self.ports, name: port})

    def _unexpired(self, name: str, at_s: float) -> dict[_SenderKey, _NeighborEntry]:
        return {key: one for key, one in self.ports[name].neighbors.items() if at_s < one.expires_s}

    def _names(self) -> list[str]:
        return sorted(self.ports, key=lambda name: (natural_key(name), name))
