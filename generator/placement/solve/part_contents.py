"""The contents of parts, in the counts of the search: inner parts, and pods per shape."""

from __future__ import annotations

from collections.abc import Sequence

from generator.placement.problem.parts import PartType


class PartContents:
    """The parts of one job by type; inner types come before the types that contain them."""

    def __init__(self, types: Sequence[PartType], wanted: Sequence[int], num_shapes: int) -> None:
        """Count the contents of each type.

        Args:
            types: all part types, inner types first.
            wanted: number of parts of each type outside sets.
            num_shapes: number of pod shapes.
        """
        self._types, self._wanted = types, wanted
        index = {kind: at for at, kind in enumerate(types)}
        self._members = [[(index[inner], many) for inner, many in kind.members] for kind in types]
        self._sets = [at for at, members in enumerate(self._members) if members]
        self._pods: list[list[int]] = []
        for kind, members in zip(types, self._members, strict=True):
            row = [0] * num_shapes
            if kind.shape >= 0:
                row[kind.shape] = kind.size
            for inner, many in members:
                row = [a + many * b for a, b in zip(row, self._pods[inner], strict=True)]
            self._pods.append(row)
        self._known_counts: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
        self.job_pods = self.pods_per_shape(tuple(wanted), (0,) * num_shapes)

    def pods_per_shape(self, done: tuple[int, ...], loose: tuple[int, ...]) -> list[int]:
        """Return the pods per shape in complete parts and loose; cached."""
        known = self._known_counts.get((done, loose))
        if known is None:
            known = self._known_counts[done, loose] = self._count_pods(done, loose)
        return known

    def _count_pods(self, done: tuple[int, ...], loose: tuple[int, ...]) -> list[int]:
        total = list(loose)
        for many, row in zip(done, self._pods, strict=True):
            if many:
                total = [a + many * b for a, b in zip(total, row, strict=True)]
        return total

    def max_above(self, done: Sequence[int], above: int) -> tuple[list[int], list[int]]:
        """Return the most parts per type and loose pods per shape that may leave a unit upwards.

        Parts are passed up to `above` and higher while a set that may lie there, or the job, still
        needs them; pods while a part needs them.
        """
        missing = [want - have for want, have in zip(self._wanted, done, strict=True)]
        most = list(self._wanted)
        for at in reversed(range(len(self._types))):
            for inner, many in self._members[at]:
                waiting = max(missing[at], 0) * many
                missing[inner] += waiting
                most[inner] += waiting if self._types[at].max_tier >= above else 0
        pods = [0] * len(self.job_pods)
        for kind, lacks in zip(self._types, missing, strict=True):
            if kind.shape >= 0 and kind.max_tier >= above and lacks > 0:
                pods[kind.shape] += lacks * kind.size
        return most, pods

    def max_completable(
        self, index: int, lacks: int, done: Sequence[int], loose: Sequence[int]
    ) -> int:
        """Return how many of the missing parts of a type can be completed."""
        kind = self._types[index]
        if kind.shape >= 0:
            return min(lacks, loose[kind.shape] // kind.size)
        return min(lacks, *(done[inner] // many for inner, many in self._members[index]))

    def complete_parts(
        self, index: int, many: int, done: tuple[int, ...], loose: tuple[int, ...]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the parts and loose pods after this many parts of a type are completed."""
        parts, pods = list(done), list(loose)
        parts[index] += many
        for inner, each in self._members[index]:
            parts[inner] -= many * each
        kind = self._types[index]
        if kind.shape >= 0:
            pods[kind.shape] -= many * kind.size
        return tuple(parts), tuple(pods)
