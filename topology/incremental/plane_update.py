"""Planes after one report changed, if the cables between switches stay.

Ports are assigned again as arrays, which is cheap. What is kept is the cables of a plane.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from topology.incremental.device_update import FabricUpdate
from topology.join.neighbor_links import HALF, NO_PORT
from topology.model.fabric_columns import Flags, Index
from topology.planes.cables import Cables, EdgeColumns, EdgeRows, find_cables
from topology.planes.plane import Plane, PlaneSplit, split_planes
from topology.planes.port_set import PortSet


class PlaneUpdate(NamedTuple):
    """The planes of the new fabric, and the cables that changed."""

    split: PlaneSplit
    edges: EdgeChanges


class EdgeChanges(NamedTuple):
    """Removed and added cables between hosts and switches."""

    removed: EdgeColumns
    """In new port numbers, NO_PORT for a removed port."""
    added: EdgeColumns


def update_planes(split: PlaneSplit, fabric_update: FabricUpdate) -> PlaneUpdate | None:
    """Return the planes after one report changed; None if a cable between switches moved.

    Cost: O(ports + links), as arrays.

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
    updated = split_planes(fabric, cables=cables)
    return PlaneUpdate(updated, _find_edge_changes(old, cables, fabric_update))


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
    keeps_ports = np.array_equal(is_own, split.port_planes.is_in(plane.name))
    keeps_cables = is_own[moved_ports].all() and _has_same_leaves(plane, edges)
    if not (keeps_ports and keeps_cables):
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
