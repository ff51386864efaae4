"""Exact search over the tree for any mix of groups, under an effort budget.

Bottom-up over units: a table maps a *state* of a unit, namely how many parts of each type are
complete in it and how many pods of each shape wait for their part to be completed further up, to
the least cost. Costs are additive, so a lexicographic vector packed into one integer is
minimised exactly. Tables are built only below units that may hold the job.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from operator import add, gt, itemgetter
from typing import NamedTuple

import numpy as np

from generator.placement.cluster.levels import Ints
from generator.placement.problem.parts import Part, PartType, PlacedPart, all_types, type_key
from generator.placement.problem.problem import Problem
from generator.placement.problem.unit_rules import UnitRule
from generator.placement.solve.budget import Effort, EffortSpent
from generator.placement.solve.cost_encoding import Weights
from generator.placement.solve.equivalence import Kinds
from generator.placement.solve.part_contents import Contents
from generator.placement.solve.part_placement import Found
from generator.placement.solve.state_encoding import Packing, State


class Entry(NamedTuple):
    """How a state of a unit is reached at the least cost."""

    cost: int
    before: State
    """Sum of the children, or the pods of the node."""
    completed: tuple[int, ...]
    """Parts per type completed in this very unit."""


Rank = tuple[int, tuple[int, ...]]
"""Pods in a state, and its parts: what decides between sums that cost the same."""
Fold = dict[int, tuple[int, int, int, Rank]]
"""Sum so far -> (cost, sum before, the child's state, its rank); states are packed."""


@dataclass
class _Table:
    """What units that are alike may contribute."""

    unit: int
    """The one whose children were added."""
    entries: dict[State, Entry]
    folds: list[Fold] = field(default_factory=list)
    """Per child, the last one first."""
    children: list[int] = field(default_factory=list)
    """Their numbers among the children of the unit."""
    packed: list[tuple[int, int, Rank]] = field(default_factory=list)
    """The entries as (state, cost, rank)."""


class Search:
    """Tables of one problem for one choice of pods per group and one bound on parts."""

    def __init__(self, problem: Problem, parts: Sequence[Part], effort: Effort) -> None:
        """Prepare; nothing is computed yet.

        Args:
            problem: what is asked for.
            parts: all of the job, those of sets inside their set.
            effort: budget, shared with other searches of the same query.
        """
        self._problem, self._effort = problem, effort
        counted = Counter(part.kind for part in parts)
        self._types = all_types(sorted(counted, key=type_key))
        self._wanted = [counted[kind] for kind in self._types]
        self._contents = Contents(self._types, self._wanted, len(problem.shapes))
        self._weights = Weights(problem, sum(part.kind.size for part in parts))
        self._pods = self._contents.of_job
        self._most_used = [most for _, most in problem.limits]
        self._most_used += [
            (len(problem.own_of[row.group]) + self._pods[problem.shape_of[row.group]]) % row.size
            for row in problem.remainders
        ]
        self._rooms: dict[tuple[tuple[int, ...], int], tuple[list[int], list[int]]] = {}
        self._tables: dict[int, _Table] = {}
        self._ordered: dict[tuple[int, int], _Table] = {}
        self._kinds = Kinds(problem, self._pods)
        self._empty = State(
            (0,) * len(self._types), (0,) * len(problem.shapes), (0,) * len(self._most_used)
        )
        self._packing = Packing(self._contents, self._empty, self._most_used)

    def best(self, tier: int, units: Ints) -> Found | None:
        """Return the best placement whose domain is one of these units of a tier.

        Where the budget ends it is the best in the units that were looked at.

        Raises:
            EffortSpent: the budget ended before any placement was found.
        """
        if not self._may_lie_in_one(tier):
            return None
        goals: list[tuple[int, int, State]] = []
        is_proved = True
        try:
            for alike in self._by_kind(tier, units):
                goal = self._goal(tier, int(alike[0]))
                if goal is not None:
                    cost, unit = self._weights.cheapest_domain(tier, alike)
                    goals.append((goal[0] + cost, unit, goal[1]))
        except EffortSpent:
            if not goals:
                raise
            is_proved = False
        if not goals:
            return None
        _, unit, state = min(goals)
        parts, _ = self._rebuild(tier, unit, state)
        return Found(parts, is_proved)

    def _by_kind(self, tier: int, units: Ints) -> list[Ints]:
        """Return units in order as those of each kind, by the first of them."""
        kinds = self._kinds.inside(tier, units)
        order = kinds.argsort(kind="stable")
        cuts = np.flatnonzero(np.diff(kinds[order])) + 1
        return sorted(np.split(units[order], cuts), key=itemgetter(0))

    def _goal(self, tier: int, unit: int) -> tuple[int, State] | None:
        """Return the least cost of the whole job inside a unit, and its state."""
        of_room = self._weights.of_room(tier, unit)
        found = [
            (entry.cost - of_room, state)
            for state, entry in self._table(tier, unit).entries.items()
            if list(state.done) == self._wanted and not any(state.loose)
        ]
        return min(found, default=None)

    def _may_lie_in_one(self, tier: int) -> bool:
        """Return whether rules of higher tiers let all pods lie in one unit of this tier."""
        problem = self._problem
        return all(most > 0 for at, most in problem.limits if at > tier) and all(
            self._keeps(rule, len(problem.own_of[rule.group]), self._pods)
            for rule in problem.rules
            if rule.tier > tier
        )

    def _keeps(self, rule: UnitRule, own: int, pods: Sequence[int]) -> bool:
        """Return whether so many pods per shape, beside own ones, keep a rule in one unit."""
        held = own + pods[self._problem.shape_of[rule.group]]
        return held % rule.multiple == 0 and held <= (rule.most or held)

    def _table(self, tier: int, unit: int) -> _Table:
        """Return what a unit may contribute, by the table of the first one of its kind."""
        kind = self._kinds.of(tier, unit)
        if kind not in self._tables:
            self._tables[kind] = self._built(tier, unit)
        return self._tables[kind]

    def _own_table(self, tier: int, unit: int) -> _Table:
        """Return the table of a unit with its own children, in their order."""
        table = self._table(tier, unit)
        if tier == 0 or table.unit == unit:
            return table
        if (tier, unit) not in self._ordered:
            self._ordered[tier, unit] = self._domain_table(tier, unit, Effort(sys.maxsize))
        return self._ordered[tier, unit]

    def _built(self, tier: int, unit: int) -> _Table:
        table = (
            self._node_table(unit) if tier == 0 else self._domain_table(tier, unit, self._effort)
        )
        table.packed = [
            (self._packing.pack(state), entry.cost, (self._num_pods(state), state.done))
            for state, entry in table.entries.items()
        ]
        return table

    def _domain_table(self, tier: int, unit: int, effort: Effort) -> _Table:
        table = _Table(unit, {})
        sums: dict[int, int] = {0: 0}
        children = self._problem.snapshot.levels.children(tier, unit)
        for child in reversed(children):
            below = self._table(tier - 1, child)
            if len(below.entries) == 1 and self._empty in below.entries:
                continue
            fold = self._folded(sums, below.packed, effort)
            table.folds.append(fold)
            table.children.append(child - children.start)
            sums = {state: row[0] for state, row in fold.items()}
        unpacked = {self._packing.unpack(state): cost for state, cost in sums.items()}
        table.entries = self._closed(tier, unit, unpacked)
        return table

    def _folded(
        self, sums: dict[int, int], below: list[tuple[int, int, Rank]], effort: Effort
    ) -> Fold:
        """Return every sum of a state so far and one of a child, at the least cost.

        Among equals the one with most in the child added last wins. Children are added last first,
        so that the first ones are filled.
        """
        fold: Fold = {}
        packing = self._packing
        bounds, guards, done_at = packing.bounds, packing.guards, packing.done_at
        for left, cost in sums.items():
            effort.spend(len(below))
            for right, more, rank in below:
                state = left + right
                bound = bounds.get(state >> done_at) or packing.bound(state)
                if (bound - state) & guards != guards:
                    continue
                total, known = cost + more, fold.get(state)
                if known is None or total < known[0] or (total == known[0] and rank > known[3]):
                    fold[state] = (total, left, right, rank)
        return fold

    def _room(self, done: tuple[int, ...], above: int) -> tuple[list[int], list[int]]:
        """Return most parts per type, and most loose pods per shape, that may go above a tier."""
        if (done, above) not in self._rooms:
            self._rooms[done, above] = self._contents.room(done, above)
        return self._rooms[done, above]

    def _node_table(self, at: int) -> _Table:
        sums = {
            State(self._empty.done, counts, self._empty.used): self._weights.of_node(at, counts)
            for counts in self._packings(at)
        }
        return _Table(at, self._closed(0, at, sums))

    def _packings(self, at: int) -> Iterator[tuple[int, ...]]:
        """Yield pods per shape that fit a node together."""
        problem, free = self._problem, self._problem.snapshot.free[:, at]
        most = [
            min(int(shape.slots[at]), pods)
            for shape, pods in zip(problem.shapes, self._pods, strict=True)
        ]
        for counts in product(*(range(n + 1) for n in most)):
            self._effort.spend(1)
            need = self._weights.need(counts)
            if len(counts) == 1 or all(
                not need[name] or need[name] <= free[row]  # overfull nodes hold no pods, at least
                for row, name in enumerate(problem.snapshot.resources)
            ):
                yield counts

    def _closed(self, tier: int, unit: int, sums: dict[State, int]) -> dict[State, Entry]:
        """Complete parts in a unit, and keep the states that its tier allows."""
        rows = {state: Entry(cost, state, self._empty.done) for state, cost in sums.items()}
        for index, kind in enumerate(self._types):
            if kind.cap >= tier and self._holds(tier, unit, kind):
                rows = self._completed(tier, index, rows)
        entries = {}
        for state, entry in rows.items():
            kept = self._kept(tier, unit, state)
            if kept is not None:
                pods = self._contents.per_shape(state.done, state.loose)
                cost = entry.cost + self._weights.of_unit(tier, unit, pods)
                entries[kept] = Entry(cost, entry.before, entry.completed)
        return entries

    def _completed(self, tier: int, index: int, rows: dict[State, Entry]) -> dict[State, Entry]:
        kind = self._types[index]
        price = self._weights.of_part(tier, kind)
        found = dict(rows)
        for state, entry in rows.items():
            lacks = self._room(state.done, above=0)[0][index] - state.done[index]
            most = self._contents.most(index, lacks, state.done, state.loose)
            for many in range(1, most + 1):
                done, loose = self._contents.completed(index, many, state.done, state.loose)
                new, cost = State(done, loose, state.used), entry.cost + many * price
                if new not in found or cost < found[new].cost:
                    found[new] = Entry(cost, entry.before, _plus(entry.completed, index, many))
        return found

    def _kept(self, tier: int, unit: int, state: State) -> State | None:
        """Return the state with the unit counted as used; None where a rule forbids it."""
        parts, room = self._room(state.done, above=tier + 1)
        if any(map(gt, state.loose, room)) or any(map(gt, state.done, parts)):
            return None
        problem, pods = self._problem, self._contents.per_shape(state.done, state.loose)
        for rule in problem.rules:
            if rule.tier == tier:
                own = self._own_in(tier, unit, rule.group)
                if not self._keeps(rule, own, pods):
                    return None
        more = [int(at == tier and any(pods)) for at, _ in problem.limits]
        more += [
            (self._own_in(tier, unit, row.group) + pods[problem.shape_of[row.group]]) % row.size
            if row.tier == tier
            else 0
            for row in problem.remainders
        ]
        used = tuple(map(add, state.used, more))
        if any(map(gt, used, self._most_used)):
            return None
        return State(state.done, state.loose, used)

    def _own_in(self, tier: int, unit: int, group: int) -> int:
        """Return how many running pods of a group are in a unit."""
        of_node = self._problem.snapshot.levels.unit[tier]
        return sum(int(of_node[at]) == unit for at in self._problem.own_of[group])

    def _holds(self, tier: int, unit: int, kind: PartType) -> bool:
        of_node = self._problem.snapshot.levels.unit[tier]
        return kind.anchors is None or all(of_node[at] == unit for at in kind.anchors)

    def _num_pods(self, state: State) -> int:
        return sum(self._contents.per_shape(state.done, state.loose))

    def _rebuild(
        self, tier: int, unit: int, state: State
    ) -> tuple[list[PlacedPart], list[list[int]]]:
        """Return the parts complete in a unit, and positions of loose pods per shape in order."""
        table, levels = self._own_table(tier, unit), self._problem.snapshot.levels
        entry = table.entries[state]
        parts: list[PlacedPart] = []
        loose: list[list[int]] = [[] for _ in self._problem.shapes]
        if tier == 0:
            loose = [[unit] * count for count in entry.before.loose]
        chosen, at = [], self._packing.pack(entry.before)
        for child, fold in zip(reversed(table.children), reversed(table.folds), strict=True):
            _, at, packed, _ = fold[at]
            chosen.append((child, self._packing.unpack(packed)))
        first = 0 if tier == 0 else levels.children(tier, unit).start
        for child, below in chosen:
            more, rest = self._rebuild(tier - 1, first + child, below)
            parts += more
            loose = [[*a, *b] for a, b in zip(loose, rest, strict=True)]
        for index, many in enumerate(entry.completed):
            for _ in range(many):
                parts.append(_taken(self._types[index], parts, loose))
        return parts, loose


def _taken(kind: PartType, parts: list[PlacedPart], loose: list[list[int]]) -> PlacedPart:
    """Make a part of the first loose pods of its shape, or of the first parts of its types."""
    if not kind.members:
        nodes = loose[kind.shape][: kind.size]
        del loose[kind.shape][: kind.size]
        return PlacedPart(kind, nodes)
    members = [
        parts.pop(next(at for at, row in enumerate(parts) if row.kind == inner))
        for inner, many in kind.members
        for _ in range(many)
    ]
    return PlacedPart(kind, [], tuple(members))


def _plus(row: tuple[int, ...], index: int, change: int) -> tuple[int, ...]:
    return (*row[:index], row[index] + change, *row[index + 1 :])
