"""Planes updated after one report changed, if only its own host decides what changes.

Returns None if other hosts, switch names or policies may affect the result.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from topology.incremental.device_update import FabricUpdate
from topology.join.neighbor_links import HALF, NO_PORT
from topology.model.fabric import Fabric, columns_of
from topology.model.fabric_columns import Flags, Index
from topology.planes.cables import (
    Cables,
    EdgeColumns,
    EdgeRows,
    find_cables,
    ports_of_hosts,
)
from topology.planes.default_policy import WEAK_REASONS, assign_host, plane_in_name
from topology.planes.plane import Plane, PlaneSplit
from topology.planes.policy import COMPUTE, PlaneReason, PortPlane
from topology.planes.port_planes import PortPlanes
from topology.planes.port_set import PortSet

_BY_NAME = frozenset({PlaneReason.SWITCH_NAME, PlaneReason.SAME_PORT})


class PlaneUpdate(NamedTuple):
    """The planes of the new fabric, and the cables that changed."""

    split: PlaneSplit
    edges: EdgeChanges


class EdgeChanges(NamedTuple):
    """Removed and added cables between hosts and switches."""

    removed: EdgeColumns
    """In new port numbers, NO_PORT for a removed port."""
    added: EdgeColumns

    @property
    def hosts(self) -> set[int]:
        """The hosts at the ends of these cables."""
        return {*self.removed.a.tolist(), *self.added.a.tolist()}


def update_planes(split: PlaneSplit, fabric_update: FabricUpdate) -> PlaneUpdate | None:
    """Return the planes of a fabric in which one report changed; None if other hosts matter.

    Cables between switches must be unchanged. Equal to splitting all planes again.
    Cost: O(ports of the device), and arrays of all links.

    Args:
        split: the planes of the fabric before, split without policies.
        fabric_update: the new fabric.
    """
    numbers = fabric_update.numbers
    old = split.cables
    management_ports = (
        old.management_ports if numbers is None else _renumber_set(old.management_ports, numbers)
    )
    fabric = fabric_update.joined.fabric
    cables = find_cables(fabric, management_ports=management_ports)
    if not _has_same_switches(old, cables, numbers):
        return None
    port_planes = split.port_planes
    num_ports = len(fabric_update.joined.is_confirmed)
    if numbers is not None:
        port_planes = port_planes.renumber(numbers, num_ports)
    edge_changes = _find_edge_changes(old, cables, fabric_update)
    updater = _PlaneUpdater(replace(split, fabric=fabric, cables=cables), port_planes, edge_changes)
    hosts = edge_changes.hosts | _hosts_of_other_rates(fabric, old, cables)
    hosts |= {fabric_update.device} & set(cables.hosts)
    plane_by_port = updater.assign_hosts(hosts) if updater.keeps_names() else None
    if plane_by_port is None:
        return None
    changed = [row for row in plane_by_port.items() if port_planes.get(row[0]) != row[1]]
    if changed:
        port_planes = port_planes.renumber(None, num_ports)
        port_planes.put_each(changed)
    updated = replace(split, fabric=fabric, cables=cables, port_planes=port_planes)
    return PlaneUpdate(updated, edge_changes)


def update_plane(plane: Plane, plane_update: PlaneUpdate, fabric_update: FabricUpdate) -> Plane:
    """Return a plane of the new fabric, updated from the old one if only its own cables moved.

    Args:
        plane: the plane before.
        plane_update: the new planes.
        fabric_update: the new fabric.
    """
    split, edge_changes = plane_update
    numbers, num_ports = fabric_update.numbers, len(fabric_update.joined.is_confirmed)
    is_own = plane.ports.is_member
    if numbers is not None:
        new_numbers = numbers[plane.ports.numbers]
        is_own = np.zeros(num_ports, np.bool_)
        is_own[new_numbers[new_numbers != NO_PORT]] = True
    edges = split.cables.host_edges
    edges = edges.where(is_own[edges.columns.a_port])
    moved_ports = np.concatenate([edge_changes.removed.a_port, edge_changes.added.a_port])
    if not is_own[moved_ports].all() or not _has_same_leaves(plane, edges):
        return split.plane(plane.name)
    switch_edges = plane.switch_edges
    if numbers is not None:
        switch_edges = _renumbered(switch_edges, numbers)
    ports = plane.ports if numbers is None else PortSet(is_own)
    return replace(plane, host_edges=edges, switch_edges=switch_edges, ports=ports)


def _has_same_leaves(plane: Plane, edges: EdgeRows) -> bool:
    """Return whether host cables lead to the same switches as before."""
    size = max(plane.hosts[-1:] + plane.switches[-1:] + (int(edges.columns.b.max(initial=0)),)) + 1
    flags = np.zeros((2, size), np.bool_)
    for row, columns in zip(flags, (plane.host_edges.columns, edges.columns), strict=True):
        row[columns.b] = True
    return np.array_equal(*flags)


def _renumbered(edges: EdgeRows, numbers: Index) -> EdgeRows:
    """Return cables in new port numbers, with the device pairs already counted."""
    ends = edges.columns
    renumbered = EdgeRows(ends._replace(a_port=numbers[ends.a_port], b_port=numbers[ends.b_port]))
    renumbered.pairs, renumbered.pairs_both_ways = edges.pairs, edges.pairs_both_ways
    return renumbered


def has_switches_like(plane: Plane, other_plane: Plane) -> bool:
    """Return whether two planes have the same devices and the same cables between switches."""
    edges, other_edges = plane.switch_edges.columns, other_plane.switch_edges.columns
    return (
        (plane.hosts, plane.switches) == (other_plane.hosts, other_plane.switches)
        and np.array_equal(edges.a, other_edges.a)
        and np.array_equal(edges.b, other_edges.b)
    )


def _renumber_set(ports: Collection[int], numbers: Index) -> frozenset[int]:
    new_numbers = numbers[np.fromiter(ports, np.intp, len(ports))]
    return frozenset(new_numbers[new_numbers != NO_PORT].tolist())


def _has_same_switches(old: Cables, new: Cables, numbers: Index | None) -> bool:
    """Return whether cables between switches and host ports are the same as before."""
    old_columns, new_columns = old.switch_edges.columns, new.switch_edges.columns
    ports = (old_columns.a_port, old_columns.b_port, old.host_ports)
    if numbers is not None:
        ports = (numbers[ports[0]], numbers[ports[1]], numbers[ports[2]])
    pairs = zip(
        (old_columns.a, old_columns.b, *ports),
        (new_columns.a, new_columns.b, new_columns.a_port, new_columns.b_port, new.host_ports),
        strict=True,
    )
    return old.hosts == new.hosts and all(
        np.array_equal(old_column, new_column) for old_column, new_column in pairs
    )


def _hosts_of_other_rates(fabric: Fabric, old: Cables, new: Cables) -> set[int]:
    """Return the hosts with a port of another rate; the far end of its cable may report it."""
    is_other = old.rates[old.host_ports] != new.rates[new.host_ports]
    return set(columns_of(fabric).port_devices[new.host_ports[is_other]].tolist())


def _find_edge_changes(old: Cables, new: Cables, fabric_update: FabricUpdate) -> EdgeChanges:
    """Return the changed cables; only cables at ports that the report touches can change."""
    numbers, old_columns, new_columns = (
        fabric_update.numbers,
        old.host_edges.columns,
        new.host_edges.columns,
    )
    if numbers is not None:
        old_columns = old_columns._replace(
            a_port=numbers[old_columns.a_port], b_port=numbers[old_columns.b_port]
        )
    is_touched = np.zeros(len(fabric_update.joined.is_confirmed) + 1, np.bool_)  # the last: NO_PORT
    is_touched[fabric_update.after] = True
    is_touched[NO_PORT] = True
    old_columns, new_columns = (
        _select_edges(edges, is_touched[edges.a_port] | is_touched[edges.b_port])
        for edges in (old_columns, new_columns)
    )
    old_keys, new_keys = (
        edges.a_port << HALF | edges.b_port for edges in (old_columns, new_columns)
    )
    return EdgeChanges(
        _select_edges(old_columns, ~np.isin(old_keys, new_keys)),
        _select_edges(new_columns, ~np.isin(new_keys, old_keys)),
    )


def _select_edges(edges: EdgeColumns, is_chosen: Flags) -> EdgeColumns:
    return EdgeColumns(*(column[is_chosen] for column in edges))


@dataclass(frozen=True, slots=True)
class _PlaneUpdater:
    split: PlaneSplit
    """The old planes with the new fabric and cables."""
    port_planes: PortPlanes
    """The old planes of ports, in new port numbers."""
    edge_changes: EdgeChanges

    def keeps_names(self) -> bool:
        """Return whether the switch names select the same plane as before for every port."""
        names = self.split.fabric.devices
        ends = {*self.edge_changes.removed.b.tolist(), *self.edge_changes.added.b.tolist()}
        named_plane = {switch: plane_in_name(names[switch].name) for switch in ends}
        removed, added = (
            {
                port: named_plane[switch]
                for port, switch in zip(edges.a_port.tolist(), edges.b.tolist(), strict=True)
            }
            for edges in self.edge_changes
        )
        return removed == added or not (
            self.split.plane_by_switch_name or any(named_plane.values())
        )

    def assign_hosts(self, hosts: Collection[int]) -> dict[int, PortPlane] | None:
        """Return the planes of some hosts' ports; None if a port changes its plane."""
        split, cables = self.split, self.split.cables
        ends = cables.host_edges.columns
        is_of_hosts = np.isin(ends.a, list(hosts))
        switch_by_port = dict(
            zip(ends.a_port[is_of_hosts].tolist(), ends.b[is_of_hosts].tolist(), strict=True)
        )
        owners = self._owners(cables.host_ports)
        host_ports = cables.host_ports[np.isin(owners, list(hosts))]
        old_port_planes = {
            port: self.port_planes[port] for port in host_ports.tolist() if port in self.port_planes
        }
        is_open = [
            port not in old_port_planes or old_port_planes[port].reason not in _BY_NAME
            for port in host_ports.tolist()
        ]
        port_planes = {
            port: port_plane
            for port, port_plane in old_port_planes.items()
            if port_plane.reason in _BY_NAME
        }
        if len(old_port_planes) < len(host_ports):
            return None
        for ports in ports_of_hosts(
            split.fabric, cables, host_ports[np.array(is_open, np.bool_)]
        ).values():
            port_planes.update(assign_host(ports, switch_by_port))
        if any(
            _host_plane(old_port_planes[port]) != port_plane.plane
            for port, port_plane in port_planes.items()
        ):
            return None
        return self._assign_by_peers(port_planes, old_port_planes)

    def _owners(self, ports: Index) -> Index:
        return columns_of(self.split.fabric).port_devices[ports]

    def _assign_by_peers(
        self, port_planes: Mapping[int, PortPlane], old_port_planes: Mapping[int, PortPlane]
    ) -> dict[int, PortPlane] | None:
        """Return the planes of ports after the vote of the other ports on their switches.

        Return None if the vote may now decide another set of ports than before.
        """
        if self.port_planes.planes() <= {COMPUTE}:
            return dict(port_planes)
        if self._lead_to_other_planes():
            return None
        result: dict[int, PortPlane] = {}
        for port, port_plane in port_planes.items():
            is_by_vote = old_port_planes[port].reason is PlaneReason.NEIGHBORS
            if not (
                port_plane.reason in WEAK_REASONS
                if is_by_vote
                else port_plane.reason is old_port_planes[port].reason
            ):
                return None
            result[port] = old_port_planes[port] if is_by_vote else port_plane
        return result

    def _lead_to_other_planes(self) -> bool:
        """Return whether a switch with changed cables is or was mostly in another plane."""
        new_columns = self.split.cables.host_edges.columns
        switches = {*self.edge_changes.removed.b.tolist(), *self.edge_changes.added.b.tolist()}
        is_at_switch = np.isin(new_columns.b, list(switches))
        votes = self._votes(_select_edges(new_columns, is_at_switch))
        removed, added = (
            self._votes(self.edge_changes.removed),
            self._votes(self.edge_changes.added),
        )
        for switch in switches:
            after = votes[switch]
            before = after - added[switch] + removed[switch]
            if _is_for_other_planes(before) or _is_for_other_planes(after):
                return True
        return False

    def _votes(self, edges: EdgeColumns) -> dict[int, Counter[str]]:
        votes: dict[int, Counter[str]] = defaultdict(Counter)
        for port, switch in zip(edges.a_port.tolist(), edges.b.tolist(), strict=True):
            port_plane = self.port_planes.get(port)
            if port_plane:
                votes[switch][_host_plane(port_plane)] += 1
        return votes


def _is_for_other_planes(votes: Counter[str]) -> bool:
    """Return whether most ports on a switch are in another plane than compute."""
    return any(plane != COMPUTE and 2 * num > votes.total() for plane, num in votes.items())


def _host_plane(port_plane: PortPlane) -> str:
    """Return the plane of a port, judged by its host alone."""
    return COMPUTE if port_plane.reason is PlaneReason.NEIGHBORS else port_plane.plane
