"""Complete the slices that a group's running pods have begun; a heuristic for greedy placement.

Begun slices are completed first, those with the fewest missing pods before others. Whole slices
follow: the tightest domain of their tier that holds all remaining ones, or else as many as fit into
the largest domain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from generator.placement.cluster.levels import IntArray
from generator.placement.cluster.tiers import tier_index
from generator.placement.problem.problem import Problem


class PartialSlices(NamedTuple):
    """A layer of slices in domains of a tier, some of which may be incomplete."""

    tier: int
    size: int
    excess_pods: IntArray
    """Per unit of the tier: running pods beyond whole slices."""


def find_partial_slices(problem: Problem, group: int) -> PartialSlices | None:
    """Return the group's slices that its running pods may have begun; None if there are none.

    Only for a group with a single layer of slices, in a tier and not cut by index.
    """
    layers = problem.request.groups[group].slices
    if len(layers) != 1 or layers[0].tier is None or layers[0].is_indexed:
        return None
    if not problem.running_positions_of[group]:
        return None
    layer, levels = layers[0], problem.snapshot.levels
    tier = tier_index(problem.snapshot, layer.tier)
    running_units = levels.unit_of_node[tier][list(problem.running_positions_of[group])]
    return PartialSlices(
        tier,
        layer.size,
        np.bincount(running_units, minlength=len(levels.starts[tier])) % layer.size,
    )


def complete_slices(
    layer: PartialSlices, units: IntArray, num_pods: int, room_of: Callable[[IntArray], IntArray]
) -> Iterator[tuple[int, int]]:
    """Yield (unit, pods to place there) until all are placed; fewer if they do not fit.

    Args:
        layer: the layer of slices.
        units: units of its tier that may be used.
        num_pods: the number of new pods.
        room_of: returns the pods that units still hold; called again after each portion.
    """
    missing = layer.size - layer.excess_pods[units]
    for unit, num_missing in sorted(
        zip(units.tolist(), missing.tolist(), strict=True), key=_missing_pods_first
    ):
        slots = int(room_of(np.array([unit]))[0])
        if num_missing < layer.size and num_missing <= min(num_pods, slots):
            yield unit, num_missing
            num_pods -= num_missing
    while num_pods:
        usable_slots = room_of(units)
        rounding = layer.size if num_pods >= layer.size else 1
        usable_slots = usable_slots // rounding * rounding
        wanted_pods = num_pods // rounding * rounding
        is_enough = bool((usable_slots >= wanted_pods).any())
        index = int(
            np.where(usable_slots >= wanted_pods, -usable_slots, -usable_slots.max() - 1).argmax()
        )
        index = index if is_enough else int(usable_slots.argmax())
        num_placed = min(wanted_pods, int(usable_slots[index]))
        if not num_placed:
            return
        yield int(units[index]), num_placed
        num_pods -= num_placed


def _missing_pods_first(entry: tuple[int, int]) -> tuple[int, int]:
    unit, num_missing = entry
    return num_missing, unit
