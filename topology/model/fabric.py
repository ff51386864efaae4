"""Claims to a Fabric: devices with one identity each, and links paired from both ends.

Nothing is dropped: a cable that only one end reports is a link with one side, parallel cables
stay parallel, and what contradicts itself becomes a finding. Which links matter to jobs is
decided in `planes`, what they mean in `tiers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from topology.model.fabric_columns import (
    KIND_CODES,
    MEDIUM_CODES,
    STATE_CODES,
    FabricColumns,
    LinkColumns,
    rate_column,
)
from topology.model.facts import DeviceKind, Finding, GpuDistance, Medium, PortName, PortState
from topology.model.ids import Id


class FabricDevice(NamedTuple):
    """One device; its index in `Fabric.devices` is its number everywhere else."""

    name: str
    """Unique: the node name, else the device's own, else its lowest id."""
    kind: DeviceKind
    node: str | None
    """The cluster node it is, None for switches and for hosts that are none."""
    ids: Sequence[Id]
    """Sorted."""
    is_reporting: bool = True
    """It speaks for itself, so that its silence about a cable means much."""
    has_report: bool = False
    """An agent reports for it; only that tells what no cable of the network shows."""


class FabricPort(NamedTuple):
    """One port; its index in `Fabric.ports` is its number in links."""

    device: int
    name: str
    medium: Medium
    state: PortState
    rate_bps: int | None
    rdma_device: str | None
    gpu_distance: GpuDistance | None
    firmware_lldp: bool | None = None
    """Whether its card eats LLDP frames; None where nothing tells."""
    subnet: str | None = None
    """Prefix of its InfiniBand subnet, where its owner tells."""


class Link(NamedTuple):
    """One cable between two ports, `a` < `b`."""

    a: int
    b: int
    is_one_sided: bool
    """Only one end reports it although the other could have."""
    is_disputed: bool
    """The end that does not report it is on another cable, which both of its ends confirm."""
    rate_bps: int | None
    """The lower of what the two ends say."""


@dataclass(frozen=True, slots=True)
class Fabric:
    """Everything that is known about how devices are wired; devices in natural name order."""

    devices: Sequence[FabricDevice]
    ports: Sequence[FabricPort]
    """Grouped by device."""
    links: Sequence[Link]
    """Sorted by ports."""
    findings: tuple[Finding, ...]
    columns: FabricColumns | None = field(default=None, compare=False, repr=False)
    """The same as arrays, where it was made of arrays; see `build_columns`."""

    def port_name(self, port: int) -> PortName:
        """Return a port as people find it."""
        found = self.ports[port]
        return PortName(self.devices[found.device].name, found.name)

    def show_link(self, link: Link) -> str:
        """Return both ends of a link as a message names them."""
        ends = (self.port_name(link.a), self.port_name(link.b))
        return " and ".join(f"{end.device} port {end.port}" for end in ends)


def columns_of(fabric: Fabric) -> FabricColumns:
    """Return a fabric's arrays, made of its rows where it has none. Cost: O(ports + links)."""
    if fabric.columns is not None:
        return fabric.columns
    return FabricColumns(
        names=[device.name for device in fabric.devices],
        nodes=[device.node for device in fabric.devices],
        kinds=np.array([KIND_CODES[device.kind] for device in fabric.devices], np.uint8),
        port_devices=np.array([port.device for port in fabric.ports], np.intp),
        port_names=[port.name for port in fabric.ports],
        media=np.array([MEDIUM_CODES[port.medium] for port in fabric.ports], np.uint8),
        states=np.array([STATE_CODES[port.state] for port in fabric.ports], np.uint8),
        rates=rate_column([port.rate_bps for port in fabric.ports]),
        has_gpu_distance=np.array(
            [port.gpu_distance is not None for port in fabric.ports], np.bool_
        ),
        links=LinkColumns(
            a=np.array([link.a for link in fabric.links], np.intp),
            b=np.array([link.b for link in fabric.links], np.intp),
            is_one_sided=np.array([link.is_one_sided for link in fabric.links], np.bool_),
            is_disputed=np.array([link.is_disputed for link in fabric.links], np.bool_),
            rates=rate_column([link.rate_bps for link in fabric.links]),
        ),
    )
