"""Nodes and ports of an InfiniBand dump, and the devices that they make.

Every dump has the same nodes and cables; each parser knows the syntax of its own dump. The devices
equal those that `ibnetdiscover` of the same fabric gives, as far as the dump has the facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from topology.model.facts import Device, DeviceKind, Medium, Neighbor, Port, PortState, Source
from topology.model.ids import Id, IdKind
from topology.sources.infiniband.node_names import (
    AGGREGATION_DEVID,
    AGGREGATION_TEXT,
    host_name,
    switch_name,
)

MAX_PORT: Final = 999
_NAMED_LIKE_HOSTS: Final = frozenset({DeviceKind.HOST, DeviceKind.AGGREGATION, DeviceKind.UNKNOWN})


class FarEnd(NamedTuple):
    """The far end of a cable."""

    guid: str
    """GUID of the node."""
    port: int | None
    """None if only the label is known."""
    label: str = ""
    """Label on the front panel, for a port without a known number."""
    port_guid: str | None = None
    kind: DeviceKind = DeviceKind.UNKNOWN
    """The kind according to this end; the node's own record takes precedence."""
    description: str = ""


class PortRow(NamedTuple):
    """One port, as in a dump."""

    state: PortState
    rate_bps: int | None = None
    guid: str | None = None
    far: FarEnd | None = None


@dataclass(slots=True)
class IbNode:
    """One node, as in a dump."""

    guid: str
    kind: DeviceKind
    description: str = ""
    image: str | None = None
    device_id: int = 0
    ports: dict[int, PortRow] = field(default_factory=dict)


def build_node_devices(nodes: Mapping[str, IbNode]) -> tuple[Device, ...]:
    """Return one device per node, sorted by GUID. Cost: O(n log n) in ports."""
    images = {node.image or node.guid for node in nodes.values() if node.kind is DeviceKind.SWITCH}
    for node in nodes.values():
        is_inside = node.device_id == AGGREGATION_DEVID and node.image in images
        if node.kind is DeviceKind.HOST and is_inside:
            node.kind = DeviceKind.AGGREGATION
    return tuple(_device(nodes[guid], nodes) for guid in sorted(nodes))


def _device(node: IbNode, nodes: Mapping[str, IbNode]) -> Device:
    is_host = node.kind in _NAMED_LIKE_HOSTS
    name, label = host_name(node.description) if is_host else (switch_name(node.description), "")
    image = (Id(IdKind.SYSTEM_IMAGE_GUID, node.image),) if node.image else ()
    return Device(
        kind=node.kind,
        name=name,
        ids=(Id(IdKind.NODE_GUID, node.guid), *image),
        ports=tuple(
            Port(
                name=f"{label or node.guid}/{number}" if is_host else str(number),
                ids=_port_ids(node.guid, number, row.guid if is_host else None),
                medium=Medium.INFINIBAND,
                state=row.state,
                rate_bps=row.rate_bps,
                rdma_device=label or None,
                neighbors=tuple(_neighbors(row.far, nodes)),
            )
            for number, row in sorted(node.ports.items())
        ),
        model=node.description,
    )


def _neighbors(far_end: FarEnd | None, nodes: Mapping[str, IbNode]) -> Iterator[Neighbor]:
    if far_end is None:
        return
    node = nodes.get(far_end.guid)
    kind = node.kind if node else far_end.kind
    text = (node.description if node else "") or far_end.description
    if node is None and text == AGGREGATION_TEXT:
        kind = DeviceKind.AGGREGATION
    is_host = kind in _NAMED_LIKE_HOSTS
    name, label = host_name(text) if is_host else (switch_name(text), "")
    number = far_end.label if far_end.port is None else str(far_end.port)
    port_guid = far_end.port_guid if is_host else None
    yield Neighbor(
        device_ids=(Id(IdKind.NODE_GUID, far_end.guid),),
        device_name=name,
        port_ids=() if far_end.port is None else _port_ids(far_end.guid, far_end.port, port_guid),
        port_name=f"{label or far_end.guid}/{number}" if is_host else number,
        source=Source.IB,
        kind=kind,
    )


def _port_ids(guid: str, number: int, port_guid: str | None) -> tuple[Id, ...]:
    guid_ids: Iterable[Id] = (Id(IdKind.PORT_GUID, port_guid),) if port_guid else ()
    return (Id(IdKind.NODE_GUID, guid, str(number)), *guid_ids)
