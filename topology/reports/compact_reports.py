"""Reports in a compact form, as the generator stores tens of thousands: the facts are bytes.

`NeighborReport` is the form on the wire. Both forms implement the protocol `Report`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from topology.model.facts import Device, DeviceKind
from topology.reports.neighbor_report import (
    NeighborReport,
    ReportMetadata,
    ReportSpec,
    ReportStatus,
    SweepPart,
    SweptPort,
    build_report,
    parse_report,
    swept_ports_of,
)
from topology.reports.packed_devices import pack_and_measure, pack_text, unpack_device
from topology.reports.plain_reports import read_plain_report
from topology.reports.report_shapes import Likeness, ReportShapes


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


@dataclass(frozen=True, slots=True)
class CompactReport:
    """A report in a twentieth of the memory. Reports with equal facts and status are equal."""

    name: str
    status: ReportStatus
    facts: PackedFacts | None
    """None for a part of a sweep."""
    sweep: SweepPart | None
    likeness: Likeness | None = field(default=None, compare=False, repr=False)
    """What is known of the facts without unpacking them, if the report was read by its shape."""

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
    facts = None if device is None else _pack_facts(device)
    return CompactReport(report.metadata.name, report.status, facts, report.sweep)


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
    return CompactReport(plain.name, plain.status, _pack_facts(plain.device), None)


def compact_file(raw: bytes, shapes: ReportShapes) -> CompactReport | None:
    """Return the report in a file in compact form, read by its shape.

    Equal to what `compact_document` returns; None if the file must be read in that way.

    Args:
        raw: the file.
        shapes: the shapes of earlier files; learns from this one.
    """
    shaped = shapes.read(raw)
    if shaped is None:
        return None
    facts = PackedFacts(
        kind=shaped.likeness.sample.device.kind,
        name=shaped.device_name,
        packed=pack_text(shaped.text),
        swept_ports=shaped.swept_ports,
        num_bytes=len(shaped.text),
        num_neighbors=shaped.num_neighbors,
    )
    return CompactReport(shaped.name, shaped.status, facts, None, shaped.likeness)


def _pack_facts(device: Device) -> PackedFacts:
    packed, num_bytes = pack_and_measure(device)
    return PackedFacts(
        kind=device.kind,
        name=device.name,
        packed=packed,
        swept_ports=swept_ports_of(device),
        num_bytes=num_bytes,
        num_neighbors=sum(len(port.neighbors) for port in device.ports),
    )
