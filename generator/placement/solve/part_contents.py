"""The contents of parts, in the counts of the search, and states of such counts as integers.

One operation on integers adds or bounds two states. Every count has its own field, wide enough for
the sum of two, with a guard bit above it. The bound with all guards set, minus the state, keeps
every guard if and only if no count exceeds its bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from generator.placement.problem.request_parts import PartType


class PartContents:
    """The parts of one job by type; inner types come before the types that contain them."""

    def __init__(
        self, types: Sequence[PartType], num_wanted: Sequence[int], num_shapes: int
    ) -> None:
        """Count the contents of each type.

        Args:
            types: all part types, inner types first.
            num_wanted: number of parts of each type outside sets.
            num_shapes: number of pod shapes.
        """
        self._types, self._wanted = types, num_wanted
        index = {part_type: number for number, part_type in enumerate(types)}
        self._members = [
            [(index[inner], count) for inner, count in part_type.members] for part_type in types
        ]
        self._sets = [number for number, members in enumerate(self._members) if members]
        self._pods: list[list[int]] = []
        for part_type, members in zip(types, self._members, strict=True):
            pods_per_shape = [0] * num_shapes
            if part_type.shape >= 0:
                pods_per_shape[part_type.shape] = part_type.size
            for inner, count in members:
                pods_per_shape = [
                    total + count * inner_pods
                    for total, inner_pods in zip(pods_per_shape, self._pods[inner], strict=True)
                ]
            self._pods.append(pods_per_shape)
        self.pods_per_shape = cache(self._count_pods)
        """Returns the pods per shape in complete parts and loose ones."""
        self.job_pods = self.pods_per_shape(tuple(num_wanted), (0,) * num_shapes)

    def _count_pods(self, done: tuple[int, ...], loose: tuple[int, ...]) -> list[int]:
        total = list(loose)
        for count, pods_per_shape in zip(done, self._pods, strict=True):
            if count:
                total = [
                    pods + count * part_pods
                    for pods, part_pods in zip(total, pods_per_shape, strict=True)
                ]
        return total

    def max_above(self, done: Sequence[int], above: int) -> tuple[list[int], list[int]]:
        """Return the most parts per type and loose pods per shape that may leave a unit upwards.

        Parts are passed up to `above` and higher while a set that may lie there, or the job, still
        needs them; pods while a part needs them.
        """
        missing = [
            num_wanted - num_done for num_wanted, num_done in zip(self._wanted, done, strict=True)
        ]
        max_parts = list(self._wanted)
        for type_index in reversed(range(len(self._types))):
            for inner, count in self._members[type_index]:
                waiting = max(missing[type_index], 0) * count
                missing[inner] += waiting
                max_parts[inner] += waiting if self._types[type_index].max_tier >= above else 0
        pods = [0] * len(self.job_pods)
        for part_type, num_missing in zip(self._types, missing, strict=True):
            if part_type.shape >= 0 and part_type.max_tier >= above and num_missing > 0:
                pods[part_type.shape] += num_missing * part_type.size
        return max_parts, pods

    def max_completable(
        self, index: int, num_missing: int, done: Sequence[int], loose: Sequence[int]
    ) -> int:
        """Return how many of the missing parts of a type can be completed."""
        part_type = self._types[index]
        if part_type.shape >= 0:
            return min(num_missing, loose[part_type.shape] // part_type.size)
        return min(num_missing, *(done[inner] // count for inner, count in self._members[index]))

    def complete_parts(
        self, index: int, count: int, done: tuple[int, ...], loose: tuple[int, ...]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the parts and loose pods after this many parts of a type are completed."""
        parts, pods = list(done), list(loose)
        parts[index] += count
        for inner, per_set in self._members[index]:
            parts[inner] -= count * per_set
        part_type = self._types[index]
        if part_type.shape >= 0:
            pods[part_type.shape] -= count * part_type.size
        return tuple(parts), tuple(pods)


class UnitState(NamedTuple):
    """The contribution of a unit."""

    complete_parts: tuple[int, ...]
    """Complete parts per type."""
    loose_pods: tuple[int, ...]
    """Pods per shape that wait for their part."""
    num_used: tuple[int, ...]
    """The sums of `TierRules`."""


class StateEncoding:
    """Encodes the states of one job."""

    def __init__(self, contents: PartContents, empty: UnitState, max_used: Sequence[int]) -> None:
        """Lay out the fields; complete parts are in the highest ones, from `parts_shift` on."""
        self._contents, self._max_used = contents, tuple(max_used)
        self._lengths = [len(row) for row in empty]
        parts, pods = contents.max_above(empty.complete_parts, above=0)
        maxima = [*parts, *pods, *max_used]
        self._masks = [(1 << maximum.bit_length() + 1) - 1 for maximum in maxima]
        self._shifts: list[int] = []
        self.guards = shift = 0
        for mask in reversed(self._masks):
            self._shifts.insert(0, shift)
            shift += mask.bit_length() + 1
            self.guards |= 1 << shift - 1
        self.parts_shift = self._shifts[len(parts) - 1]
        self.bounds: dict[int, int] = {}

    def encode(self, state: UnitState) -> int:
        """Return a state as an integer."""
        counts = (*state.complete_parts, *state.loose_pods, *state.num_used)
        return sum(count << shift for count, shift in zip(counts, self._shifts, strict=True))

    def decode(self, packed: int) -> UnitState:
        """Return the state that an integer encodes."""
        fields = zip(self._shifts, self._masks, strict=True)
        counts = tuple(packed >> shift & mask for shift, mask in fields)
        done, loose, _ = self._lengths
        return UnitState(counts[:done], counts[done : done + loose], counts[done + loose :])

    def bound(self, packed: int) -> int:
        """Return the bound on states with these complete parts, with all guards set."""
        key = packed >> self.parts_shift
        if key not in self.bounds:
            parts, pods = self._contents.max_above(self.decode(packed).complete_parts, above=0)
            max_state = UnitState(tuple(parts), tuple(pods), self._max_used)
            self.bounds[key] = self.encode(max_state) | self.guards
        return self.bounds[key]
