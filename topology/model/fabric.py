"""Fabric: all devices with one identity each, and all links with both their ports.

A fabric drops nothing: a cable that only one end reports is a one-sided link, parallel cables stay
parallel, and a contradiction becomes a finding. The package `join` builds a fabric out of claims.
`planes` decides which links matter to jobs, `tiers` what they mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from topology.model.fabric_columns import (
    FabricColumns,
)
from topology.model.facts import DeviceKind, Finding, GpuDistance, Medium, PortName, PortState
from topology.model.ids import Id


class FabricDevice(NamedTuple):
    """One device; its device number is its index in `Fabric.devices`."""

    name: str
    """Unique: the node name, else the device's own name, else its lowest id."""
    kind: DeviceKind
    node: str | None
    """The cluster node that this host is; None for switches and for hosts outside the cluster."""
    ids: Sequence[Id]
    """Sorted."""
    is_reporting: bool = True
    """A source describes the device itself, so a cable missing there is evidence against it."""
    has_report: bool = False
    """Its agent or an SNMP walk reports it; only a report shows links that are not network cables,
    such as NVLink."""


class FabricPort(NamedTuple):
    """One port; links refer to it by its index in `Fabric.ports`."""

    device: int
    name: str
    medium: Medium
    state: PortState
    rate_bps: int | None
    rdma_device: str | None
    gpu_distance: GpuDistance | None
    firmware_lldp: bool | None = None
    """Whether the card consumes LLDP frames before the host sees them; None if unknown."""
    subnet: str | None = None
    """Prefix of its InfiniBand subnet; None if its owner does not report it."""


class Link(NamedTuple):
    """One cable between two ports, `a` < `b`."""

    a: int
    b: int
    is_one_sided: bool
    """Only one end reports the link although the other end could."""
    is_disputed: bool
    """The silent end is on another cable, and both ends of that cable confirm it."""
    rate_bps: int | None
    """The lower of the rates that the two ends report."""


@dataclass(frozen=True, slots=True)
class Fabric:
    """All devices, ports and links that are known, and how they are wired."""

    devices: Sequence[FabricDevice]
    """The devices in natural order of their names."""
    ports: Sequence[FabricPort]
    """Grouped by device."""
    links: Sequence[Link]
    """Sorted by ports."""
    findings: tuple[Finding, ...]
    columns: FabricColumns = field(compare=False, repr=False)
    """The same content as arrays."""

    def port_name(self, port: int) -> PortName:
        """Return the device name and the port name of a port number."""
        row = self.ports[port]
        return PortName(self.devices[row.device].name, row.name)

    def show_link(self, link: Link) -> str:
        """Return both ends of a link as text for a message."""
        ends = (self.port_name(link.a), self.port_name(link.b))
        return " and ".join(f"{end.device} port {end.port}" for end in ends)
