"""Reports in a compact form, as the generator stores tens of thousands: the facts are bytes.

`NeighborReport` is the form on the wire. Both forms implement the protocol `Report`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from topology.model.facts import Device, DeviceKind
from topology.reports.host_summaries import HostSummary, summarize_host
from topology.reports.neighbor_report import (
    NeighborReport,
    ReportMetadata,
    ReportSpec,
    ReportStatus,
    SweepPart,
    SweptPort,
    build_report,
    parse_report,
)
from topology.reports.packed_devices import (
    ShapedDevice,
    pack_and_measure,
    shape_device,
    unpack_device,
)
from topology.reports.plain_reports import read_plain_report
from topology.reports.report_shapes import ReportShapes


class NamedObject(Protocol):
    """The metadata of an object, as far as its name."""

    @property
    def name(self) -> str:
        """The name of the object."""
        ...


class Report(Protocol):
    """The facts of one reporter, in any form."""

    @property
    def metadata(self) -> NamedObject:
        """The metadata with the object's name."""
        ...

    @property
    def status(self) -> ReportStatus:
        """When and how the facts were collected."""
        ...

    @property
    def device_kind(self) -> DeviceKind | None:
        """The kind of the reporting device; None for a part of a sweep."""
        ...

    @property
    def sweep(self) -> SweepPart | None:
        """The part of a sweep; None for the report of a device."""
        ...

    @property
    def device(self) -> Device | None:
        """The facts; None for a part of a sweep. Packed facts are unpacked on every access."""
        ...

    @property
    def content(self) -> Hashable:
        """The name and the facts or sweep part, without the status; only for comparing."""
        ...

    @property
    def swept_ports(self) -> tuple[SweptPort, ...]:
        """The ports of a host that are up and in an InfiniBand subnet."""
        ...

    def to_wire(self) -> NeighborReport:
        """Return the report in its form on the wire."""
        ...


class _ObjectName(NamedTuple):
    name: str


class PackedFacts(NamedTuple):
    """A device as bytes, beside the fields that are read often."""

    kind: DeviceKind
    name: str
    packed: bytes
    """By `pack_device`."""
    swept_ports: tuple[SweptPort, ...]
    """The ports that are up and in an InfiniBand subnet. Nodes with equal ports share the tuple."""
    num_bytes: int = 0
    """The size of the facts before they were packed: what a small packed report may unpack to."""
    num_neighbors: int = 0
    """The number of neighbor entries at all ports."""
    num_neighbor_ids: int = 0
    """The number of ids in these entries."""


@dataclass(frozen=True, slots=True)
class CompactReport:
    """A report in a twentieth of the memory. Reports with equal facts and status are equal."""

    name: str
    status: ReportStatus
    facts: PackedFacts | None
    """None for a part of a sweep."""
    sweep: SweepPart | None
    summary: HostSummary | None = field(default=None, compare=False, repr=False)
    """What is known of a host without unpacking its facts."""

    @property
    def metadata(self) -> _ObjectName:
        """The metadata with the object's name."""
        return _ObjectName(self.name)

    @property
    def device_kind(self) -> DeviceKind | None:
        """The kind of the reporting device; None for a part of a sweep."""
        return None if self.facts is None else self.facts.kind

    @property
    def device(self) -> Device | None:
        """The facts; None for a part of a sweep. Cost per access: one `unpack_device`."""
        return None if self.facts is None else unpack_device(self.facts.packed)

    @property
    def content(self) -> Hashable:
        """The name and the facts or sweep part, without the status."""
        return self.name, self.facts, self.sweep

    @property
    def swept_ports(self) -> tuple[SweptPort, ...]:
        """The ports of a host that are up and in an InfiniBand subnet."""
        return () if self.facts is None else self.facts.swept_ports

    def to_wire(self) -> NeighborReport:
        """Return the report in its form on the wire."""
        device = self.device
        if device is not None:
            return build_report(device, name=self.name, status=self.status)
        return NeighborReport(
            metadata=ReportMetadata(name=self.name),
            spec=ReportSpec(sweep=self.sweep),
            status=self.status,
        )


def compact_report(report: NeighborReport) -> CompactReport:
    """Return a report in compact form."""
    device = report.device
    if device is None:
        return CompactReport(report.metadata.name, report.status, None, report.sweep)
    return _compact(report.metadata.name, report.status, device.name, shape_device(device))


def compact_document(
    document: object, parse: Callable[[object], NeighborReport] = parse_report
) -> CompactReport:
    """Return the report in a decoded document in compact form.

    Args:
        document: JSON types.
        parse: returns the report of a document that is not plain, or refuses it.

    Raises:
        ReportError: as `parse` does.
    """
    plain = read_plain_report(document)
    if plain is None:
        return compact_report(parse(document))
    return _compact(plain.name, plain.status, plain.device.name, shape_device(plain.device))


def compact_file(raw: bytes, shapes: ReportShapes) -> CompactReport | None:
    """Return the report in a file in compact form, read by the shapes of its ports.

    Equal to what `compact_document` returns; None if the file must be read in that way.

    Args:
        raw: the file.
        shapes: the shapes of earlier files; learns from this one.
    """
    shaped = shapes.read(raw)
    return None if shaped is None else _compact(*shaped)


def _compact(
    name: str, status: ReportStatus, device_name: str, device: ShapedDevice
) -> CompactReport:
    summary = summarize_host(device)
    packed, num_bytes = pack_and_measure(device)
    facts = PackedFacts(
        kind=device.head.device.kind,
        name=device_name,
        packed=packed,
        swept_ports=() if summary is None else summary.swept_ports,
        num_bytes=num_bytes,
        num_neighbors=device.num_neighbors,
        num_neighbor_ids=device.num_neighbor_ids,
    )
    return CompactReport(name, status, facts, None, summary)
