"""Fabric: all devices with one identity each, and all links with both their ports.

A fabric drops nothing: a cable that only one end reports is a one-sided link, parallel cables stay
parallel, and a contradiction becomes a finding. The package `join` builds a fabric out of claims.
`planes` decides which links matter to jobs, `tiers` what they mean.

A fabric has its content twice: as rows, which are built on demand, and as arrays, so that the
inference needs no object for each port and link. Ids are only in the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from topology.model.facts import DeviceKind, Finding, GpuDistance, Medium, PortName, PortState
from topology.model.ids import Id
from topology.model.lazy_rows import LazyRows

Index: TypeAlias = NDArray[np.intp]
Codes: TypeAlias = NDArray[np.uint8]
Flags: TypeAlias = NDArray[np.bool_]
Rates: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.int32]

KINDS: Final = tuple(DeviceKind)
MEDIA: Final = tuple(Medium)
STATES: Final = tuple(PortState)
DISTANCES: Final[tuple[GpuDistance | None, ...]] = (None, *GpuDistance)
KIND_CODES: Final = {kind: code for code, kind in enumerate(KINDS)}
MEDIUM_CODES: Final = {medium: code for code, medium in enumerate(MEDIA)}
STATE_CODES: Final = {state: code for code, state in enumerate(STATES)}
DISTANCE_CODES: Final = {distance: code for code, distance in enumerate(DISTANCES)}
UNKNOWN_RATE: Final = -1


class LinkColumns(NamedTuple):
    """The arrays of links, one entry per link."""

    a: Index
    """The lower port."""
    b: Index
    is_one_sided: Flags
    is_disputed: Flags
    rates: Rates
    """The lower of the rates that the two ends report."""

    def rows(self) -> LazyRows[Link]:
        """Return the links as rows that are built on demand."""
        return LazyRows(len(self.a), self._rows_at)

    def _rows_at(self, indices: Sequence[int]) -> Iterator[Link]:
        chosen = np.fromiter(indices, np.intp, len(indices))
        a, b, one_sided, disputed, rates = (column[chosen].tolist() for column in self)
        return map(Link, a, b, one_sided, disputed, map(rate_or_none, rates))


class NameCodes(NamedTuple):
    """The names of ports as codes; ports of one rail share few distinct names."""

    codes: Index
    """One entry per port: the index of its name in `texts`."""
    texts: Sequence[str]
    """Distinct names."""


class PortNames(LazyRows[str]):
    """Names of ports, built on demand; `code` builds each distinct name only once."""

    def __init__(
        self,
        size: int,
        make: Callable[[Sequence[int]], Iterator[str]],
        code: Callable[[Index], NameCodes],
    ) -> None:
        """Store the functions that build names.

        Args:
            size: the number of ports.
            make: the same argument as in `LazyRows`.
            code: returns the names of the given ports as codes.
        """
        super().__init__(size, make)
        self.code: Final = code


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


class FabricColumns(NamedTuple):
    """The arrays of a fabric; codes are indices into KINDS, MEDIA, STATES and DISTANCES."""

    names: Sequence[str]
    """Per device, as are the next two columns."""
    nodes: Sequence[str | None]
    kinds: Codes
    port_devices: Index
    """Per port, as are the next six columns."""
    port_names: PortNames
    media: Codes
    states: Codes
    rates: Rates
    """Bits per second; UNKNOWN_RATE if unknown."""
    distances: Codes
    """The distance to the nearest GPU; 0 if unknown."""
    roce_devices: Numbers
    """A number for the name of an Ethernet port's RDMA device; 0 if none is known."""
    links: LinkColumns
    has_shared_image: Flags
    """Per device, whether another device has the same system image GUID."""


@dataclass(frozen=True, slots=True)
class Fabric:
    """All devices, ports and links that are known, and how they are wired."""

    devices: Sequence[FabricDevice]
    """The devices in natural order of their names."""
    ports: LazyRows[FabricPort]
    """Grouped by device."""
    links: LazyRows[Link]
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


def rate_or_none(rate: int) -> int | None:
    """Return a rate of a column as the rows hold it: None if unknown."""
    return None if rate == UNKNOWN_RATE else rate


def rate_column(rates: Sequence[int | None]) -> Rates:
    """Return the rates of rows as a column."""
    return np.array([UNKNOWN_RATE if rate is None else rate for rate in rates], np.int64)
