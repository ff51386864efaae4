"""Plain gangs of a batch, one after the other, on numbers that are changed in place.

A gang that starts makes a new snapshot, which costs more than choosing its nodes does. Here each
question that a batch asks often keeps one number per leaf, by which the best leaf is found at a
glance; pods that are taken change the numbers of the leaves they lie in, and of no others. It
answers as `plain` does on the snapshot that the gangs before have left.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from generator.placement.cluster.levels import Ints
from generator.placement.cluster.pod_shapes import build_shapes
from generator.placement.cluster.shape import Shape
from generator.placement.cluster.snapshot import RunningGang, Snapshot, seen_by
from generator.placement.cluster.units import LEAF, Unit, tightest
from generator.placement.explanation.reasons import refusal
from generator.placement.request import PlacementRequest
from generator.placement.solve.uniform_gang import in_parts, is_plain, least_left, may_span

FEW = 4
"""What fewer gangs of a batch ask is not worth numbers of its own."""
MOST_QUESTIONS = 32
"""Each takes a number per leaf."""
NODES = 1 << 62
"""Added to a number of nodes, so that a leaf where one node holds all comes before all others."""
NEVER = int(np.iinfo(np.int64).max)


class PlainBatch:
    """What the gangs of a batch leave to those after them, as far as plain gangs ask."""

    def __init__(self, snapshot: Snapshot, requests: Sequence[PlacementRequest]) -> None:
        """Look at what is asked often, before any gang has a place."""
        self._snapshot = snapshot
        self._stocks: dict[Snapshot, _Stock] = {}
        # A gang with running or nominated pods sees another cluster than those that ask the same.
        apart = snapshot.running.keys() | {row.gang for row in snapshot.nominated.values()}
        keys = [None if one.gang in apart else one.question for one in requests]
        examples = dict(zip(keys, requests, strict=True))
        often = Counter(key for key in keys if key is not None).most_common(MOST_QUESTIONS)
        found = {key: self._question(examples[key]) for key, num in often if num >= FEW}
        self._questions = [None if key is None else found.get(key) for key in keys]
        """One per request; None where the whole engine is asked."""

    def _question(self, request: PlacementRequest) -> _Question | None:
        view = seen_by(self._snapshot, request.gang, request.priority)
        if refusal(view, request) is not None or not is_plain(view, request):
            return None
        (shape,), _ = build_shapes(view, request)
        if shape.most[0] >= NODES:
            return None
        if view not in self._stocks:
            self._stocks[view] = _Stock(view)
        kind = self._stocks[view].kind(shape)
        return _Question(kind, request, may_span=may_span(view, request, LEAF))

    def place(self, at: int) -> tuple[int, ...] | None:
        """Take the best nodes for one of the requests, and return them in index order.

        None: nothing is taken, the whole engine is to be asked.
        """
        question = self._questions[at]
        pods = None if question is None else question.best()
        if question is None or pods is None:
            return None
        for stock in self._stocks.values():
            for node, num in pods.items():
                stock.take(node, question.group.request, num)
        return question.in_order(pods)

    def take(self, gang: RunningGang) -> None:
        """Take the pods of a gang that the whole engine has placed off what is left."""
        for pods in gang.pods:
            at = self._snapshot.position[pods.node]
            for stock in self._stocks.values():
                stock.take(at, pods.request.items(), pods.count)

    def follow(self, before: Snapshot, after: Snapshot) -> None:
        """Take or give back what makes the difference of two snapshots."""
        for at in np.flatnonzero((before.free != after.free).any(axis=0)).tolist():
            more = (after.free[:, at] - before.free[:, at]).tolist()
            for stock in self._stocks.values():
                stock.add(at, more)


class _Stock:
    """What is free to gangs that see the same nominations."""

    def __init__(self, view: Snapshot) -> None:
        self.view = view
        self.changed: list[int] = []
        """Nodes, once per change."""
        self._nodes: dict[int, _Node] = {}
        self._row_of = {name: row for row, name in enumerate(view.resources)}
        self._kinds: dict[object, _Kind] = {}

    def kind(self, shape: Shape) -> _Kind:
        """Return what nodes see of a kind of pods; shapes that differ in name alone share it."""
        key = (frozenset(shape.request.items()), shape.allowed.tobytes(), shape.total)
        known = self._kinds.get(key)
        if known is None:
            known = self._kinds[key] = _Kind(self, shape)
        return known

    def node(self, at: int) -> _Node:
        """Return what is to be known of a node."""
        known = self._nodes.get(at)
        if known is None:
            levels = self.view.levels
            units = tuple(row.item(at) for row in levels.unit[LEAF : levels.root])
            known = self._nodes[at] = _Node(self.view.free[:, at].tolist(), units)
        return known

    def take(self, at: int, request: Iterable[tuple[str, int]], num: int) -> None:
        """Let so many pods start on a node."""
        left = self.node(at).left
        for name, need in request:
            if name in self._row_of:
                left[self._row_of[name]] -= need * num
        self.changed.append(at)

    def add(self, at: int, more: Sequence[int]) -> None:
        """Let a node have so much more free, per resource."""
        left = self.node(at).left
        left[:] = [held + one for held, one in zip(left, more, strict=True)]
        self.changed.append(at)

    def needs(self, shape: Shape) -> list[tuple[int, int]]:
        """Return what a pod takes of which resource; nothing where nodes lack one of them."""
        needed = [(name, need) for name, need in shape.request.items() if need]
        if any(name not in self._row_of for name, _ in needed):
            return []
        return [(self._row_of[name], need) for name, need in needed]


class _Node(NamedTuple):
    """A node of which pods took something."""

    left: list[int]
    """What is free, per resource."""
    units: tuple[int, ...]
    """Its leaf, and the units around that."""


class _Leaf:
    """The nodes of a leaf as a kind of pods sees them."""

    __slots__ = ("ranked", "slots", "start")

    def __init__(self, start: int, slots: list[int]) -> None:
        self.start = start
        self.slots = slots
        """Per node: pods that fit."""
        self.ranked = sorted(slots)

    def put(self, at: int, slots: int) -> int:
        """Let so many pods fit a node, and return how many that is more."""
        before = self.slots[at - self.start]
        if slots == before:
            return 0
        self.slots[at - self.start] = slots
        del self.ranked[bisect_left(self.ranked, before)]
        insort(self.ranked, slots)
        return slots - before

    def rank(self, num_pods: int) -> int:
        """Return what makes a leaf that holds so many pods better than another: less of it."""
        at = bisect_left(self.ranked, num_pods)
        if at < len(self.ranked):
            return self.ranked[at]
        held = 0
        for num, slots in enumerate(reversed(self.ranked), NODES + 1):
            held += slots
            if held >= num_pods:
                return num
        return NEVER


class _Kind:
    """What nodes and domains see of a kind of pods, brought up to date when it is asked for."""

    def __init__(self, stock: _Stock, shape: Shape) -> None:
        self.levels = stock.view.levels
        self.shape = shape
        self.rooms = [row.copy() for row in shape.rooms[: self.levels.root]]
        """Those of nodes stay as they were: their leaves know."""
        self.changed: list[int] = []
        """Leaves, once per change."""
        self._stock, self._needs = stock, stock.needs(shape)
        self._rooms_around = self.rooms[LEAF:]
        self._leaves: dict[int, _Leaf] = {}
        self._num_seen = len(stock.changed)

    def leaf(self, at: int) -> _Leaf:
        """Return a leaf as it is now."""
        known = self._leaves.get(at)
        if known is None:
            start, stop = self.levels.starts[LEAF].item(at), self.levels.stops[LEAF].item(at)
            known = self._leaves[at] = _Leaf(start, self.shape.slots[start:stop].tolist())
        return known

    def refresh(self) -> None:
        """Count the pods that fit the nodes that have changed."""
        changed, self._num_seen = self._stock.changed[self._num_seen :], len(self._stock.changed)
        if not self._needs:
            return
        for at in set(changed):
            left, units = self._stock.node(at)
            slots = max(min([left[row] // need for row, need in self._needs]), 0)
            more = self.leaf(units[0]).put(at, slots) if self.shape.allowed[at] else 0
            if more:
                self.changed.append(units[0])
                for room, unit in zip(self._rooms_around, units, strict=True):
                    room[unit] += more


class _Question:
    """One number per leaf: which of them hold a gang best."""

    def __init__(self, kind: _Kind, request: PlacementRequest, *, may_span: bool) -> None:
        (self.group,) = request.groups
        self._kind, self._may_span = kind, may_span
        self._ranks = _ranks(kind, self.group.count)
        self._num_seen = 0

    def best(self) -> dict[int, int] | None:
        """Return the pods of a gang per node, these in tree order; None where no leaf holds it."""
        kind, count = self._kind, self.group.count
        kind.refresh()
        for leaf in set(kind.changed[self._num_seen :]):
            self._ranks[leaf] = kind.leaf(leaf).rank(count)
        self._num_seen = len(kind.changed)
        best = self._ranks.item(self._ranks.argmin())
        if best == NEVER or (best > NODES and not self._may_span):
            return None
        leaves = tightest(kind.levels, kind.rooms, LEAF, (self._ranks == best).nonzero()[0])
        if best < NODES:
            found = kind.leaf(leaves.item(0))
            return {found.start + found.slots.index(best): count}
        return least_left(_apart(map(kind.leaf, leaves.tolist())), count)

    def in_order(self, pods: dict[int, int]) -> tuple[int, ...]:
        """Return the nodes of pods in index order."""
        return in_parts(self._kind.levels, self.group, pods)


def _apart(leaves: Iterable[_Leaf]) -> Iterator[Unit]:
    """Yield leaves, of those with equal nodes the first one."""
    met = set[tuple[int, ...]]()
    for leaf in leaves:
        slots = tuple(leaf.slots)
        if slots not in met:
            met.add(slots)
            yield Unit.of(leaf.start, slots)


def _ranks(kind: _Kind, count: int) -> Ints:
    """Return the rank of every leaf as it was before the batch; O(nodes)."""
    levels, shape = kind.levels, kind.shape
    enough = np.where(shape.slots >= count, shape.slots, NEVER)
    ranks: Ints = np.minimum.reduceat(enough, levels.starts[LEAF])
    spread = np.flatnonzero((ranks == NEVER) & (shape.rooms[LEAF] >= count))
    if len(spread):
        ranks[spread] = NODES + shape.covering(levels, 0, LEAF).fewest(spread, count)
    return ranks
