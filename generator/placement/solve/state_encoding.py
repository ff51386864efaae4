"""Encode states of the tree search as integers, so that one operation adds or bounds two states.

Every count has its own field, wide enough for the sum of two, with a guard bit above it. The bound
with all guards set, minus the state, keeps every guard if and only if no count exceeds its bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from generator.placement.solve.part_contents import PartContents


class UnitState(NamedTuple):
    """The contribution of a unit."""

    complete_parts: tuple[int, ...]
    """Complete parts per type."""
    loose_pods: tuple[int, ...]
    """Pods per shape that wait for their part."""
    num_used: tuple[int, ...]
    """Units used per limited tier, then pods beyond whole slices per layer with a short slice."""


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
