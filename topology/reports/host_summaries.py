"""What is needed of the report of a host before the fabric is built, without building its device.

Most is known from the shapes of its ports; the rest are few texts. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from topology.model.bounded_cache import BoundedCache
from topology.model.facts import Device, DeviceKind, Neighbor
from topology.model.ids import Id, IdKind
from topology.reports.neighbor_report import SweptPort, is_swept_port
from topology.reports.packed_devices import ShapedDevice
from topology.reports.port_shapes import PortShape, index_of, parse_port_shape, pick_text

_MAX_SHARED_BYTES: Final = 4 << 20
_ITEM_BYTES: Final = 64
"""That a text takes besides its characters."""
_SWEPT_PORT_BYTES: Final = 256
_PLACE_BYTES: Final = 20
"""That a shape and its places take for each byte of the text of the shape."""
_PartT = TypeVar("_PartT")


class HostSummary(NamedTuple):
    """A host without most of its texts."""

    node_names: tuple[str, ...]
    """The node names among its ids."""
    num_ids: int
    """The number of its own ids, without those of its ports."""
    port_names: tuple[str, ...]
    """Hosts with equal names share the tuple, as with the shapes."""
    shapes: tuple[str, ...]
    """By port: the text of its shape. The shape itself takes ten times as much."""
    swept_ports: tuple[SweptPort, ...]
    """By `swept_ports_of`."""
    guids: tuple[tuple[int, int], ...]
    """Node GUID and port GUID of each of its `swept_ports`; 0 if the port has none."""
    heard: tuple[int, ...]
    """For each neighbor entry the hash of its name and ids, without repeats."""


def outline_host(shapes: Iterable[str], *, num_ids: int = 0) -> Device:
    """Return a host with as many ids and ports of these shapes; all texts mean nothing."""
    return Device(
        kind=DeviceKind.HOST,
        name="",
        ids=(Id(IdKind.HOSTNAME, ""),) * num_ids,
        ports=tuple([parse_port_shape(shape).port for shape in shapes]),
    )


class _HeardPlaces(NamedTuple):
    """Where the texts of a port have the name and ids of a neighbor."""

    name: int | None
    ids: tuple[tuple[str, int | None, str], ...]
    """Kind, place of the value, and subtype."""

    def read(self, texts: Sequence[str]) -> int:
        """Return the hash of the name and the ids."""
        ids = [(kind, pick_text(texts, value), subtype) for kind, value, subtype in self.ids]
        return hash((pick_text(texts, self.name), tuple(ids)))


class _PortPlaces(NamedTuple):
    """Where the texts of ports of one shape have what a summary needs."""

    name: int | None
    rdma: int | None
    node_guid: int | None
    port_guid: int | None
    subnet: str
    """Empty for a port that no sweep contains."""
    heard: tuple[_HeardPlaces, ...]


def _find_places(shape: PortShape) -> _PortPlaces:
    port = shape.port
    ids = {one.kind: index_of(one.value) for one in port.ids}
    return _PortPlaces(
        index_of(port.name),
        index_of(port.rdma_device),
        ids.get(IdKind.NODE_GUID),
        ids.get(IdKind.PORT_GUID),
        (port.subnet or "") if is_swept_port(port) else "",
        tuple(map(_find_heard, port.neighbors)),
    )


def _find_heard(near: Neighbor) -> _HeardPlaces:
    ids = [(one.kind, index_of(one.value), one.subtype) for one in near.device_ids]
    return _HeardPlaces(index_of(near.device_name), tuple(ids))


def summarize_host(shaped: ShapedDevice) -> HostSummary | None:
    """Return the summary of a device; None if it is no host. Cost: 1 µs a port."""
    if shaped.head.device.kind is not DeviceKind.HOST:
        return None
    places = [_places_of[shape] for shape in shaped.shapes]
    names = [shaped.texts_at(index, one.name) for index, one in enumerate(places)]
    swept = [_read_swept(shaped, index, one) for index, one in enumerate(places)]
    rows = [next(swept[index]) for index in shaped.order if places[index].subnet]
    own = shaped.head.device.ids
    named = [index_of(one.value) for one in own if one.kind is IdKind.NODE_NAME]
    return HostSummary(
        node_names=tuple([pick_text(shaped.head_texts, place) for place in named]),
        num_ids=len(own),
        port_names=_shared_texts[tuple(shaped.in_order(names))],
        shapes=_shared_texts[tuple([shaped.shapes[index].text for index in shaped.order])],
        swept_ports=_shared_ports[tuple([port for port, _ in rows])],
        guids=tuple([guids for _, guids in rows]),
        heard=tuple({one for index in range(len(places)) for one in _hear(shaped, index, places)}),
    )


def _read_swept(
    shaped: ShapedDevice, index: int, places: _PortPlaces
) -> Iterator[tuple[SweptPort, tuple[int, int]]]:
    for texts in shaped.texts_by_port(index) if places.subnet else ():
        guids = _read_guid(texts, places.node_guid), _read_guid(texts, places.port_guid)
        rdma = None if places.rdma is None else texts[places.rdma]
        yield SweptPort(places.subnet, pick_text(texts, places.name), rdma), guids


def _hear(shaped: ShapedDevice, index: int, places: Sequence[_PortPlaces]) -> Iterable[int]:
    heard = places[index].heard
    rows = shaped.texts_by_port(index) if heard else ()
    return [one.read(texts) for texts in rows for one in heard]


def _read_guid(texts: Sequence[str], place: int | None) -> int:
    return 0 if place is None else int(texts[place], 16)


def _weigh_places(shape: PortShape, _: object) -> int:
    return _PLACE_BYTES * len(shape.text)


def _weigh_texts(texts: tuple[str, ...], _: object) -> int:
    return sum(map(len, texts)) + _ITEM_BYTES * len(texts)


def _weigh_ports(ports: tuple[SweptPort, ...], _: object) -> int:
    texts = (len(port.subnet) + len(port.name) + len(port.rdma_device or "") for port in ports)
    return sum(texts) + _SWEPT_PORT_BYTES * len(ports)


def _keep(part: _PartT) -> _PartT:
    return part


_places_of = BoundedCache(_find_places, weigh=_weigh_places, max_bytes=_MAX_SHARED_BYTES)
_shared_texts: BoundedCache[tuple[str, ...], tuple[str, ...]] = BoundedCache(
    _keep, weigh=_weigh_texts, max_bytes=_MAX_SHARED_BYTES
)
"""Tuples of names or shapes that several hosts have."""
_shared_ports: BoundedCache[tuple[SweptPort, ...], tuple[SweptPort, ...]] = BoundedCache(
    _keep, weigh=_weigh_ports, max_bytes=_MAX_SHARED_BYTES
)
