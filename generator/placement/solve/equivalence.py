"""Classes of nodes and of units that are alike for a job, so that one table serves each class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise, product
from math import prod

import numpy as np

from generator.placement.cluster.levels import IntArray, TreeLevels
from generator.placement.cluster.shapes import sum_requests
from generator.placement.problem.problem import Problem

MAX_CODE = 1 << 62
USELESS_CODE = 0
"""Code of nodes that hold no pod of the job."""
MAX_PACKINGS = 16_000_000
"""Most ways to fill nodes that are compared, over all nodes with different free quantities."""


def node_codes(problem: Problem, pods: Sequence[int]) -> IntArray:
    """Return a code per node; nodes with equal codes are alike for every pod of the job.

    Their free quantities may differ if they hold the same pods and leave the same slots. A node
    with running pods of the job, or with pods that may be evicted for it, has a code of its own.

    Args:
        problem: the request and the cluster.
        pods: the number of pods in the whole job, per shape.

    Cost: O(nodes × (requested resources + shapes)), and O(ways to fill a node) for nodes with
    different free quantities.
    """
    first, codes = _renumber(_encode_rows(problem.snapshot.num_nodes, _node_columns(problem)))
    max_pods = [
        min(shape.max_slots[0], count) for shape, count in zip(problem.shapes, pods, strict=True)
    ]
    if len(first) * prod(count + 1 for count in max_pods) <= MAX_PACKINGS:
        codes = _renumber(_encode_rows(len(first), _packing_columns(problem, max_pods, first)))[1][
            codes
        ]
    is_useful = np.logical_or.reduce([shape.slots > 0 for shape in problem.shapes])
    codes = np.where(is_useful, codes + USELESS_CODE + 1, USELESS_CODE)
    special_nodes = {
        *problem.own_pods.positions,
        *(problem.evictable.victims_by_node if problem.evictable is not None else ()),
    }
    codes[sorted(special_nodes)] = -1 - np.arange(len(special_nodes))
    return codes


def useful_codes_by_leaf(levels: TreeLevels, codes: IntArray, most: int) -> list[bytes]:
    """Return per unit of the lowest tier the codes of its nodes, sorted.

    Useless nodes are left out, and so are all but `most` nodes with the same code.
    """
    min_code, code_range = _value_range(np.append(codes, USELESS_CODE))
    ordered = np.sort(levels.unit_of_node[1] * code_range + (codes - min_code))
    run_starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    rank_in_run = np.arange(len(ordered)) - np.repeat(
        run_starts, np.diff(run_starts, append=len(ordered))
    )
    ordered = ordered[(rank_in_run < most) & (ordered % code_range != USELESS_CODE - min_code)]
    bounds = np.searchsorted(ordered // code_range, np.arange(len(levels.starts[1]) + 1)).tolist()
    leaf_codes = ordered % code_range
    return [leaf_codes[start:stop].tobytes() for start, stop in pairwise(bounds)]


def _node_columns(problem: Problem) -> Iterator[IntArray]:
    """Yield, per node, all properties that the pods of the job depend on."""
    yield from _free_columns(problem).values()
    for shape in problem.shapes:
        yield shape.allowed.astype(np.int64)
    yield from _preference_columns(problem)


def _free_columns(problem: Problem) -> dict[str, IntArray]:
    """Return the free quantities of the resources that the job requests."""
    snapshot = problem.snapshot
    return {
        name: snapshot.free[row]
        for row, name in enumerate(snapshot.resources)
        if any(shape.request.get(name) for shape in problem.shapes)
    }


def _preference_columns(problem: Problem) -> Iterator[IntArray]:
    """Yield, per node, the properties that make it less preferred."""
    for shape in problem.shapes:
        if shape.missing_labels is not None:
            yield shape.missing_labels
    if problem.node_weights is not None:
        yield problem.node_weights.weight_index


def _packing_columns(
    problem: Problem, max_pods: Sequence[int], nodes: IntArray
) -> Iterator[IntArray]:
    """Yield per node its slots, and for every combination of pods on it the slots left.

    Slots are those of the scarcest shape; -1: the pods do not fit together.
    """
    shapes = problem.shapes
    largest = shapes[problem.scarcest_shape]
    slots = [shape.slots[nodes] for shape in shapes]
    yield slots[problem.scarcest_shape]
    for column in _preference_columns(problem):
        yield column[nodes]
    free_by_resource = {name: free[nodes] for name, free in _free_columns(problem).items()}
    for counts in product(*(range(count + 1) for count in max_pods)):
        problem.budget.spend_on_arrays(len(nodes))
        fits = np.logical_and.reduce(
            [shape_slots >= count for shape_slots, count in zip(slots, counts, strict=True)]
        )
        used = sum_requests(shapes, counts)
        for name, free in free_by_resource.items():
            fits &= (free >= used[name]) | (used[name] == 0)
        after = problem.snapshot.count_slots(
            largest.request, unbounded=largest.max_slots[0], nodes=nodes, used=used
        )
        yield np.where(fits, np.minimum(after, slots[problem.scarcest_shape]), -1)


def _encode_rows(num_rows: int, columns: Iterable[IntArray]) -> IntArray:
    """Return a code per row; rows are equal exactly if their codes are equal."""
    codes = np.zeros(num_rows, dtype=np.int64)
    code_range = 1
    for column in columns:
        min_value, span = _value_range(column)
        if code_range * span > MAX_CODE:
            _, codes = _renumber(codes)
            _, column = _renumber(column)  # noqa: PLW2901 - the same, numbered
            min_value, span = _value_range(column)
            code_range = _value_range(codes)[1]
        codes = codes * span + (column - min_value)
        code_range *= span
    return codes


def _renumber(codes: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first row of each distinct code, and per row the index of its code."""
    _, first, index = np.unique(codes, return_index=True, return_inverse=True)
    return first, index


def _value_range(column: IntArray) -> tuple[int, int]:
    """Return the smallest value, and the size of the range of values."""
    if not len(column):
        return 0, 1
    min_value = int(column.min())
    return min_value, int(column.max()) - min_value + 1


class EquivalenceClasses:
    """Numbers units such that units with equal numbers have equal tables in a search."""

    def __init__(self, problem: Problem, pods: Sequence[int]) -> None:
        """Classify the nodes.

        Args:
            problem: the request and the cluster.
            pods: the number of pods in the whole job, per shape.
        """
        self._levels = problem.snapshot.levels
        self._slots_by_tier = problem.shapes[problem.scarcest_shape].slots_by_tier
        self._max_children = sum(pods)
        """A job cannot use more children of one class than this."""
        self._codes = node_codes(problem, pods)
        self._numbers: dict[object, int] = {}
        self._content_numbers: dict[tuple[int, int], int] = {}

    def classes_by_content(self, tier: int, units: IntArray) -> IntArray:
        """Return the class of each unit by what is inside it, in any order."""
        if tier == 0:
            return np.asarray(self._codes[units])
        return np.array([self._content_number(tier, unit) for unit in units.tolist()])

    def class_of(self, tier: int, unit: int) -> int:
        """Return the class of a unit by what is inside it and its slots."""
        if tier == 0:
            return self._number_of_key((0, int(self._codes[unit])))
        return self._number_of_key(
            (self._content_number(tier, unit), "room", int(self._slots_by_tier[tier][unit]))
        )

    def _content_number(self, tier: int, unit: int) -> int:
        cached = self._content_numbers.get((tier, unit))
        if cached is None:
            cached = self._content_numbers[tier, unit] = self._number_of_key(
                (tier, self._content_key(tier, unit))
            )
        return cached

    def _content_key(self, tier: int, unit: int) -> object:
        if tier == 1:
            return self._leaf_codes[unit]
        class_counts = Counter(
            self.class_of(tier - 1, child) for child in self._levels.children(tier, unit)
        )
        return tuple(
            sorted(
                (class_number, min(count, self._max_children))
                for class_number, count in class_counts.items()
            )
        )

    def _number_of_key(self, key: object) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    @cached_property
    def _leaf_codes(self) -> list[bytes]:
        return useful_codes_by_leaf(self._levels, self._codes, self._max_children)
