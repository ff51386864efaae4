"""The LLDP neighbors of every port: frames in, neighbors out, the time is an argument.

The key of a neighbor is (port, chassis id, port id), the ids with their subtypes. Its next frame
replaces the previous one. A neighbor expires after its TTL, or at once after a shutdown frame. The
size of the table is bounded, even in a flood of frames.

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
"""Neighbors of one port. An unmanaged switch can connect several, a forger can send any number."""
REFUSAL_S: Final = 121.0
"""Seconds for which an unreadable or refused frame is reported: the usual TTL."""


class _SenderKey(NamedTuple):
    chassis_id: bytes
    port_id: bytes


class _NeighborEntry(NamedTuple):
    """The last frame of one neighbor."""

    neighbor: Neighbor
    expires_s: float
    error: ParseError | None
    """The first error of the frame."""


class _RefusedFrame(NamedTuple):
    """The last frame of a port that was dropped."""

    error: ParseError
    expires_s: float


class _PortEntry(NamedTuple):
    neighbors: Mapping[_SenderKey, _NeighborEntry] = MappingProxyType({})
    refused: _RefusedFrame | None = None
    num_left_out: int = 0
    """Frames of neighbors that did not fit in the table."""


@dataclass(frozen=True, slots=True)
class NeighborTable:
    """The neighbors of all ports. Times are seconds of any clock that never goes back."""

    ports: Mapping[str, _PortEntry] = field(default_factory=dict)

    def add_frame(self, port: str, frame: Frame, *, at_s: float) -> NeighborTable:
        """Return the table after a frame; linear in the number of neighbors of the port."""
        old_entry = self.ports.get(port, _PortEntry())
        pdu = frame.pdu
        if pdu is None:
            refused = _RefusedFrame(frame.errors[-1], at_s + REFUSAL_S)
            return self._replace_port(port, old_entry._replace(refused=refused))
        key = _SenderKey(pdu.chassis_id, pdu.port_id)
        entries = {
            sender: entry for sender, entry in old_entry.neighbors.items() if at_s < entry.expires_s
        }
        if not pdu.ttl_s:
            entries.pop(key, None)
        elif key in entries or len(entries) < MAX_NEIGHBORS:
            error = frame.errors[0] if frame.errors else None
            entries[key] = _NeighborEntry(pdu.neighbor, at_s + pdu.ttl_s, error)
        else:
            return self._replace_port(
                port, old_entry._replace(num_left_out=old_entry.num_left_out + 1)
            )
        return self._replace_port(port, old_entry._replace(neighbors=entries))

    def remove_port(self, port: str) -> NeighborTable:
        """Return the table without a port: its cable was pulled, or the port was removed."""
        return NeighborTable({name: entry for name, entry in self.ports.items() if name != port})

    def neighbors(self, *, at_s: float) -> tuple[tuple[str, tuple[Neighbor, ...]], ...]:
        """Return (port, its neighbors in the order of their ids), the ports in natural order."""
        rows = (
            (
                name,
                tuple(entry.neighbor for _, entry in sorted(self._unexpired(name, at_s).items())),
            )
            for name in self._names()
        )
        return tuple((name, neighbors) for name, neighbors in rows if neighbors)

    def errors(self, *, at_s: float) -> tuple[ParseError, ...]:
        """Return the errors of the neighbors' last frames, and of dropped frames.

        Returns at most one error per neighbor and one per port, so equal frames give equal errors
        in every round.
        """
        errors: list[ParseError] = []
        for name in self._names():
            alive = sorted(self._unexpired(name, at_s).items())
            errors += [entry.error for _, entry in alive if entry.error is not None]
            refused = self.ports[name].refused
            if refused is not None and at_s < refused.expires_s:
                errors.append(refused.error)
        return tuple(errors)

    def count_left_out(self) -> tuple[tuple[str, int], ...]:
        """Return (port, frames that did not fit in the table), the ports in natural order."""
        counts = ((name, self.ports[name].num_left_out) for name in self._names())
        return tuple((name, count) for name, count in counts if count)

    def _replace_port(self, name: str, port: _PortEntry) -> NeighborTable:
        return NeighborTable({**self.ports, name: port})

    def _unexpired(self, name: str, at_s: float) -> dict[_SenderKey, _NeighborEntry]:
        entries = self.ports[name].neighbors
        return {key: entry for key, entry in entries.items() if at_s < entry.expires_s}

    def _names(self) -> list[str]:
        return sorted(self.ports, key=lambda name: (natural_key(name), name))
