"""The slots left on nodes while the pods of several groups of a request are placed in turn."""

from __future__ import annotations

from generator.placement.cluster.capacity import FreeCapacity
from generator.placement.cluster.levels import IntArray
from generator.placement.problem.problem import Problem


class FreeSlots(FreeCapacity):
    """The free capacity as the shapes of a problem count it, by index of the shape."""

    def __init__(self, problem: Problem) -> None:
        """Begin with the free capacity of the snapshot."""
        super().__init__(problem.snapshot, problem.shapes)

    @property
    def slots(self) -> list[IntArray]:
        """Per shape: pods that still fit each node."""
        return [self.slots_by_tier(shape)[0] for shape in range(self.num_shapes)]

    @property
    def is_untouched(self) -> bool:
        """Whether no pod is placed."""
        return not self.changes

    def copy(self) -> int:
        """Return a mark to which `restore` returns."""
        return len(self.changes)

    def restore(self, mark: int) -> None:
        """Remove the pods that were placed since a mark."""
        self.undo(mark)

    def free_of(self, resource: str) -> IntArray:
        """Return the free quantity of a resource per node; 0 where it is unknown."""
        resources = self.snapshot.resources
        if resource not in resources:
            return self.snapshot.quantities(resource, counts_free=True)
        row: IntArray = self.free_array()[resources.index(resource)]
        return row
