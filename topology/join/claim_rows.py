"""The ports and neighbor entries of claims as rows of numbers; each device is read once.

The rows of one claim are contiguous. A port and an entry name a port by keys, and a row holds the
hashes of the keys; see `port_numbers.port_keys`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topology.identity.device_kinds import BY_MAC, BY_NAME, FORWARDS, STATION, UNKNOWN_STYLE
from topology.join.port_numbers import port_keys, select_best_source, sort_ports
from topology.join.port_table import PortTable, PortTableBuilder
from topology.model.claims import strong_key
from topology.model.fabric_columns import Codes, Flags, Index, Numbers
from topology.model.facts import Capability, Device, Neighbor, Port
from topology.model.ids import IdKind

Hashes = NDArray[np.int64]


def neighbor_entries(devices: Iterable[Device]) -> Iterator[tuple[Port, Sequence[Neighbor]]]:
    """Yield the claimed ports of a device, each with its neighbor entries that count."""
    for device in devices:
        for port in sort_ports(device.ports):
            yield port, select_best_source(port.neighbors)


def port_name_style(neighbor: Neighbor) -> str:
    """Return the subtype of the port id that a neighbor sends; empty without a port id."""
    for identifier in neighbor.port_ids:
        if identifier.kind is IdKind.PORT_ID:
            return identifier.subtype
    return ""


def encode_style(neighbor: Neighbor) -> int:
    """Return how a neighbor identifies its port and what its capabilities say; see `PeerColumns`.

    A router that is no bridge counts as forwarding only with a MAC as its chassis id: a host that
    routes to its pods says Router, too, with a name of its own as systemd-networkd sends it.
    """
    style = port_name_style(neighbor)
    code = UNKNOWN_STYLE if not style else BY_MAC if style == "mac" else BY_NAME
    capabilities = neighbor.capabilities
    if not capabilities:
        return code
    if capabilities == (Capability.STATION,):
        return code | STATION
    has_mac = any(one.subtype == "mac" for one in neighbor.device_ids)
    is_router = Capability.ROUTER in capabilities and has_mac
    return code | FORWARDS if Capability.BRIDGE in capabilities or is_router else code


class EntryColumns(NamedTuple):
    """Neighbor entries, one entry per row, in the order of their ports."""

    rows: Numbers
    """The row of the port that hears."""
    first_keys: Hashes
    """Hash of the first strong key of the device that is heard."""
    has_key: Flags
    """Whether the entry has a strong key of the device."""
    is_swept: Flags
    """Whether a sweep reports the entry."""
    styles: Codes
    """How the peer identifies its port, see `device_kinds`."""
    key_stops: Numbers
    """The end of each entry's keys in `keys`."""
    keys: Hashes
    """Hashes of the keys of the port that is heard, strongest first."""


class PortRows(NamedTuple):
    """Claimed ports, one row per port of a claim."""

    table: PortTable
    """Its devices are the numbers of claims."""
    has_name: Flags
    """Whether the last key is the name of the port."""
    key_stops: Numbers
    """The end of each port's keys in `keys`."""
    keys: Hashes
    """Hashes of the keys of the port, strongest first."""
    entry_stops: Numbers
    """The end of each port's neighbor entries."""
    entries: EntryColumns


def expand_spans(starts: Index, sizes: Index) -> Numbers:
    """Return the indices of spans, one span after the other."""
    stops = np.cumsum(sizes)
    indices = np.arange(int(sizes.sum()), dtype=np.int32)
    indices += np.repeat((starts - (stops - sizes)).astype(np.int32), sizes)
    return indices


def _hash_array() -> array[int]:
    return array("q")


@dataclass(slots=True)
class PortRowBuilder:
    """Collects the rows of claims; each list has one entry per port, or per neighbor entry."""

    table: PortTableBuilder = field(default_factory=PortTableBuilder)
    has_name: bytearray = field(default_factory=bytearray)
    key_sizes: array[int] = field(default_factory=_hash_array)
    keys: array[int] = field(default_factory=_hash_array)
    entry_sizes: array[int] = field(default_factory=_hash_array)
    first_keys: array[int] = field(default_factory=_hash_array)
    has_key: bytearray = field(default_factory=bytearray)
    is_swept: bytearray = field(default_factory=bytearray)
    styles: bytearray = field(default_factory=bytearray)
    far_key_sizes: array[int] = field(default_factory=_hash_array)
    far_keys: array[int] = field(default_factory=_hash_array)

    def __len__(self) -> int:
        """Return the number of ports so far."""
        return len(self.has_name)

    def add(self, claim_number: int, device: Device, *, is_swept: bool) -> None:
        """Add the ports of a claim, in the order of `sort_ports`. Cost: 10 µs a port.

        Args:
            claim_number: the position of the claim.
            device: what it is about.
            is_swept: whether it is a sweep's. What an entry says of its own source is no evidence.
        """
        for port, neighbors in neighbor_entries((device,)):
            self.table.add(claim_number, port)
            self.has_name.append(bool(port.name))
            keys = port_keys(port.ids, port.name)
            self.keys.extend(map(hash, keys))
            self.key_sizes.append(len(keys))
            self.entry_sizes.append(len(neighbors))
            self.is_swept.extend([is_swept] * len(neighbors))
            for neighbor in neighbors:
                self._add_entry(neighbor)

    def _add_entry(self, neighbor: Neighbor) -> None:
        key = None
        for identifier in neighbor.device_ids:
            if (key := strong_key(identifier)) is not None:
                break
        self.first_keys.append(0 if key is None else hash(key))
        self.has_key.append(key is not None)
        self.styles.append(encode_style(neighbor))
        far_keys = port_keys(neighbor.port_ids, neighbor.port_name)
        self.far_keys.extend(map(hash, far_keys))
        self.far_key_sizes.append(len(far_keys))

    def build(self) -> PortRows:
        """Return all rows."""
        entry_sizes = np.array(self.entry_sizes, np.intp)
        return PortRows(
            table=self.table.build(),
            has_name=np.array(self.has_name, np.bool_),
            key_stops=_find_stops(self.key_sizes),
            keys=np.array(self.keys, np.int64),
            entry_stops=_find_stops(self.entry_sizes),
            entries=EntryColumns(
                rows=np.repeat(np.arange(len(self)), entry_sizes).astype(np.int32),
                first_keys=np.array(self.first_keys, np.int64),
                has_key=np.array(self.has_key, np.bool_),
                is_swept=np.array(self.is_swept, np.bool_),
                styles=np.array(self.styles, np.uint8),
                key_stops=_find_stops(self.far_key_sizes),
                keys=np.array(self.far_keys, np.int64),
            ),
        )


def _find_stops(sizes: array[int]) -> Numbers:
    """Return the end of each row's items, given their number."""
    return np.cumsum(np.array(sizes, np.intp)).astype(np.int32)
