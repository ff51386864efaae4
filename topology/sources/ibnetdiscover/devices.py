"""The devices of a sweep, built from its columns on demand.

The join and the comparison of sweeps work on the columns. Devices are for what works on all
sources alike: a sweep that contradicts itself, and single devices that are shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, overload

import numpy as np

from topology.model.facts import (
    Device,
    DeviceKind,
    Medium,
    Neighbor,
    Port,
    PortState,
    Source,
)
from topology.model.ids import Id, IdKind
from topology.model.lazy_rows import LazyTuple
from topology.sources.ibnetdiscover.columns import SweepColumns
from topology.sources.ibnetdiscover.rows import HCA, LOWER_CASE, NO_GUID, RATES, ROUTER, SWITCH
from topology.sources.infiniband.node_names import (
    AGGREGATION_TEXT,
    host_name,
    host_names,
    switch_name,
)

_KINDS: Final = {
    SWITCH: DeviceKind.SWITCH,
    HCA: DeviceKind.HOST,
    ROUTER: DeviceKind.ROUTER,
    HCA | LOWER_CASE: DeviceKind.HOST,
    ROUTER | LOWER_CASE: DeviceKind.ROUTER,
}
_HOSTS: Final = (HCA, HCA | LOWER_CASE)


@dataclass(frozen=True, eq=False)
class SweptDevices(LazyTuple[Device]):
    """The devices of a sweep, sorted by GUID; each read builds them, and none is stored."""

    sweep: SweepColumns

    def _all(self) -> tuple[Device, ...]:
        return tuple(self)

    def names(self) -> list[str]:
        """Return the name of each device."""
        return self.described[0]

    @cached_property
    def described(self) -> tuple[list[str], list[str]]:
        """The name of each device, and its RDMA name, which is empty if it is no CA."""
        names = self.sweep.descriptions()
        rdma_names = [""] * len(names)
        is_host = np.isin(self.sweep.columns.letters, _HOSTS)
        hosts = np.flatnonzero(is_host).tolist()
        described = host_names([names[device] for device in hosts])
        for device, (name, rdma_name) in zip(hosts, described, strict=True):
            names[device], rdma_names[device] = name, rdma_name
        for device in np.flatnonzero(~is_host).tolist():
            names[device] = switch_name(names[device])
        return names, rdma_names

    def ids_at(self, index: int) -> tuple[Id, ...]:
        """Return the ids of one device, without building it."""
        columns = self.sweep.columns
        has_port_guid = columns.letters.item(index) & LOWER_CASE
        kind = IdKind.PORT_GUID if has_port_guid else IdKind.NODE_GUID
        ids = (Id(kind, f"{columns.guids.item(index):016x}"),)
        image = columns.images.item(index)
        return ids if image == NO_GUID else (*ids, Id(IdKind.SYSTEM_IMAGE_GUID, f"{image:016x}"))

    def __eq__(self, other: object) -> bool:
        """Compare with another sweep by its columns, with any other sequence like a tuple."""
        if isinstance(other, SweptDevices):
            return self is other or self.sweep.has_same_rows(other.sweep)
        return LazyTuple.__eq__(self, other)

    __hash__ = LazyTuple.__hash__

    def __len__(self) -> int:
        """Return the number of devices, without building them."""
        return len(self.sweep)

    @overload
    def __getitem__(self, at: int) -> Device: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Device, ...]: ...
    def __getitem__(self, at: int | slice) -> Device | tuple[Device, ...]:
        """Return one device, or the devices of a slice."""
        places = range(len(self))[at]
        if isinstance(places, range):
            return tuple(_build_device(self, node) for node in places)
        return _build_device(self, places)

    def __iter__(self) -> Iterator[Device]:
        """Yield all devices."""
        return (_build_device(self, node) for node in range(len(self)))


def _build_device(devices: SweptDevices, node: int) -> Device:
    sweep, columns = devices.sweep, devices.sweep.columns
    letter, guid = columns.letters.item(node), columns.guids.item(node)
    text = sweep.description(node)
    name, label = host_name(text) if letter in _HOSTS else (switch_name(text), "")
    stop = sweep.row_stops.item(node)
    lines = range(stop - columns.num_rows.item(node), stop)
    return Device(
        kind=_find_kind(sweep, letter, guid, text),
        name=name,
        ids=devices.ids_at(node),
        ports=tuple(_build_port(sweep, line, letter, guid, label) for line in lines),
        model=text,
    )


def _build_port(sweep: SweepColumns, line: int, letter: int, guid: int, label: str) -> Port:
    columns = sweep.columns
    number = columns.numbers.item(line)
    neighbors = (
        (_build_neighbor(sweep, line),) if columns.peer_letters.item(line) != NO_GUID else ()
    )
    return Port(
        name=_name_port(letter, guid, label, number),
        ids=_port_ids(letter, guid, number, columns.own_guids.item(line)),
        medium=Medium.INFINIBAND,
        state=PortState.UP if neighbors else PortState.DOWN,
        rate_bps=RATES[columns.rates.item(line)],
        rdma_device=label or None,
        neighbors=neighbors,
    )


def _build_neighbor(sweep: SweepColumns, line: int) -> Neighbor:
    columns = sweep.columns
    letter, guid = columns.peer_letters.item(line), columns.peers.item(line)
    number, text = columns.far_numbers.item(line), sweep.texts[columns.peer_texts.item(line)]
    name, label = host_name(text) if letter in _HOSTS else (switch_name(text), "")
    return Neighbor(
        device_ids=(
            Id(IdKind.PORT_GUID if letter & LOWER_CASE else IdKind.NODE_GUID, _text(guid)),
        ),
        device_name=name,
        port_ids=_port_ids(letter, guid, number, columns.far_guids.item(line)),
        port_name=_name_port(letter, guid, label, number),
        source=Source.IB,
        kind=_find_kind(sweep, letter, guid, text),
    )


def _find_kind(sweep: SweepColumns, letter: int, guid: int, description: str) -> DeviceKind:
    """Return the kind of a node.

    An aggregation node is identified by its device id and system image. The factory
    text of its description decides only if the CA has no record, or is known only from -p.
    """
    if letter not in _HOSTS:
        return _KINDS[letter]
    node = sweep.find_node(HCA, guid) if letter == HCA else None
    is_aggregation = (
        description == AGGREGATION_TEXT if node is None else sweep.aggregation.item(node)
    )
    return DeviceKind.AGGREGATION if is_aggregation else DeviceKind.HOST


def _name_port(letter: int, guid: int, label: str, number: int) -> str:
    return f"{label or _text(guid)}/{number}" if letter in _HOSTS else str(number)


def _port_ids(letter: int, guid: int, number: int, port_guid: int) -> tuple[Id, ...]:
    if letter & LOWER_CASE:
        return (Id(IdKind.PORT_GUID, _text(guid)),)
    node = Id(IdKind.NODE_GUID, _text(guid), str(number))
    return (node,) if port_guid == NO_GUID else (node, Id(IdKind.PORT_GUID, _text(port_guid)))


def _text(guid: int) -> str:
    return f"{guid:016x}"
