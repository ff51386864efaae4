"""NeighborReport: the versioned message from agent to generator, `neighborreports.toponaut.io`.

`build_report` and `extract_device` convert from and to facts; pydantic is used at this edge only. A
spec holds only facts, sorted and capped, so equal facts give equal bytes. Times and outcomes are in
the status. A sweep of an InfiniBand subnet is a numbered set of reports of the sweeping node.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from topology.model.errors import ReportError
from topology.model.facts import (
    Capability,
    Device,
    DeviceKind,
    GpuDistance,
    Medium,
    Neighbor,
    Port,
    PortState,
    Source,
    sort_capabilities,
)
from topology.model.ids import Id, IdKind, natural_key, parse_guid, parse_mac
from topology.model.validation import check_object, describe_validation
from topology.model.wire_model import DEFERRED, WireModel

API_VERSION: Final = "toponaut.io/v1alpha1"
REPORT_KIND: Final = "NeighborReport"
MAX_TEXT = 512  # an LLDP string is at most 511 bytes on the wire
MAX_PARTS = 128  # of one sweep; a sweep of 200,000 HCAs has 55 to 100
MAX_PART_NUMBERS = 256  # of one node: the next sweep is written beside the last one
MAX_NEIGHBORS = 4096  # of one report; a switch with 512 ports has one at each
MAX_RATE_BPS = 10**15  # sums over all cables of a fabric stay within 64 bits
MAX_NUMA_NODE = 65_535  # Linux supports at most 1024
MAX_SUBNETS = 64  # subnets that one node has ports in

Text = Annotated[str, StringConstraints(max_length=MAX_TEXT)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=253)]
Subnet = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
"""Prefix of an InfiniBand subnet."""


class ReportId(WireModel):
    """One identifier; only chassis and port ids have a `subtype`."""

    type: IdKind
    value: Text
    subtype: Text | None = None


class ReportNeighbor(WireModel):
    """What one port reports about the other end of its cable."""

    ids: Annotated[tuple[ReportId, ...], Field(max_length=64)] = ()
    name: Text = ""
    port_ids: Annotated[tuple[ReportId, ...], Field(max_length=64)] = ()
    port_name: Text = ""
    source: Source
    kind: DeviceKind = DeviceKind.UNKNOWN
    ttl_seconds: Annotated[int, Field(ge=0, le=65535)] | None = None
    capabilities: Annotated[tuple[Capability, ...], Field(max_length=len(Capability))] = ()
    """The functions that the neighbor says it has enabled, in the order of their bits in LLDP."""


class ReportPort(WireModel):
    """One physical port."""

    name: Text
    ids: Annotated[tuple[ReportId, ...], Field(max_length=64)] = ()
    medium: Medium
    state: PortState = PortState.UNKNOWN
    rate_bps: Annotated[int, Field(ge=0, le=MAX_RATE_BPS)] | None = None
    bond_master: Text | None = None
    rdma_device: Text | None = None
    pci_address: Text | None = None
    gpu_distance: GpuDistance | None = None
    numa_node: Annotated[int, Field(ge=0, le=MAX_NUMA_NODE)] | None = None
    firmware_lldp: bool | None = None
    """Whether the card's own LLDP agent consumes the frames before the host sees them."""
    subnet: Subnet | None = None
    """Prefix of its InfiniBand subnet, 16 hex digits."""
    neighbors: Annotated[tuple[ReportNeighbor, ...], Field(max_length=1024)] = ()


class ReportDevice(WireModel):
    """The reporting device itself."""

    kind: DeviceKind
    name: Text
    ids: Annotated[tuple[ReportId, ...], Field(max_length=1024)] = ()


class SweepPart(WireModel):
    """One numbered part of an InfiniBand sweep; only a complete set of parts counts."""

    subnet: Name
    """Subnet prefix, 16 hex digits."""
    sweep_id: Name
    """Hash of the whole sweep's facts."""
    part: Annotated[int, Field(ge=0, lt=MAX_PARTS)]
    of: Annotated[int, Field(ge=1, le=MAX_PARTS)]
    encoding: Literal["ibnetdiscover+zlib+base64"] = "ibnetdiscover+zlib+base64"
    facts: Annotated[str, StringConstraints(max_length=256 * 1024)]


class ReportSpec(WireModel):
    """The facts: a device with its ports, or a part of a sweep."""

    device: ReportDevice | None = None
    ports: Annotated[tuple[ReportPort, ...], Field(max_length=4096)] = ()
    sweep: SweepPart | None = None


class CollectorOutcome(WireModel):
    """The outcome of the last run of one collector."""

    name: Name
    outcome: Literal["ok", "no-data", "failed"]
    message: Text = ""


class SweepStanding(WireModel):
    """Whether a node can sweep, and which subnets it could not sweep."""

    able: bool = False
    """Whether the sweep program is installed on the node."""
    failed: Annotated[tuple[Subnet, ...], Field(max_length=MAX_SUBNETS)] = ()
    """Subnets, sorted, whose last sweep by this node failed."""
    refused: Annotated[tuple[Subnet, ...], Field(max_length=MAX_SUBNETS)] = ()
    """Subnets, sorted, where every query of this node's last sweep timed out, as with an M_Key."""


class ReportStatus(WireModel):
    """When and how the facts were collected."""

    observed_at: Text | None = None
    """RFC 3339 in UTC."""
    agent_version: Text | None = None
    collectors: Annotated[tuple[CollectorOutcome, ...], Field(max_length=64)] = ()
    sweeping: SweepStanding | None = None
    """None if the node does not take part in sweeping."""
    flapping: Annotated[tuple[Text, ...], Field(max_length=4096)] = ()
    """Names, sorted, of the ports that lost their link several times within the last hour."""


class ReportMetadata(BaseModel):
    """The object's name; the fields that an API server adds are accepted and dropped."""

    model_config = ConfigDict(**DEFERRED, extra="ignore", frozen=True)

    name: Name


class SweptPort(NamedTuple):
    """A port of a host that is in an InfiniBand subnet."""

    subnet: str
    name: str
    rdma_device: str | None


def swept_ports_of(device: Device | None) -> tuple[SweptPort, ...]:
    """Return the ports of a host that are up and in an InfiniBand subnet, in their order."""
    if device is None or device.kind is not DeviceKind.HOST:
        return ()
    return tuple(
        SweptPort(port.subnet, port.name, port.rdma_device or None)
        for port in device.ports
        if port.subnet and is_swept_port(port)
    )


def is_swept_port(port: Port) -> bool:
    """Return whether a port is up and in an InfiniBand subnet."""
    is_up = port.medium is Medium.INFINIBAND and port.state is PortState.UP
    return is_up and bool(port.subnet)


class NeighborReport(WireModel):
    """The facts of one reporter: a device, or a part of a sweep."""

    api_version: Literal["toponaut.io/v1alpha1"] = API_VERSION
    kind: Literal["NeighborReport"] = REPORT_KIND
    metadata: ReportMetadata
    spec: ReportSpec
    status: ReportStatus = ReportStatus.model_construct()

    @property
    def device_kind(self) -> DeviceKind | None:
        """The kind of the reporting device; None for a part of a sweep."""
        return None if self.spec.device is None else self.spec.device.kind

    @property
    def sweep(self) -> SweepPart | None:
        """The part of a sweep; None for the report of a device."""
        return self.spec.sweep

    @property
    def content(self) -> Hashable:
        """The name and the spec, without the status."""
        return self.metadata.name, self.spec

    @property
    def device(self) -> Device | None:
        """The facts; None for a part of a sweep."""
        return extract_device(self)

    @property
    def swept_ports(self) -> tuple[SweptPort, ...]:
        """The ports of a host that are up and in an InfiniBand subnet."""
        return swept_ports_of(self.device)

    def to_wire(self) -> NeighborReport:
        """Return the report itself."""
        return self


def parse_report(document: object) -> NeighborReport:
    """Return the report in a decoded document.

    Raises:
        ReportError: another version, an unknown or missing field, or a value out of range; the
            message names every wrong field.
    """
    document_or_problem = check_object(document, REPORT_KIND, API_VERSION)
    if isinstance(document_or_problem, str):
        raise ReportError(document_or_problem)
    try:
        report = NeighborReport.model_validate(document_or_problem)
    except ValidationError as error:
        raise ReportError("; ".join(describe_validation(error))) from error
    if (report.spec.device is None) == (report.spec.sweep is None):
        raise ReportError("spec: expected exactly one of device and sweep")
    return report


def render_report(report: NeighborReport) -> dict[str, Any]:
    """Return the report as plain camelCase data; absent and empty fields are left out."""
    return report.model_dump(mode="json", by_alias=True, exclude_defaults=True) | {
        "apiVersion": API_VERSION,
        "kind": REPORT_KIND,
    }


def build_report(
    device: Device, *, name: str, status: ReportStatus | None = None
) -> NeighborReport:
    """Return the report of a device; ids, ports and neighbors sorted, foreign text capped."""
    ports = sorted(device.ports, key=lambda port: (natural_key(port.name), port.name))
    kind = DeviceKind.SWITCH if device.kind is DeviceKind.SWITCH else DeviceKind.HOST
    return NeighborReport(
        metadata=ReportMetadata(name=name),
        spec=ReportSpec(
            device=ReportDevice(kind=kind, name=_cap(device.name), ids=_render_ids(device.ids)),
            ports=tuple(_render_port(port) for port in ports),
        ),
        status=status or ReportStatus(),
    )


def extract_device(report: NeighborReport) -> Device | None:
    """Return the facts of a report; None for a part of a sweep."""
    device = report.spec.device
    if device is None:
        return None
    return Device(
        kind=device.kind,
        name=device.name,
        ids=_parse_ids(device.ids),
        ports=tuple(_parse_port(port) for port in report.spec.ports),
    )


def _cap(text: str) -> str:
    return text[:MAX_TEXT]


def _cap_optional(text: str | None) -> str | None:
    return None if text is None else _cap(text)


def _drop_if_above(number: int | None, limit: int) -> int | None:
    """Return the number, or None if it is too large to be plausible."""
    return None if number is None or number > limit else number


def _render_ids(ids: Iterable[Id]) -> tuple[ReportId, ...]:
    return tuple(
        ReportId(
            type=identifier.kind,
            value=_cap(identifier.value),
            subtype=_cap(identifier.subtype) or None,
        )
        for identifier in sorted(ids)
    )


def _parse_ids(ids: Iterable[ReportId]) -> tuple[Id, ...]:
    """Return ids in canonical form; ids that identify nothing, such as MAC 0, are dropped."""
    found = {canonical_id(one.type, one.value, one.subtype or "") for one in ids}
    return tuple(sorted(identifier for identifier in found if identifier is not None))


def canonical_id(kind: IdKind, value: str, subtype: str) -> Id | None:
    """Return an id in canonical form; None if it identifies nothing, as MAC 0 does."""
    found: str | None = value
    if is_guid_kind(kind):
        found = parse_guid(value)
    elif is_mac_kind(kind, subtype):
        found = parse_mac(value)
    return None if found is None else Id(kind, found, subtype)


def is_guid_kind(kind: IdKind) -> bool:
    """Return whether the values of a kind are GUIDs."""
    return kind in _GUID_KINDS


def is_mac_kind(kind: IdKind, subtype: str) -> bool:
    """Return whether the values of a kind and subtype are MACs."""
    return kind is IdKind.MAC or (subtype == "mac" and kind in _LLDP_KINDS)


_GUID_KINDS: Final = frozenset({IdKind.NODE_GUID, IdKind.PORT_GUID, IdKind.SYSTEM_IMAGE_GUID})
_LLDP_KINDS: Final = frozenset({IdKind.CHASSIS_ID, IdKind.PORT_ID})


def _render_port(port: Port) -> ReportPort:
    neighbors = [
        ReportNeighbor(
            ids=_render_ids(neighbor.device_ids),
            name=_cap(neighbor.device_name),
            port_ids=_render_ids(neighbor.port_ids),
            port_name=_cap(neighbor.port_name),
            source=neighbor.source,
            kind=neighbor.kind,
            ttl_seconds=neighbor.ttl_s,
            capabilities=sort_capabilities(neighbor.capabilities),
        )
        for neighbor in sorted(set(port.neighbors), key=repr)
    ]
    return ReportPort(
        name=_cap(port.name),
        ids=_render_ids(port.ids),
        medium=port.medium,
        state=port.state,
        rate_bps=_drop_if_above(port.rate_bps, MAX_RATE_BPS),
        bond_master=_cap_optional(port.bond_master),
        rdma_device=_cap_optional(port.rdma_device),
        pci_address=_cap_optional(port.pci_address),
        gpu_distance=port.gpu_distance,
        numa_node=_drop_if_above(port.numa_node, MAX_NUMA_NODE),
        firmware_lldp=port.firmware_lldp,
        subnet=port.subnet,
        neighbors=tuple(neighbors),
    )


def _parse_port(port: ReportPort) -> Port:
    return Port(
        name=port.name,
        ids=_parse_ids(port.ids),
        medium=port.medium,
        state=port.state,
        rate_bps=port.rate_bps,
        bond_master=port.bond_master,
        rdma_device=port.rdma_device,
        pci_address=port.pci_address,
        gpu_distance=port.gpu_distance,
        numa_node=port.numa_node,
        firmware_lldp=port.firmware_lldp,
        subnet=port.subnet,
        neighbors=tuple(
            Neighbor(
                device_ids=_parse_ids(neighbor.ids),
                device_name=neighbor.name,
                port_ids=_parse_ids(neighbor.port_ids),
                port_name=neighbor.port_name,
                source=neighbor.source,
                kind=neighbor.kind,
                ttl_s=neighbor.ttl_seconds,
                capabilities=sort_capabilities(neighbor.capabilities),
            )
            for neighbor in port.neighbors
        ),
    )
