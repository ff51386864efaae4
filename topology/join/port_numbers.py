"""Number the ports of devices: which claims describe the same port, and by which keys.

Within its device, a port is identified by keys, strongest first: a GUID or MAC, then names. A key
that several ports share, such as the MAC of bond slaves, identifies none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

from topology.model.facts import Neighbor, Port, Source
from topology.model.ids import Id, IdKind

PortKey: TypeAlias = tuple[str, str]
NO_PORT: Final = -1
SEVERAL_PORTS: Final = -1
KeyT = TypeVar("KeyT")
"""A `PortKey`, or its hash."""


def far_port_name(neighbor: Neighbor) -> str:
    """Return the name of the port that a neighbor entry means."""
    ids = (identifier.value for identifier in neighbor.port_ids)
    return neighbor.port_name or next(ids, "") or "unknown"


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


def index_port(port_index: dict[KeyT, int], port_number: int, keys: Iterable[KeyT]) -> None:
    """Add the keys of a port to the index of its device."""
    for key in keys:
        is_single = port_index.get(key, port_number) == port_number
        port_index[key] = port_number if is_single else SEVERAL_PORTS


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
