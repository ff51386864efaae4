"""Planes told apart again after one report changed, where its host alone decides what changes.

What other hosts, names of switches or policies have a say in is told by None.
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
    """The planes of the new fabric."""

    split: PlaneSplit
    edges: EdgeChanges


class EdgeChanges(NamedTuple):
    """Cables between hosts and switches that are no more, and that are new."""

    removed: EdgeColumns
    """By the new numbers of ports, NO_PORT for ports that are no more."""
    added: EdgeColumns

    @property
    def hosts(self) -> set[int]:
        """The hosts at their ends."""
        return {*self.removed.a.tolist(), *self.added.a.tolist()}


def update_planes(split: PlaneSplit, rejoined: FabricUpdate) -> PlaneUpdate | None:
    """Return the planes of a fabric in which one report changed; None where others matter.

    Cables between switches stay as they are. Equal to telling all planes apart anew. Cost: O(its
    ports), and arrays of all links.

    Args:
        split: of the fabric before, told apart without policies.
        rejoined: the fabric now.
    """
    numbers = rejoined.numbers
    old = split.cables
    managed = (
        old.management_ports if numbers is None else _renumber_set(old.management_ports, numbers)
    )
    fabric = rejoined.joined.fabric
    cables = find_cables(fabric, management_ports=managed)
    if not _has_same_switches(old, cables, numbers):
        return None
    shares = split.port_planes
    num_ports = len(rejoined.joined.is_confirmed)
    if numbers is not None:
        shares = shares.renumber(numbers, num_ports)
    moves = _find_edge_changes(old, cables, rejoined)
    work = _PlaneUpdater(replace(split, fabric=fabric, cables=cables), shares, moves)
    hosts = moves.hosts | _hosts_of_other_rates(fabric, old, cables)
    hosts |= {rejoined.device} & set(cables.hosts)
    found = work.assign_hosts(hosts) if work.keeps_names() else None
    if found is None:
        return None
    changed = [(at, share) for at, share in found.items() if shares.get(at) != share]
    if changed:
        shares = shares.renumber(None, num_ports)
        shares.put_each(changed)
    return PlaneUpdate(replace(split, fabric=fabric, cables=cables, port_planes=shares), moves)


def update_plane(plane: Plane, found: PlaneUpdate, rejoined: FabricUpdate) -> Plane:
    """Return a plane of the new fabric, made of what it was where its own cables alone moved.

    Args:
        plane: as it was.
        found: the new planes.
        rejoined: the new fabric.
    """
    split, moves = found
    numbers, num_ports = rejoined.numbers, len(rejoined.joined.is_confirmed)
    is_own = plane.ports.is_member
    if numbers is not None:
        now = numbers[plane.ports.numbers]
        is_own = np.zeros(num_ports, np.bool_)
        is_own[now[now != NO_PORT]] = True
    edges = split.cables.host_edges
    edges = edges.where(is_own[edges.columns.a_port])
    moved = np.concatenate([moves.removed.a_port, moves.added.a_port])
    if not is_own[moved].all() or not _has_same_leaves(plane, edges):
        return split.plane(plane.name)
    switch_edges = plane.switch_edges
    if numbers is not None:
        switch_edges = _renumbered(switch_edges, numbers)
    ports = plane.ports if numbers is None else PortSet(is_own)
    return replace(plane, host_edges=edges, switch_edges=switch_edges, ports=ports)


def _has_same_leaves(plane: Plane, edges: EdgeRows) -> bool:
    """Return whether cables of hosts lead to the same switches as before."""
    size = max(plane.hosts[-1:] + plane.switches[-1:] + (int(edges.columns.b.max(initial=0)),)) + 1
    flags = np.zeros((2, size), np.bool_)
    for row, columns in zip(flags, (plane.host_edges.columns, edges.columns), strict=True):
        row[columns.b] = True
    return np.array_equal(*flags)


def _renumbered(edges: EdgeRows, numbers: Index) -> EdgeRows:
    """Return cables by the new numbers of ports; which devices they join is counted already."""
    ends = edges.columns
    found = EdgeRows(ends._replace(a_port=numbers[ends.a_port], b_port=numbers[ends.b_port]))
    found.pairs, found.pairs_both_ways = edges.pairs, edges.pairs_both_ways
    return found


def has_switches_like(one: Plane, other: Plane) -> bool:
    """Return whether two planes have the same devices and the same cables between switches."""
    ours, theirs = one.switch_edges.columns, other.switch_edges.columns
    return (
        (one.hosts, one.switches) == (other.hosts, other.switches)
        and np.array_equal(ours.a, theirs.a)
        and np.array_equal(ours.b, theirs.b)
    )


def _renumber_set(ports: Collection[int], numbers: Index) -> frozenset[int]:
    found = numbers[np.fromiter(ports, np.intp, len(ports))]
    return frozenset(found[found != NO_PORT].tolist())


def _has_same_switches(old: Cables, new: Cables, numbers: Index | None) -> bool:
    """Return whether cables between switches and the ports of hosts are the same as before."""
    was, now = old.switch_edges.columns, new.switch_edges.columns
    ports = (was.a_port, was.b_port, old.host_ports)
    if numbers is not None:
        ports = (numbers[ports[0]], numbers[ports[1]], numbers[ports[2]])
    pairs = zip(
        (was.a, was.b, *ports), (now.a, now.b, now.a_port, now.b_port, new.host_ports), strict=True
    )
    return old.hosts == new.hosts and all(np.array_equal(one, other) for one, other in pairs)


def _hosts_of_other_rates(fabric: Fabric, old: Cables, new: Cables) -> set[int]:
    """Return the hosts with a port of another rate, which the far end of its cable may tell."""
    is_other = old.rates[old.host_ports] != new.rates[new.host_ports]
    return set(columns_of(fabric).port_devices[new.host_ports[is_other]].tolist())


def _find_edge_changes(old: Cables, new: Cables, rejoined: FabricUpdate) -> EdgeChanges:
    """Return what moved; only cables at the ports that the report touches can have."""
    numbers, was, now = rejoined.numbers, old.host_edges.columns, new.host_edges.columns
    if numbers is not None:
        was = was._replace(a_port=numbers[was.a_port], b_port=numbers[was.b_port])
    is_touched = np.zeros(len(rejoined.joined.is_confirmed) + 1, np.bool_)  # the last: NO_PORT
    is_touched[rejoined.after] = True
    is_touched[NO_PORT] = True
    was, now = (
        _select_edges(edges, is_touched[edges.a_port] | is_touched[edges.b_port])
        for edges in (was, now)
    )
    one, other = (edges.a_port << HALF | edges.b_port for edges in (was, now))
    return EdgeChanges(
        _select_edges(was, ~np.isin(one, other)), _select_edges(now, ~np.isin(other, one))
    )


def _select_edges(edges: EdgeColumns, is_chosen: Flags) -> EdgeColumns:
    return EdgeColumns(*(column[is_chosen] for column in edges))


@dataclass(frozen=True, slots=True)
class _PlaneUpdater:
    split: PlaneSplit
    """The new cables."""
    port_planes: PortPlanes
    """As they were, by the new numbers."""
    edge_changes: EdgeChanges

    def keeps_names(self) -> bool:
        """Return whether names of switches tell the same as before of every port."""
        names = self.split.fabric.devices
        ends = {*self.edge_changes.removed.b.tolist(), *self.edge_changes.added.b.tolist()}
        told = {at: plane_in_name(names[at].name) for at in ends}
        gone, come = (
            {
                port: told[at]
                for port, at in zip(edges.a_port.tolist(), edges.b.tolist(), strict=True)
            }
            for edges in self.edge_changes
        )
        return gone == come or not (self.split.plane_by_switch_name or any(told.values()))

    def assign_hosts(self, hosts: Collection[int]) -> dict[int, PortPlane] | None:
        """Return the shares of some hosts' ports; None where a port changes its plane."""
        split, cables = self.split, self.split.cables
        ends = cables.host_edges.columns
        is_theirs = np.isin(ends.a, list(hosts))
        linked = dict(zip(ends.a_port[is_theirs].tolist(), ends.b[is_theirs].tolist(), strict=True))
        owners = self._owners(cables.host_ports)
        places = cables.host_ports[np.isin(owners, list(hosts))]
        kept = {at: self.port_planes[at] for at in places.tolist() if at in self.port_planes}
        is_left = [at not in kept or kept[at].reason not in _BY_NAME for at in places.tolist()]
        found = {at: share for at, share in kept.items() if share.reason in _BY_NAME}
        if len(kept) < len(places):
            return None
        for ports in ports_of_hosts(
            split.fabric, cables, places[np.array(is_left, np.bool_)]
        ).values():
            found.update(assign_host(ports, linked))
        if any(_host_plane(kept[at]) != share.plane for at, share in found.items()):
            return None
        return self._assign_by_peers(found, kept)

    def _owners(self, ports: Index) -> Index:
        return columns_of(self.split.fabric).port_devices[ports]

    def _assign_by_peers(
        self, found: Mapping[int, PortPlane], kept: Mapping[int, PortPlane]
    ) -> dict[int, PortPlane] | None:
        """Return shares after the ports of plain hosts are told by their fellows on the switch.

        None where fellows may tell now what they did not, or no longer what they did.
        """
        if self.port_planes.planes() <= {COMPUTE}:
            return dict(found)
        if self._lead_to_other_planes():
            return None
        told: dict[int, PortPlane] = {}
        for at, share in found.items():
            is_told = kept[at].reason is PlaneReason.NEIGHBORS
            if not (share.reason in WEAK_REASONS if is_told else share.reason is kept[at].reason):
                return None
            told[at] = kept[at] if is_told else share
        return told

    def _lead_to_other_planes(self) -> bool:
        """Return whether a switch that cables moved to or from is, or was, for another plane."""
        now = self.split.cables.host_edges.columns
        switches = {*self.edge_changes.removed.b.tolist(), *self.edge_changes.added.b.tolist()}
        is_near = np.isin(now.b, list(switches))
        votes = self._votes(_select_edges(now, is_near))
        gone, come = self._votes(self.edge_changes.removed), self._votes(self.edge_changes.added)
        for switch in switches:
            after = votes[switch]
            before = after - come[switch] + gone[switch]
            if _is_for_other_planes(before) or _is_for_other_planes(after):
                return True
        return False

    def _votes(self, edges: EdgeColumns) -> dict[int, Counter[str]]:
        votes: dict[int, Counter[str]] = defaultdict(Counter)
        for port, switch in zip(edges.a_port.tolist(), edges.b.tolist(), strict=True):
            share = self.port_planes.get(port)
            if share:
                votes[switch][_host_plane(share)] += 1
        return votes


def _is_for_other_planes(votes: Counter[str]) -> bool:
    """Return whether most ports on a switch are for another plane than compute."""
    return any(plane != COMPUTE and 2 * num > votes.total() for plane, num in votes.items())


def _host_plane(share: PortPlane) -> str:
    """Return the plane of a port as its host alone tells."""
    return COMPUTE if share.reason is PlaneReason.NEIGHBORS else share.plane
