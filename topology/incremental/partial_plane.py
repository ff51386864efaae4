"""A part of a plane as a separate plane: some hosts, and the switches they are connected to.

Decisions about hosts and leaves depend only on devices that host cables lead to, directly or over
other host cables. So they are the same in such a part. Devices and ports keep their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from topology.join.claim_join import link_rows
from topology.model.fabric import Fabric, FabricDevice, FabricPort, columns_of
from topology.model.fabric_columns import Index, LinkColumns
from topology.model.lazy_rows import LazyRows, rows_at
from topology.planes.cables import EdgeColumns, EdgeRows
from topology.planes.plane import Plane
from topology.planes.port_set import PortSet


@dataclass(frozen=True, slots=True)
class PlanePart:
    """A part of a plane, with its own device and port numbers."""

    fabric: Fabric
    plane: Plane
    """The part as a plane, without cables between switches."""
    devices: Index
    """The fabric's device number of each device of the part."""

    def to_part_numbers(self, devices: Iterable[int]) -> list[int]:
        """Return the numbers in the part of some devices, all of which are in it."""
        part_numbers: list[int] = np.searchsorted(self.devices, list(devices)).tolist()
        return part_numbers


def find_part(planes: Sequence[Plane], hosts: Iterable[int]) -> tuple[Index, Index]:
    """Return the hosts and switches that host cables connect to some hosts, in any of the planes.

    Cost: O(host cables) per step away from the hosts.

    Args:
        planes: a plane of one fabric, before and after a change.
        hosts: the hosts to start from.
    """
    ends = [plane.host_edges.columns for plane in planes]
    a, b = (
        np.concatenate(column)
        for column in ([columns.a for columns in ends], [columns.b for columns in ends])
    )
    size = max(max(plane.hosts, default=0) for plane in planes)
    is_host = np.zeros(max(size, int(a.max(initial=0))) + 1, np.bool_)
    is_host[list(hosts)] = True
    is_switch = np.zeros(int(b.max(initial=0)) + 1, np.bool_)
    num_hosts = -1
    while (num_found := int(is_host.sum())) > num_hosts:
        num_hosts = num_found
        is_switch[b[is_host[a]]] = True
        is_host[a[is_switch[b]]] = True
    return np.flatnonzero(is_host), np.flatnonzero(is_switch)


def cut_part(fabric: Fabric, plane: Plane, hosts: Index, switches: Index) -> PlanePart:
    """Return a part of a plane; `find_part` finds independent parts. Cost: O(links)."""
    columns, links = columns_of(fabric), columns_of(fabric).links
    is_host = np.zeros(len(columns.kinds), np.bool_)
    is_host[hosts] = True
    is_host_port = is_host[columns.port_devices]
    chosen = np.flatnonzero(is_host_port[links.a] | is_host_port[links.b])
    is_port = is_host_port.copy()
    is_port[links.a[chosen]] = True
    is_port[links.b[chosen]] = True
    ports = np.flatnonzero(is_port)
    devices = np.unique(np.concatenate([hosts, switches, columns.port_devices[ports]]))
    cut = _FabricCut(fabric, devices, ports)
    ends = plane.host_edges.columns
    edges = np.flatnonzero(is_host[ends.a])
    part = Plane(
        name=plane.name,
        hosts=tuple(np.searchsorted(devices, hosts).tolist()),
        switches=tuple(np.searchsorted(devices, switches).tolist()),
        host_edges=cut.edges(EdgeColumns(*(column[edges] for column in ends))),
        switch_edges=EdgeRows(EdgeColumns(*(np.zeros(0, np.intp) for _ in ends))),
        ports=PortSet((is_host_port & plane.ports.is_member)[ports]),
    )
    return PlanePart(
        cut.build(LinkColumns._make(column[chosen] for column in links)), part, devices
    )


@dataclass(frozen=True, slots=True)
class _FabricCut:
    """Some devices and ports of a fabric, renumbered in their order."""

    fabric: Fabric
    devices: Index
    ports: Index

    def edges(self, ends: EdgeColumns) -> EdgeRows:
        """Return cables in the new numbers."""
        devices, ports = self.devices, self.ports
        return EdgeRows(
            EdgeColumns(
                np.searchsorted(devices, ends.a),
                np.searchsorted(devices, ends.b),
                np.searchsorted(ports, ends.a_port),
                np.searchsorted(ports, ends.b_port),
            )
        )

    def build(self, links: LinkColumns) -> Fabric:
        """Return the fabric of these devices and ports, with the given links."""
        columns, ports, devices = columns_of(self.fabric), self.ports, self.devices
        links = links._replace(a=np.searchsorted(ports, links.a), b=np.searchsorted(ports, links.b))
        part_columns = columns._replace(
            names=[columns.names[device] for device in devices.tolist()],
            nodes=[columns.nodes[device] for device in devices.tolist()],
            kinds=columns.kinds[devices],
            port_devices=np.searchsorted(devices, columns.port_devices[ports]),
            port_names=LazyRows(len(ports), self._port_names),
            media=columns.media[ports],
            states=columns.states[ports],
            rates=columns.rates[ports],
            distances=columns.distances[ports],
            roce_devices=columns.roce_devices[ports],
            links=links,
        )
        return Fabric(
            devices=LazyRows(len(devices), self._device_rows),
            ports=LazyRows(len(ports), self._port_rows),
            links=link_rows(links),
            findings=(),
            columns=part_columns,
        )

    def _device_rows(self, places: Sequence[int]) -> Iterator[FabricDevice]:
        return iter(rows_at(self.fabric.devices, self.devices[list(places)].tolist()))

    def _port_names(self, places: Sequence[int]) -> Iterator[str]:
        names = columns_of(self.fabric).port_names
        return iter(rows_at(names, self.ports[list(places)].tolist()))

    def _port_rows(self, places: Sequence[int]) -> Iterator[FabricPort]:
        for row in rows_at(self.fabric.ports, self.ports[list(places)].tolist()):
            yield row._replace(device=int(np.searchsorted(self.devices, row.device)))
