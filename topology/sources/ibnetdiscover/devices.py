"""Builds devices from the records of a sweep, for both parsers of `ibnetdiscover`.

A record has the facts of its lines; this module decides the kind of a CA and the ids of devices
and ports. It builds objects in batches of ten thousand from columns, because building objects is
most of the work.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, repeat
from typing import Final, TypeAlias, TypeVar, cast

from topology.model.facts import Device, DeviceKind, Medium, Neighbor, Port, PortState, Source
from topology.model.ids import Id, IdKind
from topology.sources.infiniband.node_names import (
    AGGREGATION_DEVID,
    AGGREGATION_TEXT,
    host_name,
    switch_name,
)

MAX_PORT: Final = 999

Key: TypeAlias = tuple[str, str]
"""Letter of a node's kind, and its GUID. S, H and R have a node GUID; h and r have a port GUID, the
only GUID of a CA or router in the rows of -p."""
FarPort: TypeAlias = tuple[int, str | None]
"""Number and port GUID."""
PortLine: TypeAlias = tuple[str | None, Key | None, FarPort, str, int | None]
"""One parsed port: its own GUID, the peer (None without one), the peer's port and description, the
rate. A plain tuple: the garbage collector untracks plain tuples, but never named ones."""

_KINDS: Final = {
    "S": DeviceKind.SWITCH,
    "H": DeviceKind.HOST,
    "R": DeviceKind.ROUTER,
    "h": DeviceKind.HOST,
    "r": DeviceKind.ROUTER,
}
_NUMBERS: Final = tuple(map(str, range(MAX_PORT + 1)))
_BATCH: Final = 16_384  # ports, so that their columns mostly fit in the cache
_MAX_SHARED: Final = 1 << 12  # nodes whose ids are reused in the next batch

_KeyT = TypeVar("_KeyT")
_ValueT = TypeVar("_ValueT")

# The same as the constructors of the classes, without a call of Python code for each object.
_new_id = cast("Callable[[Iterable[object]], Id]", partial(tuple.__new__, Id))
_new_neighbor = cast("Callable[[Iterable[object]], Neighbor]", partial(tuple.__new__, Neighbor))


@dataclass(slots=True)
class Record:
    """One parsed node."""

    letter: str
    guid: str
    image: str | None = None
    device_id: int = 0
    description: str = ""
    port_lines: dict[int, PortLine] = field(default_factory=dict)
    """By port number, in no order."""

    @property
    def key(self) -> Key:
        """Return the unique key of the node."""
        return self.letter, self.guid


class LazyDict(dict[_KeyT, _ValueT]):
    """Values that are computed once; a sweep repeats every GUID and name."""

    def __init__(self, compute: Callable[[_KeyT], _ValueT]) -> None:
        """Set the function that computes a value."""
        super().__init__()
        self._compute = compute

    def __missing__(self, key: _KeyT) -> _ValueT:
        """Compute a value for the first time."""
        value = self[key] = self._compute(key)
        return value


def build_devices(records: Mapping[Key, Record]) -> tuple[Device, ...]:
    """Return one device per record, sorted by GUID. Cost: O(n log n) in ports, about 5 µs each."""
    images = {record.image or record.guid for record in records.values() if record.letter == "S"}
    aggregation = {
        record.guid
        for record in records.values()
        if record.letter == "H" and record.device_id == AGGREGATION_DEVID and record.image in images
    }
    builder = DeviceBuilder(records, aggregation)
    ordered = sorted(records.values(), key=lambda record: (record.guid, record.letter))
    return tuple(builder.build(ordered))


def _batches(ordered: Iterable[Record]) -> Iterator[list[Record]]:
    batch: list[Record] = []
    size = 0
    for record in ordered:
        batch.append(record)
        size += len(record.port_lines) + 1
        if size >= _BATCH:
            yield batch
            batch, size = [], 0
    yield batch


class DeviceBuilder:
    """Turns records into devices; shares GUIDs, names and the ids of nodes."""

    def __init__(self, records: Container[Key], aggregation: Container[str]) -> None:
        """Build nothing yet.

        Args:
            records: the keys of the nodes with a record.
            aggregation: GUIDs of the SHARP aggregation nodes among them.
        """
        self._records = records
        self._aggregation = aggregation
        self._forget()

    def _forget(self) -> None:
        self._node_ids = LazyDict(_node_ids)
        self._hosts = LazyDict(host_name)
        self._switches = LazyDict(switch_name)

    def build(self, records: Iterable[Record]) -> Iterator[Device]:
        """Yield the devices of records in their order; builds them in batches."""
        for batch in _batches(records):
            if len(self._node_ids) > _MAX_SHARED:
                self._forget()
            yield from self._devices(batch)

    def _devices(self, batch: list[Record]) -> Iterator[Device]:
        """Yield the devices of a batch; builds all their ports at once."""
        numbers, rows = _sorted_rows(batch)
        owners = list(
            chain.from_iterable(repeat(record.key, len(record.port_lines)) for record in batch)
        )
        labels = [self._label(record) for record in batch]
        names = chain.from_iterable(
            _port_names(record, label) for record, label in zip(batch, labels, strict=True)
        )
        devices_rdma = chain.from_iterable(
            repeat(label or None, len(record.port_lines))
            for record, label in zip(batch, labels, strict=True)
        )
        neighbors = self._neighbors(rows)
        ports = map(
            Port._make,
            zip(
                names,
                _port_ids(owners, zip(numbers, [row[0] for row in rows], strict=True)),
                repeat(Medium.INFINIBAND),
                [PortState.UP if heard_by_port else PortState.DOWN for heard_by_port in neighbors],
                [row[4] for row in rows],
                repeat(None),
                devices_rdma,
                repeat(None),
                repeat(None),
                neighbors,
                repeat(None),
                repeat(None),
                repeat(None),
            ),
        )
        all_ports = list(ports)
        start = 0
        for record in batch:
            stop = start + len(record.port_lines)
            yield self._device(record, tuple(all_ports[start:stop]))
            start = stop

    def _device(self, record: Record, ports: tuple[Port, ...]) -> Device:
        is_host = _KINDS[record.letter] is DeviceKind.HOST
        text = record.description
        ids = self._node_ids[record.key]
        if record.image:
            ids = (*ids, Id(IdKind.SYSTEM_IMAGE_GUID, record.image))
        return Device(
            kind=self._kind(record.key, text),
            name=self._hosts[text][0] if is_host else self._switches[text],
            ids=ids,
            ports=ports,
            model=text,
        )

    def _label(self, record: Record) -> str:
        return self._hosts[record.description][1] if record.letter in "Hh" else ""

    def _neighbors(self, rows: list[PortLine]) -> list[tuple[Neighbor, ...]]:
        """Return the neighbors of each port: one, or none without a peer."""
        placeholder = ("S", "")
        peers = [row[1] or placeholder for row in rows]
        far_ports = [row[2] for row in rows]
        names = [self._switches[row[3]] for row in rows]
        port_names = [_NUMBERS[number] for number, _ in far_ports]
        kinds = [_KINDS[letter] for letter, _ in peers]
        for row_index, (letter, guid) in enumerate(peers):
            if letter in "Hh":
                text = rows[row_index][3]
                names[row_index], label = self._hosts[text]
                port_names[row_index] = f"{label or guid}/{port_names[row_index]}"
                kinds[row_index] = self._kind(peers[row_index], text)
        fields = zip(
            map(self._node_ids.__getitem__, peers),
            names,
            _port_ids(peers, far_ports),
            port_names,
            repeat(Source.IB),
            kinds,
            repeat(None),  # no TTL
            repeat(()),  # no capabilities
        )
        neighbors_of_rows: list[tuple[Neighbor, ...]] = list(zip(map(_new_neighbor, fields)))
        return [
            neighbors if row[1] else ()
            for neighbors, row in zip(neighbors_of_rows, rows, strict=True)
        ]

    def _kind(self, key: Key, description: str) -> DeviceKind:
        """Return the kind of a node.

        An aggregation node is identified by its device id and system image. The factory
        text of its description decides only if the CA has no record, or is known only from -p.
        """
        if key[0] == "H" and key[1] in self._aggregation:
            return DeviceKind.AGGREGATION
        if key[0] in "Hh" and description == AGGREGATION_TEXT:
            has_record = key[0] == "H" and key in self._records
            return _KINDS[key[0]] if has_record else DeviceKind.AGGREGATION
        return _KINDS[key[0]]


def _sorted_rows(batch: list[Record]) -> tuple[list[int], list[PortLine]]:
    numbers: list[int] = []
    rows: list[PortLine] = []
    for record in batch:
        ordered = sorted(record.port_lines)
        numbers += ordered
        rows += map(record.port_lines.__getitem__, ordered)
    return numbers, rows


def _port_names(record: Record, label: str) -> list[str]:
    numbers = [_NUMBERS[number] for number in sorted(record.port_lines)]
    if record.letter not in "Hh":
        return numbers
    return [f"{label or record.guid}/{number}" for number in numbers]


def _node_ids(key: Key) -> tuple[Id, ...]:
    letter, guid = key
    return (Id(IdKind.NODE_GUID if letter.isupper() else IdKind.PORT_GUID, guid),)


def _port_ids(nodes: list[Key], ends: Iterable[FarPort]) -> list[tuple[Id, ...]]:
    """Return the ids of ports, from the node, the number and the port GUID of each."""
    ends = list(ends)
    node_port_ids = map(
        _new_id,
        zip(
            repeat(IdKind.NODE_GUID),
            [guid for _, guid in nodes],
            [_NUMBERS[number] for number, _ in ends],
        ),
    )
    port_ids: list[tuple[Id, ...]] = list(zip(node_port_ids))
    for row_index, (letter, guid) in enumerate(nodes):
        port_guid = ends[row_index][1]
        if letter.islower():
            port_ids[row_index] = (Id(IdKind.PORT_GUID, guid),)
        elif port_guid:
            port_ids[row_index] = (port_ids[row_index][0], Id(IdKind.PORT_GUID, port_guid))
    return port_ids
