"""What no pod of a job can tell apart: nodes by their codes, units by what is inside them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from generator.placement.capacity import Ints
from generator.placement.levels import Levels
from generator.placement.problem import Problem

WORD = 1 << 62


def contents(levels: Levels, values: Ints, tier: int, unit: int) -> bytes:
    """Return what is inside a unit: its parts, and the values of its nodes."""
    start, stop = levels.starts[tier][unit], levels.stops[tier][unit]
    rows = [values[start:stop].tobytes()]
    for inner in range(1, tier):
        starts = levels.starts[inner]
        first, last = levels.unit[inner][start], levels.unit[inner][stop - 1] + 1
        rows.append((starts[first:last] - start).tobytes())
    return b"|".join(rows)


def node_codes(problem: Problem) -> Ints:
    """Return a number per node: nodes with the same one are alike to every pod of a job.

    A node that holds pods of the job, or pods that could make way for it, is like no other.
    Cost: O(nodes × (resources asked for + shapes)).
    """
    codes = np.zeros(problem.snapshot.num_nodes, dtype=np.int64)
    num = 1
    for column in _columns(problem):
        low, span = _span(column)
        if num * span > WORD:
            column = np.unique(column, return_inverse=True)[1]  # noqa: PLW2901 - the same, numbered
            codes = np.unique(codes, return_inverse=True)[1]
            low, span = _span(column)
            num = _span(codes)[1]
        codes = codes * span + (column - low)
        num *= span
    held = {*problem.own, *(problem.eviction.of_node if problem.eviction is not None else ())}
    codes[sorted(held)] = -1 - np.arange(len(held))
    return codes


def _columns(problem: Problem) -> Iterator[Ints]:
    """Yield per node all that pods of the job may see of it."""
    snapshot = problem.snapshot
    asked = {name for shape in problem.shapes for name, need in shape.request.items() if need}
    for row, name in enumerate(snapshot.resources):
        if name in asked:
            yield snapshot.free[row]
    for shape in problem.shapes:
        yield shape.allowed.astype(np.int64)
        if shape.misses is not None:
            yield shape.misses
    if problem.node_weights is not None:
        yield problem.node_weights.rank


def _span(column: Ints) -> tuple[int, int]:
    """Return the least value, and how many there may be from it on."""
    if not len(column):
        return 0, 1
    low = int(column.min())
    return low, int(column.max()) - low + 1
