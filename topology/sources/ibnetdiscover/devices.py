"""Records of a sweep to device claims, the last step of every way to read `ibnetdiscover`.

A record holds what its lines say; which kind a CA is, and which ids name whom, is told here.
Objects are made by the ten thousand from columns, because making them is most of the work.
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
"""Letter of a node's kind and its GUID. S, H and R go with node GUIDs; h and r with port GUIDs,
which is all that the rows of -p tell of a CA or router."""
FarPort: TypeAlias = tuple[int, str | None]
"""Number and port GUID."""
PortLine: TypeAlias = tuple[str | None, Key | None, FarPort, str, int | None]
"""One port as read: its own GUID, the peer (None where nobody answered), the peer's port and
description, the rate. A plain tuple: the garbage collector soon forgets those, named ones never."""

_KINDS: Final = {
    "S": DeviceKind.SWITCH,
    "H": DeviceKind.HOST,
    "R": DeviceKind.ROUTER,
    "h": DeviceKind.HOST,
    "r": DeviceKind.ROUTER,
}
_NUMBERS: Final = tuple(map(str, range(MAX_PORT + 1)))
_BATCH: Final = 16_384  # ports: their columns stay small, and mostly in the cache
_MAX_SHARED: Final = 1 << 12  # nodes whose ids are kept from one batch to the next

_KeyT = TypeVar("_KeyT")
_ValueT = TypeVar("_ValueT")

# What the classes' own constructors do, without a call of Python code for each.
_new_id = cast("Callable[[Iterable[object]], Id]", partial(tuple.__new__, Id))
_new_neighbor = cast("Callable[[Iterable[object]], Neighbor]", partial(tuple.__new__, Neighbor))


@dataclass(slots=True)
class Record:
    """One node as read."""

    letter: str
    guid: str
    image: str | None = None
    device_id: int = 0
    description: str = ""
    fetch_rows: dict[int, PortLine] = field(default_factory=dict)
    """By port number, in no order."""

    @property
    def key(self) -> Key:
        """Return what tells the node from all others."""
        return self.letter, self.guid


class LazyDict(dict[_KeyT, _ValueT]):
    """Answers that are worked out once; a sweep repeats every GUID and name."""

    def __init__(self, answer: Callable[[_KeyT], _ValueT]) -> None:
        """Keep what works out an answer."""
        super().__init__()
        self._compute = answer

    def __missing__(self, key: _KeyT) -> _ValueT:
        """Work out an answer for the first time."""
        found = self[key] = self._compute(key)
        return found


def build_devices(records: Mapping[Key, Record]) -> tuple[Device, ...]:
    """Return one device per record, sorted by GUID. Cost: O(n log n) in ports, about 5 µs each."""
    images = {found.image or found.guid for found in records.values() if found.letter == "S"}
    aggregation = {
        found.guid
        for found in records.values()
        if found.letter == "H" and found.device_id == AGGREGATION_DEVID and found.image in images
    }
    builder = DeviceBuilder(records, aggregation)
    ordered = sorted(records.values(), key=lambda found: (found.guid, found.letter))
    return tuple(builder.build(ordered))


def _batches(ordered: Iterable[Record]) -> Iterator[list[Record]]:
    batch: list[Record] = []
    size = 0
    for record in ordered:
        batch.append(record)
        size += len(record.fetch_rows) + 1
        if size >= _BATCH:
            yield batch
            batch, size = [], 0
    yield batch


class DeviceBuilder:
    """Turns records into devices; shares GUIDs, names and the ids of nodes."""

    def __init__(self, records: Container[Key], aggregation: Container[str]) -> None:
        """Build nothing yet.

        Args:
            records: of which nodes there is a record.
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
        """Yield the devices of records in their order; few of them are made at a time."""
        for batch in _batches(records):
            if len(self._node_ids) > _MAX_SHARED:
                self._forget()
            yield from self._devices(batch)

    def _devices(self, batch: list[Record]) -> Iterator[Device]:
        """Yield the devices of some records; all their ports are made at once."""
        numbers, rows = _sorted_rows(batch)
        owners = list(
            chain.from_iterable(repeat(record.key, len(record.fetch_rows)) for record in batch)
        )
        labels = [self._label(record) for record in batch]
        names = chain.from_iterable(
            _port_names(record, label) for record, label in zip(batch, labels, strict=True)
        )
        devices_rdma = chain.from_iterable(
            repeat(label or None, len(record.fetch_rows))
            for record, label in zip(batch, labels, strict=True)
        )
        neighbors = self._neighbors(rows)
        ports = map(
            Port._make,
            zip(
                names,
                _port_ids(owners, zip(numbers, [row[0] for row in rows], strict=True)),
                repeat(Medium.INFINIBAND),
                [PortState.UP if heard else PortState.DOWN for heard in neighbors],
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
        made = list(ports)
        start = 0
        for record in batch:
            stop = start + len(record.fetch_rows)
            yield self._device(record, tuple(made[start:stop]))
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
        """Return what each port hears: one neighbor, or nothing where nobody answered."""
        nobody = ("S", "")
        peers = [row[1] or nobody for row in rows]
        far_ports = [row[2] for row in rows]
        names = [self._switches[row[3]] for row in rows]
        port_names = [_NUMBERS[number] for number, _ in far_ports]
        kinds = [_KINDS[letter] for letter, _ in peers]
        for at, (letter, guid) in enumerate(peers):
            if letter in "Hh":
                text = rows[at][3]
                names[at], label = self._hosts[text]
                port_names[at] = f"{label or guid}/{port_names[at]}"
                kinds[at] = self._kind(peers[at], text)
        heard = zip(
            map(self._node_ids.__getitem__, peers),
            names,
            _port_ids(peers, far_ports),
            port_names,
            repeat(Source.IB),
            kinds,
            repeat(None),
        )
        made: list[tuple[Neighbor, ...]] = list(zip(map(_new_neighbor, heard)))
        return [one if row[1] else () for one, row in zip(made, rows, strict=True)]

    def _kind(self, key: Key, description: str) -> DeviceKind:
        """Tell aggregation nodes from hosts: by device id and system image, not by name.

        Only where the CA's own record is lost, or is a row of -p, the factory text has to do.
        """
        if key[0] == "H" and key[1] in self._aggregation:
            return DeviceKind.AGGREGATION
        if key[0] in "Hh" and description == AGGREGATION_TEXT:
            is_told = key[0] == "H" and key in self._records
            return _KINDS[key[0]] if is_told else DeviceKind.AGGREGATION
        return _KINDS[key[0]]


def _sorted_rows(batch: list[Record]) -> tuple[list[int], list[PortLine]]:
    numbers: list[int] = []
    rows: list[PortLine] = []
    for record in batch:
        ordered = sorted(record.fetch_rows)
        numbers += ordered
        rows += map(record.fetch_rows.__getitem__, ordered)
    return numbers, rows


def _port_names(record: Record, label: str) -> list[str]:
    numbers = [_NUMBERS[number] for number in sorted(record.fetch_rows)]
    if record.letter not in "Hh":
        return numbers
    return [f"{label or record.guid}/{number}" for number in numbers]


def _node_ids(key: Key) -> tuple[Id, ...]:
    letter, guid = key
    return (Id(IdKind.NODE_GUID if letter.isupper() else IdKind.PORT_GUID, guid),)


def _port_ids(nodes: list[Key], ends: Iterable[FarPort]) -> list[tuple[Id, ...]]:
    """Return the ids of ports, each given by its node, number and own GUID."""
    ends = list(ends)
    own = map(
        _new_id,
        zip(
            repeat(IdKind.NODE_GUID),
            [guid for _, guid in nodes],
            [_NUMBERS[number] for number, _ in ends],
        ),
    )
    found: list[tuple[Id, ...]] = list(zip(own))
    for at, (letter, guid) in enumerate(nodes):
        port_guid = ends[at][1]
        if letter.islower():
            found[at] = (Id(IdKind.PORT_GUID, guid),)
        elif port_guid:
            found[at] = (found[at][0], Id(IdKind.PORT_GUID, port_guid))
    return found
