"""Number the ports of devices: which claims describe the same port, and by which keys.

Within its device, a port is identified by keys, strongest first: a GUID or MAC, then names. A key
that several ports share, such as the MAC of bond slaves, identifies none of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

from topology.model.errors import show
from topology.model.fabric import FabricPort
from topology.model.facts import Device, Medium, Neighbor, Port, PortState, Source
from topology.model.ids import Id, IdKind

PortKey: TypeAlias = tuple[str, str]
PortIndex: TypeAlias = dict[PortKey, int]
"""Key to port; SEVERAL_PORTS if several ports share the key."""
SEVERAL_PORTS: Final = -1
KeyT = TypeVar("KeyT")
"""A `PortKey`, or its hash."""


@dataclass(slots=True)
class PortNumbers:
    """The numbered ports so far, one device after the other."""

    ports: list[FabricPort] = field(default_factory=list)

    def add_device(self, device: int, claimed: Iterable[Device]) -> PortIndex:
        """Number the claimed ports of a device, and return their keys."""
        port_index: PortIndex = {}
        for number, claimed_device in enumerate(claimed):
            for port in sort_ports(claimed_device.ports):
                keys = port_keys(port.ids, port.name)
                port_number = find_port(port_index, keys) if number else None
                if port_number is None:
                    self.add(device, port, port_index, keys)
                else:
                    index_port(port_index, port_number, keys)
                    self._fill_in(port_number, port)
        return port_index

    def add(self, device: int, port: Port, port_index: PortIndex, keys: Iterable[PortKey]) -> int:
        """Number one more port of a device, and add its keys to the device's index."""
        port_number = len(self.ports)
        self.ports.append(port_row(device, port))
        index_port(port_index, port_number, keys)
        return port_number

    def _fill_in(self, port_number: int, port: Port) -> None:
        """Fill in the rate and state that earlier claims about the same port do not contain."""
        old = self.ports[port_number]
        self.ports[port_number] = old._replace(
            rate_bps=old.rate_bps if old.rate_bps is not None else port.rate_bps,
            state=old.state if old.state is not PortState.UNKNOWN else port.state,
        )


def port_row(device: int, port: Port) -> FabricPort:
    """Return the row of a port in a fabric."""
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
    """Return the port that a neighbor entry means, for an owner that does not claim it."""
    name = neighbor.port_name or next((identifier.value for identifier in neighbor.port_ids), "")
    medium = Medium.INFINIBAND if neighbor.source is Source.IB else Medium.ETHERNET
    return Port(name=name or "unknown", medium=medium)


def sort_ports(ports: Sequence[Port]) -> Sequence[Port]:
    """Return ports sorted by their facts alone, which nearly always is their natural order.

    Sources list ports in natural order; a source that does not must not change the result.
    """
    return sorted(ports, key=lambda port: (len(port.name), port.name, port.ids))


def select_best_source(neighbors: Sequence[Neighbor]) -> Sequence[Neighbor]:
    """Return the entries of a port that count: LLDP wins over CDP and similar protocols."""
    if len(neighbors) < 2:  # noqa: PLR2004 - one neighbor needs no choice
        return neighbors
    best = [neighbor for neighbor in neighbors if neighbor.source in (Source.LLDP, Source.IB)]
    return sorted(best or neighbors, key=repr)


def find_port(port_index: Mapping[KeyT, int], keys: Iterable[KeyT]) -> int | None:
    """Return the port of the first key that identifies a single port."""
    for key in keys:
        port_number = port_index.get(key)
        if port_number is not None and port_number != SEVERAL_PORTS:
            return port_number
    return None


def find_own_port(port_index: PortIndex, port: Port) -> int | None:
    """Return the number of a claimed port: by its name, else by its other keys."""
    port_number = port_index.get(("name", port.name))
    if port_number is not None and port_number != SEVERAL_PORTS:
        return port_number
    return find_port(port_index, port_keys(port.ids, port.name))


def index_port(port_index: dict[KeyT, int], port_number: int, keys: Iterable[KeyT]) -> None:
    """Add the keys of a port to the index of its device."""
    for key in keys:
        is_single = port_index.get(key, port_number) == port_number
        port_index[key] = port_number if is_single else SEVERAL_PORTS


def pack_keys(keys: Iterable[PortKey]) -> bytes:
    """Return the hashes of keys as bytes, a tenth of the neighbor entry that they come from."""
    return array("q", map(hash, keys)).tobytes()


def unpack_keys(packed: bytes) -> Sequence[int]:
    """Return the hashes of keys that were packed."""
    return memoryview(packed).cast("q")


def port_keys(ids: Iterable[Id], name: str) -> list[PortKey]:
    """Return the keys of a port within its device, strongest first (GUID or MAC, then names)."""
    strong_keys: list[PortKey] = []
    name_keys: list[PortKey] = []
    for kind, value, subtype in ids:
        if kind is IdKind.IFNAME or kind is IdKind.PORT_ID:
            name_keys.append(("name", value))
        elif kind is IdKind.PORT_GUID or kind is IdKind.MAC:
            strong_keys.append((kind, value))
        elif kind is IdKind.NODE_GUID:
            strong_keys.insert(0, ("guid", f"{value}/{subtype}"))
        elif kind is IdKind.IFINDEX:
            name_keys.append((kind, value))
    if name:
        name_keys.append(("name", name))
    return strong_keys + name_keys
