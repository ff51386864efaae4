"""Ports of devices while they are numbered: which claims speak of one port, and under which names.

A port is known within its device by keys, strongest first: a GUID or MAC, then names. What several
ports share, as bond slaves do, names none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from topology.model.errors import show
from topology.model.fabric import FabricPort
from topology.model.facts import Device, Medium, Neighbor, Port, PortState, Source
from topology.model.ids import Id, IdKind

PortKey: TypeAlias = tuple[str, str]
PortIndex: TypeAlias = dict[PortKey, int]
"""Key to port; SEVERAL where ports share the key."""
SEVERAL_PORTS: Final = -1


@dataclass(slots=True)
class PortNumbers:
    """All ports so far, one device after the other, and what far ends of cables added."""

    ports: list[FabricPort] = field(default_factory=list)

    def add_device(self, device: int, claimed: Iterable[Device]) -> PortIndex:
        """Number the ports that claims say a device has, and return their keys."""
        known: PortIndex = {}
        for number, one in enumerate(claimed):
            for port in sort_ports(one.ports):
                keys = port_keys(port.ids, port.name)
                old = find_port(known, keys) if number else None
                if old is None:
                    self.add(device, port, known, keys)
                else:
                    index_port(known, old, keys)
                    self._fill_in(old, port)
        return known

    def add(self, device: int, port: Port, known: PortIndex, keys: Iterable[PortKey]) -> int:
        """Number one more port of a device whose keys are known so far."""
        at = len(self.ports)
        self.ports.append(port_row(device, port))
        index_port(known, at, keys)
        return at

    def _fill_in(self, at: int, port: Port) -> None:
        """Fill in what an earlier claim about the same port left open."""
        old = self.ports[at]
        self.ports[at] = old._replace(
            rate_bps=old.rate_bps if old.rate_bps is not None else port.rate_bps,
            state=old.state if old.state is not PortState.UNKNOWN else port.state,
        )


def port_row(device: int, port: Port) -> FabricPort:
    """Return a port as a fabric has it."""
    return FabricPort(
        device,
        show(port.name),
        port.medium,
        port.state,
        port.rate_bps,
        port.rdma_device,
        port.gpu_distance,
        port.firmware_lldp,
        port.subnet,
    )


def far_port(neighbor: Neighbor) -> Port:
    """Return the port that a neighbor entry speaks of and its owner does not tell."""
    name = neighbor.port_name or next((one.value for one in neighbor.port_ids), "")
    medium = Medium.INFINIBAND if neighbor.source is Source.IB else Medium.ETHERNET
    return Port(name=name or "unknown", medium=medium)


def sort_ports(ports: Sequence[Port]) -> Sequence[Port]:
    """Return ports in an order that their facts alone decide, in nearly all cases the natural one.

    Sources give them in natural order; where one does not, nothing may depend on it.
    """
    return sorted(ports, key=lambda port: (len(port.name), port.name, port.ids))


def select_best_source(neighbors: Sequence[Neighbor]) -> Sequence[Neighbor]:
    """Return the entries of a port that count: LLDP wins over CDP and the like."""
    if len(neighbors) < 2:  # noqa: PLR2004 - one neighbor needs no choice
        return neighbors
    best = [one for one in neighbors if one.source in (Source.LLDP, Source.IB)]
    return sorted(best or neighbors, key=repr)


def find_port(known: PortIndex, keys: Iterable[PortKey]) -> int | None:
    """Return the port that the first key with a port of its own names."""
    for key in keys:
        at = known.get(key)
        if at is not None and at != SEVERAL_PORTS:
            return at
    return None


def find_own_port(known: PortIndex, port: Port) -> int | None:
    """Return the number of a port by its own claim: by its name, else by its other keys."""
    at = known.get(("name", port.name))
    if at is not None and at != SEVERAL_PORTS:
        return at
    return find_port(known, port_keys(port.ids, port.name))


def index_port(known: PortIndex, at: int, keys: Iterable[PortKey]) -> None:
    """Remember the keys of a port."""
    for key in keys:
        known[key] = at if known.get(key, at) == at else SEVERAL_PORTS


def port_keys(ids: Iterable[Id], name: str) -> list[PortKey]:
    """Return the keys of a port within its device, strongest first (GUID or MAC, then names)."""
    strong: list[PortKey] = []
    named: list[PortKey] = []
    for kind, value, subtype in ids:
        if kind is IdKind.IFNAME or kind is IdKind.PORT_ID:
            named.append(("name", value))
        elif kind is IdKind.PORT_GUID or kind is IdKind.MAC:
            strong.append((kind, value))
        elif kind is IdKind.NODE_GUID:
            strong.insert(0, ("guid", f"{value}/{subtype}"))
        elif kind is IdKind.IFINDEX:
            named.append((kind, value))
    if name:
        named.append(("name", name))
    return strong + named
