"""The shortest ways between two switches of a plane, all of them at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from topology.model.fabric import Index
from topology.planes.cables import Edge, EdgeRows


class ShortestPaths(NamedTuple):
    """All shortest ways from one switch to another."""

    stages: tuple[tuple[int, ...], ...]
    """The switches at each distance, from the first switch to the last, ascending."""
    edges: tuple[Edge, ...]
    """The cables of these ways."""


def find_shortest_paths(
    edges: EdgeRows, num_devices: int, start: int, stop: int
) -> ShortestPaths | None:
    """Return all shortest ways; None if there is none. Cost: O(cables x length), as arrays."""
    from_start = _measure_distances(edges, num_devices, start)
    length = int(from_start[stop])
    if length < 0:
        return None
    from_stop = _measure_distances(edges, num_devices, stop)
    a, b = edges.columns.a, edges.columns.b
    is_known = (from_start[a] >= 0) & (from_stop[a] >= 0)
    is_used = is_known & (
        (from_start[a] + from_stop[b] + 1 == length) | (from_start[b] + from_stop[a] + 1 == length)
    )
    is_between = (from_start >= 0) & (from_start + from_stop == length)
    stages = tuple(
        tuple(np.flatnonzero(is_between & (from_start == distance)).tolist())
        for distance in range(length + 1)
    )
    return ShortestPaths(stages, tuple(edges.where(is_used)))


def _measure_distances(edges: EdgeRows, num_devices: int, start: int) -> Index:
    """Return the number of cables from a switch to each device; -1 if none lead there."""
    a, b = edges.columns.a, edges.columns.b
    distances: Index = np.full(num_devices, -1, np.intp)
    distances[start] = distance = 0
    while True:
        reached = np.concatenate((b[distances[a] == distance], a[distances[b] == distance]))
        new = reached[distances[reached] < 0]
        if not len(new):
            return distances
        distance += 1
        distances[new] = distance
