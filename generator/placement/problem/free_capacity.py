"""What is left of every node while pods are put on it one group after the other."""

from __future__ import annotations

from collections import Counter

from generator.placement.problem.objective import slots_after_use
from generator.placement.problem.problem import Problem


class FreeSlots:
    """Slots per shape and node; `copy` before what may have to be undone."""

    def __init__(self, problem: Problem) -> None:
        """Begin with all that the snapshot has free."""
        self._problem = problem
        self.slots = [shape.slots for shape in problem.shapes]
        """Per shape: pods that still fit each node; those of the shape until something is taken."""
        self._used: dict[int, Counter[str]] = {}

    @property
    def is_untouched(self) -> bool:
        """Whether nothing was taken yet."""
        return not self._used

    def copy(self) -> FreeSlots:
        """Return the same, to be changed apart; O(shapes × nodes)."""
        found = FreeSlots.__new__(FreeSlots)
        found._problem = self._problem  # noqa: SLF001 - of the same class
        found.slots = [row.copy() for row in self.slots]
        found._used = dict(self._used)  # noqa: SLF001 - of the same class
        return found

    def restore(self, before: FreeSlots) -> None:
        """Return to an earlier copy, which is used up."""
        self.slots, self._used = before.slots, before._used

    def slots_beside(self, shape: int, at: int, other: int) -> int:
        """Return how many pods of a shape fit a node beside one pod of another."""
        used = Counter(self._used.get(at, Counter()))
        used.update(self._problem.shapes[other].request)
        return slots_after_use(self._problem, self._problem.shapes[shape], at, used)

    def free_quantities(self, at: int) -> dict[str, int]:
        """Return what a node has free of every resource."""
        snapshot, used = self._problem.snapshot, self._used.get(at, Counter())
        return {
            name: int(snapshot.free[row, at]) - used.get(name, 0)
            for row, name in enumerate(snapshot.resources)
        }

    def take(self, shape: int, at: int, count: int) -> None:
        """Put pods on a node; O(shapes)."""
        if self.is_untouched:
            self.slots = [row.copy() for row in self.slots]
        used = Counter(self._used.get(at, Counter()))
        for name, need in self._problem.shapes[shape].request.items():
            used[name] += need * count
        self._used[at] = used
        for row, kind in zip(self.slots, self._problem.shapes, strict=True):
            row[at] = slots_after_use(self._problem, kind, at, used)
