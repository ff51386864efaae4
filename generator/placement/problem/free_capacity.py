"""The slots left on each node while the pods of several groups are placed in turn."""

from __future__ import annotations

from collections import Counter

from generator.placement.cluster.levels import IntArray
from generator.placement.problem.objective import slots_after_use
from generator.placement.problem.problem import Problem


class FreeSlots:
    """Slots per shape and node; take a `copy` before a step that may have to be undone."""

    def __init__(self, problem: Problem) -> None:
        """Begin with the free capacity of the snapshot."""
        self._problem = problem
        self.slots = [shape.slots for shape in problem.shapes]
        """Per shape: pods that still fit each node; shared with the shape until a pod is placed."""
        self._used: dict[int, Counter[str]] = {}

    @property
    def is_untouched(self) -> bool:
        """Whether no pod has been placed yet."""
        return not self._used

    def copy(self) -> FreeSlots:
        """Return an independent copy; O(shapes × nodes)."""
        copied = FreeSlots.__new__(FreeSlots)
        copied._problem = self._problem  # noqa: SLF001 - of the same class
        copied.slots = [slots.copy() for slots in self.slots]
        copied._used = dict(self._used)  # noqa: SLF001 - of the same class
        return copied

    def restore(self, before: FreeSlots) -> None:
        """Restore an earlier copy, which must not be used again."""
        self.slots, self._used = before.slots, before._used

    def slots_beside(self, shape: int, node: int, other: int) -> int:
        """Return how many pods of a shape fit a node beside one pod of another shape."""
        used = Counter(self._used.get(node, Counter()))
        used.update(self._problem.shapes[other].request)
        return slots_after_use(self._problem, self._problem.shapes[shape], node, used)

    def free_quantities(self, node: int) -> dict[str, int]:
        """Return the free quantity of every resource of a node."""
        snapshot, used = self._problem.snapshot, self._used.get(node, Counter())
        return {
            name: int(snapshot.free[row, node]) - used.get(name, 0)
            for row, name in enumerate(snapshot.resources)
        }

    def free_of(self, resource: str) -> IntArray:
        """Return the free quantity of a resource per node; 0 where it is unknown."""
        snapshot = self._problem.snapshot
        free = snapshot.quantities(resource, counts_free=True).copy()
        for node, used in self._used.items():
            free[node] -= used.get(resource, 0)
        return free

    def take(self, shape: int, node: int, count: int) -> None:
        """Place pods on a node; O(shapes)."""
        if self.is_untouched:
            self.slots = [slots.copy() for slots in self.slots]
        used = Counter(self._used.get(node, Counter()))
        for name, need in self._problem.shapes[shape].request.items():
            used[name] += need * count
        self._used[node] = used
        for slots, pod_shape in zip(self.slots, self._problem.shapes, strict=True):
            slots[node] = slots_after_use(self._problem, pod_shape, node, used)
