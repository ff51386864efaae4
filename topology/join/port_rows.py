"""The ports and neighbor entries of claims as rows of arrays; each device is read once.

The rows of one claim are contiguous. A port and an entry name a port by keys, and a row holds the
hashes of the keys. Within its device, a port is identified by keys, strongest first: a GUID or MAC,
then names. A key that several ports share, such as the MAC of bond slaves, identifies none of them.

Half a million ports take 15 MB as arrays, and ten times that as objects, which are built on demand.
Names, RDMA devices and subnets have few distinct texts; each port stores the number of its text.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from topology.identity.device_kinds import BY_MAC, BY_NAME, FORWARDS, STATION, UNKNOWN_STYLE
from topology.model.claims import strong_key
from topology.model.errors import show
from topology.model.fabric import (
    DISTANCE_CODES,
    DISTANCES,
    MEDIA,
    MEDIUM_CODES,
    STATE_CODES,
    STATES,
    UNKNOWN_RATE,
    Codes,
    FabricPort,
    Flags,
    Index,
    NameCodes,
    Numbers,
    PortNames,
    Rates,
    rate_or_none,
)
from topology.model.facts import Capability, Device, Neighbor, Port, Source
from topology.model.ids import Id, IdKind
from topology.model.lazy_rows import LazyRows

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


_FIRMWARE_LLDP_VALUES: Final = (None, False, True)
_FIRMWARE_LLDP_CODES: Final = {value: code for code, value in enumerate(_FIRMWARE_LLDP_VALUES)}


class PortTable(NamedTuple):
    """The arrays, one entry per port. Text numbers start at 1; 0 means none."""

    devices: Index
    names: Numbers
    media: Codes
    states: Codes
    rates: Rates
    rdma: Numbers
    distances: Codes
    firmware_lldp: Codes
    subnets: Numbers
    texts: tuple[str, ...]
    """Distinct texts."""

    @property
    def columns(self) -> tuple[NDArray[Any], ...]:
        """All arrays, in the order of the fields."""
        return self[:-1]

    @property
    def size(self) -> int:
        """The number of ports."""
        return len(self.devices)

    def rows(self) -> LazyRows[FabricPort]:
        """Return the ports as rows that are built on demand."""
        return LazyRows(self.size, self._rows_at)

    def port_names(self) -> PortNames:
        """Return the names of the ports, built on demand."""
        return PortNames(self.size, self._names_at, self._name_codes)

    def select(self, rows: Index) -> PortTable:
        """Return the given ports."""
        return PortTable._make((*(column[rows] for column in self.columns), self.texts))

    def _rows_at(self, indices: Sequence[int]) -> Iterator[FabricPort]:
        chosen = np.fromiter(indices, np.intp, len(indices))
        texts = self.texts
        for device, name, medium, state, bps, rdma, distance, firmware_lldp, subnet in zip(
            *(column[chosen].tolist() for column in self.columns), strict=True
        ):
            yield FabricPort(
                device,
                texts[name - 1],
                MEDIA[medium],
                STATES[state],
                rate_or_none(bps),
                texts[rdma - 1] if rdma else None,
                DISTANCES[distance],
                _FIRMWARE_LLDP_VALUES[firmware_lldp],
                texts[subnet - 1] if subnet else None,
            )

    def _names_at(self, indices: Sequence[int]) -> Iterator[str]:
        chosen = np.fromiter(indices, np.intp, len(indices))
        return (self.texts[name - 1] for name in self.names[chosen].tolist())

    def _name_codes(self, indices: Index) -> NameCodes:
        used, codes = np.unique(self.names[indices], return_inverse=True)
        return NameCodes(codes, [self.texts[name - 1] for name in used.tolist()])


class PortTableBuilder:
    """Builds a `PortTable`, port by port."""

    def __init__(self) -> None:
        """Start without ports."""
        self._texts: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        """The number of each port name that was seen."""
        self._devices, self._rates = array("q"), array("q")
        self._names, self._rdma, self._subnets = array("i"), array("i"), array("i")
        self._media, self._states = bytearray(), bytearray()
        self._distances, self._firmware_lldp = bytearray(), bytearray()

    def add(self, device: int, port: Port) -> None:
        """Add a port of a claim."""
        number = self._numbers.get(port.name)
        if number is None:
            number = self._numbers[port.name] = self._intern(show(port.name))
        self._devices.append(device)
        self._names.append(number)
        self._rdma.append(self._intern(port.rdma_device))
        self._subnets.append(self._intern(port.subnet))
        self._media.append(MEDIUM_CODES[port.medium])
        self._states.append(STATE_CODES[port.state])
        self._rates.append(UNKNOWN_RATE if port.rate_bps is None else port.rate_bps)
        self._distances.append(DISTANCE_CODES[port.gpu_distance])
        self._firmware_lldp.append(_FIRMWARE_LLDP_CODES[port.firmware_lldp])

    def _intern(self, text: str | None) -> int:
        """Return the number of a text, 0 for None."""
        return 0 if text is None else self._texts.setdefault(text, len(self._texts) + 1)

    def build(self) -> PortTable:
        """Return the table of all added ports."""
        return PortTable(
            devices=np.array(self._devices, np.intp),
            names=np.array(self._names, np.int32),
            media=np.array(self._media, np.uint8),
            states=np.array(self._states, np.uint8),
            rates=np.array(self._rates, np.int64),
            rdma=np.array(self._rdma, np.int32),
            distances=np.array(self._distances, np.uint8),
            firmware_lldp=np.array(self._firmware_lldp, np.uint8),
            subnets=np.array(self._subnets, np.int32),
            texts=tuple(self._texts),
        )


def join_tables(tables: Sequence[PortTable]) -> PortTable:
    """Return the ports of several tables, one after the other, with texts numbered anew."""
    texts: dict[str, int] = {}
    columns: list[tuple[NDArray[Any], ...]] = []
    for table in tables:
        for text in table.texts:
            texts.setdefault(text, len(texts) + 1)
        no_text = 0
        new_number = np.array([no_text, *(texts[text] for text in table.texts)], np.int32)
        columns.append(
            table._replace(
                names=new_number[table.names],
                rdma=new_number[table.rdma],
                subnets=new_number[table.subnets],
            ).columns
        )
    joined = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    return PortTable._make((*joined, tuple(texts)))


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
    code = UNKNOWN_STYLE
    if style:
        code = BY_MAC if style == "mac" else BY_NAME
    capabilities = neighbor.capabilities
    if not capabilities:
        return code
    if capabilities == (Capability.STATION,):
        return code | STATION
    has_mac = any(identifier.subtype == "mac" for identifier in neighbor.device_ids)
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
    """The table of the ports; its devices are the numbers of claims."""
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
            device: the device that the claim is about.
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
