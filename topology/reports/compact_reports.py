"""Reports as a reader of ten thousand keeps them: the facts as bytes, equal statuses as one.

`NeighborReport` is what crosses the wire; both are a `Report` to whoever reads them.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
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
    swept_ports_of,
)
from topology.reports.packed_devices import pack_device, unpack_device


class NamedObject(Protocol):
    """What carries the name of an object."""

    @property
    def name(self) -> str:
        """The name."""
        ...


class Report(Protocol):
    """One reporter's facts, however they are kept."""

    @property
    def metadata(self) -> NamedObject:
        """The object's name."""
        ...

    @property
    def status(self) -> ReportStatus:
        """When and how the facts were collected."""
        ...

    @property
    def device_kind(self) -> DeviceKind | None:
        """What the reporting device is, None for a part of a sweep."""
        ...

    @property
    def sweep(self) -> SweepPart | None:
        """The part of a sweep, None for a device."""
        ...

    @property
    def device(self) -> Device | None:
        """The facts, None for a part of a sweep; where they are packed, made for each who asks."""
        ...

    @property
    def content(self) -> Hashable:
        """All that it says, but not how and when that was found out; only for comparing."""
        ...

    @property
    def swept_ports(self) -> tuple[SweptPort, ...]:
        """The ports of a host that are in an InfiniBand subnet and up."""
        ...

    def to_wire(self) -> NeighborReport:
        """Return it as it is on the wire."""
        ...


class _ObjectName(NamedTuple):
    name: str


class PackedFacts(NamedTuple):
    """A device as bytes, and what is often asked of it."""

    kind: DeviceKind
    name: str
    packed: bytes
    """By `pack_device`."""
    swept_ports: tuple[SweptPort, ...]
    """Those in InfiniBand subnets: what most nodes have alike is one object."""


@dataclass(frozen=True, slots=True)
class CompactReport:
    """A report in a twentieth of the memory. Those of equal facts and status are equal."""

    name: str
    status: ReportStatus
    facts: PackedFacts | None
    """None for a part of a sweep."""
    sweep: SweepPart | None

    @property
    def metadata(self) -> _ObjectName:
        """The object's name."""
        return _ObjectName(self.name)

    @property
    def device_kind(self) -> DeviceKind | None:
        """What the reporting device is, None for a part of a sweep."""
        return None if self.facts is None else self.facts.kind

    @property
    def device(self) -> Device | None:
        """The facts, made anew; None for a part of a sweep. Cost: that of `unpack_device`."""
        return None if self.facts is None else unpack_device(self.facts.packed)

    @property
    def content(self) -> Hashable:
        """All that it says, but not how and when that was found out."""
        return self.name, self.facts, self.sweep

    @property
    def swept_ports(self) -> tuple[SweptPort, ...]:
        """The ports of a host that are in an InfiniBand subnet and up."""
        return () if self.facts is None else self.facts.swept_ports

    def to_wire(self) -> NeighborReport:
        """Return it as it is on the wire."""
        device = self.device
        if device is not None:
            return build_report(device, name=self.name, status=self.status)
        return NeighborReport(
            metadata=ReportMetadata(name=self.name),
            spec=ReportSpec(sweep=self.sweep),
            status=self.status,
        )


def compact_report(report: NeighborReport) -> CompactReport:
    """Return a report as it is kept."""
    device = report.device
    facts = None
    if device is not None:
        swept = swept_ports_of(device)
        facts = PackedFacts(device.kind, device.name, pack_device(device), swept)
    return CompactReport(report.metadata.name, report.status, facts, report.sweep)
