"""NeighborReport: the versioned message from agent to generator, `neighborreports.toponaut.io`.

`build_report` makes a report of facts, and `NeighborReport.device` returns them. msgspec reads and
checks a report in one pass, in a tenth of the time of pydantic, and stops at the first wrong value.
A spec holds only facts, sorted and capped, so equal facts give equal bytes. Times and outcomes are
in the status.

The schema of an API server refuses fields that no version knows. A field in an object that this
version does not know is therefore from a newer agent: it is dropped, and the other fields count.

A sweep of an InfiniBand subnet is a numbered set of reports of the sweeping node. An agent may lack
the permission to delete its objects, so it withdraws a part by writing an empty part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import eq
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct, inspect

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
from topology.model.ids import Id, IdKind, natural_key, parse_id
from topology.model.validation import check_object, describe_refusal

API_VERSION: Final = "toponaut.io/v1alpha1"
REPORT_KIND: Final = "NeighborReport"
MAX_TEXT = 512  # an LLDP string is at most 511 bytes on the wire
MAX_PARTS = 128  # of one sweep; a sweep of 200,000 HCAs has 55 to 100
MAX_PART_NUMBERS = 256  # of one node: the next sweep is written beside the last one
MAX_NEIGHBORS = 4096  # of one report; a switch with 512 ports has one at each
MAX_RATE_BPS = 10**15  # sums over all cables of a fabric stay within 64 bits
MAX_NUMA_NODE = 65_535  # Linux supports at most 1024
MAX_SUBNETS = 64  # subnets that one node has ports in

_WITHDRAWN: Final = "withdrawn"
"""The sweep id of a withdrawn part; it cannot be the hash of a sweep."""

_Text = Annotated[str, Meta(max_length=MAX_TEXT)]
_Name = Annotated[str, Meta(min_length=1, max_length=253)]
# Python's `$` also matches before a line break at the end, hence the length.
_Subnet = Annotated[str, Meta(pattern="^[0-9a-f]{16}$", max_length=16)]
"""Prefix of an InfiniBand subnet."""


class _Message(
    Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True, gc=False
):
    """A part of a report: camelCase on the wire, and an unknown field is refused."""


class ReportId(_Message, frozen=True):
    """One identifier; only chassis and port ids have a `subtype`."""

    type: IdKind
    value: _Text
    subtype: _Text | None = None


def _parse_ids(ids: Sequence[ReportId]) -> tuple[Id, ...]:
    """Return ids in canonical form; ids that identify nothing, such as MAC 0, are dropped."""
    parsed = [parse_id(one.type, one.value, one.subtype or "") for one in ids]
    canonical = [identifier for identifier in parsed if identifier is not None]
    if len(canonical) > 1:
        canonical.sort()  # those of our own reports are sorted and distinct already
        if any(map(eq, canonical, canonical[1:])):
            canonical = list(dict.fromkeys(canonical))
    return tuple(canonical)


class ReportNeighbor(_Message, frozen=True, kw_only=True):
    """What one port reports about the other end of its cable."""

    ids: Annotated[tuple[ReportId, ...], Meta(max_length=64)] = ()
    name: _Text = ""
    port_ids: Annotated[tuple[ReportId, ...], Meta(max_length=64)] = ()
    port_name: _Text = ""
    source: Source
    kind: DeviceKind = DeviceKind.UNKNOWN
    ttl_seconds: Annotated[int, Meta(ge=0, le=65535)] | None = None
    capabilities: Annotated[tuple[Capability, ...], Meta(max_length=len(Capability))] = ()
    """The functions that the neighbor says it has enabled, in the order of their bits in LLDP."""

    @property
    def facts(self) -> Neighbor:
        """The neighbor as facts."""
        return Neighbor(
            _parse_ids(self.ids),
            self.name,
            _parse_ids(self.port_ids),
            self.port_name,
            self.source,
            self.kind,
            self.ttl_seconds,
            sort_capabilities(self.capabilities),
        )


class ReportPort(_Message, frozen=True, kw_only=True):
    """One physical port."""

    name: _Text
    ids: Annotated[tuple[ReportId, ...], Meta(max_length=64)] = ()
    medium: Medium
    state: PortState = PortState.UNKNOWN
    rate_bps: Annotated[int, Meta(ge=0, le=MAX_RATE_BPS)] | None = None
    bond_master: _Text | None = None
    rdma_device: _Text | None = None
    pci_address: _Text | None = None
    gpu_distance: GpuDistance | None = None
    numa_node: Annotated[int, Meta(ge=0, le=MAX_NUMA_NODE)] | None = None
    firmware_lldp: bool | None = None
    """Whether the card's own LLDP agent consumes the frames before the host sees them."""
    subnet: _Subnet | None = None
    """Prefix of its InfiniBand subnet, 16 hex digits."""
    neighbors: Annotated[tuple[ReportNeighbor, ...], Meta(max_length=1024)] = ()

    @property
    def facts(self) -> Port:
        """The port as facts."""
        return Port(
            self.name,
            _parse_ids(self.ids),
            self.medium,
            self.state,
            self.rate_bps,
            self.bond_master,
            self.rdma_device,
            self.pci_address,
            self.gpu_distance,
            tuple([neighbor.facts for neighbor in self.neighbors]),
            self.numa_node,
            self.firmware_lldp,
            self.subnet,
        )


class ReportDevice(_Message, frozen=True):
    """The reporting device itself."""

    kind: DeviceKind
    name: _Text
    ids: Annotated[tuple[ReportId, ...], Meta(max_length=1024)] = ()


class SweepPart(_Message, frozen=True, kw_only=True):
    """One numbered part of an InfiniBand sweep; only a complete set of parts counts."""

    subnet: _Name
    """Subnet prefix, 16 hex digits."""
    sweep_id: _Name
    """Hash of the whole sweep's facts."""
    part: Annotated[int, Meta(ge=0, lt=MAX_PARTS)]
    of: Annotated[int, Meta(ge=1, le=MAX_PARTS)]
    encoding: Literal["ibnetdiscover+zlib+base64"] = "ibnetdiscover+zlib+base64"
    facts: Annotated[str, Meta(max_length=256 * 1024)]

    @property
    def is_withdrawn(self) -> bool:
        """Whether the part was replaced by an empty one."""
        return self.sweep_id == _WITHDRAWN and not self.facts


class ReportSpec(_Message, frozen=True):
    """The facts: a device with its ports, or a part of a sweep."""

    device: ReportDevice | None = None
    ports: Annotated[tuple[ReportPort, ...], Meta(max_length=4096)] = ()
    sweep: SweepPart | None = None


class CollectorOutcome(_Message, frozen=True):
    """The outcome of the last run of one collector."""

    name: _Name
    outcome: Literal["ok", "no-data", "failed"]
    message: _Text = ""


class SweepStanding(_Message, frozen=True):
    """Whether a node can sweep, and which subnets it could not sweep."""

    able: bool = False
    """Whether the sweep program is installed on the node."""
    failed: Annotated[tuple[_Subnet, ...], Meta(max_length=MAX_SUBNETS)] = ()
    """Subnets, sorted, whose last sweep by this node failed."""
    refused: Annotated[tuple[_Subnet, ...], Meta(max_length=MAX_SUBNETS)] = ()
    """Subnets, sorted, where every query of this node's last sweep timed out, as with an M_Key."""


class ReportStatus(_Message, frozen=True):
    """When and how the facts were collected."""

    observed_at: _Text | None = None
    """RFC 3339 in UTC."""
    agent_version: _Text | None = None
    collectors: Annotated[tuple[CollectorOutcome, ...], Meta(max_length=64)] = ()
    sweeping: SweepStanding | None = None
    """Absent if the node does not take part in sweeping."""
    flapping: Annotated[tuple[_Text, ...], Meta(max_length=4096)] = ()
    """Names, sorted, of the ports that lost their link several times within the last hour."""


class ReportMetadata(Struct, frozen=True, gc=False):
    """The object's name; the fields that an API server adds are accepted and dropped."""

    name: _Name


_NO_STATUS: Final = ReportStatus()


class NeighborReport(_Message, frozen=True, kw_only=True):
    """The facts of one reporter: a device, or a part of a sweep."""

    api_version: Literal["toponaut.io/v1alpha1"] = API_VERSION
    kind: Literal["NeighborReport"] = REPORT_KIND
    metadata: ReportMetadata
    spec: ReportSpec
    status: ReportStatus = _NO_STATUS

    @property
    def device(self) -> Device | None:
        """The facts; None for a part of a sweep. Cost per access: O(ports), 15 µs each."""
        device = self.spec.device
        if device is None:
            return None
        ports = tuple([port.facts for port in self.spec.ports])
        return Device(device.kind, device.name, _parse_ids(device.ids), ports)


def parse_report(document: object) -> NeighborReport:
    """Return the report in a decoded document. Cost: 0.2 µs a value.

    Raises:
        ReportError: another version, an unknown or missing field, or a value out of range; the
            message names the first wrong field.
    """
    document_or_problem = check_object(document, REPORT_KIND, API_VERSION)
    if isinstance(document_or_problem, str):
        raise ReportError(document_or_problem)
    try:
        report = msgspec.convert(document_or_problem, NeighborReport)
        msgspec.json.encode(report)  # refuses halves of characters, which JSON can escape
    except msgspec.ValidationError as error:
        raise ReportError(describe_refusal(error)) from error
    except UnicodeEncodeError as error:
        raise ReportError("a text is not valid Unicode") from error
    if (report.spec.device is None) == (report.spec.sweep is None):
        raise ReportError("spec: expected exactly one of device and sweep")
    return report


def parse_stored_report(document: object) -> NeighborReport:
    """Return the report in a decoded object, without fields that only a newer version knows.

    Raises:
        ReportError: another version, a missing field, or a value out of range.
    """
    try:
        return parse_report(document)
    except ReportError:
        return parse_report(_keep_known(document, inspect.type_info(NeighborReport)))


def _keep_known(value: Any, expected: inspect.Type) -> Any:  # noqa: ANN401 - JSON
    """Drop the fields that the type does not declare, at any depth."""
    match expected:
        case inspect.UnionType():  # an optional value
            for option in expected.types:
                value = _keep_known(value, option)
        case inspect.VarTupleType() if isinstance(value, list):
            return [_keep_known(item, expected.item_type) for item in value]
        case inspect.StructType() if isinstance(value, Mapping):
            known = {field.encode_name: field.type for field in expected.fields}
            return {
                key: _keep_known(item, known[key]) for key, item in value.items() if key in known
            }
    return value


def render_report(report: NeighborReport) -> dict[str, Any]:
    """Return the report as plain camelCase data; absent and empty fields are left out."""
    return {"apiVersion": API_VERSION, "kind": REPORT_KIND} | render_part(report)


def render_part(part: Struct) -> dict[str, Any]:
    """Return a part of a report as plain camelCase data."""
    rendered: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(part))
    return rendered


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
        status=status or _NO_STATUS,
    )


def build_withdrawn_part(name: str, subnet: str) -> NeighborReport:
    """Return the empty report that replaces a part of a sweep.

    It says that it is one of two parts, so a reader that does not know withdrawn parts sees an
    incomplete sweep and ignores it.
    """
    part = SweepPart(subnet=subnet, sweep_id=_WITHDRAWN, part=0, of=2, facts="")
    return NeighborReport(metadata=ReportMetadata(name=name), spec=ReportSpec(sweep=part))


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
