"""Reports as the generator keeps tens of thousands: the facts are bytes. Pure.

A port with its neighbor is about twenty objects, and no code reads them until the fabric changes.
So the facts of a report are packed when it arrives, and unpacked on every access: read them once,
and drop them soon. The bytes never leave the process.
"""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from msgspec import Struct, msgpack

from topology.model.claims import LazyClaim, Origin
from topology.model.facts import Device, DeviceKind, Medium, PortState
from topology.model.ids import Id, IdKind
from topology.reports.neighbor_report import (
    NeighborReport,
    ReportMetadata,
    ReportSpec,
    ReportStatus,
    SweepPart,
    build_report,
)

SNMP_COLLECTOR: Final = "snmp"
"""The collector of a report that comes from the walk of a switch."""
_LEVEL: Final = 1
"""A third of the time of the usual level 6, and a fifth more bytes."""
_encode: Final = msgpack.Encoder().encode
_decode: Final = msgpack.Decoder(Device).decode


def pack_device(device: Device) -> bytes:
    """Return a device as bytes; equal devices give equal bytes. Cost: O(ports), 4 µs each."""
    return zlib.compress(_encode(device), _LEVEL)


def unpack_device(packed: bytes) -> Device:
    """Return the device that was packed. Cost: O(ports), 4 µs each."""
    return _decode(zlib.decompress(packed))


class SweptPort(NamedTuple):
    """A port of a host that is in an InfiniBand subnet."""

    subnet: str
    name: str
    rdma_device: str | None


class PackedReport(Struct, frozen=True, gc=False):
    """A report in a tenth of the memory. Reports with equal facts and status are equal."""

    name: str
    status: ReportStatus
    device_kind: DeviceKind | None
    """The kind of the reporting device; None for a part of a sweep."""
    packed: bytes
    """The facts by `pack_device`; empty for a part of a sweep."""
    num_bytes: int
    """The size of the facts before they were compressed."""
    sweep: SweepPart | None
    """The part of a sweep; None for the report of a device."""
    swept_ports: tuple[SweptPort, ...]
    """The ports of a host that are up and in an InfiniBand subnet."""

    @property
    def device(self) -> Device | None:
        """The facts; None for a part of a sweep. Cost per access: one `unpack_device`."""
        return unpack_device(self.packed) if self.packed else None

    @property
    def is_of_switch(self) -> bool:
        """Whether the report comes from the walk of a switch, not from an agent."""
        return any(row.name == SNMP_COLLECTOR for row in self.status.collectors)

    @property
    def content(self) -> Hashable:
        """The name and the facts or sweep part, without the status; only for comparing."""
        return self.name, self.packed, self.sweep


def pack_report(report: NeighborReport) -> PackedReport:
    """Return a report in packed form. Cost: O(ports), 25 µs each."""
    name, status, device = report.metadata.name, report.status, report.device
    if device is None:
        return PackedReport(name, status, None, b"", 0, report.spec.sweep, ())
    raw = _encode(device)
    packed = zlib.compress(raw, _LEVEL)
    swept = tuple(
        SweptPort(port.subnet, port.name, port.rdma_device or None)
        for port in (device.ports if device.kind is DeviceKind.HOST else ())
        if port.subnet and port.medium is Medium.INFINIBAND and port.state is PortState.UP
    )
    return PackedReport(name, status, device.kind, packed, len(raw), None, swept)


def unpack_report(report: PackedReport) -> NeighborReport:
    """Return a report in its form on the wire."""
    device = report.device
    if device is not None:
        return build_report(device, name=report.name, status=report.status)
    spec = ReportSpec(sweep=report.sweep)
    return NeighborReport(
        metadata=ReportMetadata(name=report.name), spec=spec, status=report.status
    )


class PackedClaim(LazyClaim):
    """The claim of a report: what a device says about itself."""

    __slots__ = ("_node", "packed")

    packed: bytes
    """By `pack_device`."""
    _node: str | None

    def __init__(self, packed: bytes, name: str, *, node: str | None) -> None:
        """Store a packed device.

        Args:
            packed: the device, packed by `pack_device`.
            name: the name of the device.
            node: the only node name of the device, in place of those in the report; None to keep
                the node names of the report.
        """
        super().__init__(Origin.REPORT, name)
        object.__setattr__(self, "packed", packed)
        object.__setattr__(self, "_node", node)

    @property
    def device(self) -> Device:
        """The device. Cost per access: one `unpack_device`."""
        device = unpack_device(self.packed)
        return device if self._node is None else bind_to_node(device, self._node)

    @property
    def ids(self) -> tuple[Id, ...]:
        """The ids of the device. Cost per access: one `unpack_device`."""
        return self.device.ids


def bind_to_node(device: Device, node: str) -> Device:
    """Return the device with one node name, in place of all node names that it claims."""
    return replace(device, ids=_bind_ids(device.ids, node))


def _bind_ids(ids: Iterable[Id], node: str) -> tuple[Id, ...]:
    others = {identifier for identifier in ids if identifier.kind is not IdKind.NODE_NAME}
    return tuple(sorted({*others, Id(IdKind.NODE_NAME, node)}))
