"""What devices and ports of one kind of hardware have in common: all but names and values of ids.

The ports of a cluster have few shapes: up or down, of a NIC or a switch, hearing a host or a
switch. A port is its shape and the texts in which it differs from other ports of this shape. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, Final, TypeAlias

from topology.model.bounded_cache import BoundedCache
from topology.model.facts import (
    Device,
    Neighbor,
    Port,
)
from topology.model.ids import Id
from topology.reports.closed_sets import (
    CAPABILITIES,
    DEVICE_KINDS,
    DISTANCES,
    ID_KINDS,
    MEDIA,
    SOURCES,
    STATES,
)

TEXT: Final = 1
"""Stands in a shape for a text that differs between ports; empty texts are part of the shape."""
_MAX_CACHED_BYTES: Final = 4 << 20
"""Of each kind of shape. A cluster has some hundred shapes of 4 KB each."""
_OBJECT_BYTES: Final = 12
"""That a shape takes for each byte of its text: it is stored as a row and as a marked port, too."""
MAX_SHARED_TEXT: Final = 4096
"""Longer shapes are those of ports that hear many devices; few ports share one."""
_MAX_CACHED_IDS: Final = 64
Row: TypeAlias = Sequence[Any]
"""A `Port`, `Neighbor` or `Id` with TEXT in place of its texts."""


class PortShape:
    """What ports of one shape have in common."""

    __slots__ = ("_row", "num_texts", "port", "text")

    def __init__(self, row: Row, text: str) -> None:
        """Store a row of `Port`, and its JSON. Cost: 10 µs."""
        numbers = count()
        self.text, self._row = text, row
        self.port = self.fill(map(mark_of, numbers))
        """A port of this shape whose texts are marks."""
        self.num_texts = next(numbers)
        """The texts are in the order of `split_port`."""

    def fill(self, texts: Iterator[str]) -> Port:
        """Return the port with the given texts."""
        name, ids, medium, state, rate, bond, rdma, pci, distance, near, *rest = self._row
        return Port(
            _fill(name, texts),
            _fill_ids(ids, texts),
            MEDIA[medium],
            STATES[state],
            rate,
            _fill(bond, texts),
            _fill(rdma, texts),
            _fill(pci, texts),
            DISTANCES[distance],
            tuple([_fill_neighbor(one, texts) for one in near]),
            *rest,
        )


class DeviceShape:
    """What devices of one shape have in common, without their ports."""

    __slots__ = ("_row", "device", "num_texts", "text")

    def __init__(self, row: Row, text: str) -> None:
        """Store the kind, name, model and ids, and their JSON."""
        numbers = count()
        self.text, self._row = text, row
        self.device = self.fill(map(mark_of, numbers))
        """A device of this shape without ports whose texts are marks."""
        self.num_texts = next(numbers)

    def fill(self, texts: Iterator[str], ports: Sequence[Port] = ()) -> Device:
        """Return the device with the given texts and ports."""
        kind, name, model, ids = self._row
        return Device(
            kind=DEVICE_KINDS[kind],
            name=_fill(name, texts),
            model=_fill(model, texts),
            ids=_fill_ids(ids, texts),
            ports=tuple(ports),
        )


def mark_of(number: int) -> str:
    """Return the mark of a text, by its number in the shape; no text of a report begins like it."""
    return f"\0{number}\0"


def split_port(port: Port) -> tuple[PortShape, list[str]]:
    """Return the shape of a port, and its texts. Cost: 5 µs with a neighbor."""
    texts: list[str] = []
    row = (
        _blank(port.name, texts),
        _blank_ids(port.ids, texts),
        port.medium,
        port.state,
        port.rate_bps,
        _blank(port.bond_master, texts),
        _blank(port.rdma_device, texts),
        _blank(port.pci_address, texts),
        port.gpu_distance,
        tuple([_blank_neighbor(near, texts) for near in port.neighbors]),
        port.numa_node,
        port.firmware_lldp,
        port.subnet,
    )
    is_short = (
        len(port.ids) + sum(len(near[0]) + len(near[2]) for near in row[9]) <= _MAX_CACHED_IDS
    )
    return _find_shape[row] if is_short else _build_shape(row), texts


def split_device(device: Device) -> tuple[DeviceShape, list[str]]:
    """Return the shape of a device, and its texts, both without its ports."""
    texts: list[str] = []
    row = (
        device.kind,
        _blank(device.name, texts),
        _blank(device.model, texts),
        _blank_ids(device.ids, texts),
    )
    is_short = len(device.ids) <= _MAX_CACHED_IDS
    return _find_head[row] if is_short else _build_head(row), texts


def parse_port_shape(text: str) -> PortShape:
    """Return the shape that has this JSON."""
    return _parse_shape[text] if len(text) <= MAX_SHARED_TEXT else _read_shape(text)


def parse_device_shape(text: str) -> DeviceShape:
    """Return the shape that has this JSON."""
    return _parse_head[text] if len(text) <= MAX_SHARED_TEXT else _read_head(text)


def _build_shape(row: Row) -> PortShape:
    return PortShape(row, _render(row))


def _render(row: Row) -> str:
    return json.dumps(row, separators=(",", ":"))


def _read_shape(text: str) -> PortShape:
    return PortShape(json.loads(text), text)


def _read_head(text: str) -> DeviceShape:
    return DeviceShape(json.loads(text), text)


def _build_head(row: Row) -> DeviceShape:
    return DeviceShape(row, _render(row))


def _weigh(_: object, shape: PortShape | DeviceShape) -> int:
    return _OBJECT_BYTES * len(shape.text)


_find_head = BoundedCache(_build_head, weigh=_weigh, max_bytes=_MAX_CACHED_BYTES)
_find_shape = BoundedCache(_build_shape, weigh=_weigh, max_bytes=_MAX_CACHED_BYTES)
_parse_shape = BoundedCache(_read_shape, weigh=_weigh, max_bytes=_MAX_CACHED_BYTES)
_parse_head = BoundedCache(_read_head, weigh=_weigh, max_bytes=_MAX_CACHED_BYTES)


def _blank(text: str | None, texts: list[str]) -> str | int | None:
    if not text:
        return text
    texts.append(text)
    return TEXT


def _blank_ids(ids: Sequence[Id], texts: list[str]) -> Row:
    return tuple([(kind, _blank(value, texts), subtype) for kind, value, subtype in ids])


def _blank_neighbor(near: Neighbor, texts: list[str]) -> Row:
    device_ids, name, port_ids, port_name, *rest = near
    return (
        _blank_ids(device_ids, texts),
        _blank(name, texts),
        _blank_ids(port_ids, texts),
        _blank(port_name, texts),
        *rest,
    )


def _fill(value: Any, texts: Iterator[str]) -> Any:  # noqa: ANN401 - a text, or None
    return next(texts) if value == TEXT else value


def _fill_ids(rows: Sequence[Row], texts: Iterator[str]) -> tuple[Id, ...]:
    return tuple(
        [Id(ID_KINDS[kind], _fill(value, texts), subtype) for kind, value, subtype in rows]
    )


def _fill_neighbor(row: Row, texts: Iterator[str]) -> Neighbor:
    ids, name, port_ids, port_name, source, kind, ttl_s, capabilities = row
    return Neighbor(
        _fill_ids(ids, texts),
        _fill(name, texts),
        _fill_ids(port_ids, texts),
        _fill(port_name, texts),
        SOURCES[source],
        DEVICE_KINDS[kind],
        ttl_s,
        tuple([CAPABILITIES[capability] for capability in capabilities]),
    )


def pick_text(texts: Sequence[str], place: int | None) -> str:
    """Return the text at a place of a shape; empty where the shape has no text."""
    return "" if place is None else texts[place]


def index_of(mark: str | None) -> int | None:
    """Return the number of a marked text; None for a text that is part of the shape."""
    return int(mark[1:-1]) if mark else None
