"""Exact search over the tree for any mix of groups, under an effort budget.

Bottom-up over units: a table maps a *state* of a unit, namely how many parts of each type are
complete in it and how many pods of each shape wait for their part to be completed further up, to
the least cost. Costs are additive, so a lexicographic vector packed into one integer is
minimised exactly. Tables are built only below units that may hold the job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from operator import add, gt
from typing import NamedTuple

from generator.placement.capacity import Ints
from generator.placement.contents import Contents
from generator.placement.effort import Effort
from generator.placement.found import Found
from generator.placement.parts import Part, PartType, PlacedPart, all_types, type_key
from generator.placement.problem import Problem, UnitRule
from generator.placement.weights import Weights


class State(NamedTuple):
    """What a unit contributes."""

    done: tuple[int, ...]
    """Complete parts per type."""
    loose: tuple[int, ...]
    """Pods per shape that wait for their part."""
    used: tuple[int, ...]
    """Units used per limited tier."""


class Entry(NamedTuple):
    """How a state of a unit is reached at the least cost."""

    cost: int
    before: State
    """Sum of the children, or the pods of the node."""
    completed: tuple[int, ...]
    """Parts per type completed in this very unit."""


Folds = list[dict[State, tuple[int, State, State]]]
"""Per child: sum so far -> (cost, sum before, the child's state)."""


@dataclass
class _Table:
    entries: dict[State, Entry]
    folds: Folds = field(default_factory=list)
    children: list[int] = field(default_factory=list)


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
        self._most_used = [most for _, most in problem.limits]
        self._rooms: dict[tuple[tuple[int, ...], int], tuple[list[int], list[int]]] = {}
        self._tables: dict[tuple[int, int], _Table] = {}
        self._node_tables: dict[tuple[object, ...], _Table] = {}
        self._empty = State(
            (0,) * len(self._types), (0,) * len(problem.shapes), (0,) * len(problem.limits)
        )
        self._pods = self._contents.of_job

    def best(self, tier: int, units: Ints) -> Found | None:
        """Return the best placement whose domain is one of these units of a tier.

        Raises:
            EffortSpent: the budget ended.
        """
        if not self._may_lie_in_one(tier):
            return None
        goals = [
            (entry.cost + self._weights.of_domain(tier, int(unit)), int(unit), state)
            for unit in units
            for state, entry in self._table(tier, int(unit)).entries.items()
            if list(state.done) == self._wanted and not any(state.loose)
        ]
        if not goals:
            return None
        _, unit, state = min(goals)
        parts, _ = self._rebuild(tier, unit, state)
        return Found(parts, is_proved=True)

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
        if (tier, unit) not in self._tables:
            self._tables[tier, unit] = self._built(tier, unit)
        return self._tables[tier, unit]

    def _built(self, tier: int, unit: int) -> _Table:
        if tier == 0:
            return self._node_table(unit)
        levels = self._problem.snapshot.levels
        table = _Table({})
        sums: dict[State, int] = {self._empty: 0}
        for child in reversed(levels.children(tier, unit)):
            below = self._table(tier - 1, child).entries
            if len(below) == 1 and self._empty in below:
                continue
            fold = self._folded(sums, below)
            table.folds.append(fold)
            table.children.append(child)
            sums = {state: entry[0] for state, entry in fold.items()}
        table.entries = self._closed(tier, unit, sums)
        return table

    def _folded(
        self, sums: dict[State, int], below: dict[State, Entry]
    ) -> dict[State, tuple[int, State, State]]:
        fold: dict[State, tuple[int, State, State]] = {}
        self._effort.spend(len(sums) * len(below))
        for left, cost in sums.items():
            for right, entry in below.items():
                state = self._sum(left, right)
                if state is None:
                    continue
                total, known = cost + entry.cost, fold.get(state)
                if known is None or self._is_better(total, right, known):
                    fold[state] = (total, left, right)
        return fold

    def _is_better(self, cost: int, right: State, known: tuple[int, State, State]) -> bool:
        """Return whether a sum costs less, or as much with more of it in the child added last.

        Children are added last first, so among equals the first ones are filled.
        """
        if cost != known[0]:
            return cost < known[0]
        return (self._num_pods(right), right.done) > (self._num_pods(known[2]), known[2].done)

    def _sum(self, left: State, right: State) -> State | None:
        """Return the two together; None where that is more than is asked for or allowed."""
        done = tuple(map(add, left.done, right.done))
        parts, pods = self._room(done, above=0)
        if any(map(gt, done, parts)):
            return None
        loose = tuple(map(add, left.loose, right.loose))
        if any(map(gt, loose, pods)):
            return None
        used = tuple(map(add, left.used, right.used))
        return None if any(map(gt, used, self._most_used)) else State(done, loose, used)

    def _room(self, done: tuple[int, ...], above: int) -> tuple[list[int], list[int]]:
        """Return most parts per type, and most loose pods per shape, that may go above a tier."""
        if (done, above) not in self._rooms:
            self._rooms[done, above] = self._contents.room(done, above)
        return self._rooms[done, above]

    def _node_table(self, at: int) -> _Table:
        problem = self._problem
        free = tuple(int(quantity) for quantity in problem.snapshot.free[:, at])
        allowed = tuple(bool(shape.allowed[at]) for shape in problem.shapes)
        misses = tuple(int(s.misses[at]) for s in problem.shapes if s.misses is not None)
        is_told_apart = at in problem.own or (
            problem.eviction is not None and at in problem.eviction.of_node
        )
        if problem.node_weights is not None:
            misses = (*misses, int(problem.node_weights.rank[at]))
        key = (at,) if is_told_apart else (free, allowed, misses)
        if key not in self._node_tables:
            sums = {
                State(self._empty.done, counts, self._empty.used): self._weights.of_node(at, counts)
                for counts in self._packings(at)
            }
            self._node_tables[key] = _Table(self._closed(0, at, sums))
        return self._node_tables[key]

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
                need[name] <= free[row] for row, name in enumerate(problem.snapshot.resources)
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
        levels, problem = self._problem.snapshot.levels, self._problem
        pods = self._contents.per_shape(state.done, state.loose)
        for rule in problem.rules:
            if rule.tier == tier:
                own = sum(levels.unit[tier][at] == unit for at in problem.own_of[rule.group])
                if not self._keeps(rule, int(own), pods):
                    return None
        used = tuple(
            n + (at == tier and any(pods))
            for n, (at, _) in zip(state.used, problem.limits, strict=True)
        )
        if any(n > most for n, (_, most) in zip(used, problem.limits, strict=True)):
            return None
        return State(state.done, state.loose, used)

    def _holds(self, tier: int, unit: int, kind: PartType) -> bool:
        of_node = self._problem.snapshot.levels.unit[tier]
        return kind.anchors is None or all(of_node[at] == unit for at in kind.anchors)

    def _num_pods(self, state: State) -> int:
        return sum(self._contents.per_shape(state.done, state.loose))

    def _rebuild(
        self, tier: int, unit: int, state: State
    ) -> tuple[list[PlacedPart], list[list[int]]]:
        """Return the parts complete in a unit, and positions of loose pods per shape in order."""
        table = self._table(tier, unit)
        entry = table.entries[state]
        parts: list[PlacedPart] = []
        loose: list[list[int]] = [[] for _ in self._problem.shapes]
        if tier == 0:
            loose = [[unit] * count for count in entry.before.loose]
        chosen, at = [], entry.before
        for child, fold in zip(reversed(table.children), reversed(table.folds), strict=True):
            _, at, below = fold[at]
            chosen.append((child, below))
        for child, below in chosen:
            more, rest = self._rebuild(tier - 1, child, below)
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
