"""Exact search over the tree for any mix of groups, within a step budget.

Bottom-up over units, a table maps each *state* of a unit to its lowest cost. A state is how many
parts of each type are complete in the unit, and how many pods of each shape wait for their part to
be completed further up. Costs are additive, so a lexicographic vector that is packed into one
integer is minimised exactly. Tables are built only below units that may hold the job.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from operator import gt, itemgetter
from typing import NamedTuple

import numpy as np

from generator.placement.budget import Budget, BudgetExhausted
from generator.placement.cluster.levels import IntArray
from generator.placement.cluster.shapes import sum_requests
from generator.placement.problem.problem import Problem
from generator.placement.problem.request_parts import (
    PartPlacement,
    PartType,
    PlacedPart,
    RequestPart,
    all_types,
    type_sort_key,
)
from generator.placement.solve.equivalence import EquivalenceClasses
from generator.placement.solve.unit_states import (
    CostEncoding,
    PartContents,
    StateEncoding,
    TierRules,
    UnitState,
)


class TableEntry(NamedTuple):
    """How a state of a unit is reached at the lowest cost."""

    cost: int
    sum_state: UnitState
    """Sum of the states of the children, or the pods of the node."""
    num_completed: tuple[int, ...]
    """Parts per type that are completed at this unit."""


StateRank = tuple[int, tuple[int, ...]]
"""(pods in a state, its parts): decides between sums of equal cost."""
FoldTable = dict[int, tuple[int, int, int, StateRank]]
"""Sum so far -> (cost, sum before, state of the child, its rank); states are encoded."""


@dataclass
class _UnitTable:
    """The possible contributions of all units of one class."""

    unit: int
    """The unit whose children were added."""
    entries: dict[UnitState, TableEntry]
    folds: list[FoldTable] = field(default_factory=list)
    """Per child, the last one first."""
    children: list[int] = field(default_factory=list)
    """Offsets of the added children among the children of the unit."""
    packed: list[tuple[int, int, StateRank]] = field(default_factory=list)
    """The entries as (encoded state, cost, rank)."""


class TreeSearch:
    """The tables of one problem, for one choice of pods per group and one bound on parts."""

    def __init__(self, problem: Problem, parts: Sequence[RequestPart], budget: Budget) -> None:
        """Prepare the encodings; no table is built yet.

        Args:
            problem: the request and the cluster.
            parts: all parts of the job; inner parts are inside their set.
            budget: the budget, shared with other searches of the same query.
        """
        self._problem, self.parts, self._budget = problem, parts, budget
        part_counts = Counter(part.part_type for part in parts)
        self._types = all_types(sorted(part_counts, key=type_sort_key))
        self._num_parts = [part_counts[part_type] for part_type in self._types]
        self._contents = PartContents(self._types, self._num_parts, len(problem.shapes))
        self._cost_encoding = CostEncoding(problem, sum(part.part_type.size for part in parts))
        self._job_pods = self._contents.job_pods
        self._rules = TierRules(problem, self._job_pods)
        self._max_above = cache(self._contents.max_above)
        self._tables: dict[int, _UnitTable] = {}
        self._own_tables: dict[tuple[int, int], _UnitTable] = {}
        self._equivalence = EquivalenceClasses(problem, self._job_pods)
        self._empty_state = UnitState(
            (0,) * len(self._types), (0,) * len(problem.shapes), (0,) * len(self._rules.max_sums)
        )
        self._state_encoding = StateEncoding(
            self._contents, self._empty_state, self._rules.max_sums
        )

    def find_best(self, tier: int, units: IntArray) -> PartPlacement | None:
        """Return the best placement whose domain is one of these units of a tier.

        If the budget ends, it is the best in the units searched so far.

        Raises:
            BudgetExhausted: the budget ended before any placement was found.
        """
        if not self._rules.may_lie_in_one(tier):
            return None
        goals: list[tuple[int, int, UnitState]] = []
        is_proved = True
        try:
            for class_units in self._group_by_class(tier, units):
                goal = self._best_goal(tier, int(class_units[0]))
                if goal is not None:
                    cost, unit = self._cost_encoding.cheapest_domain(tier, class_units)
                    goals.append((goal[0] + cost, unit, goal[1]))
        except BudgetExhausted:
            if not goals:
                raise
            is_proved = False
        if not goals:
            return None
        _, unit, state = min(goals)
        parts, _ = self._rebuild(tier, unit, state)
        return PartPlacement(parts, is_proved)

    def _group_by_class(self, tier: int, units: IntArray) -> list[IntArray]:
        """Return the units grouped by class, ordered by the first unit of each class."""
        classes = self._equivalence.classes_by_content(tier, units)
        order = classes.argsort(kind="stable")
        cuts = np.flatnonzero(np.diff(classes[order])) + 1
        return sorted(np.split(units[order], cuts), key=itemgetter(0))

    def _best_goal(self, tier: int, unit: int) -> tuple[int, UnitState] | None:
        """Return the lowest cost of the whole job inside a unit, and its state."""
        slots_cost = self._cost_encoding.slots_cost(tier, unit)
        goals = [
            (entry.cost - slots_cost, state)
            for state, entry in self._table(tier, unit).entries.items()
            if list(state.complete_parts) == self._num_parts and not any(state.loose_pods)
            if self._rules.are_met(tier, state.num_used)
        ]
        return min(goals, default=None)

    def _table(self, tier: int, unit: int) -> _UnitTable:
        """Return the possible contributions of a unit, from the table of its class."""
        class_number = self._equivalence.class_of(tier, unit)
        if class_number not in self._tables:
            self._tables[class_number] = self._build_table(tier, unit)
        return self._tables[class_number]

    def _own_table(self, tier: int, unit: int) -> _UnitTable:
        """Return a table that was built from this unit's own children, in order."""
        table = self._table(tier, unit)
        if tier == 0 or table.unit == unit:
            return table
        if (tier, unit) not in self._own_tables:
            self._own_tables[tier, unit] = self._domain_table(
                tier, unit, self._budget.limited_to(sys.maxsize)
            )
        return self._own_tables[tier, unit]

    def _build_table(self, tier: int, unit: int) -> _UnitTable:
        table = (
            self._node_table(unit) if tier == 0 else self._domain_table(tier, unit, self._budget)
        )
        table.packed = [
            (
                self._state_encoding.encode(state),
                entry.cost,
                (self._num_pods(state), state.complete_parts),
            )
            for state, entry in table.entries.items()
        ]
        return table

    def _domain_table(self, tier: int, unit: int, budget: Budget) -> _UnitTable:
        table = _UnitTable(unit, {})
        sums: dict[int, int] = {0: 0}
        children = self._problem.snapshot.levels.children(tier, unit)
        for child in reversed(children):
            below = self._table(tier - 1, child)
            if len(below.entries) == 1 and self._empty_state in below.entries:
                continue
            fold = self._fold_child(sums, below.packed, budget)
            table.folds.append(fold)
            table.children.append(child - children.start)
            sums = {state: row[0] for state, row in fold.items()}
        unpacked = {self._state_encoding.decode(state): cost for state, cost in sums.items()}
        table.entries = self._close_states(tier, unit, unpacked, budget)
        return table

    def _fold_child(
        self, sums: dict[int, int], child_entries: list[tuple[int, int, StateRank]], budget: Budget
    ) -> FoldTable:
        """Return every sum of a state so far and a child's state, at the lowest cost.

        Of sums of equal cost, the one with most pods in the child added last wins. Children are
        added in reverse order, so that the first ones are filled.
        """
        fold: FoldTable = {}
        packing = self._state_encoding
        bounds, guards, done_at = packing.bounds, packing.guards, packing.parts_shift
        for sum_state, cost in sums.items():
            budget.spend(len(child_entries))
            for child_state, extra_cost, rank in child_entries:
                state = sum_state + child_state
                bound = bounds.get(state >> done_at) or packing.bound(state)
                if (bound - state) & guards != guards:
                    continue
                total, best = cost + extra_cost, fold.get(state)
                if best is None or total < best[0] or (total == best[0] and rank > best[3]):
                    fold[state] = (total, sum_state, child_state, rank)
        return fold

    def _node_table(self, node: int) -> _UnitTable:
        sums = {
            UnitState(self._empty_state.complete_parts, counts, self._empty_state.num_used): cost
            for counts in self._pods_that_fit(node)
            if (cost := self._cost_encoding.node_cost(node, counts)) is not None
        }
        return _UnitTable(node, self._close_states(0, node, sums, self._budget))

    def _pods_that_fit(self, node: int) -> Iterator[tuple[int, ...]]:
        """Yield the pods per shape that fit a node together."""
        problem, free = self._problem, self._problem.snapshot.free[:, node]
        max_pods = [
            min(int(shape.slots[node]), pods)
            for shape, pods in zip(problem.shapes, self._job_pods, strict=True)
        ]
        for counts in product(*(range(count + 1) for count in max_pods)):
            self._budget.spend(1)
            need = sum_requests(problem.shapes, counts)
            if len(counts) == 1 or all(
                not need[name] or need[name] <= free[row]  # free may be below 0
                for row, name in enumerate(problem.snapshot.resources)
            ):
                yield counts

    def _close_states(
        self, tier: int, unit: int, sums: dict[UnitState, int], budget: Budget
    ) -> dict[UnitState, TableEntry]:
        """Complete parts in a unit, and return the states that the rules of its tier allow."""
        open_entries = {
            state: TableEntry(cost, state, self._empty_state.complete_parts)
            for state, cost in sums.items()
        }
        for index, part_type in enumerate(self._types):
            if part_type.max_tier >= tier and self._contains_running(tier, unit, part_type):
                budget.check()
                open_entries = self._complete_type(tier, index, open_entries)
        entries: dict[UnitState, TableEntry] = {}
        for state, entry in open_entries.items():
            budget.check()
            closed = self._apply_rules(tier, unit, state)
            if closed is not None:
                pods = self._contents.pods_per_shape(state.complete_parts, state.loose_pods)
                cost = entry.cost + self._cost_encoding.unit_cost(tier, unit, pods)
                if closed not in entries or cost < entries[closed].cost:
                    entries[closed] = TableEntry(cost, entry.sum_state, entry.num_completed)
        return entries

    def _complete_type(
        self, tier: int, index: int, entries: dict[UnitState, TableEntry]
    ) -> dict[UnitState, TableEntry]:
        part_type = self._types[index]
        cost_per_part = self._cost_encoding.part_cost(tier, part_type)
        completed = dict(entries)
        for state, entry in entries.items():
            num_missing = (
                self._max_above(state.complete_parts, above=0)[0][index]
                - state.complete_parts[index]
            )
            max_count = self._contents.max_completable(
                index, num_missing, state.complete_parts, state.loose_pods
            )
            for count in range(1, max_count + 1):
                parts, loose = self._contents.complete_parts(
                    index, count, state.complete_parts, state.loose_pods
                )
                new, cost = (
                    UnitState(parts, loose, state.num_used),
                    entry.cost + count * cost_per_part,
                )
                if new not in completed or cost < completed[new].cost:
                    completed[new] = TableEntry(
                        cost, entry.sum_state, _add_at(entry.num_completed, index, count)
                    )
        return completed

    def _apply_rules(self, tier: int, unit: int, state: UnitState) -> UnitState | None:
        """Return the state with the unit counted as used; None if a rule forbids it."""
        parts, max_loose = self._max_above(state.complete_parts, above=tier + 1)
        if any(map(gt, state.loose_pods, max_loose)) or any(map(gt, state.complete_parts, parts)):
            return None
        pods = self._contents.pods_per_shape(state.complete_parts, state.loose_pods)
        used = self._rules.apply(tier, unit, pods, state.num_used)
        return None if used is None else UnitState(state.complete_parts, state.loose_pods, used)

    def _contains_running(self, tier: int, unit: int, part_type: PartType) -> bool:
        of_node = self._problem.snapshot.levels.unit_of_node[tier]
        return part_type.running_span is None or all(
            of_node[node] == unit for node in part_type.running_span
        )

    def _num_pods(self, state: UnitState) -> int:
        return sum(self._contents.pods_per_shape(state.complete_parts, state.loose_pods))

    def _rebuild(
        self, tier: int, unit: int, state: UnitState
    ) -> tuple[list[PlacedPart], list[list[int]]]:
        """Return the parts completed in a unit, and the loose positions per shape, in order."""
        table, levels = self._own_table(tier, unit), self._problem.snapshot.levels
        entry = table.entries[state]
        parts: list[PlacedPart] = []
        loose: list[list[int]] = [[] for _ in self._problem.shapes]
        if tier == 0:
            loose = [[unit] * count for count in entry.sum_state.loose_pods]
        chosen, packed_state = [], self._state_encoding.encode(entry.sum_state)
        for child, fold in zip(reversed(table.children), reversed(table.folds), strict=True):
            _, packed_state, packed, _ = fold[packed_state]
            chosen.append((child, self._state_encoding.decode(packed)))
        first = 0 if tier == 0 else levels.children(tier, unit).start
        for child, child_state in chosen:
            child_parts, child_loose = self._rebuild(tier - 1, first + child, child_state)
            parts += child_parts
            loose = [[*a, *b] for a, b in zip(loose, child_loose, strict=True)]
        for index, num_completed in enumerate(entry.num_completed):
            for _ in range(num_completed):
                parts.append(_make_part(self._types[index], parts, loose))
        return parts, loose


def _make_part(part_type: PartType, parts: list[PlacedPart], loose: list[list[int]]) -> PlacedPart:
    """Build a part from the first loose pods of its shape, or the first parts of its types."""
    if not part_type.members:
        nodes = loose[part_type.shape][: part_type.size]
        del loose[part_type.shape][: part_type.size]
        return PlacedPart(part_type, nodes)
    members = [
        parts.pop(next(index for index, part in enumerate(parts) if part.part_type == inner))
        for inner, count in part_type.members
        for _ in range(count)
    ]
    return PlacedPart(part_type, [], tuple(members))


def _add_at(counts: tuple[int, ...], index: int, change: int) -> tuple[int, ...]:
    return (*counts[:index], counts[index] + change, *counts[index + 1 :])
