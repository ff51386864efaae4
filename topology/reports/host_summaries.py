"""What is needed of the report of a host before the fabric is built, without building its device.

Most is known from the shapes of its ports; the rest are few texts. Pure.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

from topology.model.facts import Device, DeviceKind, Neighbor
from topology.model.ids import Id, IdKind
from topology.reports.neighbor_report import SweptPort, is_swept_port
from topology.reports.packed_devices import ShapedDevice
from topology.reports.port_shapes import PortShape, index_of, pick_text

_MAX_SHARED_PORTS: Final = 64
_MAX_SHARED: Final = 1024
_PartT = TypeVar("_PartT", bound=Hashable)


class HostSummary(NamedTuple):
    """A host without most of its texts."""

    node_names: tuple[str, ...]
    """The node names among its ids."""
    num_ids: int
    """The number of its own ids, without those of its ports."""
    port_names: tuple[str, ...]
    """Hosts with equal names share the tuple, as with the shapes."""
    shapes: tuple[PortShape, ...]
    """By port."""
    swept_ports: tuple[SweptPort, ...]
    """By `swept_ports_of`."""
    guids: tuple[tuple[int, int], ...]
    """Node GUID and port GUID of each of its `swept_ports`; 0 if the port has none."""
    heard: tuple[int, ...]
    """For each neighbor entry the hash of its name and ids, without repeats."""

    def outline(self) -> Device:
        """Return a host with as many ids and these ports; all other texts mean nothing."""
        ports = zip(self.shapes, self.port_names, strict=True)
        return Device(
            kind=DeviceKind.HOST,
            name="",
            ids=(Id(IdKind.HOSTNAME, ""),) * self.num_ids,
            ports=tuple([shape.port._replace(name=name) for shape, name in ports]),
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


@lru_cache(_MAX_SHARED)
def _places_of(shape: PortShape) -> _PortPlaces:
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
    places = [_places_of(shape) for shape in shaped.shapes]
    names = [shaped.texts_at(index, one.name) for index, one in enumerate(places)]
    swept = [_read_swept(shaped, index, one) for index, one in enumerate(places)]
    rows = [next(swept[index]) for index in shaped.order if places[index].subnet]
    own = shaped.head.device.ids
    named = [index_of(one.value) for one in own if one.kind is IdKind.NODE_NAME]
    return HostSummary(
        node_names=tuple([pick_text(shaped.head_texts, place) for place in named]),
        num_ids=len(own),
        port_names=_share(tuple(shaped.in_order(names))),
        shapes=_share(tuple([shaped.shapes[index] for index in shaped.order])),
        swept_ports=_share(tuple([port for port, _ in rows])),
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


def _share(part: _PartT) -> _PartT:
    """Return an equal tuple that other hosts have, too; large ones are not kept."""
    sized: Any = part
    found: _PartT = _find_shared(part) if len(sized) <= _MAX_SHARED_PORTS else part
    return found


@lru_cache(_MAX_SHARED)
def _find_shared(part: _PartT) -> _PartT:
    return part
