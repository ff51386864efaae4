"""The capacity that is left while pods are placed and removed: quantities, and slots per tier.

Each shape has its own counts: the pods of it that each unit of each tier holds. Placing pods
updates the counts of every shape at the node and at the units around it, whatever the size of the
cluster: O(shapes × tiers).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from generator.placement.cluster.levels import BoolArray, IntArray
from generator.placement.cluster.shape import PodShape
from generator.placement.cluster.snapshot import Snapshot

PodNeed = tuple[tuple[int, int], ...]
"""(row of free quantities, quantity) per resource of a pod; quantities are above 0."""


class NodeUse(NamedTuple):
    """Equal pods on one node."""

    node: int
    need: PodNeed
    num_pods: int
    """Below 0: pods that are removed."""


class _FreeNode(NamedTuple):
    """A node that pods were placed on or removed from."""

    free: list[int]
    """Free quantity per resource."""
    units: tuple[int, ...]
    """Per tier the unit around it."""


@dataclass(slots=True)
class _ShapeCounts:
    """The slots of one shape."""

    need: PodNeed
    allowed: BoolArray
    reserved: IntArray | None
    slots_by_tier: list[IntArray]
    """Per tier and unit; shared with the shape until the first change."""


class RemainingCapacity:
    """What a snapshot has free, and the slots of some shapes, as pods come and go."""

    def __init__(self, snapshot: Snapshot, shapes: Iterable[PodShape] = ()) -> None:
        """Begin with the free capacity of a snapshot."""
        self.snapshot, self.levels = snapshot, snapshot.levels
        self.changes: list[NodeUse] = []
        """All changes so far, without those that were undone."""
        self._row_of_resource = {name: row for row, name in enumerate(snapshot.resources)}
        self._nodes: dict[int, _FreeNode] = {}
        self._max_slots = snapshot.max_node_slots
        self._is_shared = True
        self._counts: list[_ShapeCounts] = []
        for shape in shapes:
            self.add_shape(shape)

    def add_shape(self, shape: PodShape, reserved: IntArray | None = None) -> int:
        """Return the index of a shape; all shapes are added before any pod is placed.

        Args:
            shape: the shape in the snapshot as its gang sees it.
            reserved: quantities reserved for other gangs, shaped like the snapshot's free
                quantities.
        """
        need = self.pod_need(shape.request)
        is_fixed = any(
            need and name not in self._row_of_resource for name, need in shape.request.items()
        )
        self._counts.append(
            _ShapeCounts(
                () if is_fixed else need, shape.allowed, reserved, list(shape.slots_by_tier)
            )
        )
        return len(self._counts) - 1

    @property
    def num_shapes(self) -> int:
        """Number of shapes that are counted."""
        return len(self._counts)

    def pod_need(self, request: Mapping[str, int]) -> PodNeed:
        """Return the quantities that a pod uses on a node; other resources are not tracked."""
        return tuple(
            (self._row_of_resource[name], quantity)
            for name, quantity in request.items()
            if quantity and name in self._row_of_resource
        )

    def slots_by_tier(self, shape: int) -> Sequence[IntArray]:
        """Return the slots of a shape per tier and unit, which change as pods are placed."""
        return self._counts[shape].slots_by_tier

    def free_quantities(self, node: int) -> list[int]:
        """Return the free quantities of a node by row."""
        return self._node(node).free

    def _node(self, node: int) -> _FreeNode:
        cached = self._nodes.get(node)
        if cached is None:
            units = tuple([unit_of.item(node) for unit_of in self.levels.unit_of_node])
            cached = _FreeNode(self.snapshot.free[:, node].tolist(), units)
            self._nodes[node] = cached
        return cached

    def free_array(self) -> IntArray:
        """Return all free quantities, shaped like those of the snapshot; O(resources × nodes)."""
        free = self.snapshot.free.copy()
        for position, node in self._nodes.items():
            free[:, position] = node.free
        return free

    def take(self, shape: int, node: int, num_pods: int) -> None:
        """Place pods of a shape on a node."""
        self.change(NodeUse(node, self._counts[shape].need, num_pods))

    def take_all(self, uses: Iterable[NodeUse]) -> None:
        """Place pods."""
        for use in uses:
            self.change(use)

    def give_back(self, uses: Iterable[NodeUse]) -> None:
        """Remove pods."""
        for node, need, num_pods in uses:
            self.change(NodeUse(node, need, -num_pods))

    def undo(self, num_changes: int) -> None:
        """Undo all but the first changes."""
        while len(self.changes) > num_changes:
            node, need, num_pods = self.changes.pop()
            self._apply(node, need, -num_pods)

    def change(self, use: NodeUse) -> None:
        """Place or remove pods on a node."""
        self.changes.append(use)
        self._apply(*use)

    def _apply(self, node: int, need: PodNeed, num_pods: int) -> None:
        if self._is_shared:
            for counts in self._counts:
                counts.slots_by_tier = [row.copy() for row in counts.slots_by_tier]
            self._is_shared = False
        free, units = self._node(node)
        for row, quantity in need:
            free[row] -= quantity * num_pods
        for counts in self._counts:
            if not counts.need or not counts.allowed[node]:
                continue
            left = free
            if counts.reserved is not None:
                left = [
                    quantity - kept
                    for quantity, kept in zip(free, counts.reserved[:, node].tolist(), strict=True)
                ]
            fits = min([left[row] // quantity for row, quantity in counts.need])
            change = max(min(fits, self._max_slots), 0) - counts.slots_by_tier[0].item(node)
            if change:
                for slots, unit in zip(counts.slots_by_tier, units, strict=True):
                    slots[unit] += change

    def slots_beside(self, shape: int, node: int, other: int) -> int:
        """Return how many pods of a shape fit a node beside one pod of another shape."""
        mark = len(self.changes)
        self.take(other, node, 1)
        slots = int(self._counts[shape].slots_by_tier[0][node])
        self.undo(mark)
        return slots
