"""The capacity that is left while pods come and go.

Placing pods updates the counts of every shape at the node and at the units around it, whatever the
size of the cluster: O(shapes × tiers).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from generator.placement.cluster.levels import BoolArray, IntArray
from generator.placement.cluster.shapes import PodShape
from generator.placement.cluster.snapshot import Snapshot, fit_pods
from topology.model.errors import InvariantError

PodNeed = tuple[tuple[int, int], ...]
"""(row of free quantities, quantity) per resource of a pod; quantities are above 0."""


class NodeUse(NamedTuple):
    """Equal pods on one node."""

    node: int
    need: PodNeed
    num_pods: int
    """Below 0: pods that are removed."""


@dataclass(slots=True)
class _ShapeCounts:
    """The slots of one shape."""

    need: PodNeed
    allowed: BoolArray
    slots_by_tier: list[IntArray]
    """Per tier and unit; shared with the shape until the first change."""


_Gains = list[tuple[list[IntArray], int]]
"""Per shape that a change affects: its slots per tier, and how many it gains."""


class FreeCapacity:
    """The free amounts of a snapshot, and the slots for shapes, as pods come and go."""

    def __init__(self, snapshot: Snapshot, shapes: Iterable[PodShape] = ()) -> None:
        """Begin with the free capacity of a snapshot."""
        self.snapshot, self.levels = snapshot, snapshot.levels
        self.changes: list[NodeUse] = []
        """All changes so far, without those that were undone."""
        self._gains: list[_Gains] = []
        """Per change, the slots that each changed shape gained; below 0 for slots lost."""
        self._row_of_resource = {name: row for row, name in enumerate(snapshot.resources)}
        self._free: IntArray = snapshot.free
        """Shared with the snapshot until the first change."""
        self._max_slots = snapshot.max_node_slots
        self._is_shared = True
        self._counts: list[_ShapeCounts] = []
        for shape in shapes:
            self.add_shape(shape)

    def add_shape(self, shape: PodShape) -> int:
        """Return the index of a shape; all shapes are added before any pod is placed."""
        need = self.pod_need(shape.request)
        is_fixed = any(
            need and name not in self._row_of_resource for name, need in shape.request.items()
        )
        self._counts.append(
            _ShapeCounts(() if is_fixed else need, shape.allowed, list(shape.slots_by_tier))
        )
        return len(self._counts) - 1

    def pod_need(self, request: Mapping[str, int]) -> PodNeed:
        """Return the quantities that a pod uses on a node; other resources are not tracked."""
        return tuple(
            (self._row_of_resource[name], quantity)
            for name, quantity in self.snapshot.pod_needs(request).items()
            if quantity and name in self._row_of_resource
        )

    def slots_by_tier(self, shape: int) -> Sequence[IntArray]:
        """Return the slots of a shape per tier and unit, which change as pods are placed."""
        return self._counts[shape].slots_by_tier

    def free_quantities(self, node: int) -> list[int]:
        """Return the free quantities of a node by row."""
        quantities: list[int] = self._free[:, node].tolist()
        return quantities

    def free_array(self) -> IntArray:
        """Return a copy of the free quantities: a row per resource, a column per node."""
        return self._free.copy()

    def free_of(self, resource: str) -> IntArray:
        """Return the free quantity of a resource per node now; 0 if it is unknown."""
        row = self._row_of_resource.get(resource)
        if row is None:
            return np.zeros(self.snapshot.num_nodes, dtype=np.int64)
        free: IntArray = self._free[row]
        return free

    def take(self, shape: int, node: int, num_pods: int) -> None:
        """Place pods of a shape on a node.

        Raises:
            InvariantError: the node does not hold them.
        """
        counts = self._counts[shape]
        if counts.slots_by_tier[0].item(node) < num_pods:
            raise InvariantError(f"node {node} does not hold {num_pods} more pods")
        self.change(NodeUse(node, counts.need, num_pods))

    def undo(self, num_changes: int) -> None:
        """Undo all but the first changes."""
        while len(self.changes) > num_changes:
            node, need, num_pods = self.changes.pop()
            for row, quantity in need:
                self._free[row, node] += quantity * num_pods
            units = self._units_around(node)
            for slots_by_tier, gained in self._gains.pop():
                for slots, unit in zip(slots_by_tier, units, strict=True):
                    slots[unit] -= gained

    def _units_around(self, node: int) -> list[int]:
        """Return the unit of a node per tier."""
        return [unit_of.item(node) for unit_of in self.levels.unit_of_node]

    def _copy_shared(self) -> None:
        """Copy what is shared with the snapshot and its shapes, before the first change."""
        self._free = self.snapshot.free.copy()
        for counts in self._counts:
            counts.slots_by_tier = [row.copy() for row in counts.slots_by_tier]
        self._is_shared = False

    def change(self, use: NodeUse) -> None:
        """Place or remove pods on a node."""
        self.changes.append(use)
        self._gains.append(self._apply(*use))

    def _apply(self, node: int, need: PodNeed, num_pods: int) -> _Gains:
        """Place or remove pods; return the slots that each changed shape gains."""
        if self._is_shared:
            self._copy_shared()
        for row, quantity in need:
            self._free[row, node] -= quantity * num_pods
        free, units = self.free_quantities(node), self._units_around(node)
        gains: _Gains = []
        for counts in self._counts:
            if not counts.need or not counts.allowed[node]:
                continue
            fits = fit_pods(free, counts.need, self._max_slots)
            change = fits - counts.slots_by_tier[0].item(node)
            if change:
                for slots, unit in zip(counts.slots_by_tier, units, strict=True):
                    slots[unit] += change
                gains.append((counts.slots_by_tier, change))
        return gains
