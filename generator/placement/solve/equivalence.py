"""What no pod of a job can tell apart: nodes by what they hold, units by the nodes inside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise, product
from math import prod

import numpy as np

from generator.placement.cluster.levels import Ints, Levels
from generator.placement.problem.problem import Problem

WORD = 1 << 62
USELESS = 0
"""Code of nodes that hold no pod of the job."""
MOST_PACKINGS = 16_000_000
"""Ways to fill nodes that are looked at, over all nodes that differ in what they have free."""
DENSE = 1 << 20
"""Codes up to which numbering them takes a table, not a sort."""


def node_codes(problem: Problem, pods: Sequence[int]) -> Ints:
    """Return a number per node: nodes with the same one are alike to every pod of a job.

    They may have different quantities free, if these hold the same pods and leave the same room.
    A node that holds pods of the job, or pods that could make way for it, is like no other.

    Args:
        problem: what is asked for.
        pods: of the whole job, per shape.

    Cost: O(nodes × (resources asked for + shapes)), and O(ways to fill a node) for those that
    differ in what they have free.
    """
    first, codes = _numbered(_coded(problem.snapshot.num_nodes, _seen(problem)))
    most = [min(shape.most[0], num) for shape, num in zip(problem.shapes, pods, strict=True)]
    if len(first) * prod(num + 1 for num in most) <= MOST_PACKINGS:
        codes = _numbered(_coded(len(first), _packed(problem, most, first)))[1][codes]
    is_useful = np.logical_or.reduce([shape.slots > 0 for shape in problem.shapes])
    codes = np.where(is_useful, codes + USELESS + 1, USELESS)
    held = {*problem.own, *(problem.eviction.of_node if problem.eviction is not None else ())}
    codes[sorted(held)] = -1 - np.arange(len(held))
    return codes


def kept_in(levels: Levels, codes: Ints, most: int) -> list[bytes]:
    """Return per unit of the lowest tier the codes of its nodes, in order of the codes.

    Useless nodes are left out, and so are all but `most` with the same code.
    """
    low, num = _span(np.append(codes, USELESS))
    ordered = np.sort(levels.unit[1] * num + (codes - low))
    begins = np.flatnonzero(np.diff(ordered, prepend=-1))
    place = np.arange(len(ordered)) - np.repeat(begins, np.diff(begins, append=len(ordered)))
    ordered = ordered[(place < most) & (ordered % num != USELESS - low)]
    bounds = np.searchsorted(ordered // num, np.arange(len(levels.starts[1]) + 1)).tolist()
    kept = ordered % num
    return [kept[start:stop].tobytes() for start, stop in pairwise(bounds)]


def _seen(problem: Problem) -> Iterator[Ints]:
    """Yield per node all that pods of the job may see of it."""
    yield from _free(problem).values()
    for shape in problem.shapes:
        yield shape.allowed.astype(np.int64)
    yield from _wished(problem)


def _free(problem: Problem) -> dict[str, Ints]:
    """Return what nodes have free of the resources that the job asks for."""
    snapshot = problem.snapshot
    return {
        name: snapshot.free[row]
        for row, name in enumerate(snapshot.resources)
        if any(shape.request.get(name) for shape in problem.shapes)
    }


def _wished(problem: Problem) -> Iterator[Ints]:
    """Yield per node what makes the job like it less than others."""
    for shape in problem.shapes:
        if shape.misses is not None:
            yield shape.misses
    if problem.node_weights is not None:
        yield problem.node_weights.rank


def _packed(problem: Problem, most: Sequence[int], nodes: Ints) -> Iterator[Ints]:
    """Yield per node its slots, and with every number of pods in it the slots that are left.

    Slots are those of the largest shape; -1: the pods do not fit together.
    """
    shapes = problem.shapes
    largest = shapes[problem.largest]
    slots = [shape.slots[nodes] for shape in shapes]
    yield slots[problem.largest]
    for column in _wished(problem):
        yield column[nodes]
    rows = {name: free[nodes] for name, free in _free(problem).items()}
    for counts in product(*(range(num + 1) for num in most)):
        fits = np.logical_and.reduce([row >= num for row, num in zip(slots, counts, strict=True)])
        after = slots[problem.largest]
        for name, free in rows.items():
            used = sum(
                shape.request.get(name, 0) * num for shape, num in zip(shapes, counts, strict=True)
            )
            need = largest.request.get(name, 0)
            fits &= (free >= used) | (used == 0)
            if need:
                after = np.minimum(after, (free - used) // need)
        yield np.where(fits, np.maximum(after, 0), -1)


def _coded(num_rows: int, columns: Iterable[Ints]) -> Ints:
    """Return a number per row: the same where all columns are."""
    codes = np.zeros(num_rows, dtype=np.int64)
    num = 1
    for column in columns:
        low, span = _span(column)
        if num * span > WORD:
            _, codes = _numbered(codes)
            _, column = _numbered(column)  # noqa: PLW2901 - the same, numbered
            low, span = _span(column)
            num = _span(codes)[1]
        codes = codes * span + (column - low)
        num *= span
    return codes


def _numbered(codes: Ints) -> tuple[Ints, Ints]:
    """Return where each distinct code is first, and per row the index of its code among these."""
    low, span = _span(codes)
    if span > DENSE:
        _, first, index = np.unique(codes, return_index=True, return_inverse=True)
        return first, index
    first = np.full(span, -1, dtype=np.int64)
    first[codes[::-1] - low] = np.arange(len(codes))[::-1]  # of several writes the last one stays
    return first[first >= 0], (np.cumsum(first >= 0) - 1)[codes - low]


def _span(column: Ints) -> tuple[int, int]:
    """Return the least value, and how many there may be from it on."""
    if not len(column):
        return 0, 1
    low = int(column.min())
    return low, int(column.max()) - low + 1


class Kinds:
    """Numbers units so that those with the same number have the same table in a search."""

    def __init__(self, problem: Problem, pods: Sequence[int]) -> None:
        """Number the nodes.

        Args:
            problem: what is asked for.
            pods: of the whole job, per shape.
        """
        self._levels = problem.snapshot.levels
        self._rooms = problem.shapes[problem.largest].rooms
        self._most = sum(pods)
        """Children with the same number of which a job can use no more."""
        self._codes = node_codes(problem, pods)
        self._numbers: dict[object, int] = {}
        self._inside: dict[tuple[int, int], int] = {}

    def inside(self, tier: int, units: Ints) -> Ints:
        """Return numbers of units by what is inside them, in whatever order."""
        if tier == 0:
            return np.asarray(self._codes[units])
        return np.array([self._number_inside(tier, unit) for unit in units.tolist()])

    def of(self, tier: int, unit: int) -> int:
        """Return the number of a unit by what is inside it and the room that it has."""
        if tier == 0:
            return self._number((0, int(self._codes[unit])))
        return self._number((self._number_inside(tier, unit), "room", int(self._rooms[tier][unit])))

    def _number_inside(self, tier: int, unit: int) -> int:
        known = self._inside.get((tier, unit))
        if known is None:
            known = self._inside[tier, unit] = self._number((tier, self._key_inside(tier, unit)))
        return known

    def _key_inside(self, tier: int, unit: int) -> object:
        if tier == 1:
            return self._kept[unit]
        counted = Counter(self.of(tier - 1, child) for child in self._levels.children(tier, unit))
        return tuple(sorted((kind, min(num, self._most)) for kind, num in counted.items()))

    def _number(self, key: object) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    @cached_property
    def _kept(self) -> list[bytes]:
        return kept_in(self._levels, self._codes, self._most)
